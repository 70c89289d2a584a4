"""The tables `neurons` and `pairs`: entropy and mutual information of the neurons of a run."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest.errors import UserError
from palimpsest.information.entropy import neuron_entropy, trimmed_entropy
from palimpsest.information.kinds import ACTIVATIONS, OF_NEURONS, OF_SITE
from palimpsest.information.kraskov import (
    Pairs,
    all_pairs,
    check_memory,
    mutual_information_of_pairs,
    sampled_pairs,
)
from palimpsest.information.neurons import is_degenerate
from palimpsest.making import makes, reads

ALL = "all"
KEYS = ["model", "language", "size", "seed", "variant"]


class How(NamedTuple):
    """How the neurons of a site are measured.

    Parameters
    ----------
    bins : of the histogram of a neuron
    neighbours : number of the nearest neighbour
    pairs : the most pairs, which are then a seeded sample; or "all"
    """

    bins: int
    neighbours: int
    pairs: int | str


@reads(activations=[ACTIVATIONS])
@makes(*OF_NEURONS)
def of_runs(
    activations: Sequence[pd.DataFrame],
    threads: int,
    *,
    bins: int,
    neighbours: int,
    pairs: int | str,
) -> Iterator[dict[str, pd.DataFrame]]:
    """Yield the tables of every run; for `bins` to `pairs`, see `How`."""
    for of_run in activations:
        yield measured(of_run, How(bins, neighbours, pairs), threads)


def measured(
    activations: pd.DataFrame, how: How, threads: int | None = None
) -> dict[str, pd.DataFrame]:
    """The tables `neurons` and `pairs` of one run, from its table `activations`.

    `threads` is the number of threads; None takes those that this process may use.

    Raises `UserError` if there are no activations, or not more than k strings, or if the pairs of
    all sites do not fit into memory.
    """
    if activations.empty:
        raise UserError("activations: there are none; name a layer, a place and a position")
    keys = activations[KEYS].iloc[0].to_dict()
    by_site = activations.groupby(OF_SITE, sort=False)
    widths = [len(own.iloc[0]) for _, own in by_site["vector"]]
    check_memory(widths, np.inf if how.pairs == ALL else how.pairs)
    parts = [
        of_site(
            np.stack(own["vector"].tolist()),
            {**keys, **dict(zip(OF_SITE, names, strict=True))},
            how,
            threads,
        )
        for names, own in by_site
    ]
    return {
        kind.name: pd.concat(tables, ignore_index=True)[kind.names]
        for kind, tables in zip(OF_NEURONS, zip(*parts, strict=True), strict=True)
    }


def of_site(
    values: np.ndarray, about: dict[str, int | str], how: How, threads: int | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The neurons and the pairs of a site's float[strings, neurons].

    `about` has the columns that name the site.
    """
    neurons = neurons_of(values, how.bins).assign(**about)
    return neurons, pairs_of(values, how.neighbours, how.pairs, threads).assign(**about)


def neurons_of(values: np.ndarray, bins: int) -> pd.DataFrame:
    """The columns on neurons of a site's float[strings, neurons].

    They are `neuron`, `entropy`, `trimmed_entropy` and `is_degenerate`.
    """
    return pd.DataFrame(
        {
            "neuron": np.arange(values.shape[1]),
            "entropy": neuron_entropy(values, bins),
            "trimmed_entropy": trimmed_entropy(values, bins),
            "is_degenerate": is_degenerate(values),
        }
    )


def chosen_pairs(values: np.ndarray, most: int | str) -> Pairs:
    """Pairs of neurons of a site's float[strings, neurons]: all, or a sample of at most `most`.

    A sample is drawn from the pairs of all neurons, so that runs and epochs have the same pairs.
    Degenerate neurons are in no pair, so there may be fewer pairs than `most`, or none at all.
    """
    n = values.shape[1]
    drawn = all_pairs(n) if most == ALL else sampled_pairs(n, most)
    usable = ~is_degenerate(values)
    known = usable[drawn.first] & usable[drawn.second]
    return Pairs(drawn.first[known], drawn.second[known])


def pairs_of(
    values: np.ndarray, k: int, most: int | str, threads: int | None = None
) -> pd.DataFrame:
    """The columns on pairs of neurons of a site's float[strings, neurons].

    They are `first`, `second`, `mutual_information`, `as_printed` and `permuted`.
    """
    chosen = chosen_pairs(values, most)
    estimates = partial(mutual_information_of_pairs, k=k, threads=threads)
    # The same neurons once more, with the strings in another order: a pair of a neuron and one of
    # these has no mutual information.
    order = np.random.default_rng(0).permutation(len(values))
    twice = np.concatenate([values, values[order]], axis=1)
    apart = Pairs(chosen.first, chosen.second + values.shape[1])
    return pd.DataFrame(
        {
            **chosen._asdict(),
            "mutual_information": estimates(values, chosen),
            "as_printed": estimates(values, chosen, standardise=False),
            "permuted": estimates(twice, apart),
        }
    )


def means(neurons: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Means of the measures at every site, in the columns of `kinds.MEASURED`; one row per site.

    `neurons` and `pairs` are tables of these kinds. Degenerate neurons are counted, and in no mean.
    """
    usable = neurons[~neurons["is_degenerate"]]
    by_site, of_pairs = neurons.groupby(OF_SITE, sort=False), pairs.groupby(OF_SITE)
    rows = pd.DataFrame(
        {
            "n_neurons": by_site.size(),
            "n_degenerate": by_site["is_degenerate"].sum(),
            "entropy": usable.groupby(OF_SITE)["entropy"].mean(),
            "trimmed_entropy": usable.groupby(OF_SITE)["trimmed_entropy"].mean(),
            "n_pairs": of_pairs.size(),
            "mutual_information": of_pairs["mutual_information"].mean(),
            "mutual_information_as_printed": of_pairs["as_printed"].mean(),
            "mutual_information_permuted": of_pairs["permuted"].mean(),
        },
        index=by_site.size().index,
    )
    rows["n_pairs"] = rows["n_pairs"].fillna(0).astype(int)
    return rows.reset_index()
