"""What an experiment trains, or what some of its targets need of it."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from palimpsest.configuration.settings import Settings
from palimpsest.paths import MANIFEST, REPLICATES_MANIFEST
from palimpsest.requests import Runs
from palimpsest.section import Asked, Derived, Part, Section

SAME_JOBS = "the same jobs"  # the block of runs that no target needs, but that share its jobs

Block = tuple[Section | Part, Settings]
Run = tuple[tuple, int]  # the key of a request, and a seed


@dataclass(frozen=True)
class Bill:
    """The runs to train, the models to make from them, and which block adds which of them.

    `parts` has the runs of each section and part that trains more than those before it, with the
    models that the section makes from trained ones.
    """

    requests: list[Runs]
    derived: list[Derived]
    parts: dict[str, tuple[list[Runs], list[Derived]]]

    @property
    def added(self) -> dict[str, dict[str, int]]:
        """The trainings by model, for each of `parts`."""
        return {name: _trainings(own) for name, (own, _) in self.parts.items()}


@dataclass(frozen=True)
class Made:
    """What the jobs of some targets make, by places in lists of the experiment, in JSON's types.

    `runs` has the seeds of each request, by its place. `derived` are places of models that are made
    from trained ones, and `asked` of models that are asked.
    """

    runs: dict[str, list[int]]
    derived: list[int]
    asked: list[int]

    def keys(self, requests: Sequence[Runs]) -> set[Run]:
        return {(requests[int(at)].key, seed) for at, seeds in self.runs.items() for seed in seeds}


def of_everything(
    sections: Sequence[Section], settings: Settings, requests: list[Runs], derived: list[Derived]
) -> Bill:
    parts = _parts(_blocks(sections, settings))
    return Bill(requests, derived, _with_derived(parts, sections, settings, derived))


def of_targets(
    targets: Iterable[str],
    sections: Sequence[Section],
    settings: Settings,
    requests: list[Runs],
    derived: list[Derived],
    jobs: Iterable[list[Runs]],
    made: Made | None = None,
) -> Bill | None:
    """The bill of some targets or files; None if they may need everything.

    Without what is `made` for them, a table or a figure is billed as the section or study that
    makes it. `jobs` are those that train single runs: a job trains all of its runs.
    """
    keys: set[str] = set()
    needed: set[Run] = set()
    for target in targets:
        if own := set(_runs_with(requests, target)):
            needed |= own
        elif blocks := _keys(sections, target):
            keys |= blocks
        else:
            return None
    chosen = [(block, own) for block, own in _blocks(sections, settings) if _key(block) in keys]
    in_graph = None if made is None else made.keys(requests)
    parts = _parts(chosen, in_graph)
    asked = {*_each(chain.from_iterable(parts.values()))}
    needed |= asked | (in_graph or set())
    for job in jobs:
        if not needed.isdisjoint(of_job := set(_each(job))):
            needed |= of_job
    found = _chosen(requests, needed)
    if parts and (more := _chosen(found, needed - asked)):
        parts[SAME_JOBS] = more
    if made is not None:
        own = [derived[place] for place in made.derived]
    else:
        own = [one for each in sections if each.name in keys for one in each.derived(settings)]
    return Bill(found, own, _with_derived(parts, sections, settings, own))


def _with_derived(
    parts: Mapping[str, list[Runs]],
    sections: Iterable[Section],
    settings: Settings,
    derived: Iterable[Derived],
) -> dict[str, tuple[list[Runs], list[Derived]]]:
    """The runs of each block with those of the models made from trained ones that are its own."""
    by_section = {each.name: [*each.derived(settings)] for each in sections}
    chosen = [*derived]
    return {
        name: (runs, [one for one in by_section.get(name, []) if one in chosen])
        for name, runs in parts.items()
    }


def made_by(
    requests: Sequence[Runs], derived: Sequence[Derived], asked: Sequence[Asked], files: set[str]
) -> Made:
    """What Snakemake's graph of jobs makes; `files` are the outputs of its jobs.

    Of replicates, all count if a job trains some.
    """
    runs = {
        str(place): [seed for seed in one.seeds if not files.isdisjoint(_manifests(one, seed))]
        for place, one in enumerate(requests)
    }
    return Made(
        {place: seeds for place, seeds in runs.items() if seeds},
        [place for place, one in enumerate(derived) if not files.isdisjoint(one.files)],
        [place for place, one in enumerate(asked) if one.file in files],
    )


def _manifests(runs: Runs, seed: int) -> list[str]:
    pattern = MANIFEST if runs.replicates is None else REPLICATES_MANIFEST
    return replace(runs, seeds=(seed,)).paths(pattern)


def _blocks(sections: Iterable[Section], settings: Settings) -> Iterator[Block]:
    """Every section without its parts, and then its parts."""
    for section in sections:
        yield section, settings.without(part.key for part in section.parts)
        yield from ((part, settings) for part in section.parts)


def _key(block: Section | Part) -> str:
    return block.name if isinstance(block, Section) else block.key


def _keys(sections: Iterable[Section], target: str) -> set[str]:
    """The blocks whose runs a target needs; a part needs no runs of its section."""
    found: set[str] = set()
    for section in sections:
        blocks = section.needed_by(target)
        found |= {key for key in blocks if not section.part_of(target) or key != section.name}
    return found


def _runs_with(requests: Iterable[Runs], target: str) -> Iterator[Run]:
    """The single runs in whose folder a file is."""
    for runs in requests:
        if runs.replicates is None:
            for seed, path in zip(runs.seeds, runs.paths(MANIFEST), strict=True):
                if target.startswith(os.path.join(os.path.dirname(path), "")):
                    yield runs.key, seed


def _each(requests: Iterable[Runs]) -> Iterator[Run]:
    return ((runs.key, seed) for runs in requests for seed in runs.seeds)


def _chosen(requests: Iterable[Runs], needed: Container[Run]) -> list[Runs]:
    """The requests with those seeds alone whose runs are needed."""
    return [
        replace(runs, seeds=seeds)
        for runs in requests
        if (seeds := tuple(seed for seed in runs.seeds if (runs.key, seed) in needed))
    ]


def _parts(blocks: Iterable[Block], only: set[Run] | None = None) -> dict[str, list[Runs]]:
    """The runs of each block that those before it do not train; `only` these, if they are given."""
    seen: set[Run] = set()
    parts: dict[str, list[Runs]] = {}
    for block, settings in blocks:
        for runs in block.requests(settings):
            own = {*_each([runs])}
            new = (own if only is None else own & only) - seen
            seen |= new
            if new:
                parts.setdefault(block.name, []).extend(_chosen([runs], new))
    return parts


def _trainings(requests: Iterable[Runs]) -> dict[str, int]:
    """The trainings by model."""
    found: dict[str, int] = {}
    for runs in requests:
        found[runs.model] = found.get(runs.model, 0) + runs.trainings * len(runs.seeds)
    return found
