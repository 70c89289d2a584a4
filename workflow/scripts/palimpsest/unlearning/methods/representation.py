"""Misdirection of the hidden states of a layer."""

from __future__ import annotations

import numpy as np

from palimpsest.lazy_import import lazy_import
from palimpsest.unlearning.methods.ascent import WithRetain
from palimpsest.unlearning.methods.losses import per_token, squared_error
from palimpsest.unlearning.methods.phases import phase
from palimpsest.unlearning.methods.sets import FORGET, RETAIN
from palimpsest.unlearning.methods.task import WEIGHTS
from palimpsest.unlearning.methods.values import number

torch = lazy_import("torch")


@phase("rmu")
class RMU(WithRetain):
    """Moves a layer's states on the forget set in a random direction, but not on the retain set.

    Each model has its own direction. Its length is `scale`, in units of the mean length of the
    original model's states on the forget set. `depth` is the share of the blocks at or below the
    layer. The published method trains three matrices, one in each of three blocks: to do so, select
    weights before this phase and set `elsewhere: 0`.

    Source: The WMDP Benchmark: Measuring and Reducing Malicious Use With Unlearning (Li et al.,
    2024), section 4.
    """

    depth: float = number(0.5, above=0, most=1)
    scale: float = number(2.0, above=0)

    def prepare(self, task):
        for name in (FORGET, RETAIN):
            task.reference.keep_hidden(name, self.layer(task))

    def layer(self, task) -> int:
        """The layer whose states are moved; layer 0 is the embeddings."""
        n_blocks = len(list(task.models.layers())) - 2  # embedding, blocks, head
        return max(1, round(self.depth * n_blocks))

    def forget_loss(self, task, batch):
        states = task.models.hidden(batch.ids_MBT, self.layer(task))
        original = task.reference.hidden(batch, self.layer(task))
        length_M = per_token(original.norm(dim=-1), batch.targets_MBT)
        target_MD = self.scale * length_M[:, None] * self.directions(task, states.shape[-1])
        return squared_error(states, target_MD[:, None, None].expand_as(states), batch.targets_MBT)

    def loss_on_paired_set(self, task, batch):
        states = task.models.hidden(batch.ids_MBT, self.layer(task))
        original = task.reference.hidden(batch, self.layer(task))
        return squared_error(states, original, batch.targets_MBT)

    def directions(self, task, width: int):
        """A unit vector for each model, [M, D]; entries are drawn from [0, 1), as published."""
        drawn_MD = np.stack([g.random(width) for g in task.generators(WEIGHTS)])
        drawn_MD /= np.linalg.norm(drawn_MD, axis=1, keepdims=True)
        return torch.from_numpy(drawn_MD.astype(np.float32)).to(task.models.device)
