"""What a function reads and makes, declared with the function, for the script `make.py`.

@reads(datasets=[STRINGS], traces=[traces.read], starts=STARTS)
@makes(MEMORISED)
def memorised(datasets, traces, starts, *, start, loss_threshold): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palimpsest.tables.kinds import Document, Kind

    How = Kind | Callable | list[Kind | Callable]


def reads(**inputs: How) -> Callable[[Callable], Callable]:
    """Declare how each input is read: as a kind of table, or by a function of its path.

    The files of one kind are stacked. With `[kind]` or `[function]`, the files are not stacked: the
    input is a sequence, which reads a file when it is used. An input that is not named stays a
    path.
    """

    def declared(function: Callable) -> Callable:
        function.reads = inputs
        return function

    return declared


def makes(*kinds: Kind | Document) -> Callable[[Callable], Callable]:
    """Declare what a function returns: a table of the only kind, or a dict by the kinds' names."""

    def declared(function: Callable) -> Callable:
        function.makes = kinds
        return function

    return declared
