"""Attribution by gradients of single strings, against the training of the same model.

Run as a script: `python tests/benchmarks/bench_gradients.py`. One core.

A cell is one twin (OPT 1.3B) on 64 strings of L2, by the default recipe: 51 kept epochs. Numbers
are in trainings of this cell by the engine `fleet`, which measures all strings after each epoch:
seconds of the processor, divided by those of the training in the same run. Ours has all variants of
TracIn, for the training strings, and for 96 test strings as well in the second row. The peer is
plain autograd, one string at a time (`loss.backward()`): for TracIn and TRAK with the products of
the whole gradients, for EK-FAC the same method with one string in a pass. Another peer of TracIn is
torch.func, which maps the gradient over strings. Peers of TracIn have three of the epochs only, and
their seconds are scaled up. MAGIC has three epochs, too; its row is per training string, and a
retraining is one training by definition. In the row of errors, the peer is torch.func against this
autograd.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from rows import Row, at_most, main, shown  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

from palimpsest import tables  # noqa: E402
from palimpsest.atlas import ekfac, trak  # noqa: E402
from palimpsest.atlas.gradients import TracIn, rates_between, tracin  # noqa: E402
from palimpsest.atlas.influence import Weighing  # noqa: E402
from palimpsest.atlas.string_gradients import StringGradients  # noqa: E402
from palimpsest.atlas.unrolled import Training, Unrolled, unrolled  # noqa: E402
from palimpsest.corpora import GrammarCorpus  # noqa: E402
from palimpsest.datasets.build import build  # noqa: E402
from palimpsest.datasets.sampling import Sampler  # noqa: E402
from palimpsest.models import read_models  # noqa: E402
from palimpsest.models.build import build as build_model  # noqa: E402
from palimpsest.sections import KINDS  # noqa: E402
from palimpsest.training.fleet import FleetEngine  # noqa: E402
from palimpsest.training.kept_weights import weights_by_epoch  # noqa: E402
from palimpsest.training.recipe import Recipe  # noqa: E402
from palimpsest.training.runs import Material, Run  # noqa: E402

MODEL, LANGUAGE, TESTS = "opt-1.3b", "L2", 96
TIMES = 3  # the fastest counts
EPOCHS_OF_PEERS = 3
TRACIN_TARGET, EKFAC_TARGET, ERROR_TARGET = 2.0, 5.0, 1e-4
CPU = torch.device("cpu")


class Cell:
    """A trained twin, its strings and its weights after every epoch."""

    def __init__(self, folder: Path, size: int, epochs: int):
        row = read_models(ROOT / "config/models.tsv")[MODEL]
        corpus = GrammarCorpus.from_file(ROOT / f"config/languages/{LANGUAGE}.pcfg")
        dataset = folder / "strings.parquet"
        tables.write(
            dataset,
            build(Sampler(LANGUAGE, corpus, 0), "base", size, TESTS, predict_end=False),
            KINDS["strings"],
        )
        recipe = Recipe(row.twin_learning_rate, epochs=epochs, checkpoint_every=0)
        self.folder, self.n = folder, 0
        self.run = Run(f"{MODEL}-twin", row, "twin", corpus, str(dataset), recipe, by_epoch=True)
        self.material = Material(self.run)
        self.encoded = self.material.encoded
        steps = recipe.steps_per_epoch(self.material.epoch_size)
        self.weighing = Weighing(
            self.material.counts, self.encoded.n_tokens, steps, recipe.gradient_clipping
        )

    def train(self) -> None:
        self.n += 1
        engine = FleetEngine(self.folder / f"state{self.n}", 1, 2**33)
        engine.train([self.run], lambda name: lambda *_: None)
        self.files = weights_by_epoch(engine.state(self.run).kept)

    def model(self, epoch: int | None = None):
        """A model, with the weights after an epoch."""
        model = build_model(self.run.row, "twin", self.material.vocabulary, 0, torch.float32)
        if epoch is not None:
            model.load_state_dict(load_file(self.files[epoch]), strict=False)
        return model.eval()

    def gradients(self) -> StringGradients:
        return StringGradients(self.model(), self.encoded, CPU)

    def tracin(self, measured: np.ndarray) -> TracIn:
        epochs = list(self.files)
        rates = rates_between(self.run.recipe, self.weighing.steps, epochs)
        checkpoints = map(load_file, self.files.values())
        return tracin(self.gradients(), checkpoints, epochs, rates, self.weighing, measured)

    def ekfac(self, measured: np.ndarray):
        return ekfac.ekfac_influence(
            self.model(max(self.files)), self.encoded, self.weighing, measured
        )

    def trak(self, measured: np.ndarray):
        checkpoints = [load_file(self.files[max(self.files)])]
        return trak.trak(self.gradients(), checkpoints, self.weighing, measured)

    def magic(self, epochs: int) -> Unrolled:
        """The exact derivative after some epochs of the training, for every training string."""
        recipe, order = self.run.recipe, self.material.order
        training = Training(self.model(), self.encoded, recipe, recipe.epochs * self.weighing.steps)
        kept = {epoch: training.flat(load_file(self.files[epoch])) for epoch in (0, epochs)}
        train, orders = self.weighing.train, [order(epoch + 1) for epoch in range(epochs)]
        n = len(self.weighing.copies)
        return unrolled(training, orders, recipe.batch_size, kept, train, train, n)

    def inputs(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Ids and targets int[rows, T] of strings that have one length."""
        lengths = self.encoded.lengths[rows]
        assert (lengths == lengths[0]).all()
        ids, targets = self.encoded.ids[rows], self.encoded.targets[rows]
        return torch.from_numpy(ids[:, :-1].copy()), torch.from_numpy(targets[:, 1:].copy())


