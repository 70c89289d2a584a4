"""A workaround for one defect of Snakemake: https://github.com/snakemake/snakemake/pull/3744.

While there is a limit on the rate of jobs (and there always is one, by default 100 a second),
every pass of the scheduler starts a timer, and the end of the timer starts the next pass. Every
finished job starts another such chain, which lasts as long as any job is ready. After 90 finished
jobs there are 90 passes a second, and each works out the parameters and resources of all ready
jobs: the main process takes a whole core from the work. https://github.com/snakemake/snakemake/issues/2967
describes the same symptoms.

No setting helps: the command line has no value for "no limit", and with a long timespan Snakemake
does not end before its last timer ends.

`tests/workflow/test_snakemake_3744.py` fails when Snakemake no longer has this defect. Then delete
this file, that test, and the call in `workflow/rules/start.smk`.
"""

import threading


def wake_the_scheduler_only_when_jobs_wait() -> None:
    """Start a timer only if the limit on the rate holds jobs back, and one timer at a time.

    The end of a job wakes the scheduler in any case. One method of Snakemake's class for the
    scheduler is replaced.
    """
    # Jobs use this library in environments that do not have Snakemake.
    from snakemake.scheduling.job_scheduler import JobScheduler

    def wake_later(self, delay: float) -> None:
        limiter = self.job_rate_limiter
        # The limiter forgets old jobs only when the scheduler asks it for free slots. So this is
        # the number of jobs at the last choice of jobs, however long their start has taken.
        holds_back = limiter is not None and len(limiter._jobs) >= limiter.max_jobs
        if not (holds_back or self.workflow.dag.has_unfinished_queue_input_jobs()):
            return
        pending = getattr(self, "_pending_timer", None)
        if pending is not None and not pending.finished.is_set():
            return
        # A daemon, because Snakemake must not wait for it at its end.
        self._pending_timer = threading.Timer(delay, self._open_jobs.release)
        self._pending_timer.daemon = True
        self._pending_timer.start()

    JobScheduler._schedule_reevalutation = wake_later
