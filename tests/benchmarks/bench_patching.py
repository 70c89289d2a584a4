"""Activation patching of unlearned models, with a control that can fail.

Run as a script: `python tests/benchmarks/bench_patching.py`. On a smaller version of the problems
of config/judged.yaml, models forget a quarter of their strings by a method, and get the embeddings
and the lower half of the layers of the original model back. The rise of the loss of the forget
strings that this undoes is the number of `unlearning_judged`.

The control has the same lower half, frozen, and an upper half that was trained from the beginning,
without the forget strings: its halves fit, and its upper half knows none of these strings. What it
undoes of the rise of retrained models needs nothing that a method left behind. Its peer is trained
in the same way on the frozen lower half of a retrained model, which knows no forget string at all.
The last rows of a method compare its patched models with the control.

In the names stand 95 % intervals over the problems (Student).
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

import numpy as np  # noqa: E402
import torch  # noqa: E402
import yaml  # noqa: E402
from rows import Row, main, shown  # noqa: E402

from palimpsest import tables  # noqa: E402
from palimpsest.corpora import GrammarCorpus  # noqa: E402
from palimpsest.datasets.sampling import Sampler  # noqa: E402
from palimpsest.jobs.bench import TrainedWeights, holder_of  # noqa: E402
from palimpsest.jobs.command import Assignment  # noqa: E402
from palimpsest.jobs.finetune import Job, finetune  # noqa: E402
from palimpsest.jobs.query import QueryFiles  # noqa: E402
from palimpsest.models import read_models  # noqa: E402
from palimpsest.models.build import build  # noqa: E402
from palimpsest.regimes import Replicates  # noqa: E402
from palimpsest.sections import KINDS  # noqa: E402
from palimpsest.statistics import Interval, student  # noqa: E402
from palimpsest.training.recipe import Recipe  # noqa: E402
from palimpsest.unlearning.forgetting_data import build_forgetting  # noqa: E402
from palimpsest.unlearning.interventions import ORIGINAL, RETAIN  # noqa: E402
from palimpsest.unlearning.judging.judged import AS_IS, PATCHED  # noqa: E402
from palimpsest.unlearning.judging.patching import patched  # noqa: E402
from palimpsest.unlearning.judging.probe import probe  # noqa: E402
from palimpsest.unlearning.methods.losses import cross_entropy  # noqa: E402
from palimpsest.unlearning.run.setups import NONE, RETRAIN  # noqa: E402
from palimpsest.unlearning.run.wave import weights_of  # noqa: E402
from palimpsest.unlearning.run.workbench import Workbench  # noqa: E402

MODEL, LANGUAGE = "pythia-1b", ROOT / "config/languages/L3-short.pcfg"
METHODS = ("npo", "gradient-difference")
SEEDS = range(200, 208)  # as in config/judged.yaml
N, SIZE, EPOCHS = 8, 64, 50  # models of each kind
TINY = 2, 16, 2
SHARE, CUTOFF = 0.25, 0.1

Weights = dict[str, torch.Tensor]


@dataclass
class Losses:
    """Mean losses of single strings in one problem, nats per token, by the kind of models.

    `forget` is that of the forget strings. `retain` is that of the retained strings, and `unseen`
    that of strings that no model was trained on, of retrained models and of both controls.
    """

    forget: dict[str, float]
    retain: dict[str, float]
    unseen: dict[str, float]


class Problem:
    """One problem: its datasets, and models with and without the forget strings."""

    def __init__(self, folder: Path, seed: int, n: int, size: int, epochs: int):
        row = read_models(ROOT / "config/models.tsv")[MODEL]
        self._folder, self._n, self._row = folder, n, row
        recipe = Recipe(row.twin_learning_rate, epochs=epochs, evaluate_every=5, checkpoint_every=0)
        models = str(ROOT / "config/models.tsv")
        self._asked = Assignment(
            f"{MODEL}-twin", models, str(LANGUAGE), recipe, "fleet", str(folder / "state")
        )
        sampler = Sampler(LANGUAGE.stem, GrammarCorpus.from_file(LANGUAGE), seed)
        jobs = []
        for name, frame in build_forgetting(sampler, size, 96, 32, False, "string", SHARE).items():
            if name not in (ORIGINAL, RETAIN):
                continue
            (folder / name).mkdir(parents=True)
            files = ("strings.parquet", "trace.parquet", "manifest.json", "weights.safetensors")
            dataset, *others = (str(folder / name / file) for file in files)
            tables.write(dataset, frame, KINDS["strings"])
            jobs.append(Job(dataset, *others, regime=Replicates(range(n))))
        finetune(self._asked, jobs)
        self._dataset = jobs[0].dataset
        self._paths = [job.weights for job in jobs]
        self._trained = TrainedWeights(self._paths)
        self._bench = Workbench(self._asked.run(self._dataset), holder_of(self._asked))

    def losses(self) -> Losses:
        """The losses of all kinds of models."""
        forget = self._of_methods()
        found = {kind: self._control(kind) for kind in (ORIGINAL, RETAIN)}
        found[RETRAIN] = self._bench.holder.open(self._weights(RETAIN))
        by_set: dict[str, dict[str, float]] = {}
        n_tokens = self._bench.material.encoded.n_tokens
        for kind, models in found.items():
            loss_MS = self._bench.measure(models)[:, 0] / n_tokens
            for name in ("forget", "retain", "unseen"):
                rows = np.unique(self._bench.rows[name])
                by_set.setdefault(name, {})[kind] = float(loss_MS[:, rows].mean())
        controls = {f"control-{kind}": by_set["forget"][kind] for kind in (ORIGINAL, RETAIN)}
        return Losses({**forget, **controls}, by_set["retain"], by_set["unseen"])

    def _weights(self, variant: str) -> list[Weights]:
        return [self._trained.of(variant, place) for place in range(self._n)]

    def _of_methods(self) -> dict[str, float]:
        """The loss of the forget strings: originals, retrained models, methods, also patched."""
        table = yaml.safe_load((ROOT / "config/unlearning.yaml").read_text())
        written = {name: table[name]["phases"] for name in METHODS}
        written |= {NONE: [], RETRAIN: []}
        files = [
            QueryFiles(
                self._dataset,
                self._paths,
                [str(self._folder / name / "probed.parquet")],
                str(self._folder / name / "probed.json"),
            )
            for name in written
        ]
        models = {
            name: {"variant": RETAIN if name == RETRAIN else ORIGINAL, "n": self._n, "phases": of}
            for name, of in written.items()
        }
        probe.query.run(files, {"models": models, "cutoff": CUTOFF, "relearn": 1}, self._asked)
        strings = tables.read(self._dataset, KINDS["strings"]).set_index("string_id")["split"]
        found = {}
        for name, one in zip(written, files, strict=True):
            rows = tables.read(one.tables[0], KINDS["unlearning_probed"])
            rows = rows[rows["string_id"].map(strings) == "forget"]
            means = (rows["nll"] / rows["n_tokens"]).groupby(rows["stage"]).mean()
            found |= {name: means[AS_IS], f"{name}-patched": means[PATCHED]}
        return found

    def _control(self, variant: str):
        """Models with the frozen lower half of a trained model, and an upper half of their own.

        The upper half is trained as the recipe says, on the retained strings. The norm by which
        gradients are clipped is that of all weights.
        """
        bench, recipe = self._bench, self._asked.recipe
        vocabulary, seeds = bench.material.vocabulary, range(self._n)
        anew = [build(self._row, "twin", vocabulary, 1000 + seed, torch.float32) for seed in seeds]
        fresh = [{name: of.detach() for name, of in each.named_parameters()} for each in anew]
        begun = list(map(patched, fresh, self._weights(variant)))
        frozen = {name for name, of in begun[0].items() if of is not fresh[0][name]}
        assert 0 < len(frozen) < len(begun[0])
        models, encoded = bench.holder.open(begun), bench.material.encoded
        with models.weights() as weights:
            kept = {name: weights[name].clone() for name in frozen}
        rows, chance = bench.rows["retain"], np.random.default_rng(bench.keys["seed"])
        n_steps = recipe.epochs * recipe.steps_per_epoch(len(rows))
        step = 0
        for _ in range(recipe.epochs):
            order_MN = chance.permuted(np.tile(rows, (self._n, 1)), axis=1)
            for begin in range(0, len(rows), recipe.batch_size):
                rows_MB = order_MN[:, begin : begin + recipe.batch_size]
                length = int(encoded.lengths[rows_MB].max())
                ids_MBT = torch.from_numpy(encoded.ids[rows_MB, : length - 1])
                targets_MBT = torch.from_numpy(encoded.targets[rows_MB, 1:length])
                loss_M = cross_entropy(models.logits(ids_MBT), targets_MBT)
                rate = recipe.learning_rate_at(step, n_steps)
                models.step(loss_M, torch.full((self._n,), rate))
                step += 1
                with models.weights() as weights:
                    for name, values in kept.items():
                        weights[name].copy_(values)
        trained = [weights_of(models, place) for place in range(models.count)]
        assert all(torch.equal(trained[0][name], begun[0][name]) for name in frozen)
        return models


def share_undone(found: list[Losses], before: str, after: str) -> Interval:
    """Of the rise of a loss above that of the originals, the share that is undone."""
    return student(
        [
            (of.forget[before] - of.forget[after]) / (of.forget[before] - of.forget[NONE])
            for of in found
        ]
    )


def of_methods(found: list[Losses]) -> Iterator[Row]:
    """What patching undoes, and what the control does."""
    control = share_undone(found, RETRAIN, f"control-{ORIGINAL}")
    peer = share_undone(found, RETRAIN, f"control-{RETAIN}")
    for name in METHODS:
        undone = share_undone(found, name, f"{name}-patched")
        yield _row(f"rise undone, {name}, patched; peer: control", undone, control.mean, "share")
    yield _row(
        "rise undone by the control; peer: lower half retrained", control, peer.mean, "share"
    )
    yield _row("  lower half retrained; peer: control", peer, control.mean, "share")
    for name in METHODS:
        apart = student(
            [of.forget[f"control-{ORIGINAL}"] - of.forget[f"{name}-patched"] for of in found]
        )
        yield _row(f"control minus {name}, patched", apart, np.nan, "nats")


def of_controls(found: list[Losses]) -> Iterator[Row]:
    """Whether the controls are trained as well as retrained models are."""
    for kind, name in ((ORIGINAL, "control"), (RETAIN, "its peer")):
        for what in ("retain", "unseen"):
            losses = [getattr(of, what) for of in found]
            own, retrained = (student([of[key] for of in losses]) for key in (kind, RETRAIN))
            yield _row(f"{what} loss, {name}; peer: retrained", own, retrained.mean, "nats")
    for kind in (NONE, RETRAIN, f"control-{ORIGINAL}", f"control-{RETAIN}"):
        yield _row(
            f"forget loss, {kind}", student([of.forget[kind] for of in found]), np.nan, "nats"
        )


def _row(name: str, of: Interval, peer: float, unit: str) -> Row:
    return shown(f"{name}: {of.lower:.2f} to {of.upper:.2f}", of.mean, peer, unit, of.mean / peer)


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    warnings.simplefilter("ignore")  # the grammar has a rule that is never reached
    seeds, sizes = (SEEDS[:2], TINY) if tiny else (SEEDS, (N, SIZE, EPOCHS))
    with tempfile.TemporaryDirectory() as folder:
        found = [Problem(Path(folder) / str(seed), seed, *sizes).losses() for seed in seeds]
    yield from of_methods(found)
    yield from of_controls(found)


if __name__ == "__main__":
    sys.exit(main(rows))
