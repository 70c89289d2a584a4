"""The trainings, jobs and files that the block `unlearning` of the configuration asks for.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from palimpsest import paths
from palimpsest.configuration.settings import Settings
from palimpsest.requests import TRACE, WEIGHTS, Runs, parts
from palimpsest.unlearning import kinds
from palimpsest.unlearning.methods import Method, read_methods
from palimpsest.unlearning.setups import (
    ENDS,
    NONE,
    RETRAIN,
    Setup,
    n_originals,
    n_retrained,
    wanted,
)
from palimpsest.variants import ORIGINAL, RETAIN

UNLEARNED_FILES = ("unlearned.parquet", "models.parquet", "manifest.json")
SCORED = (
    kinds.EPSILONS,
    kinds.SCORES,
    kinds.SUMMARY,
    kinds.EFFECTS,
    kinds.HARDNESS,
    kinds.AGREEMENT,
)


@dataclass(frozen=True)
class Forgetter:
    """A model that is to forget a part of its training set."""

    model: str
    language: str
    size: int
    seed: int


@cache
def jobs_of(settings: Settings) -> UnlearningJobs:
    """The jobs for an experiment's settings, computed once."""
    return UnlearningJobs(settings)


class UnlearningJobs:
    """The trainings, jobs and files of the block `unlearning`; the block must exist."""

    def __init__(self, settings: Settings):
        self.settings, self.block = settings, settings.block("unlearning")

    @cached_property
    def forgetters(self) -> list[Forgetter]:
        """Every model on every language."""
        return [
            Forgetter(model, language, self.block["size"], self.block["seed"])
            for model in self.block["models"]
            for language in self.block["languages"]
        ]

    @cached_property
    def setups(self) -> list[Setup]:
        """The set-ups; analyses use the first one."""
        keys = ("n", "repetitions", "pool", "seed")
        return [
            Setup(name, **{key: self.block[key] for key in keys}) for name in self.block["setups"]
        ]

    @cached_property
    def table(self) -> dict[str, Method]:
        """Every method of the table, and every point of every grid, by name."""
        methods = read_methods(self.block["table"])
        points = {name: m for method in methods.values() for name, m in method.points().items()}
        return {**methods, **points}

    @cached_property
    def methods(self) -> list[str]:
        """The methods to apply, with `none` before them and `retrain` after them."""
        return [NONE, *self.block["methods"], RETRAIN]

    @cached_property
    def points(self) -> list[str]:
        """The points in the grids of the methods in `tuning`."""
        return [point for name in self.block["tuning"] for point in self.table[name].points()]

    @property
    def applied(self) -> list[str]:
        """Every method, end and point of a grid that makes models."""
        return [*self.methods, *self.points]

    def n_trained(self, variant: str) -> int:
        """Number of models trained on a variant; half of the retrained ones are for `retrain`."""
        return self._n_originals if variant == ORIGINAL else 2 * self._n_retrained

    def runs(self, method: str) -> list[tuple[int, int]]:
        """Origin and number of every model that a method makes.

        The origin is the replicate of the original model. The number counts the unlearnings of one
        origin from 0. For the two ends, there is one entry per trained model, with number 0.
        """
        counts = {NONE: self._n_originals, RETRAIN: self._n_retrained}
        if method in counts:
            return [(origin, 0) for origin in range(counts[method])]
        return self._wanted

    # Every job asks for these, and there can be tens of thousands of models: computed once.

    @cached_property
    def _wanted(self) -> list[tuple[int, int]]:
        return wanted(self.setups)

    @cached_property
    def _origins_wanted(self) -> list[int]:
        return [origin for origin, _ in self._wanted]

    @cached_property
    def _n_originals(self) -> int:
        return n_originals(self.setups)

    @cached_property
    def _n_retrained(self) -> int:
        return n_retrained(self.setups)

    # Trainings

    def training(self, model: str) -> dict:
        """The values of the block `training` for the models of the unlearning."""
        return {**self.settings.training(model, self.block["size"]), **self.block["training"]}

    def requests(self) -> Iterator[Runs]:
        """Replicates trained with, and without, the strings to forget, per model and language."""
        for forgetter in self.forgetters:
            for variant in (ORIGINAL, RETAIN):
                yield from self.replicates(forgetter, variant)

    def replicates(self, forgetter: Forgetter, variant: str) -> list[Runs]:
        """The trainings of a model on a variant.

        The retrained models of the ideal `retrain` are a separate request, so that no method waits
        for their training.
        """
        half = self._n_retrained
        ranges = {
            ORIGINAL: [range(self._n_originals)],
            RETAIN: [range(half), range(half, 2 * half)],
        }
        return [
            Runs(
                forgetter.model,
                forgetter.language,
                forgetter.size,
                variant,
                seeds=(forgetter.seed,),
                replicates=replicates,
                training=self.block["training"],
                keeps=frozenset({TRACE, WEIGHTS}),
                replicates_per_job=self.runs_per_job(forgetter.model),
            )
            for replicates in ranges[variant]
        ]

    def runs_per_job(self, model: str) -> int:
        """Number of models that one job trains or unlearns."""
        return self.block["runs_per_job"] if self.settings.is_twin(model) else 1

    def training_jobs(self, forgetter: Forgetter, variant: str) -> list[tuple[int, int]]:
        """First and last replicate of each job that trains a model on a variant."""
        return [job for runs in self.replicates(forgetter, variant) for job in runs.jobs]

    def trained(self, forgetter: Forgetter, variant: str, pattern: str) -> list[str]:
        """One file from each job that trains a model on a variant."""
        return [
            path for runs in self.replicates(forgetter, variant) for path in runs.paths(pattern)
        ]

    def trained_among(
        self, forgetter: Forgetter, variant: str, pattern: str, wanted: list[int]
    ) -> list[str]:
        """One file from each job that trains some of the wanted replicates.

        Wanted replicates that no job trains are ignored.
        """
        jobs = self.training_jobs(forgetter, variant)
        ends = [last for _, last in jobs]
        chosen = sorted({bisect.bisect_left(ends, one) for one in set(wanted) if one <= ends[-1]})
        named = {**vars(forgetter), "variant": variant}
        return [pattern.format(**named, first=jobs[n][0], last=jobs[n][1]) for n in chosen]

    # Unlearning

    def jobs(self, model: str, method: str) -> list[tuple[int, int]]:
        """First and last index in `runs` of each job that applies a method."""
        return list(parts(range(len(self.runs(method))), self.runs_per_job(model)))

    def unlearned(self, forgetter: Forgetter, methods: list[str], name: str) -> list[str]:
        """One file from each job that applies some methods."""
        return [
            f"{kinds.UNLEARNED_FOLDER}/{name}".format(
                **vars(forgetter), method=method, first=first, last=last
            )
            for method in methods
            for first, last in self.jobs(forgetter.model, method)
        ]

    def starts(self, method: str, first: int, last: int) -> tuple[str, list[int]]:
        """The variant and replicates of the models that a job of a method starts from.

        The models of the ideal `retrain` are the second half of the retrained models; other models
        are compared with the first half only.
        """
        origins = self.origins(method, first, last)
        if method == RETRAIN:
            return RETAIN, [self._n_retrained + origin for origin in origins]
        return ORIGINAL, origins

    def origins(self, method: str, first: int, last: int) -> list[int]:
        """The replicate of the original model, for each model of a job of a method."""
        if method in ENDS:
            return [origin for origin, _ in self.runs(method)[first : last + 1]]
        return self._origins_wanted[first : last + 1]

    def weights(self, forgetter: Forgetter, method: str, first: int, last: int) -> list[str]:
        """Files of the weights that a job of a method needs.

        These are the models that the job starts from, and the original and retrained models to
        which it computes distances.
        """
        variant, starts = self.starts(method, first, last)
        origins = self.origins(method, first, last)
        asked = [(variant, starts), (ORIGINAL, origins), (RETAIN, origins)]
        found = [
            path
            for variant, numbers in asked
            for path in self.trained_among(forgetter, variant, paths.REPLICATES_WEIGHTS, numbers)
        ]
        return list(dict.fromkeys(found))

    def numbers(self, method: str, first: int, last: int) -> list[int]:
        """For each model of a job: its number among the unlearnings of its original model."""
        return [number for _, number in self.runs(method)[first : last + 1]]

    def phases(self, method: str) -> str:
        """The phases of a method, as JSON; the two ends have none."""
        return "[]" if method in ENDS else self.table[method].as_json()

    def settings_of_points(self) -> dict[str, dict]:
        """The method and the settings of every point in the grids of the methods in `tuning`."""
        return {
            point: {"method": name, "settings": settings}
            for name in self.block["tuning"]
            for point, settings in self.table[name].settings().items()
        }

    # Evaluation

    def tables(self) -> list[str]:
        """Every table of the evaluation."""
        tuned = [kinds.TUNING] if self.points else []
        asked = [*SCORED, kinds.METRICS, kinds.MEMORISATION, *tuned]
        return [kind.path.format(**vars(one)) for one in self.forgetters for kind in asked]

    def n_predictions(self, size: int) -> int:
        """Largest number of predictions (one per model and string) in an evaluation's memory."""
        n_models = self.n_trained(ORIGINAL) + self.n_trained(RETAIN)
        n_models += max(len(self.runs(method)) for method in self.methods)
        test_size = self.settings.config["datasets"]["test_size"]
        return n_models * (size + test_size + self.block["validation"])
