"""Phases that select weights, which later phases edit, or train more than others.

The paper's models have other layers. Its convolutional layers correspond to the weight matrices of
attention and of the feed-forward layers, its first layer to the embeddings, and its classifier to
the output head. Tied weights are both embeddings and head.
"""

from __future__ import annotations

import numpy as np

from palimpsest.lazy_import import lazy_import
from palimpsest.models.parameter_names import BLOCK
from palimpsest.unlearning.methods.losses import token_nll
from palimpsest.unlearning.methods.phases import Select, phase
from palimpsest.unlearning.methods.sets import FORGET, RETAIN
from palimpsest.unlearning.methods.task import SELECTION
from palimpsest.unlearning.methods.values import choice, choices, number

torch = lazy_import("torch")

MATRICES, EMBEDDINGS, HEAD, REST = PARTS = ("matrices", "embeddings", "head", "rest")
SMALLEST, LARGEST = "smallest", "largest"


def parts_of(models, name: str) -> set[str]:
    """The parts of a model to which a parameter belongs; `rest` means norms and biases."""
    parts = {EMBEDDINGS} if name in models.embeddings else set()
    parts |= {HEAD} if name in models.head else set()
    if not parts and BLOCK.search(name) and len(models.shapes[name]) > 1:
        return {MATRICES}
    return parts or {REST}


def names_in(models, parts: tuple[str, ...]) -> list[str]:
    return [name for name in models.shapes if parts_of(models, name) & set(parts)]


def weight_layers(models) -> dict[str, list[str]]:
    """The parameters of each layer: a matrix or an embedding, with its bias; norms are left out."""
    layers = {
        name.rpartition(".")[0]: [] for name, shape in models.shapes.items() if len(shape) > 1
    }
    for name in models.shapes:
        layers.get(name.rpartition(".")[0], []).append(name)
    return layers


@phase("select-parts")
class SelectParts(Select):
    """Selects whole parts of the model."""

    parts: tuple[str, ...] = choices(PARTS)

    def select(self, task):
        chosen = set(names_in(task.models, self.parts))
        return _whole(task, dict.fromkeys(chosen, np.ones(task.models.count, dtype=bool)))


@phase("select-layers")
class SelectLayers(Select):
    """Selects a random share of the layers, without norms; a different one for each model.

    Source: Are we making progress in unlearning?, appendix A.4 (Sun, Forget).
    """

    share: float = number(above=0, most=1)

    def select(self, task):
        layers = list(weight_layers(task.models).values())
        size = max(1, round(self.share * len(layers)))
        picks = [g.permutation(len(layers))[:size] for g in task.generators(SELECTION)]
        chosen_ML = np.array([np.isin(np.arange(len(layers)), pick) for pick in picks])
        return _whole(
            task,
            {name: chosen_ML[:, i] for i, names in enumerate(layers) for name in names},
        )


def _whole(task, chosen: dict[str, np.ndarray]):
    """A selection of whole parameters; `chosen` has bool[M] by name (not selected if absent)."""
    models = task.models
    none = np.zeros(models.count, dtype=bool)
    selection = {}
    for name, shape in models.shapes.items():
        of_model = torch.from_numpy(chosen.get(name, none).copy()).to(models.device)
        selection[name] = of_model.view(-1, *[1] * len(shape)).expand(models.count, *shape)
    return selection


class SelectShare(Select):
    """Selects a share of the weights of some parts: those with the smallest or largest scores.

    Weights of other parts cannot be selected; they always train normally.
    """

    def select(self, task):
        scores = self.scores(task)
        return _share(scores, self.share, self.which == LARGEST)

    def scores(self, task):
        """A score for each weight of the parts; its absolute value counts."""
        raise NotImplementedError


@phase("select-norm")
class SelectNorm(SelectShare):
    """Selects by the absolute value of the weights.

    Source: Are we making progress in unlearning?, appendix A.4 (Sebastian).
    """

    share: float = number(above=0, below=1)
    which: str = choice((SMALLEST, LARGEST), SMALLEST)
    parts: tuple[str, ...] = choices(PARTS, (MATRICES,))

    def scores(self, task):
        with task.models.weights() as weights:
            return {name: weights[name].clone() for name in names_in(task.models, self.parts)}


@phase("select-gradient")
class SelectGradient(SelectShare):
    """Selects by the gradient of alpha * retain - (1 - alpha) * forget over both sets.

    Source: Are we making progress in unlearning?, appendix A.4 (Kookmin) and section 5 (SalUn, with
    alpha 0); SalUn (Fan et al., 2023), equation 3.
    """

    works_on_every_weight = "reads the gradient of every weight"

    share: float = number(above=0, below=1)
    which: str = choice((SMALLEST, LARGEST))
    alpha: float = number(0.0, least=0, most=1)
    parts: tuple[str, ...] = choices(PARTS, (MATRICES,))

    @property
    def factors(self) -> dict[str, float]:
        factors = {RETAIN: self.alpha, FORGET: self.alpha - 1}
        return {name: factor for name, factor in factors.items() if factor}

    @property
    def sets(self):
        return tuple(self.factors)

    def scores(self, task):
        names = names_in(task.models, self.parts)
        total = dict.fromkeys(names, 0.0)
        for name, factor in self.factors.items():
            per_token = factor / task.strings.n_tokens[task.sets[name]].sum()
            for batch in task.batches(name, task.phase_number, 1):
                logits = task.models.logits(batch.ids_MBT)
                nll_MBT = token_nll(logits, batch.targets_MBT)
                gradients = task.models.gradients(nll_MBT.sum((1, 2)) * per_token)
                total = {n: total[n] + gradients[n] for n in names}
                task.steps += 1
        return total


def _share(scores, share: float, largest: bool):
    """True for a share of each model's weights: those with the smallest or largest |score|.

    Nothing is sorted, so that large models fit into memory. The bits of non-negative floats, read
    as integers, have the same order as the floats, so a binary search over integers finds the
    threshold.
    """
    bits = {name: score.float().abs().view(torch.int32) for name, score in scores.items()}
    flat = [score.flatten(1) for score in bits.values()]
    n_weights = sum(score.shape[1] for score in flat)
    rank = round((1 - share if largest else share) * n_weights)
    low_M = torch.zeros(len(flat[0]), dtype=torch.int64, device=flat[0].device)
    high_M = torch.full_like(low_M, 2**31 - 1)
    while (low_M < high_M).any():
        middle_M = (low_M + high_M) // 2
        enough_M = sum((score <= middle_M[:, None]).sum(1) for score in flat) >= rank
        high_M = torch.where(enough_M, middle_M, high_M)
        low_M = torch.where(enough_M, low_M, middle_M + 1)
    ends = {name: low_M.view(-1, *[1] * (score.dim() - 1)) for name, score in bits.items()}
    return {
        name: score > ends[name] if largest else score <= ends[name] for name, score in bits.items()
    }
