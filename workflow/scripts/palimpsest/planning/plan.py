"""The plan of a study: what each run, each job and all of it needs."""

import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from palimpsest.models import resolve
from palimpsest.planning import disk, duration, memory
from palimpsest.planning.assumptions import THREADS_OFFLOADED, TWIN_START_SECONDS
from palimpsest.planning.duration import Duration, Speed
from palimpsest.planning.shapes import (
    Hardware,
    Settings,
    Shape,
    Strings,
    full_shape,
    tokens,
    twin_shape,
)
from palimpsest.variants import LEAVE_ONE_OUT, ORIGINAL, RETAIN, UNLEARNED

if TYPE_CHECKING:
    from palimpsest.configuration import RunGroup, Study

HOUR = 3600
OF_UNLEARNING = (ORIGINAL, RETAIN, UNLEARNED)
# The settings with which a run is faster or slower, its length apart.
OF_SPEED = (
    "batch_size",
    "micro_batch_size",
    "processes",
    "zero_stage",
    "offload_optimizer",
    "evaluation_batch_size",
)
# What is read of a manifest.
READ = (
    "model",
    "language",
    "size",
    "engine",
    "configuration",
    "hardware",
    "resumed_from_epoch",
    "training_seconds",
    "training_tokens_per_second",
    "wall_time_seconds",
)


