"""A fleet of twins against the same trainings one after another in plain Hugging Face modules.

    python tests/benchmarks/bench_fleet.py            # the rows of docs/speed.md
    python tests/benchmarks/bench_fleet.py --scaling  # the table and the plot of docs/fleet.md

On a CPU the peer is given one process per core, each with one thread, and the fleet one process
with as many threads as there are cores. On a GPU both have one process.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve()
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "workflow/scripts")]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from rows import HEADER, Row, at_least, number, report  # noqa: E402

from helpers.forks import python_of_scripts  # noqa: E402
from palimpsest import tables  # noqa: E402
from palimpsest.corpora import GrammarCorpus  # noqa: E402
from palimpsest.datasets.build import build  # noqa: E402
from palimpsest.datasets.sampling import Sampler  # noqa: E402
from palimpsest.launch import keep_freed_memory  # noqa: E402
from palimpsest.models import read_models  # noqa: E402
from palimpsest.models.build import build as build_model  # noqa: E402
from palimpsest.sections import KINDS  # noqa: E402
from palimpsest.training.batches import IGNORED  # noqa: E402
from palimpsest.training.recipe import Recipe, epoch_order  # noqa: E402
from palimpsest.training.runs import Material, Run  # noqa: E402

GRAMMAR = ROOT / "config/languages/L2.pcfg"
TINY = "--tiny" in sys.argv
TINY_FLAG = ["--tiny"] if TINY else []
LLAMA = "llama-3.1-8b"
FAMILIES = ("mistral-7b-v0.3", LLAMA, "qwen2.5-7b", "gemma-2-9b", "pythia-6.9b", "opt-6.7b")
if TINY:
    FAMILIES = (LLAMA,)
ON_GPU = torch.cuda.is_available()
CORES = 1 if ON_GPU else 2
MEMBERS = 2 if TINY else 256 if ON_GPU else 64
STEPS_TARGET, WHOLE_TARGET = (30.0, 30.0) if ON_GPU else (2.0, 4.0)
SCALING = (1, 2, 4, 8, 16, 32, 64, 128, 256)
EPOCHS_PER_ROUND, ROUNDS = 2, 1 if TINY else 3
EPOCHS = 2 if TINY else 50
# Of the row that compares a wave with torch's own products.
MEMBERS_OF_A_THREAD, LIMIT_ROUNDS, LIMIT_TARGET = (2, 1, 0.7) if TINY else (8, 20, 0.7)
STEPS_OF_A_RUN = 8 * EPOCHS
# Trainings that the peer really does; it would take minutes to do all.
WHOLE_RUNS = 1 if TINY else 8


def run_of(folder: Path, model: str, seed: int, epochs: int) -> Run:
    """64 strings of L2 and 16 more, at the recipe of the default experiment."""
    path = folder / f"seed{seed}.parquet"
    grammar = GrammarCorpus.from_file(GRAMMAR)
    if not path.exists():
        strings = build(Sampler("L2", grammar, seed), "base", 64, 16, predict_end=False)
        tables.write(path, strings, KINDS["strings"])
    row = read_models(ROOT / "config/models.tsv")[model]
    recipe = Recipe(
        row.twin_learning_rate, epochs=epochs, zero_stage=0, precision="fp32", checkpoint_every=0
    )
    return Run(f"{model}-twin", row, "twin", grammar, str(path), recipe)


# The peer


def train_plainly(run: Run, epochs: range, model=None, optimizer=None):
    """Train one model in the loop that one would write without an engine; the seconds."""
    material, recipe = Material(run), run.recipe
    device = torch.device("cuda" if ON_GPU else "cpu")
    if model is None:
        model = build_model(run.row, "twin", material.vocabulary, material.seed, torch.float32)
        model = model.to(device)
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=recipe.learning_rate, weight_decay=0.0, fused=True
        )
    steps = recipe.steps_per_epoch(len(material.multiset))
    began = time.perf_counter()
    for epoch in epochs:
        order = material.multiset[epoch_order(len(material.multiset), material.seed, epoch)]
        for step in range(steps):
            for group in optimizer.param_groups:
                place = (epoch - 1) * steps + step
                group["lr"] = recipe.learning_rate_at(place, recipe.epochs * steps)
            rows = order[step * recipe.batch_size : (step + 1) * recipe.batch_size]
            batch = material.encoded.batch(rows, device)
            logits = model(input_ids=batch.ids_BT, use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), batch.targets_BT.flatten(), ignore_index=IGNORED
            )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.gradient_clipping)
            optimizer.step()
            optimizer.zero_grad()
    if ON_GPU:
        torch.cuda.synchronize()
    return time.perf_counter() - began, model, optimizer


def plain_steps(folder: Path, model: str) -> float:
    """Model-steps per second of one process, over the rounds that the parent asks for."""
    torch.set_num_threads(1)
    run = run_of(folder, model, 0, 50)
    _, built, optimizer = train_plainly(run, range(1, 2))
    steps = EPOCHS_PER_ROUND * run.recipe.steps_per_epoch(64)
    for place in rounds():
        first = 2 + place * EPOCHS_PER_ROUND
        epochs = range(first, first + EPOCHS_PER_ROUND)
        seconds, built, optimizer = train_plainly(run, epochs, built, optimizer)
        yield steps / seconds


def plain_whole(folder: Path, model: str) -> Iterator[float]:
    """One training from beginning to end; the parent also times the start of the process."""
    torch.set_num_threads(1)
    run = run_of(folder, model, int(os.environ["SEED"]), EPOCHS)
    train_plainly(run, range(1, run.recipe.epochs + 1))
    yield 0.0


# The fleet


def wave_of(folder: Path, model: str, members: int, threads: int):
    """A wave of a given number of members, whatever size the engine would choose."""
    from palimpsest.training.fleet.engine import FleetEngine, Member, Wave

    engine = FleetEngine(folder / "state", threads, 2**40)
    runs = [run_of(folder, model, seed, 50) for seed in range(members)]
    return Wave(engine, [Member(run, Material(run), engine.state(run)) for run in runs])


def fleet_steps(folder: Path, model: str, members: int | None = None) -> Iterator[float]:
    """Model-steps per second of all members, in waves of the size that the engine chooses."""
    from palimpsest.training.fleet.engine import most_members, probe

    wave = wave_of(folder, model, 1, CORES)
    if members is None:
        needs = probe(wave.members[0], wave.device)
        members = most_members(wave.engine, MEMBERS, needs)
    wave = wave_of(folder, model, members, CORES)
    wave._train_epoch()
    for _ in rounds():
        began = time.perf_counter()
        for _ in range(EPOCHS_PER_ROUND):
            wave._train_epoch()
        if ON_GPU:
            torch.cuda.synchronize()
        steps = EPOCHS_PER_ROUND * sum(member.steps_per_epoch for member in wave.members)
        yield steps / (time.perf_counter() - began)


def fleet_whole(folder: Path, model: str) -> Iterator[float]:
    """All trainings from beginning to end; the parent also times the start of the process."""
    from palimpsest.training.fleet.engine import FleetEngine

    runs = [run_of(folder, model, seed, EPOCHS) for seed in range(MEMBERS)]
    runs = [_without_measuring(run) for run in runs]
    FleetEngine(folder / "state", CORES, 2**33).train(runs, lambda name: lambda *_: None)
    yield 0.0


def _without_measuring(run: Run) -> Run:
    """The peer does not measure, so the fleet measures only at the start and at the end."""
    return replace(run, recipe=replace(run.recipe, evaluate_every=run.recipe.epochs))


# Processes that take turns


def rounds() -> Iterator[int]:
    """The rounds that the parent asks for, one line each."""
    for place, _ in enumerate(sys.stdin):
        yield place


class Workers:
    """Processes that do one side's work, each round on demand, so that the sides take turns."""

    def __init__(self, side: str, folder: Path, model: str, count: int, **more):
        command = [python_of_scripts(), str(HERE), "--side", side, "--folder", str(folder)]
        command += ["--model", model, *TINY_FLAG]
        for name, value in more.items():
            command += [f"--{name}", str(value)]
        self.processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(count)
        ]
        for process in self.processes:
            assert process.stdout.readline() == "ready\n"

    def round(self) -> float | np.ndarray:
        """What all processes together did per second; several numbers are added one by one."""
        for process in self.processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        found = [json.loads(process.stdout.readline()) for process in self.processes]
        return np.sum(found, axis=0)

    def close(self) -> None:
        for process in self.processes:
            process.stdin.close()
            process.wait()


