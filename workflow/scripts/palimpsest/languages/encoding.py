"""Strings as numbers: one array of terminal codes for many strings, end to end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, compress, pairwise

import numpy as np

from palimpsest.allowed import shown
from palimpsest.arguments import WrongKind
from palimpsest.short_repr import ShortRepr

A_STRING = "a tuple of symbols, such as ('1', '2')"
OUTSIDE = 65_535  # the code of every symbol that is no terminal of the grammar


@dataclass(frozen=True, eq=False, repr=False)
class EncodedStrings(ShortRepr):
    """Many strings of one grammar, as codes into its `terminals`.

    Attributes
    ----------
    symbols : uint16[total]
        The codes of all strings, one after the other; 65535 is a symbol outside the alphabet.
    offsets : int64[n + 1]; string `i` is `symbols[offsets[i]:offsets[i + 1]]`
    derivation_log_prob : float64[n], nats
        Log probability of the derivation by which each string was sampled; NaN if the string was
        not sampled. A string with further derivations is more probable.
    """

    symbols: np.ndarray
    offsets: np.ndarray
    derivation_log_prob: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        """The codes of one string, uint16[length], as a view."""
        index = range(len(self))[index]  # raises IndexError, and counts negatives from the end
        return self.symbols[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """int64[n]: the number of symbols of each string."""
        return np.diff(self.offsets)


def encode(strings: Iterable[Sequence[str]], terminals: Sequence[str]) -> EncodedStrings:
    """Encode strings, each a sequence of symbols, as codes into `terminals`.

    Raises `TypeError` if a string is a Python `str`, because its letters need not be its symbols,
    if it is no sequence, or if a symbol is no text: the number 1 is not the terminal '1'.
    """
    if isinstance(strings, str) or hasattr(strings, "columns") or not isinstance(strings, Iterable):
        raise WrongKind(
            f"strings: is of the class {type(strings).__name__} and must be a list of strings, "
            f"each {A_STRING}"
        )
    strings = list(strings)
    for string in strings:
        if isinstance(string, str | bytes) or not hasattr(string, "__len__"):
            raise WrongKind(f"strings: a string is {A_STRING}; got {shown(string)}")
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    codes = {terminal: code for code, terminal in enumerate(terminals)}
    found = (codes.get(symbol, OUTSIDE) for symbol in chain.from_iterable(strings))
    try:
        symbols = np.fromiter(found, dtype=np.uint16, count=offsets[-1])
    except TypeError:  # a list or an array cannot be a key
        raise WrongKind(f"strings: a string is {A_STRING}; one has lists or arrays") from None
    if (is_outside := symbols == OUTSIDE).any():
        for symbol in compress(chain.from_iterable(strings), is_outside):
            if not isinstance(symbol, str):
                raise WrongKind(f"strings: a symbol is text, such as '1'; got {shown(symbol)}")
    return EncodedStrings(symbols, offsets, np.full(len(strings), np.nan))


def decode(encoded: EncodedStrings, terminals: Sequence[str]) -> list[tuple[str, ...]]:
    """The strings of some codes.

    Raises `ValueError` if a code means a symbol outside the alphabet, because the symbol itself is
    not known.
    """
    if len(encoded.symbols) and encoded.symbols.max() >= len(terminals):
        raise ValueError("cannot decode a symbol outside the alphabet: its name was not kept")
    names = np.array(terminals, dtype=object)[encoded.symbols].tolist()
    ends = encoded.offsets.tolist()
    return [tuple(names[a:b]) for a, b in pairwise(ends)]