class Planner:
    """Answers what a study's runs need; every answer is worked out once.

    `runs` is the folder of finished runs, whose manifests tell how fast they were.
    """

    def __init__(self, study: "Study", runs: str | Path = "results/runs"):
        self.study, self.runs = study, Path(runs)
        self.hardware = Hardware(**study.config["hardware"])
        self._settings: dict[tuple[str, bool], Settings] = {}
        self._tokens: dict[str, tuple[float, int]] = {}
        self._durations: dict[tuple, Duration] = {}
        self._speeds: dict[str, Speed | None] = {}

    # Of a model

    def is_twin(self, model: str) -> bool:
        """Whether a name stands for a twin."""
        return resolve(model, self.study.models)[1] == "twin"

    def settings(self, model: str, variant: str = "base") -> Settings:
        """How a model is trained on a variant."""
        key = model, variant in OF_UNLEARNING
        if key not in self._settings:
            trained = self.study.unlearning if variant in OF_UNLEARNING else self.study
            self._settings[key] = Settings.of(trained.training(model))
        return self._settings[key]

    def shape(self, model: str, language: str) -> Shape:
        """The shape of a model; a twin's vocabulary is the language's alphabet."""
        row, scale = resolve(model, self.study.models)
        if scale == "full":
            return full_shape(row)
        return twin_shape(row, len(self.study.grammar(language).terminals))

    def tokens(self, language: str) -> tuple[float, int]:
        """Expected and largest number of tokens of a language's strings."""
        if language not in self._tokens:
            grammar = self.study.grammar(language)
            predict_end = self.study.config["datasets"]["predict_end"]
            lengths = grammar.expected_length(), grammar.longest()
            self._tokens[language] = tokens(*lengths, predict_end)
        return self._tokens[language]

    def strings(self, language: str, size: int) -> Strings:
        """The strings of a run of a size: at most so many, were no training string repeated."""
        measured = size + self.study.config["datasets"]["test_size"]
        return Strings(size, measured, *self.tokens(language))

    def gpus(self, model: str) -> int:
        """GPUs of a job that trains a model."""
        return self.hardware.twin_gpus if self.is_twin(model) else self.settings(model).processes

    def threads(self, model: str) -> int:
        """CPU threads of a job that trains a model, shared by its processes."""
        settings = self.settings(model)
        return settings.processes * (THREADS_OFFLOADED if settings.offloaded else 1)

    def gpu_peak(self, model: str, language: str) -> float:
        """Bytes of a full model's run on each of its GPUs."""
        return memory.gpu_peak(
            self.shape(model, language), self.settings(model), self.tokens(language)[1]
        )

    def main_memory(self, model: str, language: str, threads: int = 1) -> float:
        """Bytes of main memory of a job that trains a model."""
        shape, settings = self.shape(model, language), self.settings(model)
        if self.is_twin(model):
            return memory.twin_memory(shape, settings, self.tokens(language)[1], threads)
        return memory.main_memory(shape, settings)

    @property
    def most_memory(self) -> float:
        """Bytes of main memory beyond which no job may ask."""
        return self.hardware.main_memory_gb * memory.GB

    @property
    def most_seconds(self) -> float:
        """Seconds beyond which no job may ask."""
        return self.hardware.longest_job_hours * HOUR

    # Of a run and of a job

    def duration(
        self, model: str, language: str, size: int, threads: int = 1, variant: str = "base"
    ) -> Duration:
        """How long one run takes; of a twin, without the start of its job."""
        settings = self.settings(model, variant)
        key = model, language, size, threads, settings
        if key not in self._durations:
            self._durations[key] = self._duration(*key)
        return self._durations[key]

    def _duration(
        self, model: str, language: str, size: int, threads: int, settings: Settings
    ) -> Duration:
        shape = self.shape(model, language)
        strings = self.strings(language, size)
        speed = self.speed(model)
        if speed is not None:
            return duration.measured(speed, settings, strings)
        if self.is_twin(model):
            return duration.twin(shape, settings, strings, self.study.engine(model), threads)
        return duration.full(shape, settings, strings, self.hardware)

    def trainings(self, variant: str, size: int) -> int:
        """How often a model is trained for one variant and seed."""
        return size if variant == LEAVE_ONE_OUT else 1

    def job_seconds(
        self, model: str, language: str, size: int, variants: Iterable[str], threads: int = 1
    ) -> float:
        """How long a job of a twin takes, which trains all seeds of some variants."""
        n_runs = sum(
            self.trainings(variant, size) * len(self.study.seeds_of(variant))
            for variant in variants
        )
        return TWIN_START_SECONDS + n_runs * self.duration(model, language, size, threads).seconds

    def draws_seconds(self, model: str, language: str, size: int, n_runs: int) -> float:
        """How long a job takes that trains models of the unlearning, or makes them forget."""
        each = self.duration(model, language, size, variant=ORIGINAL).seconds
        return TWIN_START_SECONDS + n_runs * each

    def evaluation_memory(self, size: int) -> float:
        """Bytes of main memory in which unlearned models are compared with retrained ones."""
        unlearning = self.study.unlearning
        n_models = unlearning.n_trained(ORIGINAL) + unlearning.n_trained(RETAIN)
        n_models += max(len(unlearning.runs(method)) for method in unlearning.methods)
        datasets = self.study.config["datasets"]
        n_strings = size + datasets["test_size"] + unlearning.section["validation"]
        return memory.evaluation_memory(n_models * n_strings)

    # What has been measured

    def speed(self, model: str) -> Speed | None:
        """The speed of a model's finished runs with these settings; None without any."""
        if model not in self._speeds:
            try:
                self._speeds[model] = self._speed(model)
            except (KeyError, TypeError, AttributeError):
                # Manifests of another make; the jobs that need them will name them.
                self._speeds[model] = None
        return self._speeds[model]

    def _speed(self, model: str) -> Speed | None:
        found = [m for m in self._manifests(model) if self._is_alike(model, m)]
        # Of several machines, the one of the newest run.
        alike = [m for m in found if m["hardware"] == found[-1]["hardware"]]
        return self._mean_speed(alike) if alike else None

    def _manifests(self, model: str) -> list[dict]:
        """The readable manifests of a model's runs, the newest last."""
        paths = sorted(self.runs.glob(f"{model}/*/*/*/manifest.json"), key=_modified)
        read = map(_read, paths)
        return [manifest for manifest in read if manifest is not None]

    def _is_alike(self, model: str, manifest: dict) -> bool:
        """Whether a run was trained by the same engine, as now, undisturbed, on a known language.

        Settings that the engine does not have stand in none of its manifests.
        """
        now = vars(self.settings(model))
        configuration = manifest["configuration"]
        then = {**configuration["recipe"]}
        then["processes"] = configuration.get("processes", now["processes"])
        return (
            manifest["engine"] == self.study.engine(model)
            and manifest["resumed_from_epoch"] == 0
            and manifest["training_seconds"] > 0
            and manifest["language"] in self.study.all_languages
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
        settings = Settings.of({**self.study.training(manifest["model"]), **then})
        strings = self.strings(manifest["language"], manifest["size"])
        return manifest.get("n_runs", 1) * strings.tokens_measured(settings)

    # The plan itself

    @cached_property
    def rows(self) -> list[dict]:
        """One row per group of runs and seed, as the table `plan` has them."""
        rows = [
            self.row(group, seed, self.trainings(group.variant, group.size))
            for group in self.study.trained_groups
            for seed in self.study.seeds_of(group.variant)
        ]
        return [*rows, *self._rows_of_unlearning()]

    def _rows_of_unlearning(self) -> list[dict]:
        """The same of the trainings for unlearning, and of all methods together.

        No method may take longer than the cutoff allows.
        """
        unlearning = self.study.unlearning
        if unlearning is None:
            return []
        share = {UNLEARNED: unlearning.section["cutoff"]}
        return [
            self.row(group, seed, n, share.get(group.variant, 1))
            for group, seed, n in unlearning.groups()
        ]

    def row(self, group: "RunGroup", seed: int, n: int, share: float = 1) -> dict:
        """What the runs of one group and seed need.

        There are `n` of them, each of which takes a share of a training.
        """
        model, language, size = group.model, group.language, group.size
        is_twin, settings = self.is_twin(model), self.settings(model, group.variant)
        shape, strings = self.shape(model, language), self.strings(language, size)
        took = self.duration(model, language, size, variant=group.variant)
        gpus, times = self.gpus(model), n * share / HOUR
        left = disk.trace_bytes(settings, strings)
        if self.study.config["save_weights"] or group.variant in (ORIGINAL, RETAIN):
            left += disk.weights_bytes(shape, settings)
        return {
            **vars(group),
            "seed": seed,
            "engine": self.study.engine(model),
            "trainings": n,
            "parameters": shape.parameters,
            "gpus": gpus,
            "gpu_memory_gb": None if is_twin else self.gpu_peak(model, language) / memory.GB,
            "main_memory_gb": self.main_memory(model, language) / memory.GB,
            "hours": times * took.seconds,
            "training_hours": times * took.training,
            "measuring_hours": times * took.measuring,
            "checkpoint_hours": times * took.checkpoints,
            "gpu_hours": gpus * times * took.seconds,
            "basis": took.basis,
            "disk_gb": n * left / memory.GB,
            "state_gb": disk.state_bytes(shape, settings) / memory.GB,
            "done": self._is_done(group, seed),
        }

    def _is_done(self, group: "RunGroup", seed: int) -> bool:
        """Whether all results are there; whether they are still right is not looked at."""
        dataset = f"n{group.size}-seed{seed}"
        if group.variant in OF_UNLEARNING:
            folder = self.runs.parent / "unlearning" / group.model / group.language / dataset
            return all((folder / path).is_file() for path in self.study.unlearning.files(group))
        folder = self.runs / group.model / group.language / dataset / group.variant
        return all((folder / name).is_file() for name in ("trace.parquet", "manifest.json"))


def _modified(path: Path) -> tuple[float, str]:
    return path.stat().st_mtime, str(path)


def _read(path: Path) -> dict | None:
    """A manifest; None for one that is damaged, which the jobs that need it will name."""
    try:
        manifest = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    whole = isinstance(manifest, dict) and all(name in manifest for name in READ)
    return manifest if whole else None