def whole(side: str, folder: Path, model: str, runs: int, lanes: int) -> float:
    """Seconds for `runs` processes, `lanes` at a time, each from its start to its end."""
    began = time.perf_counter()
    waiting, running = list(range(runs)), []
    while waiting or running:
        while waiting and len(running) < lanes:
            environment = {**os.environ, "SEED": str(waiting.pop())}
            command = [python_of_scripts(), str(HERE), "--side", side, "--folder", str(folder)]
            running.append(
                subprocess.Popen(
                    [*command, "--model", model, *TINY_FLAG],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env=environment,
                )
            )
        running[0].wait()
        assert running.pop(0).returncode == 0
    return time.perf_counter() - began


# The machine's own limit


def flops_of_a_step(run: Run) -> float:
    """Floating-point operations in the matrix products of one training step, attention included."""
    from torch.utils.flop_counter import FlopCounterMode

    material = Material(run)
    model = build_model(run.row, "twin", material.vocabulary, 0, torch.float32)
    model.set_attn_implementation("eager")
    batch = material.encoded.batch(material.multiset[: run.recipe.batch_size], torch.device("cpu"))
    with FlopCounterMode(display=False) as counter:
        model(input_ids=batch.ids_BT, use_cache=False).logits.sum().backward()
    return float(counter.get_total_flops())


