"""ROUGE-L recall, as the package rouge-score computes it with its stemmer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

OTHERS = re.compile(r"[^a-z0-9]+")
STEMMED = 4  # letters that a word has at least to be stemmed


def rouge_l_recall(answer: str, generated: str) -> float:
    """Words of the answer in its longest common subsequence with a text, over all its words.

    Words are of Latin letters and digits; without any, the recall is 0.

    Source: Lin, ROUGE: A Package for Automatic Evaluation of Summaries (2004).
    """
    words = stems(answer)
    return longest_common_subsequence(words, stems(generated)) / len(words) if words else 0.0


def stems(text: str) -> list[str]:
    return [_stem(word) for word in OTHERS.sub(" ", text.lower()).split()]


@cache
def _stem(word: str) -> str:
    return _stemmer().stem(word) if len(word) >= STEMMED else word


@cache
def _stemmer():
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


def longest_common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest sequence that is in both, in order, perhaps with gaps.

    Source: Hyyro, Bit-parallel LCS-length computation revisited (2004). A bit for each item of
    `one` is 0 if the length rises there.
    """
    places: dict[str, int] = {}
    for place, item in enumerate(one):
        places[item] = places.get(item, 0) | 1 << place
    whole = (1 << len(one)) - 1
    rises = whole
    for item in other:
        matched = rises & places.get(item, 0)
        rises = ((rises + matched) | (rises - matched)) & whole
    return len(one) - rises.bit_count()
