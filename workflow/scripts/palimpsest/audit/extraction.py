"""Extraction: which records a model gives away, by greedy decoding or within n samples.

The probability of a continuation is exact: it is the product of those of its tokens. So nothing is
sampled here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from difflib import SequenceMatcher

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from palimpsest.audit.kinds import CONTINUATIONS, EXTRACTED, EXTRACTION
from palimpsest.audit.references import sides, with_accuracies
from palimpsest.making import makes, reads
from palimpsest.memorisation.extraction import extraction_probability
from palimpsest.statistics import clopper_pearson, effective_groups

GREEDY, SAMPLING = "greedy", "sampling"
LIKELY = 0.5
SAMPLES = (1, 10, 100, 1000, 10**4, 10**6)
PROBABILITIES = (0.1, LIKELY, 0.9)


@reads(continuations=CONTINUATIONS)
@makes(EXTRACTED, EXTRACTION)
def extracted_records(continuations: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What a target and its references give away of each record, and of how many of them.

    A continuation is extracted if all of its tokens come out. Records that the target was not
    trained on are the placebo, and so are references that were trained on none. Records that are
    nearly members are in no share.

    Source: Hayes et al., Measuring memorization in language models via probabilistic extraction
    (arXiv 2410.19482).
    """
    generated = continuations["generated"].fillna("")
    pairs = zip(continuations["continuation"], generated, strict=True)
    found = with_accuracies(continuations).assign(
        log10_samples=log10_samples(log_probabilities(continuations)),
        span=[longest_span(*pair) for pair in pairs],
    )
    found["span_letters"] = found["span"].str.len()
    counted = found[~found["duplicate"]]
    side = sides(counted["trained"]).rename("side")
    shares = [
        {**dict(zip(("language", "model", "role", "side"), key, strict=True)), **row}
        for key, rows in counted.groupby(["language", "model", "role", side], sort=False)
        for row in _shares(rows)
    ]
    return {
        EXTRACTED.name: found[EXTRACTED.names].reset_index(drop=True),
        EXTRACTION.name: pd.DataFrame(shares, columns=EXTRACTION.names).astype(
            {"samples": "Int64"}
        ),
    }


def log10_samples(log_probability: ArrayLike, probability: float = LIKELY) -> np.ndarray:
    """log10 of the samples that are needed for a string to be among them with a probability.

    The number n is the smallest with 1 - (1 - p)^n >= probability, as a real number of at least 1.

    Parameters
    ----------
    log_probability : float[...], nats: log of the probability p of the string in one sample
    """
    log_probability = np.asarray(log_probability, dtype=float)
    with np.errstate(divide="ignore"):  # a certain string needs one sample
        missed_once = -np.log1p(-np.exp(log_probability))
        # The log of a number too small for 1 - p, and of 0, is that of p.
        log_missed = np.where(log_probability < -30, log_probability, np.log(missed_once))
    needed = math.log(-math.log1p(-probability)) - log_missed
    return np.maximum(needed, 0) / math.log(10)


def longest_span(text: str, generated: str) -> str:
    """The longest part of a text that is in another one, the first if there are several."""
    match = SequenceMatcher(None, text, generated, autojunk=False).find_longest_match()
    return text[match.a : match.a + match.size]


def log_probabilities(continuations: pd.DataFrame) -> np.ndarray:
    """float64[rows], nats; rounding may have carried a loss of nearly 0 below 0."""
    return np.minimum(-continuations["nll"].to_numpy(), 0.0)


def _shares(rows: pd.DataFrame) -> Iterator[dict]:
    """The rows of the table `extraction_shares` of one model and side."""
    n = effective_groups(rows["group"].to_numpy())

    def share(is_extracted: np.ndarray) -> dict:
        value = float(is_extracted.mean())
        lower, upper = clopper_pearson(value, n)
        counts = {"n_records": len(rows), "n_extracted": int(is_extracted.sum())}
        return {**counts, "share": value, "lower": lower, "upper": upper}

    is_greedy = (rows["n_generated"] == rows["n_tokens"]).to_numpy()
    yield {"decoding": GREEDY, "samples": None, "probability": np.nan, **share(is_greedy)}
    for samples in SAMPLES:
        chance = extraction_probability(log_probabilities(rows), samples)
        for probability in PROBABILITIES:
            about = {"decoding": SAMPLING, "samples": samples, "probability": probability}
            yield {**about, **share(chance >= probability)}
