"""How near attacks on membership come to the best test that sees the loss of a record.

Run as a script: `python tests/benchmarks/bench_membership_optimum.py`. Twins are trained on random
halves of 240 records of `people`, of which a third each have one, two and eight copies: for each
record, 64 models with it and 64 without. Each model is attacked in turn, and those of other seeds
are what the attacker knows. The optimum is the likelihood ratio of the loss of a record under
models with and without it: of several estimates from these models, the one that finds most. The
true ratio finds more, so an attack's share of the optimum, with its interval over seeds, is rather
too high. LiRA of tokens sees more than a loss, namely the probability of each token, so its share
may be above 1.
"""

import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "workflow/scripts")]

from planted_records import COPIES, MODEL, NAME, PlantedRecords  # noqa: E402
from rows import Row, main, shown  # noqa: E402

from palimpsest import audit, traces  # noqa: E402
from palimpsest.audit.optimum import OF_MODELS, lira_of_tokens, optimum  # noqa: E402
from palimpsest.datasets.strings import string_id  # noqa: E402
from palimpsest.estimates import with_interval  # noqa: E402
from palimpsest.models.checkpoints import opened  # noqa: E402
from palimpsest.paths import DATASET, MODEL_FOLDER, TRACE  # noqa: E402
from palimpsest.records.interventions import without_fold  # noqa: E402
from palimpsest.records.roc_curves import auc, tpr_at  # noqa: E402
from palimpsest.requests import Runs  # noqa: E402
from palimpsest.statistics import Interval, student  # noqa: E402

EPOCHS = 3  # few, so that not every record is learned by heart
FPR = 0.01
DRAWS = 2000
KERNELS = "likelihood ratio by kernels"
ESTIMATES = (KERNELS, "LiRA, online", "LiRA, offline")  # of the optimum


@dataclass(frozen=True)
class Trained:
    """Losses of records, nats per token, and of their tokens, nats, under models that lack some.

    The two models of a seed stand one after the other; each lacks what the other has. `text` is the
    place of each token's record.
    """

    loss: np.ndarray
    inside: np.ndarray
    of_tokens: np.ndarray
    text: np.ndarray
    records: pd.DataFrame


def trained(n_trained: int, seeds: range, epochs: int) -> Trained:
    """Twins of each seed, on both halves of the records."""
    with tempfile.TemporaryDirectory() as name:
        planted = PlantedRecords(Path(name), n_trained, seeds, epochs=epochs)
        halves = [
            Runs(MODEL, NAME, planted.n_copies, without_fold(fold, 2), planted.seeds)
            for fold in (0, 1)
        ]
        files, folders = in_pairs(halves, TRACE), in_pairs(halves, MODEL_FOLDER)
        planted.run(*files, *folders, folds=2)
        records = planted.records.query("copies > 0").reset_index(drop=True)
        ids = np.array([string_id((text,)) for text in records["text"]], dtype=object)
        texts = records["text"].tolist()
        loss, inside, of_tokens = [], [], []
        for file, folder in zip(files, folders, strict=True):
            found = audit.passed(opened(planted.folder / folder), texts)
            of_tokens.append(-found.log_prob)
            trace = traces.read(planted.folder / file)
            strings = pd.read_parquet(planted.folder / dataset_of(trace.run))
            loss.append(trace.loss[-1, trace.column_of(ids)])
            inside.append(strings.set_index("string_id")["count"].loc[ids].to_numpy() > 0)
        text = np.repeat(np.arange(len(texts)), found.n_tokens)
        return Trained(np.array(loss), np.array(inside), np.array(of_tokens), text, records)


def in_pairs(halves: list[Runs], path: str) -> list[str]:
    """The files of both halves, seed after seed."""
    pairs = zip(*(runs.paths(path) for runs in halves), strict=True)
    return [file for pair in pairs for file in pair]


def dataset_of(run: dict) -> str:
    return DATASET.format(**{key: run[key] for key in ("language", "size", "seed", "variant")})


def scores_of(models: Trained) -> dict[str, np.ndarray]:
    """The scores float[models, records] of each attack."""
    loss, inside, texts = models.loss, models.inside, models.records["text"]
    compressed = texts.map(lambda text: len(zlib.compress(text.encode()))).to_numpy()
    seed = np.arange(len(loss)) // 2
    of_models = {name: attack(loss, inside, seed) for name, attack in OF_MODELS.items()}
    return {
        "loss": -loss,
        "zlib": -loss / compressed,
        **of_models,
        "LiRA of tokens": lira_of_tokens(models.of_tokens, models.text, inside, seed),
        KERNELS: optimum(loss, inside, seed),
    }


def by_seed(statistic: Callable, score: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """A statistic of each model's scores, as the mean of the two models of each seed."""
    values = [statistic(own, member) for own, member in zip(score, inside, strict=True)]
    return np.array(values).reshape(-1, 2).mean(axis=1)


def rows(tiny: bool = False) -> Iterator[Row]:
    """AUC and members found at 1 % false positives, as a share of the optimum's."""
    n_trained, seeds, epochs = (24, range(5), 2) if tiny else (240, range(64), EPOCHS)
    models = trained(n_trained, seeds, epochs)
    inside, records, scores = models.inside, models.records, scores_of(models)
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
