"""Changed texts that some attacks compare a text with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palimpsest.audit.membership.attack import LOWERCASE, NEIGHBOURS, PREFIXED, SECRETS

TEXT = "text"  # the version of a text that is unchanged
WORD = re.compile(r"\w+")
SYMBOL = re.compile(r"\S+")  # of a formal language
BREAK = "\n\n"  # after each text that stands before another one
DIGITS = re.compile(r"[0-9]")
REPLACED = 0.2  # share of the words of a text that a neighbour has others for


@dataclass(frozen=True)
class Versions:
    """Texts with the number of their first letters that are only read; `n` for each record.

    `rows` int[records] are the places of the records among all.
    """

    texts: list[str]
    prompts: list[int]
    rows: np.ndarray
    n: int = 1


def versions(
    names: Sequence[str],
    texts: Sequence[str],
    prompts: Sequence[int],
    unseen: np.ndarray,
    groups: np.ndarray | None = None,
    *,
    neighbours: int,
    prefixes: int,
    secrets: int = 0,
    seed: int = 0,
    word: re.Pattern = WORD,
    after_prefix: str = BREAK,
) -> dict[str, Versions]:
    """The versions with some names. All have all texts, but `prefixed`.

    Parameters
    ----------
    texts : str[records], each after its prompt
    prompts : the number of the first letters of each text that are its prompt
    unseen : bool[records], records that the model was not trained on; prefixes are of them
    groups : names of the records' groups; by default, each record is a group of its own
    neighbours : changed texts for each record
    prefixes : records before a text in the version `prefixed`, from at most half of their groups
    secrets : other values of the digits of each record; with 0, there is no such version
    word : what a neighbour replaces
    after_prefix : what stands after each of the prefixes

    What is drawn for a text follows from the text and the seed, so one more text changes the
    versions of few others.
    """
    found = {}
    rows = np.arange(len(texts))
    if LOWERCASE in names:
        pairs = list(zip(texts, prompts, strict=True))
        # A few letters become two in lower case.
        letters = [len(text[:n].lower()) for text, n in pairs]
        found[LOWERCASE] = Versions([text.lower() for text in texts], letters, rows)
    if NEIGHBOURS in names:
        found[NEIGHBOURS] = _neighbours(texts, prompts, neighbours, seed, word)
    if PREFIXED in names:
        groups = rows if groups is None else groups
        before = _prefix(texts, unseen, groups, prefixes, seed)
        if before:
            found[PREFIXED] = _prefixed(texts, prompts, groups, before, after_prefix)
    if SECRETS in names and secrets:
        found[SECRETS] = _secrets(texts, prompts, secrets, seed)
    return found


def _secrets(texts: Sequence[str], prompts: Sequence[int], n: int, seed: int) -> Versions:
    """Each text up to its last digit, and `n` times with other digits; those are predicted.

    What follows the last digit is left out, because it may depend on the digits. A text without a
    digit stands there `n` + 1 times as it is.
    """
    made, letters = [], []
    for text, own in zip(texts, prompts, strict=True):
        chance = np.random.default_rng(_digest(text, seed))
        places = [found.start() for found in DIGITS.finditer(text, own)]
        true = text[: places[-1] + 1] if places else text
        values = [true] if places else [true] * (n + 1)
        while len(values) < n + 1:
            other = list(true)
            for place, digit in zip(places, chance.integers(10, size=len(places)), strict=True):
                other[place] = str(digit)
            if (drawn := "".join(other)) != true:
                values.append(drawn)
        made += values
        letters += [places[0] if places else own] * (n + 1)
    return Versions(made, letters, np.arange(len(texts)), n + 1)


def _prefix(
    texts: Sequence[str], unseen: np.ndarray, groups: np.ndarray, n: int, seed: int
) -> list[int]:
    """The places of unseen texts to stand before others: from few groups, at most half of them."""
    drawn = sorted(np.flatnonzero(unseen), key=lambda place: _digest(texts[place], seed))
    order = {name: place for place, name in enumerate(dict.fromkeys(groups[drawn]))}
    by_group = sorted(drawn, key=lambda place: order[groups[place]])
    return [place for place in by_group if order[groups[place]] < len(order) // 2][:n]


def _prefixed(
    texts: Sequence[str],
    prompts: Sequence[int],
    groups: np.ndarray,
    before: list[int],
    after_prefix: str,
) -> Versions:
    """Each text after the same others. Texts of their groups are left out.

    What a text has in common with its group would make it probable after them, and only texts that
    are no members would have this help.
    """
    rows = np.flatnonzero(~np.isin(groups, groups[before]))
    prefix = "".join(texts[place] + after_prefix for place in before)
    letters = [len(prefix) + prompts[row] for row in rows]
    return Versions([prefix + texts[row] for row in rows], letters, rows)


def _neighbours(
    texts: Sequence[str], prompts: Sequence[int], n: int, seed: int, word: re.Pattern
) -> Versions:
    """`n` neighbours of each text: a share of its words is replaced by words of another text.

    A word is replaced by one of the same length in letters, or of the nearest length, so that the
    neighbour is as long as the text.
    """
    words = [sorted({*word.findall(text)}) for text in texts]
    digests = [_digest(text, seed) for text in texts]
    order = np.argsort(digests)
    ring = np.array(digests, dtype=np.uint64)[order]
    made, letters = [], []
    for place, (text, own) in enumerate(zip(texts, prompts, strict=True)):
        chance = np.random.default_rng(digests[place])
        spans = [found.span() for found in word.finditer(text, own)]
        n_replaced = max(1, round(REPLACED * len(spans))) if spans else 0
        # The text that follows a number on the ring of all texts: a new one takes few numbers.
        draws = chance.integers(2**64, size=n, dtype=np.uint64)
        for other in np.searchsorted(ring, draws):
            donor = order[other % len(ring)]
            if donor == place:
                donor = order[(other + 1) % len(ring)]
            chosen = chance.permutation(len(spans))[:n_replaced]
            made.append(_replaced(text, [spans[span] for span in chosen], words[donor], chance))
            letters.append(own)
    return Versions(made, letters, np.arange(len(texts)), n)


def _replaced(
    text: str, spans: list[tuple[int, int]], words: Sequence[str], chance: np.random.Generator
) -> str:
    """The text with other words in some spans."""
    for begin, end in sorted(spans, reverse=True):
        others = [word for word in words if word != text[begin:end]]
        nearest = min((abs(len(word) - (end - begin)) for word in others), default=0)
        alike = [word for word in others if abs(len(word) - (end - begin)) == nearest]
        if alike:
            text = text[:begin] + alike[chance.integers(len(alike))] + text[end:]
    return text


def _digest(text: str, seed: int) -> int:
    """64 bits that depend on a text and the seed alone."""
    return int.from_bytes(hashlib.sha256(f"{seed} {text}".encode()).digest()[:8])


__all__ = [
    *("LOWERCASE", "NEIGHBOURS", "PREFIXED", "SECRETS", "SYMBOL", "TEXT", "WORD"),
    *("Versions", "versions"),
]