# The peers: gradients [strings, parameters] of the summed nll after an epoch


def one_by_one(cell: Cell, rows: np.ndarray, epoch: int) -> torch.Tensor:
    """Plain autograd."""
    model, found = cell.model(epoch), []
    for ids_T, targets_T in zip(*cell.inputs(rows), strict=True):
        model.zero_grad()
        logits_TV = model(input_ids=ids_T[None], use_cache=False).logits[0]
        torch.nn.functional.cross_entropy(logits_TV, targets_T, reduction="sum").backward()
        found.append(torch.cat([weight.grad.flatten() for weight in model.parameters()]))
    return torch.stack(found)


def mapped(cell: Cell, rows: np.ndarray, epoch: int) -> torch.Tensor:
    """The gradient of torch.func, mapped over strings."""
    model = cell.model(epoch)
    model.set_attn_implementation("eager")
    ids_NT, targets_NT = cell.inputs(rows)
    length = ids_NT.shape[1]
    # Given explicitly, because a mask cannot be made inside of the map.
    mask = torch.full((length, length), torch.finfo(torch.float32).min).triu(1)[None, None]
    given = {"attention_mask": mask, "position_ids": torch.arange(length)[None]}
    weights = {name: weight.detach() for name, weight in model.named_parameters()}

    def loss(weights, ids_T, targets_T):
        words = {"input_ids": ids_T[None], "use_cache": False, **given}
        logits_TV = torch.func.functional_call(model, weights, (), words).logits[0]
        return torch.nn.functional.cross_entropy(logits_TV, targets_T, reduction="sum")

    of_strings = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    found = of_strings(weights, ids_NT, targets_NT)
    return torch.cat([one.flatten(1) for one in found.values()], dim=1)


def products_of_peer(peer: Callable, cell: Cell, rows: np.ndarray, epochs: list[int]) -> list:
    """Products float32[strings, strings] of the gradients after each epoch."""
    found = []
    for epoch in epochs:
        grads_NP = peer(cell, rows, epoch)
        found.append(grads_NP @ grads_NP.T)
    return found


def error(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest error of a product, as a share of the norms of its two gradients."""
    norms = np.sqrt(np.diag(exact))
    return float((np.abs(found - exact) / np.outer(norms, norms)).max())


def seconds_of(call: Callable[[], object], times: int) -> float:
    """Seconds of the processor of the fastest of some calls."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        call()
        found.append(time.process_time() - begin)
    return min(found)


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    torch.set_num_threads(1)
    size, epochs, times = (8, 3, 1) if tiny else (64, 50, TIMES)
    with tempfile.TemporaryDirectory() as folder:
        cell = Cell(Path(folder), size, epochs)
        cell.train()  # compiled
        training = seconds_of(cell.train, times)
        yield shown(f"a training, {size} strings, {epochs} epochs", training, np.nan, "s", np.nan)
        yield from of_cell(cell, training, times)


def of_cell(cell: Cell, training: float, times: int) -> Iterator[Row]:
    train = cell.weighing.train
    never = np.flatnonzero(cell.material.counts == 0)
    every, n_epochs = np.concatenate([train, never]), len(cell.files)
    what = f"{len(cell.material.multiset)} strings"
    cell.tracin(train)
    some = list(np.unique(np.linspace(0, max(cell.files), EPOCHS_OF_PEERS).astype(int)))
    in_trainings = {
        peer: seconds_of(lambda p=peer: products_of_peer(p, cell, train, some), times)
        * (n_epochs / len(some) / training)
        for peer in (one_by_one, mapped)
    }
    ours = seconds_of(lambda: cell.tracin(train), times) / training
    for peer, name in ((one_by_one, "one by one"), (mapped, "torch.func")):
        work = f"TracIn, {what}, {n_epochs} epochs; peer: {name}"
        yield at_most(work, ours, in_trainings[peer], "trainings", TRACIN_TARGET)
    ours = seconds_of(lambda: cell.tracin(every), times) / training
    yield shown(f"  and {len(never)} test strings", ours, np.nan, "trainings", np.nan)
    ours = seconds_of(lambda: cell.ekfac(train), times) / training
    with patch.object(ekfac, "AT_ONCE", 1):
        peer = seconds_of(lambda: cell.ekfac(train), 1) / training
    yield at_most(f"EK-FAC, {what}; peer: one by one", ours, peer, "trainings", EKFAC_TARGET)
    ours = seconds_of(lambda: cell.trak(train), times) / training
    last = max(cell.files)
    peer = seconds_of(lambda: products_of_peer(one_by_one, cell, train, [last]), times) / training
    yield shown(f"TRAK, {what}; peer: one by one", ours, peer, "trainings", peer / ours)
    few = min(last, EPOCHS_OF_PEERS)
    ours = seconds_of(lambda: cell.magic(few), 1) * last / few / training / len(train)
    yield shown(f"MAGIC, a string of {what}; peer: retraining", ours, 1.0, "trainings", 1 / ours)
    exact, theirs = (
        products_of_peer(peer, cell, train, [last])[0].double().numpy()
        for peer in (one_by_one, mapped)
    )
    own = cell.gradients()
    own.load(load_file(cell.files[last]))
    grads_NP = own.of(train)
    found = (grads_NP @ grads_NP.T).double().numpy()
    errors = error(found, exact), error(theirs, exact)
    yield at_most("  largest error of a product", *errors, "of norms", ERROR_TARGET)


if __name__ == "__main__":
    sys.exit(main(rows))
