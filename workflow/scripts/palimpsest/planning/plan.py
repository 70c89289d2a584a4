"""The plan of an experiment: the needs of each run, of each job and of the whole experiment."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from palimpsest.configuration.settings import Settings
from palimpsest.models import resolve
from palimpsest.models.adapters import NONE
from palimpsest.models.alphabets import twin_vocabulary
from palimpsest.paths import MANIFEST, REPLICATES_MANIFEST, RUNS, TRACE
from palimpsest.planning import disk, duration, memory
from palimpsest.planning.assumptions import (
    MEASURED_WITHOUT_ONE,
    PARAMETERS_FOR_ALL_CORES,
    THREADS_OFFLOADED,
    TWIN_START_SECONDS,
)
from palimpsest.planning.duration import Duration, Speed
from palimpsest.planning.shapes import (
    Hardware,
    Shape,
    Strings,
    Training,
    full_shape,
    tokens,
    twin_shape,
)
from palimpsest.regimes import MANY_MODELS, SINGLE, LeaveOneOut, OnePass, Regime, Removals
from palimpsest.requests import CHECKPOINTS, DEFAULT, FOLDER, TOKENS, WEIGHTS, Runs
from palimpsest.section import Derived

HOUR = 3600
# The settings that change the speed of a run.
OF_SPEED = (
    "batch_size",
    "micro_batch_size",
    "processes",
    "zero_stage",
    "offload_optimizer",
    "evaluation_batch_size",
    "adapter",
)
# The keys that are read from a manifest.
READ = (
    "model",
    "language",
    "size",
    "engine",
    "configuration",
    "hardware",
    "one_pass",
    "resumed_from_epoch",
    "training_seconds",
    "training_tokens_per_second",
    "wall_time_seconds",
)


class Planner:
    """Estimates the needs of runs; every estimate is computed once.

    `runs` is the folder of finished runs; their manifests give the speed. In all methods, `recipe`
    is the name of a recipe.
    """

    def __init__(self, settings: Settings, runs: str | Path = RUNS):
        self.settings, self.runs = settings, Path(runs)
        self.hardware = Hardware.of(settings.config["hardware"])
        self._tokens: dict[str, tuple[float, int]] = {}
        self._durations: dict[tuple, Duration] = {}
        self._speeds: dict[tuple[str, str], Speed | None] = {}

    # Of a model

    def training(self, model: str, recipe: str = DEFAULT, regime: Regime = SINGLE) -> Training:
        """The settings of a training; a stream has an epoch for each macro-batch."""
        values = self.settings.training(model, recipe)
        if isinstance(regime, OnePass):
            values |= {"epochs": regime.cohorts, "evaluate_every": regime.every}
        return Training.of(values)

    def shape(self, model: str, language: str) -> Shape:
        """The shape of a model; a twin's vocabulary depends on the corpus."""
        row, scale = resolve(model, self.settings.models)
        if scale == "full":
            return full_shape(row)
        corpus = self.settings.corpus(language)
        n_terminals = 0 if corpus.is_text else len(corpus.alphabet.terminals)
        return twin_shape(row, twin_vocabulary(n_terminals, corpus.is_text))

    def tokens(self, language: str) -> tuple[float, int]:
        """Expected and largest number of tokens of a language's strings."""
        if language not in self._tokens:
            corpus = self.settings.corpus(language)
            predict_end = self.settings.config["datasets"]["predict_end"]
            lengths = corpus.expected_length(), corpus.longest()
            self._tokens[language] = tokens(*lengths, predict_end)
        return self._tokens[language]

    def strings(self, language: str, size: int, regime: Regime = SINGLE) -> Strings:
        """The strings of a run with `size` training strings; all of them are assumed distinct.

        An epoch of a stream is one of its macro-batches.
        """
        if isinstance(regime, OnePass):
            each = size // regime.cohorts
            return Strings(each, regime.measured, *self.tokens(language))
        if isinstance(regime, LeaveOneOut):
            return Strings(size, MEASURED_WITHOUT_ONE, *self.tokens(language))
        if isinstance(regime, Removals):  # every string and its placebo
            return Strings(size, MEASURED_WITHOUT_ONE * size, *self.tokens(language))
        datasets = self.settings.config["datasets"]
        # With the split `disjoint`, as many strings as in the test set are set apart.
        others = datasets["test_size"] * (2 if datasets["split"] == "disjoint" else 1)
        measured = size + others
        return Strings(size, measured, *self.tokens(language))

    def gpus(self, model: str, recipe: str = DEFAULT) -> int:
        if self.settings.is_twin(model):
            return self.hardware.twin_gpus
        return self.training(model, recipe).processes

    def threads(self, model: str, recipe: str = DEFAULT, cores: int | None = None) -> int:
        """CPU threads of a job that trains a model, shared by its processes.

        `cores` is the number of cores of a machine without GPUs; None if a GPU does the work.
        """
        training = self.training(model, recipe)
        asked = training.processes * (THREADS_OFFLOADED if training.offloaded else 1)
        row, scale = resolve(model, self.settings.models)
        if cores is None or scale == "twin" or row.parameters < PARAMETERS_FOR_ALL_CORES:
            return asked
        return max(asked, cores)

    def gpu_peak(self, model: str, language: str, recipe: str = DEFAULT) -> float:
        return memory.gpu_peak(
            self.shape(model, language), self.training(model, recipe), self.tokens(language)[1]
        )

    def main_memory(
        self, model: str, language: str, recipe: str = DEFAULT, threads: int = 1
    ) -> float:
        shape, training = self.shape(model, language), self.training(model, recipe)
        if self.settings.is_twin(model):
            return memory.twin_memory(shape, training, self.tokens(language)[1], threads)
        return memory.main_memory(shape, training)

    @property
    def most_memory(self) -> float:
        return self.hardware.main_memory_gb * memory.GB

    @property
    def most_seconds(self) -> float:
        return self.hardware.longest_job_hours * HOUR

    # Of a run and of a job

    def duration(
        self,
        model: str,
        language: str,
        size: int,
        recipe: str = DEFAULT,
        threads: int = 1,
        regime: Regime = SINGLE,
    ) -> Duration:
        """The duration of one run; for a twin, without the start of its job."""
        strings = self.strings(language, size, regime)
        training = self.training(model, recipe, regime)
        key = model, language, recipe, strings, threads, training
        if key not in self._durations:
            self._durations[key] = self._duration(*key)
        return self._durations[key]

    def _duration(
        self,
        model: str,
        language: str,
        recipe: str,
        strings: Strings,
        threads: int,
        training: Training,
    ) -> Duration:
        shape = self.shape(model, language)
        speed = self.speed(model, recipe)
        if speed is not None:
            return duration.measured(speed, training, strings)
        if self.settings.is_twin(model):
            engine = self.settings.engine(model)
            return duration.twin(shape, training, strings, engine, threads)
        return duration.full(shape, training, strings, self.hardware)

    def job_seconds(
        self,
        model: str,
        language: str,
        size: int,
        n_runs: int | Mapping[Regime, int],
        recipe: str = DEFAULT,
        threads: int = 1,
    ) -> float:
        """The duration of a job that trains `n_runs` runs of a model, or numbers by regime."""
        by_regime = {SINGLE: n_runs} if isinstance(n_runs, int) else n_runs
        named = model, language, size, recipe, threads
        return TWIN_START_SECONDS + sum(
            n * self.duration(*named, regime).seconds for regime, n in by_regime.items()
        )

    # What has been measured

    def speed(self, model: str, recipe: str = DEFAULT) -> Speed | None:
        """The speed of a model's finished runs with these settings; None if there are none."""
        key = model, recipe
        if key not in self._speeds:
            try:
                self._speeds[key] = self._speed(model, recipe)
            except (KeyError, TypeError, AttributeError):
                # Manifests in another format; jobs that need them will report them.
                self._speeds[key] = None
        return self._speeds[key]

    def _speed(self, model: str, recipe: str) -> Speed | None:
        found = [m for m in self._manifests(model) if self._is_alike(model, recipe, m)]
        # If runs are from several machines, only those from the machine of the newest run count.
        alike = [m for m in found if m["hardware"] == found[-1]["hardware"]]
        return self._mean_speed(alike) if alike else None

    def _manifests(self, model: str) -> list[dict]:
        """The readable manifests of a model's runs by any recipe, the newest last."""
        paths = sorted(self.runs.glob(f"*/*/{model}/*/*/manifest.json"), key=_modified)
        read = map(_read, paths)
        return [manifest for manifest in read if manifest is not None]

    def _is_alike(self, model: str, recipe: str, manifest: dict) -> bool:
        """Whether the speed of a finished run applies now.

        The run must have the same engine and settings, must not have been resumed, and its language
        must still exist. Settings that the engine does not use are not in its manifests.
        """
        now = vars(self.training(model, recipe))
        configuration = manifest["configuration"]
        then = {"adapter": NONE, **configuration["recipe"]}
        then["processes"] = configuration.get("processes", now["processes"])
        # The manifest of a stream does not say how many strings it measures.
        return not manifest["one_pass"] and (
            manifest["engine"] == self.settings.engine(model)
            and manifest["resumed_from_epoch"] == 0
            and manifest["training_seconds"] > 0
            and Path(self.settings.corpus_file(manifest["language"])).is_file()
            and all(then[key] == now[key] for key in OF_SPEED if key in then)
        )

    def _mean_speed(self, manifests: list[dict]) -> Speed:
        trained = sum(m["training_seconds"] for m in manifests)
        tokens = sum(m["training_seconds"] * m["training_tokens_per_second"] for m in manifests)
        rest = sum(m["wall_time_seconds"] for m in manifests) - trained
        return Speed(tokens / trained, max(0.0, rest) / sum(map(self._tokens_measured, manifests)))

    def _tokens_measured(self, manifest: dict) -> float:
        recipe = manifest["configuration"]["recipe"]
        then = {key: recipe[key] for key in ("epochs", "evaluate_every")}
        training = replace(self.training(manifest["model"]), **then)
        regime = MANY_MODELS.get(manifest["variant"], SINGLE)
        strings = self.strings(manifest["language"], manifest["size"], regime)
        return manifest.get("n_runs", 1) * strings.tokens_measured(training)

    # The plan itself

    def rows(self, requests: Iterable[Runs], derived: Iterable[Derived]) -> list[dict]:
        """The table `plan`: one row per group of runs and seed, then one row per `Derived`.

        All replicates on one dataset are one group. Single runs come before replicates.
        """
        groups: dict[tuple, list[Runs]] = {}
        for runs in sorted(requests, key=lambda runs: runs.replicates is not None):
            groups.setdefault((*runs.names.values(), runs.replicates is None), []).append(runs)
        return [
            *(self._row_of(found, seed) for found in groups.values() for seed in found[0].seeds),
            *(
                self._row(made.runs.on(made.name), made.seed, made.n, made.share, made.files)
                for made in derived
            ),
        ]

    def _row_of(self, found: list[Runs], seed: int) -> dict:
        """The row for requests that differ only in their replicates."""
        single = found[0].replicates is None
        patterns = (TRACE, MANIFEST) if single else (REPLICATES_MANIFEST,)
        files = [
            path
            for runs in found
            for pattern in patterns
            for path in replace(runs, seeds=(seed,)).paths(pattern)
        ]
        return self._row(found[0], seed, sum(runs.trainings for runs in found), 1, files)

    def _row(self, runs: Runs, seed: int, n: int, share: float, files: Iterable[str]) -> dict:
        """The row for `n` runs; each takes a `share` of the time of a training.

        `done` only means that the files exist; their content is not checked.
        """
        model, language, size = runs.model, runs.corpus, runs.size
        training = self.training(model, runs.recipe, runs.regime)
        shape = self.shape(model, language)
        strings = self.strings(language, size, runs.regime)
        is_twin = self.settings.is_twin(model)
        took = self.duration(model, language, size, runs.recipe, 1, runs.regime)
        gpus, times = self.gpus(model, runs.recipe), n * share / HOUR
        on_gpu = None if is_twin else self.gpu_peak(model, language, runs.recipe) / memory.GB
        left = disk.trace_bytes(training, strings)
        if WEIGHTS in runs.keeps:
            left += disk.weights_bytes(shape, training) * (2 if FOLDER in runs.keeps else 1)
        if CHECKPOINTS in runs.keeps:
            left += disk.weights_bytes(shape, training) * training.measurements
        if TOKENS in runs.keeps:
            left += disk.tokens_bytes(training, strings)
        return {
            **runs.names,
            "seed": seed,
            "engine": self.settings.engine(model),
            "trainings": n,
            "parameters": shape.parameters,
            "gpus": gpus,
            "gpu_memory_gb": on_gpu,
            "main_memory_gb": self.main_memory(model, language, runs.recipe) / memory.GB,
            "hours": times * took.seconds,
            "training_hours": times * took.training,
            "measuring_hours": times * took.measuring,
            "checkpoint_hours": times * took.checkpoints,
            "gpu_hours": gpus * times * took.seconds,
            "basis": took.basis,
            "disk_gb": n * left / memory.GB,
            "state_gb": disk.state_bytes(shape, training) / memory.GB,
            "done": all(self._path(file).is_file() for file in files),
        }

    def _path(self, file: str) -> Path:
        """A result's path in the folder that holds `runs`."""
        return self.runs.parent / Path(file).relative_to("results")


def _modified(path: Path) -> tuple[float, str]:
    return path.stat().st_mtime, str(path)


def _read(path: Path) -> dict | None:
    """A manifest; None if it is damaged (jobs that need it will report it)."""
    try:
        manifest = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    whole = isinstance(manifest, dict) and all(name in manifest for name in READ)
    return manifest if whole else None
