"""Strings chosen from a dataset: candidates for stand-ins, a sample by copies, and placebos.

Only modules that load fast are imported, because figures and measures need no grammar.
"""

import zlib

import numpy as np
import pandas as pd

DECIMALS = 9  # losses that agree in this many decimals are equally near


def candidates(strings: pd.DataFrame) -> np.ndarray:
    """bool[strings] of a table `strings`: the strings that may stand in for training strings.

    They are strings of the language that were not trained on: drawn for the test set, or set apart
    from the training strings. A string with the split held_out may not stand in: it was chosen, not
    drawn.
    """
    return (strings["split"].isin(["test", "stand_in"]) & (strings["count"] == 0)).to_numpy()


def sample_by_copies(strings: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """At most `n` rows of a table `strings`, half of them repeated strings if there are enough.

    The repeated strings and the others are sampled separately, each string of a group with the same
    probability. Sampled in proportion, too few strings would be repeated to compare the groups.
    """
    if len(strings) <= n:
        return strings
    chance, repeated = np.random.default_rng(seed), strings["count"] > 1
    n_single = min(int((~repeated).sum()), max(n - n // 2, n - int(repeated.sum())))
    chosen = [
        chance.choice(group.sort_values("string_id").index, size, replace=False)
        for group, size in ((strings[repeated], n - n_single), (strings[~repeated], n_single))
    ]
    return strings.loc[sorted(np.concatenate(chosen))]


def in_tokens_of_a_model(strings: pd.DataFrame, n_tokens: np.ndarray) -> pd.DataFrame:
    """A dataset with the tokens of a model, int[strings], and the optimal losses per such token.

    They differ from those of the dataset if the model's tokenizer cuts the strings.
    """
    if (n_tokens == strings["n_tokens"]).all():
        return strings
    optimal = strings["optimal_loss"] * strings["n_tokens"] / n_tokens
    return strings.assign(n_tokens=n_tokens, optimal_loss=optimal)


def placebo_of(strings: pd.DataFrame, name: str) -> str | None:
    """The placebo of a string: the candidate whose Bayes-optimal loss is nearest to the string's.

    No run on the dataset is trained on the placebo. So any difference between two trainings on the
    placebo is not memorisation. If several candidates are equally near, the string's name decides,
    so that strings have different placebos. None if there is no candidate with a known loss.
    """
    loss = strings.set_index("string_id")["optimal_loss"]
    unseen = loss[candidates(strings)].dropna()
    if unseen.empty:
        return None
    distance = (unseen - loss[name]).abs().round(DECIMALS)
    nearest = sorted(unseen.index[distance == distance.min()])
    return nearest[zlib.crc32(name.encode()) % len(nearest)]
