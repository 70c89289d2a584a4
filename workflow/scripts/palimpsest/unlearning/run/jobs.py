"""The trainings, jobs and files that the block `unlearning` of the configuration asks for."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

from palimpsest import paths
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.regimes import Replicates
from palimpsest.requests import TRACE, WEIGHTS, Runs, parts
from palimpsest.unlearning import kinds
from palimpsest.unlearning.interventions import ORIGINAL, RETAIN
from palimpsest.unlearning.methods import Method, methods_of, read_methods
from palimpsest.unlearning.run.method_models import MethodModels
from palimpsest.unlearning.run.setups import (
    ENDS,
    NONE,
    RETRAIN,
    Setup,
    n_originals,
    n_retrained,
    unlearned_models,
)

# The queries of the section
UNLEARN = "palimpsest.unlearning.run.unlearn:unlearn"
EXPORT = "palimpsest.unlearning.run.exported:unlearned_model"
UNLEARNED_FILES = (
    kinds.UNLEARNED.path,
    kinds.UNLEARNED_MODELS.path,
    kinds.STAGES.path,
    kinds.UNLEARNED_MANIFEST,
)
SCORED = (
    kinds.EPSILONS,
    kinds.SCORES,
    kinds.SUMMARY,
    kinds.EFFECTS,
    kinds.TESTS,
    kinds.STRING_TESTS,
    kinds.HARDNESS,
    kinds.CONFIDENCES,
    kinds.AGREEMENT,
)
RESIDUAL = (kinds.MEMORISATION, kinds.GAPS, kinds.GAP_SUMMARY, kinds.VARIANCE)


@dataclass(frozen=True)
class UnlearningRun:
    """A model that is to forget a part of its training set, and the recipe that trains it."""

    model: str
    language: str
    size: int
    seed: int
    recipe: str


def unlearning_runs_of(block: Mapping, problems: Mapping) -> list[UnlearningRun]:
    return [
        UnlearningRun(model, language, block["size"], seed, block["recipe"])
        for model in block["models"]
        for language in problems["languages"]
        for seed in problems["seeds"]
    ]


def dataset_of(unlearning_run: UnlearningRun) -> str:
    """The dataset with the strings to forget, which all jobs with the model read."""
    return paths.DATASET.format(**vars(unlearning_run), variant=ORIGINAL)


@cache
def jobs_of(settings: Settings) -> UnlearningJobs:
    return UnlearningJobs(settings)


def models_by_method(methods: Iterable[str], models: Mapping) -> dict[str, MethodModels]:
    """The models of every method in a job, from `UnlearningJobs.models_of_job`.

    The models of the ideal `retrain` are the second half of the retrained models; other models are
    compared with the first half only.
    """
    found = {}
    for method in methods:
        origins, unlearning_replicates = models["origins"], models["unlearning_replicates"]
        if method in ENDS:
            origins = models["ends"][method]
            unlearning_replicates = [0] * len(origins)
        retrained_offset, variant = (
            (models["retrained_offset"], RETAIN) if method == RETRAIN else (0, ORIGINAL)
        )
        found[method] = MethodModels(
            origins,
            unlearning_replicates,
            variant,
            [retrained_offset + origin for origin in origins],
        )
    return found


class UnlearningJobs:
    """The trainings, jobs and files of the block `unlearning`; the block must exist."""

    def __init__(self, settings: Settings):
        self.settings, self.block = settings, settings.block("unlearning")

    @cached_property
    def unlearning_runs(self) -> list[UnlearningRun]:
        return unlearning_runs_of(self.block, self.block)

    @cached_property
    def setups(self) -> list[Setup]:
        """Analyses use the first one."""
        keys = ("n", "repetitions", "pool")
        return [
            Setup(name, **{key: self.block[key] for key in keys}) for name in self.block["setups"]
        ]

    @cached_property
    def table(self) -> dict[str, Method]:
        return {**read_methods(self.block["table"]), **methods_of(self.block["own_methods"])}

    @cached_property
    def methods(self) -> list[str]:
        return [NONE, *self.block["methods"], RETRAIN]

    @cached_property
    def parts(self) -> dict[str, Method]:
        """The repair phases alone of each method that has erase phases too, by method.

        Empty if no ablation is asked for.
        """
        if not self.block["ablation"]:
            return {}
        alone = {name: self.table[name].repair_alone for name in self.block["methods"]}
        return {name: part for name, part in alone.items() if part}

    @cached_property
    def applied(self) -> list[str]:
        """The methods, and after them their parts: everything that a job applies to its models."""
        return [*self.methods, *self.ablated[len(self.parts) :]]

    @property
    def ablated(self) -> list[str]:
        """The methods that have parts, and the parts."""
        return [*self.parts, *(part.name for part in self.parts.values())]

    def has_adapter(self, model: str) -> bool:
        training = self.settings.training(model, self.block["recipe"])
        return not self.settings.is_twin(model) and "adapter" in training

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
        return self._unlearned_models

    # Every job needs these, and there can be tens of thousands of models: computed once.

    @cached_property
    def _unlearned_models(self) -> list[tuple[int, int]]:
        return unlearned_models(self.setups)

    @cached_property
    def _n_originals(self) -> int:
        return n_originals(self.setups)

    @cached_property
    def _n_retrained(self) -> int:
        return n_retrained(self.setups)

    # Trainings

    def requests(self) -> Iterator[Runs]:
        """Replicates trained with, and without, the strings to forget, per model and language."""
        for unlearning_run in self.unlearning_runs:
            for variant in (ORIGINAL, RETAIN):
                yield from self.replicates(unlearning_run, variant)
            yield from self.innocent_replicates(unlearning_run)

    def innocent_replicates(self, unlearning_run: UnlearningRun) -> list[Runs]:
        """The trainings of innocent models, by a recipe of their own; [] if there are none.

        Their numbers follow those of all retrained models, because the seed of a model depends on
        its dataset and its number.
        """
        recipe, half = self.block["innocent_recipe"], self._n_retrained
        if recipe is None:
            return []
        return [
            self._replicates(
                replace(unlearning_run, recipe=recipe), RETAIN, range(2 * half, 3 * half)
            )
        ]

    def innocent_trained(self, unlearning_run: UnlearningRun, pattern: str) -> list[str]:
        return [
            path
            for runs in self.innocent_replicates(unlearning_run)
            for path in runs.paths(pattern)
        ]

    def replicates(self, unlearning_run: UnlearningRun, variant: str) -> list[Runs]:
        """The trainings of a model on a variant.

        The retrained models of the ideal `retrain` are a separate request, so that no method waits
        for their training.
        """
        half = self._n_retrained
        ranges = {
            ORIGINAL: [range(self._n_originals)],
            RETAIN: [range(half), range(half, 2 * half)],
        }
        return [self._replicates(unlearning_run, variant, numbers) for numbers in ranges[variant]]

    def _replicates(self, unlearning_run: UnlearningRun, variant: str, numbers: range) -> Runs:
        return Runs(
            unlearning_run.model,
            unlearning_run.language,
            unlearning_run.size,
            variant,
            seeds=(unlearning_run.seed,),
            recipe=unlearning_run.recipe,
            regime=Replicates(numbers, self.runs_per_job(unlearning_run.model)),
            keeps=frozenset({TRACE, WEIGHTS}),
        )

    def runs_per_job(self, model: str) -> int:
        return self.block["runs_per_job"] if self.settings.is_twin(model) else 1

    def training_jobs(self, unlearning_run: UnlearningRun, variant: str) -> list[tuple[int, int]]:
        """First and last replicate of each job that trains a model on a variant."""
        return [job for runs in self.replicates(unlearning_run, variant) for job in runs.jobs]

    def trained(self, unlearning_run: UnlearningRun, variant: str, pattern: str) -> list[str]:
        return [
            path
            for runs in self.replicates(unlearning_run, variant)
            for path in runs.paths(pattern)
        ]

    def trained_among(
        self, unlearning_run: UnlearningRun, variant: str, pattern: str, wanted: list[int]
    ) -> list[str]:
        """One file from each job that trains some of the wanted replicates.

        Wanted replicates that no job trains are ignored.
        """
        jobs = self.training_jobs(unlearning_run, variant)
        ends = [last for _, last in jobs]
        chosen = sorted({bisect.bisect_left(ends, one) for one in set(wanted) if one <= ends[-1]})
        named = {**vars(unlearning_run), "variant": variant}
        return [pattern.format(**named, first=jobs[n][0], last=jobs[n][1]) for n in chosen]

    # Unlearning

    def jobs(self, model: str) -> list[tuple[int, int]]:
        """First and last index in `runs` of each job; a job applies every method to its models.

        The two ends may have fewer models than a method. Then the last jobs have no models of the
        ends.
        """
        return list(parts(range(len(self._unlearned_models)), self.runs_per_job(model)))

    def n_unlearnings(self, first: int, last: int) -> int:
        """The largest number of unlearnings of a job."""
        return len(self.applied) * (last - first + 1)

    def unlearned(
        self, unlearning_run: UnlearningRun, pattern: str, methods: Iterable[str]
    ) -> list[str]:
        """One file of every method from each job that has models of this method."""
        return [
            pattern.format(**vars(unlearning_run), method=method, first=first, last=last)
            for method in methods
            for first, last in self.jobs(unlearning_run.model)
            if first < len(self.runs(method))
        ]

    def weights(self, unlearning_run: UnlearningRun, first: int, last: int) -> list[str]:
        """Files of the weights that a job needs.

        These are the models that the job starts from, and the original and retrained models to
        which it computes distances.
        """
        wanted: dict[str, set[int]] = {ORIGINAL: set(), RETAIN: set()}
        for part in models_by_method(self.applied, self.models_of_job(first, last)).values():
            wanted[part.variant].update(part.starts)
            for numbers in wanted.values():
                numbers.update(part.origins)
        return [
            path
            for variant, numbers in wanted.items()
            for path in self.trained_among(
                unlearning_run, variant, paths.REPLICATES_WEIGHTS, sorted(numbers)
            )
        ]

    def values(self, first: int, last: int) -> dict:
        """What a job is asked: the values of the query `UNLEARN`."""
        afterwards = {key: self.block[key] for key in ("cutoff", "curve", "relearn")}
        models = self.models_of_job(first, last)
        parts = [part.name for part in self.parts.values()]
        return {
            "phases": self.phases(),
            "models": models,
            "afterwards": afterwards,
            "parts": parts,
        }

    def models_of_job(self, first: int, last: int) -> dict:
        """The models of a job, in short, for `models_by_method`: a job can have thousands."""
        runs = self._unlearned_models[first : last + 1]
        return {
            "origins": [origin for origin, _ in runs],
            "unlearning_replicates": [number for _, number in runs],
            "ends": {end: [one for one, _ in self.runs(end)[first : last + 1]] for end in ENDS},
            "retrained_offset": self._n_retrained,
        }

    def phases(self) -> dict[str, list[dict]]:
        known = {**self.table, **{part.name: part for part in self.parts.values()}}
        return {name: [] if name in ENDS else known[name].written for name in self.applied}

    # Folders of models

    def model_folders(self, unlearning_run: UnlearningRun) -> list[str]:
        """The folders of the first `save_models` models of every method.

        Of several unlearnings of one original model, only the first has a folder.
        """
        return [
            kinds.MODEL_FOLDER.format(**vars(unlearning_run), method=method, origin=origin)
            for method in self.methods
            for origin, replicate in self.runs(method)
            if replicate == 0 and origin < self.block["save_models"]
        ]

    def weights_of_model(
        self, unlearning_run: UnlearningRun, method: str, origin: int
    ) -> list[str]:
        """The file with the weights that one unlearned model starts from.

        Raises `UserError` if the configuration has no such model.
        """
        if method not in self.methods:
            known = ", ".join(self.methods)
            raise UserError(f"unlearning/methods: has no {method!r}; it has: {known}")
        variant, start = self._start_of(method, origin)
        found = self.trained_among(unlearning_run, variant, paths.REPLICATES_WEIGHTS, [start])
        if not found:
            raise UserError(f"unlearning/n: too small for a model {origin}; raise n")
        return found

    def values_of_model(self, method: str, origin: int) -> dict:
        """What the job of one unlearned model is asked: the values of the query `EXPORT`."""
        variant, start = self._start_of(method, origin)
        return {
            "method": method,
            "phases": self.phases()[method],
            "variant": variant,
            "start": start,
            "origin": origin,
            "cutoff": self.block["cutoff"],
        }

    def _start_of(self, method: str, origin: int) -> tuple[str, int]:
        """The variant and the replicate that a model starts from."""
        if method == RETRAIN:
            return RETAIN, self._n_retrained + origin
        return ORIGINAL, origin

    # Evaluation

    def tables(self) -> list[str]:
        """Every table of the evaluation that has rows: one method has no pair with another."""
        asked = [*SCORED, *RESIDUAL, kinds.METRICS]
        if len(self.block["methods"]) == 1:
            asked.remove(kinds.AGREEMENT)
        if self.parts:
            asked.append(kinds.ABLATION)
        return [kind.path.format(**vars(one)) for one in self.unlearning_runs for kind in asked]

    def n_predictions(self, size: int) -> int:
        """Largest number of predictions (one per model and string) in an evaluation's memory."""
        n_models = self.n_trained(ORIGINAL) + self.n_trained(RETAIN)
        n_models += self._n_retrained if self.block["innocent_recipe"] else 0
        n_models += max(len(self.runs(method)) for method in self.methods)
        test_size = self.settings.config["datasets"]["test_size"]
        return n_models * (size + test_size + self.block["validation"])
