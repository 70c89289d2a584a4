"""A workaround for a defect: https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/456.

Snakemake adds up the times of a group's jobs. If no partition allows the sum, or anything else that
a submission requests, SLURM rejects the submission, and the plugin reports a failed job without a
reason: hours after the start, if only the last attempt requests too much. So all submissions are
checked when Snakemake knows all jobs and groups, before it starts the first, and in a dry run.

`tests/workflow/test_executor_slurm_456.py` fails when the plugin refuses such a request itself.
Then delete this file, that test, and the call in `workflow/rules/start.smk`.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence

from palimpsest import paths
from palimpsest.errors import UserError, refusing
from palimpsest.launch import handed_targets
from palimpsest.slurm.partitions import (
    Request,
    Shortage,
    check_against_slurm,
    note_on_placeholders,
    read_partitions,
    shortage,
)
from palimpsest.slurm.profile import Profile

PLAN = "plan"  # the rule, and the target
REMEDIES = {
    "runtime": "lower hardware/longest_job_hours (a training resumes at its next attempt) or "
    "set-resources/{rule}/runtime",
    "mem_mb": "lower hardware/main_memory_gb (no attempt requests more) or "
    "set-resources/{rule}/mem_mb",
    "threads": "lower processes in the recipe or set-threads/{rule}",
    "gpu": "lower processes in the recipe, or set hardware/twin_gpus to 0 for twins",
    None: "lower what set-resources/{rule} requests",
}


def refuse_what_fits_nowhere(profile: Profile) -> None:
    """Let Snakemake end in one line if a job or a group requests more than any partition has.

    The start of Snakemake's scheduler is replaced.
    """
    if profile.partitions is None:
        return
    partitions = read_partitions(profile.partitions)
    if not check_against_slurm(profile.partitions, partitions):
        note = note_on_placeholders(profile.partitions, partitions)
        if note is not None:
            print(f"note: {note}", file=sys.stderr)
    from snakemake.scheduling.job_scheduler import JobScheduler

    start = JobScheduler.__init__

    def check_and_start(self, workflow, *arguments, **options) -> None:
        with refusing():
            _check(workflow.dag, profile, partitions)
        if any(job.rule.name == PLAN for job in workflow.dag.needrun_jobs()):
            _check_what_is_planned()
        start(self, workflow, *arguments, **options)

    JobScheduler.__init__ = check_and_start


def _check(dag, profile: Profile, partitions: Sequence) -> None:
    """Raise `UserError` with the first submission that fits nowhere, and the number of others."""
    cores = dag.workflow.global_resources["_cores"]
    if profile.cores is None:  # a dry run cuts the threads of each job to 1
        dag.workflow.global_resources["_cores"] = None
    misfits = [_first_misfit(submission, partitions) for submission in _submissions(dag)]
    refused = [misfit for misfit in misfits if misfit is not None]
    dag.workflow.global_resources["_cores"] = cores
    if not refused:
        return
    submission, attempt, short = refused[0]
    more = f" (misfits in all: {len(refused)})" if refused[1:] else ""
    raise UserError(
        f"{profile.partitions}: no partition takes {_named(submission)}, which requests at attempt "
        f"{attempt} of {submission.restart_times + 1}: {short}. {_remedy(submission, short)}, or "
        f"describe a partition that has it{more}"
    )


def _submissions(dag) -> Iterator:
    """Each job that goes to SLURM, and each group of such jobs once."""
    seen = set()
    for job in dag.needrun_jobs():
        submission = dag.get_job_group(job) or job
        stays_here = job.rule.norun or job.rule.name in dag.workflow._localrules
        if submission not in seen and (submission.is_group() or not stays_here):
            seen.add(submission)
            yield submission


def _first_misfit(submission, partitions: Sequence) -> tuple | None:
    """The submission, its first attempt that fits nowhere, and why; None if all attempts fit.

    Requests grow with the attempts, so the last attempt is looked at first.
    """
    now, last = submission.attempt, submission.restart_times + 1
    try:
        if shortage(_request(submission, last), partitions) is None:
            return None
        attempts = range(1, last + 1)
        shortages = ((n, shortage(_request(submission, n), partitions)) for n in attempts)
        return next((submission, n, short) for n, short in shortages if short is not None)
    finally:
        submission.attempt = now


def _request(submission, attempt: int) -> Request:
    submission.attempt = attempt
    if not submission.is_group():
        return Request(submission.rule.name, dict(submission.resources), submission.threads)
    from snakemake.resources import GroupResources

    # In a dry run, the group's own property adds up what its jobs would take on one machine.
    resources = GroupResources.basic_layered(
        toposorted_jobs=submission.toposorted,
        constraints=submission.global_resources,
        run_local=False,
        additive_resources=["runtime"],
        sortby=["runtime"],
    )
    return Request(submission.groupid, resources, resources["_cores"])


def _named(submission) -> str:
    jobs = _jobs(submission)
    if len(jobs) > 1:
        return f"the group {submission.groupid} of {len(jobs)} jobs"
    values = ", ".join(f"{name} {value}" for name, value in jobs[0].wildcards.items())
    return f"a job of {jobs[0].rule.name}{f' ({values})' if values else ''}"


def _jobs(submission) -> list:
    return list(submission.jobs) if submission.is_group() else [submission]


def _remedy(submission, short: Shortage) -> str:
    jobs = _jobs(submission)
    if len(jobs) == 1:
        remedy = REMEDIES[short.resource].format(rule=jobs[0].rule.name)
    elif short.resource == "runtime":
        label = jobs[0].dag.workflow.parent_groupids.get(submission.groupid, submission.groupid)
        remedy = f"lower group-components/{label}, or set-resources/.../runtime of its rules"
    else:
        remedy = f"lower set-resources/.../{short.resource or 'runtime'} of its rules"
    return remedy[0].upper() + remedy[1:]


def words_to_check(words: Sequence[str], targets: Iterable[str]) -> list[str]:
    """The command of a plan without the plan: its other targets, or else all."""
    if {*targets} - {PLAN, paths.PLAN}:
        return [word for word in words if word not in (PLAN, paths.PLAN, "--until")]
    return ["all" if word in (PLAN, paths.PLAN) else word for word in words]


def _check_what_is_planned() -> None:
    """Check all jobs that the plan is of: by a dry run of the same command."""
    words = words_to_check(sys.argv[1:], handed_targets())
    command = [sys.executable, "-m", "snakemake", "--quiet", "all", "--dry-run", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
        sys.exit(lines[0] if lines else done.stdout)
