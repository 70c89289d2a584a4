"""How near attacks on membership come to the best test that sees the loss of a record.

Run as a script: `python tests/benchmarks/bench_membership_optimum.py`. Twins are trained on random
halves of 240 records of `people`, of which a third each have one, two and eight copies: for each
record, 64 models with it and 64 without. Each model is attacked in turn, and those of other seeds
are what the attacker knows. The optimum is the likelihood ratio of the loss of a record under
models with and without it: of several estimates from these models, the one that finds most. The
true ratio finds more, so an attack's share of the optimum, with its interval over seeds, is rather
too high.
"""

import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "workflow/scripts")]

from planted_records import COPIES, MODEL, NAME, PlantedRecords  # noqa: E402
from rows import Row, main, shown  # noqa: E402

from palimpsest import traces  # noqa: E402
from palimpsest.audit.optimum import OF_MODELS, optimum  # noqa: E402
from palimpsest.audit.roc_curves import auc, tpr_at  # noqa: E402
from palimpsest.datasets.strings import string_id  # noqa: E402
from palimpsest.estimates import with_interval  # noqa: E402
from palimpsest.paths import DATASET, TRACE  # noqa: E402
from palimpsest.records.interventions import without_fold  # noqa: E402
from palimpsest.requests import Runs  # noqa: E402
from palimpsest.statistics import Interval, student  # noqa: E402

EPOCHS = 3  # few, so that not every record is learned by heart
FPR = 0.01
DRAWS = 2000
KERNELS = "likelihood ratio by kernels"
ESTIMATES = (KERNELS, "LiRA, online", "LiRA, offline")  # of the optimum


def losses(
    n_trained: int, seeds: range, epochs: int
) -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """Nats per token and inclusion [models, records], and the records that are trained on.

    The two models of a seed stand one after the other; each lacks what the other has.
    """
    with tempfile.TemporaryDirectory() as name:
        planted = PlantedRecords(Path(name), n_trained, seeds, epochs=epochs)
        planted.config["save_weights"] = False
        halves = [
            Runs(MODEL, NAME, planted.n_copies, without_fold(fold, 2), planted.seeds)
            for fold in (0, 1)
        ]
        pairs = zip(*(runs.paths(TRACE) for runs in halves), strict=True)
        files = [file for pair in pairs for file in pair]
        planted.run(*files, folds=2)
        records = planted.records.query("copies > 0").reset_index(drop=True)
        ids = np.array([string_id((text,)) for text in records["text"]], dtype=object)
        loss, inside = [], []
        for file in files:
            trace = traces.read(planted.folder / file)
            strings = pd.read_parquet(planted.folder / dataset_of(trace.run))
            loss.append(trace.loss[-1, trace.column_of(ids)])
            inside.append(strings.set_index("string_id")["count"].loc[ids].to_numpy() > 0)
        return np.array(loss), np.array(inside), records


def dataset_of(run: dict) -> str:
    return DATASET.format(**{key: run[key] for key in ("language", "size", "seed", "variant")})


def scores_of(loss: np.ndarray, inside: np.ndarray, records: pd.DataFrame) -> dict[str, np.ndarray]:
    """The scores float[models, records] of each attack."""
    compressed = records["text"].map(lambda text: len(zlib.compress(text.encode()))).to_numpy()
    seed = np.arange(len(loss)) // 2
    of_models = {name: attack(loss, inside, seed) for name, attack in OF_MODELS.items()}
    return {
        "loss": -loss,
        "zlib": -loss / compressed,
        **of_models,
        KERNELS: optimum(loss, inside, seed),
    }


def by_seed(statistic: Callable, score: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """A statistic of each model's scores, as the mean of the two models of each seed."""
    values = [statistic(own, member) for own, member in zip(score, inside, strict=True)]
    return np.array(values).reshape(-1, 2).mean(axis=1)


def rows(tiny: bool = False) -> Iterator[Row]:
    """AUC and members found at 1 % false positives, as a share of the optimum's."""
    n_trained, seeds, epochs = (24, range(6), 2) if tiny else (240, range(64), EPOCHS)
    loss, inside, records = losses(n_trained, seeds, epochs)
    scores = scores_of(loss, inside, records)
    parts = {"all": np.ones(len(records), bool)}
    if not tiny:  # so few records may all be members of a model
        parts |= {f"{n} copies": (records["copies"] == n).to_numpy() for n in COPIES}
    for part, chosen in parts.items():
        found = {
            name: by_seed(auc, score[:, chosen], inside[:, chosen])
            for name, score in scores.items()
        }
        yield from beside_the_optimum(found, f"{part}, AUC", 0.5)
    rate = max(FPR, 1 / (~inside).sum(axis=1).min())
    found = {
        name: by_seed(partial(tpr_at, fpr=rate), score, inside) for name, score in scores.items()
    }
    yield from beside_the_optimum(found, f"all, found at {rate:.3g}", rate)


def beside_the_optimum(
    found: Mapping[str, np.ndarray], what: str, by_chance: float
) -> Iterator[Row]:
    """A row for each attack: its mean, and what it finds beyond chance, over the optimum's."""
    name_of_best = max(ESTIMATES, key=lambda name: found[name].mean())
    best = found[name_of_best]
    for name, values in found.items():
        share = share_of(values - by_chance, best - by_chance)
        text = f"{what}, {name}: {with_interval(student(values))}; peer: {name_of_best}"
        yield shown(
            f"{text}; share {with_interval(share)}", values.mean(), best.mean(), "", share.mean
        )


def share_of(values: np.ndarray, best: np.ndarray) -> Interval:
    """The ratio of two means over seeds, with an interval by bootstrap over the seeds."""
    drawn = np.random.default_rng(0).integers(len(values), size=(DRAWS, len(values)))
    ratios = values[drawn].mean(axis=1) / best[drawn].mean(axis=1)
    return Interval(values.mean() / best.mean(), *np.quantile(ratios, [0.025, 0.975]))


if __name__ == "__main__":
    main(rows)
