"""Tables of answers about records, as the section `records` makes them, of planted losses."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from helpers.records import corpus
from palimpsest.records import kinds
from palimpsest.records.tables import answer

CHECKPOINTS = np.array([0.0, 10.0, 20.0])


def retrained(
    model: str, seed: int, memorised: bool = True, placebo: bool = True, n: int = 30
) -> pd.DataFrame:
    """A table `retrained_losses`: with training, losses fall to 0.1 where records are memorised.

    Without the record they fall to about 1. The second half of the records is the placebo, on which
    there is no other difference than chance.
    """
    draws = np.random.default_rng(seed)
    trained = np.arange(2 * n) < n if placebo else np.ones(2 * n, dtype=bool)
    falling = 3 - 2 * CHECKPOINTS / CHECKPOINTS[-1]
    without = falling[:, None] + draws.normal(0, 0.1, (len(CHECKPOINTS), 2 * n))
    chance = falling[:, None] + draws.normal(0, 0.1, without.shape)
    learned = chance * (1 - 0.9 * CHECKPOINTS / CHECKPOINTS[-1])[:, None]
    loss = np.where(trained & memorised, learned, chance)
    ids = [f"record-{place}" for place in range(2 * n)]
    return pd.DataFrame(
        {
            "language": "mine",
            "model": model,
            "seed": seed,
            "id": np.tile(ids, len(CHECKPOINTS)),
            "group": np.tile(ids, len(CHECKPOINTS)),
            "trained": np.tile(trained, len(CHECKPOINTS)),
            "checkpoint": np.repeat(CHECKPOINTS, 2 * n),
            "loss": loss.ravel(),
            "loss_without": without.ravel(),
        }
    )


HOW = {"start": "after_last_miss", "loss_threshold": 0.2, "false_alarms": 0.05}


def answered(models: Sequence[str], seeds: Sequence[int], memorised=True, placebo=True, n=30):
    """The section's tables, by their names, made by its own code."""
    tables = [retrained(model, seed, memorised, placebo, n) for model in models for seed in seeds]
    return answer("mine", retrained=tables, **HOW)


def shares(models: Sequence[str], seeds: Sequence[int], memorised: bool = True, placebo=True):
    """A table `record_shares`, made by the section's own code."""
    return answered(models, seeds, memorised, placebo)[kinds.SHARES.name]


def only_asked(lower: float = 0.0, alike: bool = True, n_unseen: int = 100, model: str = "tuned"):
    """The tables of a model that was asked about 40 records and others, without a reference.

    The losses of the 40 are lower by so many nats. Their texts differ from the others in kind, in
    shorter numbers, unless they are `alike`.
    """
    draws = np.random.default_rng(0)
    n = 40 + n_unseen
    trained = np.arange(n) < 40
    numbers = draws.integers(100, 1000, n) * (1 if alike else np.where(trained, 1, 1000))
    texts = [f"a note in drawer {number}" for number in numbers]
    mine = corpus(texts, trained=trained)
    measured = pd.DataFrame(
        {
            "language": "mine",
            "model": model,
            "id": mine.records.ids,
            "group": mine.records.ids,
            "trained": trained,
            "checkpoint": 0.0,
            "loss": 3 + draws.normal(0, 0.1, n) - lower * trained,
            "loss_reference": np.nan,
        }
    )
    return answer("mine", corpus=[mine.records], measured=[measured], **HOW)
