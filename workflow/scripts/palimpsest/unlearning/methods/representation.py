"""Misdirection of what a layer leaves."""

from __future__ import annotations

import numpy as np

from palimpsest.lazy_import import lazy_import
from palimpsest.unlearning.losses import per_token, squared_error
from palimpsest.unlearning.methods.ascent import HeldBack
from palimpsest.unlearning.methods.phases import phase
from palimpsest.unlearning.methods.values import number
from palimpsest.unlearning.sets import FORGET, RETAIN
from palimpsest.unlearning.task import WEIGHTS

torch = lazy_import("torch")


@phase("rmu")
class RMU(HeldBack):
    """Drives a layer's states on the forget set in a random direction, and keeps the retain set's.

    The direction is each model's own; `scale` is its length, in units of the states' mean length
    on the forget set in the original model; `depth` is the share of the blocks that are at or below
    the layer. The published method trains three matrices of as many blocks: select weights before
    this phase, and set `elsewhere: 0`.

    Source: The WMDP Benchmark: Measuring and Reducing Malicious Use With Unlearning (Li et al.,
    2024), section 4.
    """

    depth: float = number(0.5, above=0, most=1)
    scale: float = number(2.0, above=0)
    retain: float = number(1.0, least=0)

    def prepare(self, task):
        for name in (FORGET, RETAIN):
            task.reference.keep_hidden(name, self.layer(task))

    def layer(self, task) -> int:
        """The layer whose states are driven; 0 are the embeddings."""
        n_blocks = len(list(task.models.layers())) - 2  # embedding, blocks, head
        return max(1, round(self.depth * n_blocks))

    def forget_loss(self, task, batch):
        states = task.models.hidden(batch.ids_MBT, self.layer(task))
        original = task.reference.hidden(batch, self.layer(task))
        length_M = per_token(original.norm(dim=-1), batch.targets_MBT)
        target_MD = self.scale * length_M[:, None] * self.directions(task, states.shape[-1])
        return squared_error(states, target_MD[:, None, None].expand_as(states), batch.targets_MBT)

    def retain_loss(self, task, batch):
        states = task.models.hidden(batch.ids_MBT, self.layer(task))
        original = task.reference.hidden(batch, self.layer(task))
        return squared_error(states, original, batch.targets_MBT)

    def directions(self, task, width: int):
        """A unit vector of each model, [M, D]; each entry is drawn from [0, 1), as published."""
        drawn_MD = np.stack([g.random(width) for g in task.generators(WEIGHTS)])
        drawn_MD /= np.linalg.norm(drawn_MD, axis=1, keepdims=True)
        return torch.from_numpy(drawn_MD.astype(np.float32)).to(task.models.device)
