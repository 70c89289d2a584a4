"""A workaround for one defect of Snakemake: https://github.com/snakemake/snakemake/issues/3808.

Snakemake records a failed job as if the job had succeeded. When an ordinary job fails, Snakemake
deletes its outputs, so that the wrong record does no harm. When a job with `update()` fails,
Snakemake copies its older outputs back, and the copies have a new date. The same command then finds
nothing to do, although these outputs were made from other data or with other parameters.

`tests/workflow/test_snakemake_3808.py` fails when Snakemake no longer has this defect. Then delete
this file, that test, and the call in `workflow/rules/start.smk`.
"""

from pathlib import Path


def keep_outputs_of_failed_updates() -> None:
    """Keep the older outputs of a failed `update()` job, with their dates and their records.

    Two methods of Snakemake's class for the records of outputs are replaced. An output without a
    record is deleted, as Snakemake deletes the outputs of ordinary jobs.
    """
    # Jobs use this library in environments that do not have Snakemake.
    from snakemake.persistence import PersistenceBase

    record = PersistenceBase.finished
    failed: set[str] = set()

    def keep(self, path: Path) -> bool:
        self.cleanup_backup(path)
        if not path.exists() or self._read_record(str(path)) is None:
            return False
        failed.add(str(path))
        return True

    async def record_unless_failed(self, job) -> None:
        outputs = {str(path) for path in job.output}
        if failed.isdisjoint(outputs):
            await record(self, job)
            return
        failed.difference_update(outputs)
        for path in job.output:
            self._unmark_incomplete(self._get_key(path))

    PersistenceBase.restore_output, PersistenceBase.finished = keep, record_unless_failed
