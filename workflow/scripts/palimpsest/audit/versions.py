"""Changed texts that some attacks compare a text with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palimpsest.audit.membership.attack import LOWERCASE, NEIGHBOURS, PREFIXED, SECRETS

TEXT = "text"  # the version of a text that is unchanged
WORD = re.compile(r"\w+")
DIGITS = re.compile(r"[0-9]")
REPLACED = 0.2  # share of the words of a text that a neighbour has others for


@dataclass(frozen=True)
class Versions:
    """Texts with the number of their first letters that are only read; `n` for each record."""

    texts: list[str]
    prompts: list[int]
    n: int = 1


def versions(
    names: Sequence[str],
    texts: Sequence[str],
    prompts: Sequence[int],
    unseen: np.ndarray,
    *,
    neighbours: int,
    prefixes: int,
    secrets: int = 0,
    seed: int = 0,
) -> dict[str, Versions]:
    """The versions with some names, of all texts.

    Parameters
    ----------
    texts : str[records], each after its prompt
    prompts : the number of the first letters of each text that are its prompt
    unseen : bool[records], records that the model was not trained on; prefixes are of them
    neighbours : changed texts for each record
    prefixes : records before a text in the version `prefixed`
    secrets : other values of the digits of each record; with 0, there is no such version
    """
    chance = np.random.default_rng(seed)
    found = {}
    if LOWERCASE in names:
        pairs = list(zip(texts, prompts, strict=True))
        # A few letters become two in lower case.
        letters = [len(text[:n].lower()) for text, n in pairs]
        found[LOWERCASE] = Versions([text.lower() for text in texts], letters)
    if NEIGHBOURS in names:
        found[NEIGHBOURS] = _neighbours(texts, prompts, neighbours, chance)
    if PREFIXED in names and unseen.any():
        found[PREFIXED] = _prefixed(texts, prompts, unseen, prefixes, chance)
    if SECRETS in names and secrets:
        found[SECRETS] = _secrets(texts, prompts, secrets, chance)
    return found


def _secrets(
    texts: Sequence[str], prompts: Sequence[int], n: int, chance: np.random.Generator
) -> Versions:
    """Each text up to its last digit, and `n` times with other digits; those are predicted.

    What follows the last digit is left out, because it may depend on the digits. A text without a
    digit stands there `n` + 1 times as it is.
    """
    made, letters = [], []
    for text, own in zip(texts, prompts, strict=True):
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
    return Versions(made, letters, n + 1)


def _prefixed(
    texts: Sequence[str],
    prompts: Sequence[int],
    unseen: np.ndarray,
    n: int,
    chance: np.random.Generator,
) -> Versions:
    """Each text after some unseen ones, the same before all; none stands before itself."""
    drawn = chance.permutation(np.flatnonzero(unseen))[: n + 1]
    made, letters = [], []
    for place, (text, own) in enumerate(zip(texts, prompts, strict=True)):
        before = "".join(f"{texts[other]}\n\n" for other in [o for o in drawn if o != place][:n])
        made.append(before + text)
        letters.append(len(before) + own)
    return Versions(made, letters)


def _neighbours(
    texts: Sequence[str],
    prompts: Sequence[int],
    n: int,
    chance: np.random.Generator,
) -> Versions:
    """`n` neighbours of each text: a share of its words is replaced by words of other texts.

    A word is replaced by one of the same length in letters, or of the nearest length, so that the
    neighbour is as long as the text.
    """
    found = {word for text in texts for word in WORD.findall(text)}
    words = sorted(found, key=lambda word: (len(word), word))  # a set has no order of its own
    lengths = np.array([len(word) for word in words])
    made, letters = [], []
    for text, own in zip(texts, prompts, strict=True):
        spans = [found.span() for found in WORD.finditer(text, own)]
        n_replaced = max(1, round(REPLACED * len(spans))) if spans else 0
        for _ in range(n):
            chosen = chance.permutation(len(spans))[:n_replaced]
            made.append(_replaced(text, [spans[place] for place in chosen], words, lengths, chance))
            letters.append(own)
    return Versions(made, letters, n)


def _replaced(
    text: str,
    spans: list[tuple[int, int]],
    words: Sequence[str],
    lengths: np.ndarray,
    chance: np.random.Generator,
) -> str:
    """The text with other words in some spans."""
    for begin, end in sorted(spans, reverse=True):
        distance = np.abs(lengths - (end - begin))
        others = [words[place] for place in np.flatnonzero(distance == distance.min())]
        others = [word for word in others if word != text[begin:end]] or list(words)
        text = text[:begin] + others[chance.integers(len(others))] + text[end:]
    return text


__all__ = ["LOWERCASE", "NEIGHBOURS", "PREFIXED", "SECRETS", "TEXT", "Versions", "versions"]
