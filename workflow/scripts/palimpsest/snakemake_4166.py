"""A workaround for one defect of Snakemake: https://github.com/snakemake/snakemake/issues/4166.

Once a job must run, Snakemake no longer looks at the jobs that depend on it, because they run as
well. But a job does not run if its only inputs from the other job are marked `ancient`. Snakemake
then forgets to ask whether the job has another reason to run, such as missing outputs. The command
does a part of what was asked for, and ends without an error.

`tests/workflow/test_snakemake_4166.py` fails when Snakemake no longer has this defect. Then delete
this file, that test, and the call in `workflow/rules/start.smk`.
"""


def look_behind_ancient_inputs() -> None:
    """Ask each job behind an `ancient` input whether the job must run for another reason.

    Two methods of Snakemake's class for the graph of jobs are replaced. While Snakemake collects
    the jobs that run because another job runs, the search stops at inputs that are `ancient`.
    """
    # Jobs use this library in environments that do not have Snakemake.
    from snakemake.dag import DAG

    update, search = DAG.update_needrun, DAG.bfs

    async def update_needrun(self, *arguments, **named) -> None:
        self.stops_at_ancient = True
        try:
            await update(self, *arguments, **named)
        finally:
            self.stops_at_ancient = False

    def bfs(self, direction, *jobs, **named):
        if direction is self.depending and getattr(self, "stops_at_ancient", False):
            direction = ByRecentInputs(direction)
        return search(self, direction, *jobs, **named)

    DAG.update_needrun, DAG.bfs = update_needrun, bfs


class ByRecentInputs:
    """The jobs that depend on a job by an input that is not `ancient`, with these inputs."""

    def __init__(self, depending):
        self.depending = depending

    def __getitem__(self, job) -> dict:
        of_job = self.depending[job].items()
        return {other: files for other, files in of_job if not all(f.is_ancient for f in files)}
