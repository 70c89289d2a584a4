"""Training speed of the deepspeed engine on one core, against a bare PyTorch loop.

    python tests/benchmarks/bench_training.py

Both train a Llama of more than 10 million parameters in fp32 on the same batches, with the same
optimiser, clipping and schedule. They take turns, epoch by epoch, at the same losses.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

import torch  # noqa: E402
from rows import Row, at_least, main  # noqa: E402

from palimpsest import tables  # noqa: E402
from palimpsest.corpora import GrammarCorpus  # noqa: E402
from palimpsest.datasets.build import build  # noqa: E402
from palimpsest.datasets.sampling import Sampler  # noqa: E402
from palimpsest.launch import keep_freed_memory  # noqa: E402
from palimpsest.models import read_models  # noqa: E402
from palimpsest.models.build import build as build_model  # noqa: E402
from palimpsest.sections import KINDS  # noqa: E402
from palimpsest.training.batches import IGNORED  # noqa: E402
from palimpsest.training.deepspeed_engine import DeepSpeedEngine  # noqa: E402
from palimpsest.training.evaluation import evaluate  # noqa: E402
from palimpsest.training.recipe import Recipe, epoch_order  # noqa: E402
from palimpsest.training.runs import Material, Run  # noqa: E402

GRAMMAR = ROOT / "config/languages/L2.pcfg"
WIDTH, LAYERS, HEADS, LEARNING_RATE = 384, 6, 6, 3e-4  # 10.6 million parameters
ROUNDS = 9
TARGET_RATIO = 0.90


def run_in(folder: Path, width: int, layers: int, rounds: int) -> Run:
    """32 strings, a Llama of some size, and the recipe: four steps an epoch."""
    grammar = GrammarCorpus.from_file(GRAMMAR)
    strings = build(Sampler("L2", grammar, 0), "base", 32, 1, predict_end=False)
    tables.write(folder / "strings.parquet", strings, KINDS["strings"])
    row = replace(
        read_models(ROOT / "config/models.tsv")["llama-3.2-1b"],
        model="ten-million",
        twin_hidden=width,
        twin_layers=layers,
        twin_heads=HEADS,
        twin_learning_rate=LEARNING_RATE,
    )
    recipe = Recipe(
        row.twin_learning_rate,
        epochs=rounds + 1,
        zero_stage=0,
        precision="fp32",
        checkpoint_every=0,
    )
    return Run("ten-million-twin", row, "twin", grammar, str(folder / "strings.parquet"), recipe)


class BareLoop:
    """The training loop that one would write without an engine."""

    def __init__(self, run: Run, encoded, multiset):
        self.recipe, self.encoded, self.multiset = run.recipe, encoded, multiset
        vocabulary = len(run.corpus.alphabet.terminals) + 2
        self.model = build_model(run.row, "twin", vocabulary, 0, torch.float32)
        rate = self.recipe.learning_rate
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=rate, weight_decay=0.0, fused=True
        )
        self.n_steps = len(multiset) // self.recipe.batch_size * self.recipe.epochs
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: self.recipe.learning_rate_at(step, self.n_steps) / rate
        )

    def train_epoch(self, epoch: int) -> None:
        """One pass over the multiset."""
        order = self.multiset[epoch_order(len(self.multiset), 0, epoch)]
        for rows in order.reshape(-1, self.recipe.batch_size):
            batch = self.encoded.batch(rows, torch.device("cpu"))
            logits = self.model(input_ids=batch.ids_BT, attention_mask=batch.mask_BT).logits
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), batch.targets_BT.flatten(), ignore_index=IGNORED
            )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.gradient_clipping)
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()


def assert_equal_training(ours, peer) -> None:
    """After the first epoch both models have the same loss on every string."""
    encoded, cpu = ours.material.encoded, torch.device("cpu")
    losses = [
        evaluate(side.model, encoded, np.arange(len(encoded.lengths)), 64, cpu)[0]
        for side in (ours, peer)
    ]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


def engine_against_loop(folder: Path, *size: int) -> Row:
    """Tokens per second of both, the median over rounds in which they take turns."""
    torch.set_num_threads(1)
    keep_freed_memory()
    run = run_in(folder, *size)
    engine = DeepSpeedEngine(run.recipe, folder / "state")
    ours = engine._ready(run, Material(run), engine.state(run))
    peer = BareLoop(run, ours.material.encoded, ours.material.multiset)
    seconds = []
    for epoch in range(1, run.recipe.epochs + 1):
        turns = [(0, ours._train_epoch), (1, peer.train_epoch)]
        pair = [0.0, 0.0]
        for place, train in turns if epoch % 2 else turns[::-1]:
            begin = time.perf_counter()
            train(epoch)
            pair[place] = time.perf_counter() - begin
        seconds.append(pair)
        if epoch == 1:
            assert_equal_training(ours, peer)
    engine.close()
    material = ours.material
    tokens = int(material.encoded.n_tokens[material.multiset].sum())
    rounds = np.array(seconds[1:])  # the first one warms up
    return at_least(
        f"train {ours.n_parameters / 1e6:.1f}M Llama, ZeRO 0, fp32; peer: PyTorch loop",
        tokens / float(np.median(rounds[:, 0])),
        tokens / float(np.median(rounds[:, 1])),
        "tokens/s",
        target_ratio=TARGET_RATIO,
        ratio=statistics.median(rounds[:, 1] / rounds[:, 0]),
    )


def rows(tiny: bool) -> list[Row]:
    """All rows of this benchmark."""
    size = (48, 1, 1) if tiny else (WIDTH, LAYERS, ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        return [engine_against_loop(Path(folder), *size)]


if __name__ == "__main__":
    sys.exit(main(rows))
