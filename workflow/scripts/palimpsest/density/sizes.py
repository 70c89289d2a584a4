"""Numbers of points that are asked of a corpus, and whether the corpus has enough of them.

Only modules that load fast are imported, because texts are checked before they are embedded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from palimpsest.allowed import SEEDS, WHOLE, Number, checked_number, checked_word
from palimpsest.errors import UserError

INDEXES = EXACT, IVF = ("exact", "ivf")
SIZE = "the size of the corpus"


@dataclass(frozen=True)
class Approximation:
    """The sizes of algorithm 1, the seed of its samples, and the index that finds neighbours.

    The kernel is computed for `k` neighbours. A first sample of `m1` points of the corpus is drawn
    once, and from those of its points that are no neighbours of a query, `m2` points are drawn for
    the query. What an approximate `index` misses is among the other points, so that it moves weight
    from the local to the random part, and the mean over samples stays the exact density.

    Raises `UserError` if a size is not a whole number above 0, the seed not one from 0 on, or the
    index unknown.
    """

    k: int = 1000
    m1: int = 1_000_000
    m2: int = 10_000
    seed: int = 0
    index: str = EXACT

    def __post_init__(self):
        for name in ("k", "m1", "m2"):
            # As Python's own numbers, because faiss takes no others.
            object.__setattr__(self, name, checked_number(name, getattr(self, name), WHOLE))
        object.__setattr__(self, "seed", checked_seed(self.seed))
        checked_word("index", self.index, INDEXES)

    @classmethod
    def of_block(cls, block: Mapping) -> Approximation:
        """The sizes in the value of `density/approximation`."""
        return cls(**{name: value for name, value in block.items() if name != "exact"})

    def fits(self, n: int) -> bool:
        """Whether a corpus of n points has enough of them, see `check`."""
        return self.k < n and self.m2 <= min(self.m1, n) - self.k

    def check(self, n: int, block: str = "", size: str = SIZE) -> None:
        """`UserError` unless a corpus of n points has enough for `k`, `m1` and `m2`.

        `block` goes before the names of the sizes in the message, and `size` says what n is.
        """
        if self.k >= n:
            raise UserError(f"{block}k: is {self.k} and must be below {n}, {size}")
        first = min(self.m1, n)
        if self.m2 > first - self.k:
            raise UserError(
                f"{block}m2: is {self.m2} and must be at most {first - self.k}: the sample of a "
                f"query is drawn from the first sample of {first} points, without {self.k} "
                "neighbours; lower it"
            )


def checked_neighbours(k: int, n: int, key: str = "k", size: str = SIZE) -> int:
    """k, if it is a whole number from 1 to n, the size of the corpus; otherwise `UserError`."""
    return checked_number(key, k, Number(least=1, most=n, whole=True), f", {size}")


def checked_seed(seed: int) -> int:
    return checked_number("seed", seed, SEEDS)


def check_text(corpus: str, n: int, neighbours: int, approximation: Mapping | None) -> None:
    """`UserError` unless the corpus of a text has enough segments for the values of `density`.

    Parameters
    ----------
    corpus : the name of the corpus in messages
    n : its number of segments, with copies
    neighbours : the value of `density/neighbours`
    approximation : the value of `density/approximation`
    """
    size = f"the number of segments of {corpus}; lower it, or add texts"
    checked_neighbours(neighbours, n, "density/neighbours", size)
    if approximation:
        Approximation.of_block(approximation).check(n, "density/approximation/", size)
