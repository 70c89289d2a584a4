"""Speed of a pretrained model on the processor's cores, against bare PyTorch.

    make pretrained && python tests/benchmarks/bench_pretrained.py

The model is SmolLM2-135M, in bf16 with float32 copies in the optimiser, as `precision: auto` trains
it on a processor that has bf16 (otherwise both sides use fp32). Training: an optimiser step of the
`deepspeed` engine, against a loop with the same batches, precision, optimiser, clipping and number
of threads; they take turns, step by step. Measuring: the numbers of a trace for a dataset, against
the forward passes alone.
"""

import os
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

THREADS = len(os.sched_getaffinity(0))
os.environ["OMP_NUM_THREADS"] = str(THREADS)

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from rows import Row, at_least, in_turns, main  # noqa: E402

from helpers.checkpoints import write_checkpoint  # noqa: E402
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
from palimpsest.training.evaluation import strings_at_once  # noqa: E402
from palimpsest.training.recipe import ADAM_BETAS, ADAM_EPS, Recipe  # noqa: E402
from palimpsest.training.runs import Material, Run  # noqa: E402

LANGUAGE, MODEL = "L4", "smollm2-135m-instruct"
STEPS = 12
BATCH = 8
TARGET_STEP = 0.90  # of the speed of the bare loop
MOST_TO_MEASURE = 1.5  # times the time of the forward passes


def run_in(folder: Path, tiny: bool) -> Run:
    """64 strings and the recipe; at the tiny size, the model is a checkpoint made here."""
    grammar = GrammarCorpus.from_file(ROOT / f"config/languages/{LANGUAGE}.pcfg")
    strings = build(Sampler(LANGUAGE, grammar, 0), "base", 32, 32, predict_end=False)
    tables.write(folder / "strings.parquet", strings, KINDS["strings"])
    if tiny:
        row = read_models(write_checkpoint(folder, "llama-3.2-1b"))["mine"]
    else:
        row = read_models(ROOT / "config/models.tsv")[MODEL]
        row = replace(row, id=str(ROOT / row.id))
        if not Path(row.id, "config.json").exists():
            print(f"bench_pretrained: skipped: no {row.id}: make pretrained", file=sys.stderr)
            sys.exit()
    recipe = Recipe(row.learning_rate, epochs=2, zero_stage=0, batch_size=BATCH)
    return Run(row.model, row, "full", grammar, str(folder / "strings.parquet"), recipe)


class BareLoop:
    """The loop that one would write without an engine, with float32 copies of the weights."""

    def __init__(self, run: Run, material: Material, dtype: torch.dtype):
        self.encoded, self.clipping = material.encoded, run.recipe.gradient_clipping
        self.model = build_model(run.row, run.scale, material.vocabulary, 0, dtype)
        self.weights = list(self.model.parameters())
        self.masters = [p.detach().float().clone().requires_grad_() for p in self.weights]
        self.optimizer = torch.optim.AdamW(
            self.masters,
            lr=run.recipe.learning_rate,
            betas=ADAM_BETAS,
            eps=ADAM_EPS,
            weight_decay=0.0,
            fused=True,
        )

    def step(self, rows: np.ndarray) -> None:
        """One step of the optimiser on a batch."""
        batch = self.encoded.batch(rows, torch.device("cpu"))
        logits = self.model(input_ids=batch.ids_BT, attention_mask=batch.mask_BT).logits
        loss = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), batch.targets_BT.flatten(), ignore_index=IGNORED
        )
        loss.backward()
        for weight, master in zip(self.weights, self.masters, strict=True):
            master.grad = weight.grad.float()
            weight.grad = None
        torch.nn.utils.clip_grad_norm_(self.masters, self.clipping)
        self.optimizer.step()
        with torch.no_grad():
            for weight, master in zip(self.weights, self.masters, strict=True):
                weight.copy_(master)


def rows(tiny: bool) -> list[Row]:
    """All rows of this benchmark."""
    torch.set_num_threads(THREADS)
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = run_in(folder, tiny)
        engine = DeepSpeedEngine(run.recipe, folder / "state")
        ours = engine._ready(run, Material(run), engine.state(run))
        peer = BareLoop(run, ours.material, engine.dtype)
        what = f"{ours.n_parameters / 1e6:.0f}M, {engine.dtype}, {THREADS} threads".replace(
            "torch.", ""
        )
        found = [stepping(ours, peer, what, 2 if tiny else STEPS)]
        found.append(measuring(ours, what, 2 if tiny else 3))
        engine.close()
    return found


def stepping(ours, peer: BareLoop, what: str, rounds: int) -> Row:
    """Training steps per second of both."""
    material = ours.material
    batches = [material.multiset[n % 4 * BATCH :][:BATCH] for n in range(rounds + 1)]

    n_tokens = [int(material.encoded.n_tokens[rows].sum()) for rows in batches]
    seconds = in_turns(
        lambda n: ours._step([batches[n]], n_tokens[n]), lambda n: peer.step(batches[n]), rounds
    )
    return at_least(
        f"train {what}; peer: PyTorch loop",
        1 / float(np.median(seconds[:, 0])),
        1 / float(np.median(seconds[:, 1])),
        "steps/s",
        target_ratio=TARGET_STEP,
        ratio=statistics.median(seconds[:, 1] / seconds[:, 0]),
    )


def measuring(ours, what: str, rounds: int) -> Row:
    """Strings measured per second, against the forward passes of the same batches."""
    encoded, cpu = ours.material.encoded, torch.device("cpu")
    n = len(encoded.lengths)
    order = np.argsort(encoded.lengths, kind="stable")
    together = strings_at_once(ours.recipe.evaluation_batch_size, cpu, 1)

    @torch.no_grad()
    def forward(_) -> None:
        for rows in np.array_split(order, -(-n // together)):
            batch = encoded.batch(rows, cpu)
            ours.model(input_ids=batch.ids_BT, attention_mask=batch.mask_BT, use_cache=False)

    seconds = in_turns(lambda _: ours._evaluate(), forward, rounds)
    return at_least(
        f"measure {n} strings, {what}; peer: forward passes",
        n / float(np.median(seconds[:, 0])),
        n / float(np.median(seconds[:, 1])),
        "strings/s",
        target_ratio=round(1 / MOST_TO_MEASURE, 3),
        ratio=statistics.median(seconds[:, 1] / seconds[:, 0]),
    )


if __name__ == "__main__":
    sys.exit(main(rows))
