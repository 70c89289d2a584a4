"""The interface of a section: one paper's question, with everything that belongs to it.

Only light modules are imported: Snakemake reads this while it builds its graph of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.lazy_import import named
from palimpsest.requests import Runs, Unfinished
from palimpsest.tables.kinds import Kind
from palimpsest.variants import Variant


@dataclass(frozen=True)
class Derived:
    """Models that a section makes of trained ones, for the plan.

    There are `n` for the seed, each of which takes a `share` of a training of `runs`. They are made
    when all `files` are there.
    """

    runs: Runs
    name: str
    seed: int
    n: int
    share: float
    files: tuple[str, ...]


def nothing(settings: Settings) -> Iterable:
    """What a section has none of."""
    return ()


@dataclass(frozen=True)
class Section:
    """What a section asks for and delivers.

    `name` is that of its block in the configuration, of its named target and of its rules' file.
    `requests`, `outputs`, `derived` and `unfinished` are asked only if the block is there;
    `mistakes` are what is wrong with the block beyond its schema. `schema`, where there is one,
    adds to the block's schema what stands in the section's code. The texts `kinds`, `figures`,
    `claims` and `report` name a module and what stands in it
    ("palimpsest.memorisation.claims:CLAIMS"), imported when used. The claims are tested on tables
    of the kinds `judged`; its part of the report reads those of the kinds `reported`. `variants`
    are the variants of datasets that it has of its own.
    """

    name: str
    title: str
    requests: Callable[[Settings], Iterable[Runs]]
    outputs: Callable[[Settings], Iterable[str]]
    mistakes: Callable[[Settings], Iterable[Mistake]] = nothing
    kinds: str | None = None
    figures: str | None = None
    claims: str | None = None
    judged: tuple[Kind, ...] = ()
    report: str | None = None
    reported: tuple[Kind, ...] = ()
    variants: tuple[Variant, ...] = ()
    derived: Callable[[Settings], Iterable[Derived]] = nothing
    unfinished: Callable[[Settings], Iterable[Unfinished]] = nothing
    schema: Callable[[dict], dict] = lambda schema: schema

    def load(self, part: str):
        """The object that a part names, such as `load("figures")`; an empty tuple without one."""
        return named(getattr(self, part))
