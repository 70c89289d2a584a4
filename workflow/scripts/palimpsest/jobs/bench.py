"""A bench: a dataset, and an engine that opens models trained on it, for jobs that query models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open

from palimpsest import manifests
from palimpsest.errors import UserError
from palimpsest.jobs.command import Assignment
from palimpsest.models.trained import Holder, Models
from palimpsest.paths import CHECKPOINTS
from palimpsest.regimes import of_replicate
from palimpsest.training.attempts import Passes
from palimpsest.training.batches import TokenisedStrings, by_length
from palimpsest.training.evaluation import measure, strings_at_once
from palimpsest.training.runs import Material, Run

# Arguments: the rows int[B] of some strings, their logits [M, B, T, V] and true tokens [M, B, T].
Also = Callable[[np.ndarray, torch.Tensor, torch.Tensor], None]


class Bench:
    """The strings of a dataset, and an engine that opens trained models to query them.

    `material` holds the strings and `holder` is the engine. `keys` holds the values of the columns
    model, language, size and seed.
    """

    def __init__(self, run: Run, holder: HolderOf, passes: Passes | None = None):
        self.run, self.passes = run, passes or Passes.of(run.recipe)
        self.material = Material(run)
        self.holder: Holder = holder(run, self.material)
        # Whether the bench is measuring strings now, and not training.
        self.is_measuring = False
        self.keys = {key: self.material.keys[key] for key in ("model", "language", "size", "seed")}

    def parts(self, numbers: np.ndarray) -> list[np.ndarray]:
        """Cut the numbers of models into parts; the models of one part are open together."""
        n = len(numbers)
        return np.array_split(numbers, -(-n // self.holder.together(n)))

    def measure(
        self, models: Models, which: np.ndarray | None = None, also: Also | None = None
    ) -> np.ndarray:
        """float64[M, 3, strings]: nll, number of right tokens and rank sum, of all or some strings.

        `which` holds the places of the strings to measure. `also` is called with the logits of
        every forward pass.
        """
        return self.measure_strings(models, self.material.encoded, which, also)

    def measure_strings(
        self,
        models: Models,
        encoded: TokenisedStrings,
        which: np.ndarray | None = None,
        also: Also | None = None,
    ) -> np.ndarray:
        """As `measure`, of strings that need not be in the dataset."""
        rows = np.arange(len(encoded.lengths)) if which is None else np.unique(which)
        together = strings_at_once(self.passes.evaluation_batch_size, models.device, models.count)

        def predict(rows_MB: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
            batch = encoded.batch(rows_MB[0], models.device)
            ids_MBT = batch.ids_BT.expand(models.count, *batch.ids_BT.shape)
            logits_MBTV, targets_MBT = models.logits(ids_MBT), batch.targets_BT.expand_as(ids_MBT)
            if also:
                also(rows_MB[0], logits_MBTV, targets_MBT)
            return logits_MBTV, targets_MBT

        self.is_measuring = True
        plan = by_length(encoded.lengths, rows, together, 1)
        sizes = [len(encoded.lengths)] * models.count
        result = np.stack(measure([plan] * models.count, sizes, predict))
        self.is_measuring = False
        return self.holder.agree(result)


class TrainedWeights:
    """Weights of trained models in several files.

    A file holds some replicates of a variant, or the only model of a single run.
    """

    def __init__(self, paths: list[str]):
        self._paths, self._files = paths, {}
        for path in paths:
            with safe_open(path, "pt") as file:
                names = list(file.keys())
            for name in names:
                self._files.setdefault(name.partition("/")[0], (path, []))[1].append(name)

    def of_run(self, place: int) -> dict[str, torch.Tensor]:
        """The weights of the only model in a file, given by the file's place among all files."""
        with safe_open(self._paths[place], "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118

    def has(self, variant: str, replicate: int) -> bool:
        return of_replicate(variant, replicate) in self._files

    def of(self, variant: str, replicate: int) -> dict[str, torch.Tensor]:
        """The weights of one model, by parameter name."""
        which = of_replicate(variant, replicate)
        if which not in self._files:
            raise UserError(f"no weights of {which} were given; train its models first")
        path, names = self._files[which]
        with safe_open(path, "pt") as file:
            return {name.partition("/")[2]: file.get_tensor(name) for name in names}


def keys_of_weights(paths: list[str]) -> list[str]:
    """The key of each file of weights, from the manifest of its run.

    The manifest is in the same folder, or in the folder above the weights of all epochs. A key is a
    hash of everything that decides the weights. Raises `UserError` if a manifest is missing.
    """
    return [manifests.read(_folder_of_run(Path(path)) / "manifest.json")["key"] for path in paths]


def _folder_of_run(weights: Path) -> Path:
    folder = weights.parent
    return folder.parent if folder.name == Path(CHECKPOINTS).name else folder


HolderOf = Callable[[Run, Material], Holder]


def holder_of(assignment: Assignment) -> HolderOf:
    if assignment.engine == "fleet":
        from palimpsest.jobs.fleet_models import FleetHolder

        return lambda run, material: FleetHolder(
            run, material, assignment.threads, assignment.memory
        )
    # Imported only when needed: the import of DeepSpeed takes seconds.
    from palimpsest.jobs.deepspeed_models import DeepSpeedHolder

    return DeepSpeedHolder
