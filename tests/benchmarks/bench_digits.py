"""The example of images: how long it takes, and the trends that it finds, beside the paper's.

Run as a script: `python tests/benchmarks/bench_digits.py`. It trains the 200 networks of
examples/digits.py in a copy of the project and makes their report. Its time has a target; a trend
may be as in the paper or not, and has none.

A trend is the change from dose 0 to 1. In a row's name stands its 95 % interval over the seeds. The
peer is the sign of the paper's figure 9 for entropy, and of its claim for mutual information: 1 if
it rises, -1 if it falls. Below them is a placebo: mutual information of permuted samples.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from rows import Row, at_most, main, shown  # noqa: E402

from helpers.projects import copy_of_the_project  # noqa: E402

TARGET_SECONDS = 120
SEEDS, LAYERS = 5, (1, 2, 3, 4)
PAPER = {
    ("coloured", "entropy"): -1,
    ("coloured", "mutual_information"): 1,
    ("shuffled", "entropy"): 1,
    ("shuffled", "mutual_information"): -1,
}


def seconds_of(folder: Path, command: list[str]) -> float:
    """Seconds of a command in a folder."""
    begin = time.perf_counter()
    quiet = subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": ""}
    subprocess.run(command, cwd=folder, check=True, stdout=quiet, stderr=quiet, env=environment)
    return time.perf_counter() - begin


def rows(tiny: bool) -> Iterator[Row]:
    """All rows of this benchmark."""
    seeds, layers = (2, (1,)) if tiny else (SEEDS, LAYERS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        groups = [f"{kind}-{n}" for kind, n in product(("coloured", "shuffled"), layers)]
        place = "results/information/activations/{}/associations.parquet"
        tables = [place.format(group) for group in groups]
        copy_of_the_project(folder)
        train = [sys.executable, str(ROOT / "examples/digits.py"), "digits", "--seeds", str(seeds)]
        train += ["--layers", *map(str, layers), *(["--width", "12"] if tiny else [])]
        measure = [sys.executable, "-m", "snakemake", "--cores", "2", "--quiet", "all"]
        measure += ["--configfile", "digits/digits.yaml", "--"]
        measure += tables if tiny else ["report"]
        training = seconds_of(folder, train)
        networks = 10 * seeds * len(layers)
        yield shown(f"digits: {networks} networks, 2 cores", training, training, "s", 1.0)
        whole = training + seconds_of(folder, measure)
        yield at_most(
            "digits: with measures and report", whole, TARGET_SECONDS, "s", TARGET_SECONDS
        )
        for (kind, score), sign in PAPER.items():
            for n_layers in layers:
                table = tables[groups.index(f"{kind}-{n_layers}")]
                found = pd.read_parquet(folder / table).set_index(["score", "other"])
                yield trend(f"{kind}, {n_layers} layers, {score}", found.loc[score, "dose"], sign)
                if score == "mutual_information":
                    placebo = found.loc["mutual_information_permuted", "dose"]
                    yield trend("  the same of permuted samples", placebo, 0)


def trend(name: str, row: pd.Series, sign: int) -> Row:
    """A change by dose with its interval.

    The ratio is 1 if the interval lies on the paper's side of 0; of a placebo, if it holds 0.
    """
    lower, upper = row["slope_lower"], row["slope_upper"]
    found = 1 if lower > 0 else -1 if upper < 0 else 0
    inside = f"{name}: {lower:.2f} to {upper:.2f}"
    return shown(inside, row["slope"], sign, "nats", float(found == sign))


if __name__ == "__main__":
    sys.exit(main(rows))
