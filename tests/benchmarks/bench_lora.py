"""Training adapters beside training all weights: seconds per step, and memory.

    python tests/benchmarks/bench_lora.py [--pretrained FOLDER]

A Llama of more than 10 million parameters that is built on the spot (fp32), and SmolLM2-135M where
its folder exists (bf16), train on the same batches of eight strings, on one core. "Ours" is with
adapters of rank 16 on all matrices, and the peer trains all weights. Each runs in a process of its
own. Times are the processor's, so that other programs disturb them less. Memory is the peak of that
process, without what it had before the model was built.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from rows import Row, main, shown  # noqa: E402

PRETRAINED = ROOT / "results/pretrained/smollm2-135m-instruct"
SIZE, TINY = (384, 6, 5), (48, 1, 2)  # width and layers of the Llama, and epochs of four steps
WARM_UP = 1  # epochs
GB = 1e9


def train(adapter: str, pretrained: str, width: int, layers: int, epochs: int) -> dict[str, float]:
    """Seconds per step, peak memory in bytes and trained parameters of one training."""
    import psutil
    import torch
    from bench_training import run_in

    from palimpsest.launch import keep_freed_memory
    from palimpsest.training.deepspeed_engine import DeepSpeedEngine
    from palimpsest.training.runs import Material

    torch.set_num_threads(1)
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        run = run_in(Path(folder), width, layers, epochs)
        recipe = replace(run.recipe, adapter=adapter, precision="bf16" if pretrained else "fp32")
        run = replace(run, recipe=recipe)
        if pretrained:
            run = replace(run, model="smollm2", row=replace(run.row, id=pretrained), scale="full")
        engine, material = DeepSpeedEngine(recipe, Path(folder) / "state"), Material(run)
        before = psutil.Process().memory_info().rss
        training = engine._ready(run, material, engine.state(run))
        seconds = []
        for epoch in range(1, epochs + 1):
            begin = time.process_time()
            training._train_epoch(epoch)
            seconds.append(time.process_time() - begin)
        engine.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "seconds": statistics.median(seconds[WARM_UP:])
        / recipe.steps_per_epoch(len(material.multiset)),
        "bytes": peak - before,
        "trained": training.n_trained,
    }


def in_a_process(adapter: str, pretrained: str, size: tuple[int, int, int]) -> dict[str, float]:
    """The same in a process of its own, because a process remembers its peak."""
    arguments = json.dumps([adapter, pretrained, *size])
    command = [sys.executable, __file__, "--train", arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def of_a_model(name: str, pretrained: str, size: tuple[int, int, int]) -> Iterator[Row]:
    """The rows of one model."""
    ours, peer = (in_a_process(adapter, pretrained, size) for adapter in ("lora", "none"))
    for key, what, unit, scale in (
        ("seconds", "step", "s/step", 1),
        ("bytes", "memory", "GB", GB),
        ("trained", "trained weights", "million", 1e6),
    ):
        values = ours[key] / scale, peer[key] / scale
        label = f"{name}, {what}: adapters; peer: all weights"
        yield shown(label, *values, unit, peer[key] / ours[key])


def rows(pretrained: Path, tiny: bool) -> Iterator[Row]:
    """All rows of this benchmark."""
    yield from of_a_model("tiny Llama" if tiny else "10.6M Llama", "", TINY if tiny else SIZE)
    if not tiny and pretrained.is_dir():
        yield from of_a_model("SmolLM2-135M", str(pretrained), (*SIZE[:2], 3))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--pretrained", type=Path, default=PRETRAINED)
    parser.add_argument("--train", type=json.loads)
    arguments, sys.argv[1:] = parser.parse_known_args()
    if arguments.train:
        print(json.dumps(train(*arguments.train)))
    else:
        sys.exit(main(partial(rows, arguments.pretrained)))
