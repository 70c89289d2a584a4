"""The trainings, jobs and files of the block `unlearning/judge`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property

from palimpsest import paths
from palimpsest.configuration.settings import Settings
from palimpsest.regimes import Replicates
from palimpsest.requests import TRACE, WEIGHTS, Runs
from palimpsest.unlearning import kinds
from palimpsest.unlearning.interventions import ORIGINAL, RETAIN, TRACED
from palimpsest.unlearning.run.jobs import (
    UnlearningJobs,
    UnlearningRun,
    dataset_of,
    jobs_of,
    unlearning_runs_of,
)
from palimpsest.unlearning.run.setups import NONE, RETRAIN

PROBE = "palimpsest.unlearning.judging.probe:probe"  # the query
VARIANTS = {NONE: ORIGINAL, TRACED: TRACED, RETRAIN: RETAIN}


@cache
def judge_of(settings: Settings) -> JudgeJobs | None:
    jobs = jobs_of(settings)
    return JudgeJobs(jobs) if jobs.block["judge"] else None


class JudgeJobs:
    """The trainings, jobs and files of the block `unlearning/judge`; the block must exist.

    There are `n` original models, `n` models that are trained on an eighth of the forget strings,
    and 2 n retrained models: the first n of them are what the others are compared with.
    """

    def __init__(self, jobs: UnlearningJobs):
        self.jobs, self.block = jobs, jobs.block["judge"]

    @cached_property
    def unlearning_runs(self) -> list[UnlearningRun]:
        problems = {"languages": self.jobs.block["languages"], "seeds": self.block["seeds"]}
        return unlearning_runs_of(self.jobs.block, problems)

    def requests(self) -> Iterator[Runs]:
        for one in self.unlearning_runs:
            for name in VARIANTS:
                yield self.replicates(one, name)

    def replicates(self, unlearning_run: UnlearningRun, name: str) -> Runs:
        return Runs(
            unlearning_run.model,
            unlearning_run.language,
            unlearning_run.size,
            VARIANTS[name],
            seeds=(unlearning_run.seed,),
            recipe=unlearning_run.recipe,
            regime=Replicates(range(self.n(name)), self.jobs.runs_per_job(unlearning_run.model)),
            keeps=frozenset({TRACE, WEIGHTS}),
        )

    def n(self, name: str) -> int:
        """The number of models of a method, or of one of `VARIANTS`."""
        return (2 if name == RETRAIN else 1) * self.block["n"]

    @property
    def names(self) -> list[str]:
        """`VARIANTS`, and the methods."""
        return [*VARIANTS, *self.block["methods"]]

    @property
    def n_unlearnings(self) -> int:
        """The number of models that a job asks."""
        return sum(map(self.n, self.names))

    def weights(self, unlearning_run: UnlearningRun) -> list[str]:
        return [
            path
            for name in VARIANTS
            for path in self.replicates(unlearning_run, name).paths(paths.REPLICATES_WEIGHTS)
        ]

    def values(self) -> dict:
        """What a job is asked: the values of the query `PROBE`."""
        models: Mapping[str, dict] = {
            name: {
                "variant": VARIANTS.get(name, ORIGINAL),
                "n": self.n(name),
                "phases": [] if name in VARIANTS else self.jobs.table[name].written,
            }
            for name in self.names
        }
        return {
            "models": models,
            "cutoff": self.jobs.block["cutoff"],
            "relearn": self.block["relearn"],
        }

    # Files

    def of(self, model: str, language: str) -> list[UnlearningRun]:
        """The problems of one table."""
        return [
            one for one in self.unlearning_runs if (one.model, one.language) == (model, language)
        ]

    def probed(self, problems: list[UnlearningRun]) -> list[str]:
        return [
            kinds.PROBED.path.format(**vars(one), method=name)
            for one in problems
            for name in self.names
        ]

    def datasets(self, problems: list[UnlearningRun]) -> list[str]:
        return [dataset_of(one) for one in problems]

    def tables(self) -> list[str]:
        found = [kinds.JUDGED.path.format(**vars(one)) for one in self.unlearning_runs]
        return list(dict.fromkeys(found))
