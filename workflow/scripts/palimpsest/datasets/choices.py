"""Strings chosen from a dataset: candidates for stand-ins, a sample by copies, and placebos.

Only modules that load fast are imported, because figures and measures need no grammar.
"""

import zlib
from collections.abc import Iterable

import numpy as np
import pandas as pd

from palimpsest.errors import UserError
from palimpsest.regimes import half_of, string_left_out, without_string

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
    return placebos_of(strings, [name])[0]


def placebos_of(strings: pd.DataFrame, names: Iterable[str]) -> list[str | None]:
    """The placebo of each of some strings, see `placebo_of`."""
    loss = strings.set_index("string_id")["optimal_loss"]
    unseen = loss[candidates(strings)].dropna()
    if unseen.empty:
        return [None for _ in names]
    known = np.array(sorted(unseen.index), dtype=object)
    losses = unseen[known].to_numpy(dtype=float)
    found = []
    for name in names:
        distance = np.abs(losses - loss[name]).round(DECIMALS)
        nearest = known[distance == distance.min()]
        found.append(nearest[zlib.crc32(name.encode()) % len(nearest)])
    return found


def removed_strings(strings: pd.DataFrame, removal: str) -> list[str]:
    """The training strings that a training of the regime removals lacks, by the training's name.

    A half has about half of the distinct training strings. It depends on the dataset's seed and the
    number of the half only; of halves 0 and 1, 2 and 3, and so on, each has what the other lacks,
    so that all strings are in equally many. Raises `UserError` for a name that is neither a half
    nor `without-` and a training string, and if nothing would be left.
    """
    trained = strings.loc[strings["count"] > 0, "string_id"].to_numpy(dtype=object)
    if len(trained) < 2:
        raise UserError("removals need two distinct training strings or more; raise the size")
    number = half_of(removal)
    if number is None:
        if removal not in map(without_string, trained):
            raise UserError(f"the dataset has no training string for the removal {removal!r}")
        return [string_left_out(removal)]
    chance = np.random.default_rng([int(strings["seed"].iloc[0]), number // 2])
    one, other = np.split(chance.permutation(trained), [len(trained) // 2])
    return sorted(other if number % 2 else one)
