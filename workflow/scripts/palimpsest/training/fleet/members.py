"""Members of a fleet. Each member is one run, with its own progress in its training."""

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Material, Run
from palimpsest.training.state import State, writing

CHECKPOINT = "member.safetensors"


class Member:
    """A run in progress: its epoch, and the measurements so far.

    `measured` maps an epoch to float64[n_rows, strings]. `tokens` counts the tokens that this
    process has trained the run on.
    """

    def __init__(self, run: Run, material: Material, state: State):
        self.run, self.material, self.state = run, material, state
        self.recipe: Recipe = run.recipe
        self.measured: dict[int, np.ndarray] = {}
        self.epoch, self.resumed_from, self.tokens = 0, 0, 0
        self._evaluation_epochs = set(self.recipe.evaluation_epochs())

    @property
    def steps_per_epoch(self) -> int:
        return self.recipe.steps_per_epoch(self.material.epoch_size)

    @property
    def steps_taken(self) -> int:
        return self.epoch * self.steps_per_epoch

    @property
    def is_measured(self) -> bool:
        """Whether the trace holds the epoch that has just ended."""
        return self.epoch in self._evaluation_epochs

    @property
    def is_saved(self) -> bool:
        """Whether a checkpoint is due after the epoch that has just ended."""
        every = self.recipe.checkpoint_every
        return every > 0 and self.epoch % every == 0 and not self.is_done

    @property
    def is_done(self) -> bool:
        return self.epoch >= self.recipe.epochs

    def learning_rate(self, step: int) -> float:
        """The learning rate at a step of the next epoch; steps are numbered from 0."""
        total = self.recipe.epochs * self.steps_per_epoch
        return self.recipe.learning_rate_at(self.steps_taken + step, total)

    def curve(self) -> dict[int, dict[str, float]]:
        """What trackers show of each measured epoch: losses, and the rate of its last step."""
        steps = self.steps_per_epoch
        total = self.recipe.epochs * steps
        return {
            epoch: {
                **self.material.losses(measured),
                "learning_rate": self.recipe.learning_rate_at(max(0, epoch * steps - 1), total),
            }
            for epoch, measured in self.measured.items()
        }

    def next_epoch(self) -> np.ndarray:
        """Rows int[steps, batch size] of the next epoch; -1 fills up the last step."""
        size = self.recipe.batch_size
        rows = np.full(self.steps_per_epoch * size, -1)
        order = self.material.order(self.epoch + 1)
        rows[: len(order)] = order
        return rows.reshape(-1, size)

    def count_tokens(self, rows: np.ndarray) -> float:
        """The number of predicted tokens in a step, 1 if all are removed; added to `tokens`."""
        n_tokens = int(self.material.encoded.n_tokens[rows[rows >= 0]].sum())
        self.tokens += n_tokens
        return float(max(n_tokens, 1))

    def save(self, tensors: dict[str, torch.Tensor]) -> None:
        """Save a checkpoint; a kill during this leaves the older checkpoint intact."""
        epochs = sorted(self.measured)
        partial = self.state.begin(self.epoch)
        measured = torch.from_numpy(np.stack([self.measured[epoch] for epoch in epochs]))
        content = {**tensors, "measured": measured, "epochs": torch.tensor(epochs)}
        content["epoch"] = torch.tensor(self.epoch)
        content = {name: tensor.contiguous() for name, tensor in content.items()}
        with writing(partial):
            save_file(content, partial / CHECKPOINT)
        self.state.commit(partial)

    def resume(self, n_parameters: int) -> dict[str, torch.Tensor] | None:
        """Load the newest complete checkpoint and return its tensors; None if there is none."""
        self.state.discard_after_gap(self.run.kept_epochs)
        while (checkpoint := self.state.newest()) is not None:
            try:
                saved = load_file(checkpoint / CHECKPOINT)
                if saved["theta"].shape != (n_parameters,):
                    raise ValueError("it is of another model")
                epochs = saved["epochs"].tolist()
                measured = dict(zip(epochs, saved["measured"].numpy(), strict=True))
                measured = self.material.resumed(measured)
                epoch = int(saved["epoch"])
            except (OSError, ValueError, KeyError, SafetensorError) as error:
                self.state.discard(checkpoint, error)
                continue
            self.measured, self.epoch, self.resumed_from = measured, epoch, epoch
            return saved
        return None
