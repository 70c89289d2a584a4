"""How well each road finds the records of `people` that a twin was trained on, by their copies.

Run as a script: `python tests/benchmarks/bench_record_roads.py`. See `planted_records` for the
records. A record counts as found if its p-value is at most 0.05, so of records never trained on,
5 % are found at most. Precision is the share of records trained on among all that are found.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from planted_records import COPIES, MODEL, NAME, PlantedRecords
from rows import Row, main, shown

from palimpsest.estimates import with_interval
from palimpsest.paths import MODEL_FOLDER
from palimpsest.requests import Runs
from palimpsest.statistics import student

LEVEL = 0.05
EPOCHS = 3  # few, so that not every record is learned by heart


def answers(n_trained: int, seeds: list[int], epochs: int) -> pd.DataFrame:
    """The table `records`, with the copies of each record (0: never trained on)."""
    with tempfile.TemporaryDirectory() as name:
        planted = PlantedRecords(Path(name), n_trained, seeds, epochs=epochs)
        models = planted.models()
        (other,) = Runs(MODEL, "people", planted.n_copies, seeds=(100,)).paths(MODEL_FOLDER)
        planted.run(*models, other)
        asked = {
            f"seed{seed}": {"corpus": NAME, "model": model, "reference": other}
            for seed, model in zip(seeds, models, strict=True)
        }
        planted.run("records", checkpoints=asked)
        found = pd.read_parquet(planted.folder / "results/records.parquet")
        return found.merge(planted.records[["id", "copies"]], on="id")


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