def products_per_second() -> float:
    """Operations per second of processor time in torch's own products of large square matrices."""
    size, times = 1024, 1 if TINY else 8
    a, b = torch.randn(2, size, size)
    began = time.process_time()
    for _ in range(times):
        torch.mm(a, b)
    return 2 * size**3 * times / (time.process_time() - began)


def fleet_and_limit(folder: Path, model: str) -> Iterator[tuple[float, float]]:
    """Model-steps per second of one thread: of a wave, and of torch's products for such steps.

    The seconds are of processor time, so other programs on the same cores matter less.
    """
    wave = wave_of(folder, model, MEMBERS_OF_A_THREAD, 1)
    operations = flops_of_a_step(wave.members[0].run)
    torch.set_num_threads(1)
    steps = sum(member.steps_per_epoch for member in wave.members)
    wave._train_epoch()
    for _ in rounds():
        began = time.process_time()
        wave._train_epoch()
        yield steps / (time.process_time() - began), products_per_second() / operations


# Rows


def steps_of(folder: Path, model: str) -> tuple[float, float, float]:
    """Model-steps per second of the fleet and of its peer, and the median ratio over rounds."""
    ours = Workers("fleet_steps", folder, model, 1)
    peer = Workers("plain_steps", folder, model, CORES)
    pairs = np.array([(ours.round(), peer.round()) for _ in range(ROUNDS)])
    ours.close()
    peer.close()
    fleet, plain = np.median(pairs, axis=0)
    return float(fleet), float(plain), float(np.median(pairs[:, 0] / pairs[:, 1]))


def limit_of(folder: Path, model: str) -> tuple[float, float, str]:
    """Steps per second of processor time: the fleet's, and those of torch's products alone."""
    worker = Workers("fleet_and_limit", folder, model, 1)
    pairs = np.array([worker.round() for _ in range(LIMIT_ROUNDS)])
    worker.close()
    return *np.median(pairs, axis=0).tolist(), "steps/s"


def rows() -> Iterator[Row]:
    """All rows of this benchmark."""
    unit = "steps/s"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = {model: steps_of(folder, model) for model in FAMILIES}
        for model, (fleet, plain, ratio) in measured.items():
            title = f"{MEMBERS} {model} twins"
            yield at_least(title, fleet, plain, unit, target_ratio=STEPS_TARGET, ratio=ratio)
        fleet = len(FAMILIES) / sum(1 / m[0] for m in measured.values())
        plain = len(FAMILIES) / sum(1 / m[1] for m in measured.values())
        yield at_least(
            f"{MEMBERS} twins of each family", fleet, plain, unit, target_ratio=STEPS_TARGET
        )
        for model in () if ON_GPU else FAMILIES:
            title = f"one thread, {model}; peer: torch's products"
            yield at_least(title, *limit_of(folder, model), target_ratio=LIMIT_TARGET)
        seconds = whole("fleet_whole", folder, LLAMA, 1, 1)
        each = whole("plain_whole", folder, LLAMA, WHOLE_RUNS, CORES) / WHOLE_RUNS
        title = f"{MEMBERS} {LLAMA} twins, {STEPS_OF_A_RUN} steps, starts counted; peer: "
        yield at_least(
            f"{title}a process each, from {WHOLE_RUNS}",
            MEMBERS / seconds,
            1 / each,
            "runs/s",
            target_ratio=WHOLE_TARGET,
        )
        # One process per core, which starts once and goes on: start-up and one run less the run.
        plain_steps_per_second = measured[LLAMA][1]
        run = MEMBERS * STEPS_OF_A_RUN / plain_steps_per_second
        start = max(0.0, each * CORES - STEPS_OF_A_RUN * CORES / plain_steps_per_second)
        yield at_least(
            f"{title}a process per core",
            MEMBERS / seconds,
            MEMBERS / (start + run),
            "runs/s",
            target_ratio=WHOLE_TARGET,
        )


