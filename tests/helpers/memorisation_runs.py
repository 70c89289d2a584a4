"""A run small enough to work out by hand: two training strings, two unseen ones, four epochs."""

import numpy as np
import pandas as pd

from palimpsest.traces import Trace

EPOCHS = np.array([0, 2, 4, 6])
RULE = ("after_last_miss", 0.2, 0.95)

# a and b are trained on, a three times; a is also a test string. c is as frequent as a, d as b.
# h is held out: as frequent as a as well, but measured only.
STRINGS = pd.DataFrame(
    {
        "string_id": ["a", "b", "c", "d", "h"],
        "text": ["1 2", "2 1", "3 2", "2 3", "3 3"],
        "n_tokens": [10, 20, 10, 20, 10],
        "split": ["train", "train", "test", "test", "held_out"],
        "count": [3, 1, 0, 0, 0],
        "test_count": [1, 0, 2, 1, 0],
        "role": [None] * 5,
        "log_prob": [-2.0, -6.0, -2.0, -6.5, -2.0],
        "derivation_log_prob": [np.nan] * 5,
        "optimal_loss": [0.2, 0.3, 0.2, 0.3, 0.2],
    }
)
LOSS = {
    "a": (2.0, 0.8, 0.1, 0.1),
    "b": (2.0, 1.0, 0.6, 0.4),
    "c": (2.0, 0.5, 0.5, 0.9),
    "d": (2.0, 1.0, 0.5, 0.7),
    "h": (2.0, 0.0, 0.0, 0.0),
}


def dataset(seed=0, variant="base", strings=STRINGS):
    return strings.assign(language="L", size=4, seed=seed, variant=variant)


def trace(seed=0, variant="base", loss=LOSS, model="m"):
    """Strings in another order than in the dataset; a is all right from epoch 4 on."""
    names = sorted(loss, reverse=True)
    n_tokens = STRINGS.set_index("string_id").loc[names, "n_tokens"].to_numpy()
    curves = np.array([loss[name] for name in names]).T
    correct = np.where((np.array(names) == "a") & (EPOCHS[: len(curves), None] >= 4), n_tokens, 0)
    return Trace(
        run={"model": model, "language": "L", "size": 4, "seed": seed, "variant": variant},
        epochs=EPOCHS[: len(curves)],
        string_ids=np.array(names, dtype=object),
        n_tokens=n_tokens,
        nll=curves * n_tokens,
        n_correct=correct,
        rank_sum=n_tokens * 2 - correct,
    )


def curve(table, measure, column, seed=0):
    rows = table[(table["measure"] == measure) & (table["seed"] == seed)]
    return rows[column].to_numpy()
