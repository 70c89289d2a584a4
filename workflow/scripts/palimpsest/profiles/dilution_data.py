"""Diluted streams: probe strings in known numbers of copies and positions, among other strings.

Source: Hubble: a Model Suite to Advance the Study of LLM Memorization (ICLR 2026).
"""

from collections import Counter

import numpy as np
import pandas as pd

from palimpsest.corpora import String
from palimpsest.datasets.build import DatasetRequest, tabulate
from palimpsest.datasets.strings import string_id
from palimpsest.profiles.factorial import Design
from palimpsest.profiles.interventions import DILUTED
from palimpsest.profiles.streams import HELD_OUT, PANEL, VALIDATION

OTHERS = 16  # separates the order of other strings from other draws with the same seed


def diluted(request: DatasetRequest) -> pd.DataFrame:
    """A stream with probes in all arms, and strings that are never trained on.

    Enough strings for the largest stream are drawn together. So arms, validation strings and other
    strings are random samples of one distribution, and streams of all sizes have the same probes,
    validation strings and spare strings. All copies of a probe are in one macro-batch. Without the
    probes, a spare string takes the place of every copy of a probe: the model takes equally many
    steps on equally many strings, and no other string changes.

    Options: the keys of `Design`. `request.size` is one of `sizes`.
    """
    design = Design.of(request.options)
    n_others = design.n_others(max(design.sizes))
    parts = [design.validation, design.n_probes, design.n_copies, n_others]
    lower = "profiles/dilution/sizes or profiles/dilution/probes"
    shuffled = iter(request.sampler.shuffled(design.n_strings, lower))
    never, probes, spare, others = ([next(shuffled) for _ in range(n)] for n in parts)
    is_whole = request.variant == DILUTED
    batches = arranged(request, design, probes if is_whole else None, spare, others)
    train = Counter(string for batch in batches.values() for string in batch)
    cohorts = {s: number for number, batch in batches.items() for s in batch}
    measured = [*never, *([] if is_whole else probes)]
    table = tabulate(request, train, Counter(), held_out=measured, cohorts=cohorts)
    names = table["string_id"]
    split = np.select(
        [names.isin({string_id(s) for s in part}) for part in (never, probes)],
        [VALIDATION, PANEL if is_whole else HELD_OUT],
        default="train",
    )
    return table.assign(split=split)


def arranged(
    request: DatasetRequest,
    design: Design,
    probes: list[String] | None,
    spare: list[String],
    others: list[String],
) -> dict[int, list[String]]:
    """The strings of every macro-batch, with copies.

    Without `probes`, spare strings are in the places of their copies. These places come first in
    each macro-batch, so that every other string is in the same optimiser step of both streams.
    """
    batches = {number: [] for number in range(1, design.cohorts(request.size) + 1)}
    for string, (number, place) in zip(spare, design.slots(request.size), strict=True):
        batches[place].append(string if probes is None else probes[number])
    free = [
        place for place, batch in batches.items() for _ in range(design.cohort_size - len(batch))
    ]
    chance = np.random.default_rng([request.sampler.seed, OTHERS])
    for string, place in zip(others[: len(free)], chance.permutation(free), strict=True):
        batches[place].append(string)
    return batches
