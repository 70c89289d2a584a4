"""How often conformal intervals of records have what training without the record tells.

Run as a script: `python tests/benchmarks/bench_record_conformal.py`. See `planted_records` for the
records. A twin is trained on them, and again without each of ten folds, so the exact value of each
record is known: its loss without training on it, minus its loss. Then the values of all folds but
some are hidden, and `records.conformal` bounds them. In the name of a row stands the 95 % interval
over the seeds, of means over choices of folds. The peer is the same for records never trained on;
for the width, it is the 5 to 95 % range of the known values, which covers somewhat less.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from planted_records import COPIES, MODEL, NAME, PlantedRecords
from rows import Row, main, shown

from palimpsest.conformal import LEVEL
from palimpsest.estimates import with_interval
from palimpsest.paths import fill
from palimpsest.records import conformal, kinds, to_losses
from palimpsest.records.kinds import MEMORISED, OUTSIDE
from palimpsest.statistics import student

FOLDS, KNOWN = 10, (2, 3, 5)
CHOICES = 20  # of the folds that are known
EPOCHS = (3, 24)


def retrained(n_trained: int, seeds: list[int], epochs: int, folds: int) -> pd.DataFrame:
    """The table `retrained_losses`, with the copies and the fold of each record."""
    with tempfile.TemporaryDirectory() as name:
        planted = PlantedRecords(Path(name), n_trained, seeds, epochs=epochs)
        planted.run("records", folds=folds)
        path = fill(kinds.RETRAINED.path, recipe="default", model=MODEL, language=NAME)
        table = pd.read_parquet(planted.folder / path).merge(planted.records[["id", "copies"]])
        of_seeds = []
        for seed, of_seed in table.groupby("seed"):
            fold = planted.corpus.folds(seed, folds, (planted.records["copies"] > 0).to_numpy())
            places = dict(zip(planted.records["id"], fold, strict=True))
            of_seeds.append(of_seed.assign(fold=of_seed["id"].map(places)))
        return pd.concat(of_seeds, ignore_index=True)


def bounded(table: pd.DataFrame, n_known: int, chance: np.random.Generator) -> pd.DataFrame:
    """The intervals of all records whose folds are not among some; `table` is of one seed."""
    known = chance.choice(table["fold"].max() + 1, n_known, replace=False)
    hidden = table.assign(loss_without=table["loss_without"].where(table["fold"].isin(known)))
    found = conformal(to_losses(hidden)).table
    last = table[table["checkpoint"] == table["checkpoint"].max()]
    exact = last["loss_without"] - last["loss"]
    found = found.merge(last.assign(exact=exact)[["id", "exact", "copies"]], on="id")
    found["covered"] = found["exact"].between(found["lower"], found["upper"])
    values = exact[last["fold"].isin(known) & last["trained"]]
    ends = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return found.assign(plain_width=ends[1] - ends[0])


def rows(tiny: bool = False) -> Iterator[Row]:
    """Coverage, width, verdicts, for each number of epochs and of known folds."""
    n_trained, seeds, known = (120, [0, 1], (5,)) if tiny else (240, [0, 1, 2, 3, 4], KNOWN)
    chance = np.random.default_rng(0)
    for epochs in (2,) if tiny else EPOCHS:
        table = retrained(n_trained, seeds, epochs, FOLDS)
        for n_known in known:
            yield from of_known(table, n_known, chance, f"{epochs} epochs, {n_known} of {FOLDS}")


def of_known(
    table: pd.DataFrame, n_known: int, chance: np.random.Generator, what: str
) -> Iterator[Row]:
    choices = 2 if table["seed"].nunique() < 3 else CHOICES
    parts = [
        bounded(of_seed, n_known, chance).assign(seed=seed)
        for seed, of_seed in table.groupby("seed")
        for _ in range(choices)
    ]
    found = pd.concat(parts, ignore_index=True)
    answered = found[found["verdict"] != OUTSIDE]
    trained = answered["trained"].astype(bool)

    def over_seeds(values: pd.Series, by: pd.Series) -> tuple[float, str]:
        mean = values.groupby(by).mean()
        return mean.mean(), with_interval(student(mean))

    covered, interval = over_seeds(answered["covered"][trained], answered["seed"])
    of_unseen, _ = over_seeds(answered["covered"][~trained], answered["seed"])
    name = f"{what}: {LEVEL:.0%} intervals have the value: {interval}; peer: unseen"
    yield shown(name, covered, of_unseen, "share", covered / of_unseen)
    width = (answered["upper"] - answered["lower"])[trained].median()
    plain = answered["plain_width"][trained].median()
    yield shown(f"{what}: median width; peer: without losses", width, plain, "nats", plain / width)
    memorised = answered["verdict"] == MEMORISED
    placebo, _ = over_seeds(memorised[~trained], answered["seed"])
    for copies in COPIES:
        share, interval = over_seeds(memorised[answered["copies"] == copies], answered["seed"])
        name = f"{what}: memorised, {copies} copies: {interval}; peer: unseen"
        yield shown(name, share, placebo, "share", share / placebo if placebo else np.inf)


if __name__ == "__main__":
    main(rows)
