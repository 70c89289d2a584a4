"""How well each road finds the records of `people` that a twin was trained on, by their copies.

Run as a script: `python tests/benchmarks/bench_record_roads.py`. A third of the records that are
trained on have one copy, a third two and a third eight; as many again are never trained on. A
record counts as found if its p-value is at most 0.05, so of records never trained on, 5 % are found
at most. Precision is the share of records trained on among all that are found.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "workflow/scripts")]

from rows import Row, main, shown  # noqa: E402

from helpers.projects import copy_of_the_project  # noqa: E402
from palimpsest.estimates import with_interval  # noqa: E402
from palimpsest.languages import Grammar  # noqa: E402
from palimpsest.statistics import student  # noqa: E402

MODEL, COPIES, LEVEL = "llama-3.2-1b-twin", (1, 2, 8), 0.05
EPOCHS = 3  # few, so that not every record is learned by heart
ALONE = dict.fromkeys(["memorisation", "unlearning", "profiles", "density", "information"])


def write_records(path: Path, n_trained: int) -> None:
    """Distinct texts of `people`; half of them are held out."""
    grammar = Grammar.from_file(ROOT / "config/languages/people.pcfg")
    texts = list(dict.fromkeys("".join(s) for s in grammar.sample(4 * n_trained, seed=1)))
    with path.open("w") as file:
        for number, text in enumerate(texts[: 2 * n_trained]):
            trained = number < n_trained
            record = {
                "id": str(number),
                "text": text,
                "split": "train" if trained else "holdout",
                "copies": COPIES[number % 3] if trained else 1,
            }
            file.write(json.dumps(record) + "\n")


def run(folder: Path, *targets: str, **config) -> None:
    """Run Snakemake with a configuration, on two cores."""
    (folder / "roads.json").write_text(json.dumps({**ALONE, **config}))
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *targets]
    command += ["--configfile", "roads.json", "--quiet", "rules", "reason"]
    subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)


def answers(n_trained: int, seeds: list[int], epochs: int) -> pd.DataFrame:
    """The table `records`, with the copies of each record (0: never trained on)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_of_the_project(folder)
        write_records(folder / "people.jsonl", n_trained)
        shared = {
            "seeds": seeds,
            "save_weights": "huggingface",
            "corpora": {"mine": "people.jsonl"},
            "recipes": {"default": {"epochs": epochs}},
        }
        n_copies = sum(COPIES) * (n_trained // 3) + sum(COPIES[: n_trained % 3])
        trained = f"results/runs/records/default/{MODEL}/mine/n{n_copies}-seed{{}}/huggingface"
        other = f"results/runs/base/default/{MODEL}/people/n{n_copies}-seed100/huggingface"
        block = {"corpora": ["mine"], "models": [MODEL]}
        models = [trained.format(seed) for seed in seeds]
        run(folder, *models, other, **shared, records=block)
        asked = {
            f"seed{seed}": {"corpus": "mine", "model": model, "reference": other}
            for seed, model in zip(seeds, models, strict=True)
        }
        run(folder, "records", **shared, records={**block, "checkpoints": asked})
        found = pd.read_parquet(folder / "results/records.parquet")
        given = pd.read_json(folder / "people.jsonl", lines=True, dtype={"id": str})
    given["copies"] = given["copies"].where(given["split"] == "train", 0)
    return found.merge(given[["id", "copies"]], on="id")


def rows(tiny: bool = False) -> Iterator[Row]:
    """For each road: the share of records found, by copies, and the precision."""
    n_trained, seeds, epochs = (24, [0], 2) if tiny else (240, [0, 1, 2, 3, 4], EPOCHS)
    table = answers(n_trained, seeds, epochs)
    table["found"] = table["p_value"] <= LEVEL
    is_retrained = table["seed"].notna()
    table["road"] = np.where(is_retrained, "retraining", "checkpoint")
    table["run"] = np.where(is_retrained, table["seed"].astype(str), table["model"])
    for (road_name, measure), road in table.groupby(["road", "measure"], sort=False):
        by_run = road.groupby("run")
        what = f"{measure} ({road_name})"
        unseen = share_found(by_run, 0)
        for copies in COPIES:
            found = share_found(by_run, copies)
            name = f"{what}, {copies} copies: {with_interval(student(found))}; peer: unseen"
            yield shown(name, found.mean(), unseen.mean(), "found", found.mean() / unseen.mean())
        precision = by_run.apply(lambda own: (own["copies"] > 0)[own["found"]].mean()).dropna()
        name = f"{what}, precision: {with_interval(student(precision))}; peer: all found"
        yield shown(name, precision.mean(), 1.0, "share", precision.mean())


def share_found(by_run, copies: int) -> pd.Series:
    """The share of the records with so many copies that are found, of each run."""
    return by_run.apply(lambda own: own.loc[own["copies"] == copies, "found"].mean())


if __name__ == "__main__":
    main(rows)