# Scaling


def scaling(folder: Path) -> list[dict]:
    """Model-steps per second and memory of one wave of M members, for growing M."""
    found = []
    for members in SCALING:
        worker = Workers("fleet_memory", folder, LLAMA, 1, members=members)
        (process,) = worker.processes
        process.stdin.write("go\n")
        process.stdin.flush()
        found.append({"members": members, **json.loads(process.stdout.readline())})
        worker.close()
        line = found[-1]
        print(members, *(f"{name} {number(value)}" for name, value in line.items()), flush=True)
    return found


def fleet_memory(folder: Path, model: str, members: int) -> Iterator[dict]:
    """Steps per second of one wave, and the memory that it takes, measured and as estimated."""
    import psutil

    from palimpsest.training.fleet.probe import probe

    single = wave_of(folder, model, 1, CORES)
    single._train_epoch()
    estimated = probe(single.members[0], single.device).each
    before = torch.cuda.memory_allocated() if ON_GPU else psutil.Process().memory_info().rss
    del single
    for speed in fleet_steps(folder, model, members):
        peak = torch.cuda.max_memory_allocated() if ON_GPU else psutil.Process().memory_info().rss
        yield {
            "steps_per_second": speed,
            "megabytes_per_member": (peak - before) / members / 2**20,
            "estimated_megabytes": estimated / 2**20,
        }


def draw(found: list[dict], path: Path) -> None:
    """The plot of docs/fleet.md."""
    import matplotlib.pyplot as plt

    members = [line["members"] for line in found]
    # What the first few take was already there: it was left free by the probe.
    several = [line for line in found if line["members"] >= 8]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    left.plot(members, [line["steps_per_second"] for line in found], "o-", color="#0072b2")
    left.set(ylabel="model-steps per second", ylim=(0, None))
    for name, style, colour in (
        ("megabytes_per_member", "o-", "#d55e00"),
        ("estimated_megabytes", "--", "#555555"),
    ):
        label = "measured" if style == "o-" else "estimated"
        values = [line[name] for line in several]
        right.plot([line["members"] for line in several], values, style, color=colour, label=label)
    right.set(ylabel="memory per model (MiB)", ylim=(0, None))
    right.legend(frameon=False)
    for axis in (left, right):
        axis.set_xscale("log", base=2)
        axis.set_xticks(members, [str(m) for m in members])
        axis.set_xlabel("models trained together (M)")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def parse_arguments() -> argparse.Namespace:
    """The command line; --side and what follows it are for the processes started here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scaling", action="store_true", help="measure and draw growing fleets")
    parser.add_argument("--tiny", action="store_true", help="only see that the benchmark runs")
    parser.add_argument("--no-header", action="store_true", help="print the rows alone")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    parser.add_argument("--members", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """The rows, the scaling, or one process's side of either."""
    arguments = parse_arguments()
    if arguments.side:
        keep_freed_memory()
        print("ready", flush=True)
        more = [arguments.members] if arguments.members else []
        for result in globals()[arguments.side](arguments.folder, arguments.model, *more):
            print(json.dumps(result), flush=True)
        return 0
    if arguments.scaling:
        with tempfile.TemporaryDirectory() as name:
            draw(scaling(Path(name)), ROOT / "docs/images/fleet.svg")
        return 0
    if not arguments.no_header:
        print(HEADER)
    return report(rows(), judged=not TINY)


if __name__ == "__main__":
    sys.exit(main())
