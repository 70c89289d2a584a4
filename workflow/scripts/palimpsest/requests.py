"""What a section asks to be trained.

Only light modules are imported: Snakemake reads this while it builds its graph of jobs.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from palimpsest.errors import UserError
from palimpsest.paths import fill
from palimpsest.variants import BASE, LEAVE_ONE_OUT, dataset_variant

TRACE, WEIGHTS = "trace", "weights"


@dataclass(frozen=True)
class Runs:
    """Runs that a section needs trained; equal requests of several sections are trained once.

    A run is one model trained on one variant of a corpus' dataset with one seed. `replicates`
    numbers several trainings of each seed, of which one job trains at most `replicates_per_job`.
    `training` overrides keys of the configuration's block `training`, which is allowed for
    replicates alone, as only these have files of their own. `keeps` names what a run leaves: its
    trace always, and `weights`, which are kept of replicates, or of all runs with `save_weights`.
    """

    model: str
    corpus: str
    size: int
    variant: str = BASE
    seeds: tuple[int, ...] = ()
    replicates: range | None = None
    training: Mapping = field(default_factory=dict, hash=False)
    keeps: frozenset = frozenset({TRACE})
    replicates_per_job: int = 1

    @property
    def key(self) -> tuple:
        """What tells the runs of one request from those of another, whatever their seeds."""
        return self.model, self.corpus, self.size, self.variant, self.replicates

    @property
    def names(self) -> dict[str, str | int]:
        """The values of wildcards in the runs' paths, the seed apart."""
        names = ("model", "language", "size", "variant")
        return dict(zip(names, (self.model, self.corpus, self.size, self.variant), strict=True))

    @property
    def dataset_variant(self) -> str:
        """The variant whose dataset the runs read."""
        return dataset_variant(self.variant)

    @property
    def trainings(self) -> int:
        """How often a model is trained for one seed."""
        if self.replicates is not None:
            return len(self.replicates)
        return self.size if self.variant == LEAVE_ONE_OUT else 1

    @property
    def jobs(self) -> list[tuple[int, int]]:
        """First and last replicate of each job that trains some."""
        return list(parts(self.replicates, self.replicates_per_job))

    def paths(self, pattern: str, **more) -> list[str]:
        """The pattern for every seed and, where it names them, every job's replicates."""
        named = {**self.names, **more}
        jobs = [] if self.replicates is None else self.jobs
        spans = [{"first": first, "last": last} for first, last in jobs] or [{}]
        filled = (
            fill(pattern, **named, seed=seed, **span) for seed in self.seeds for span in spans
        )
        return list(dict.fromkeys(filled))

    def of_some_seeds(self, most: int) -> list["Runs"]:
        """The same runs in parts of at most `most` seeds."""
        spans = parts(range(len(self.seeds)), most)
        return [replace(self, seeds=self.seeds[first : last + 1]) for first, last in spans]

    def on(self, variant: str) -> "Runs":
        """The same runs on another variant."""
        return replace(self, variant=variant)


@dataclass(frozen=True)
class Unfinished:
    """A job of a section's own that keeps state while it works, for the listing of stale state.

    `key` names the function ("module:function") that gives the key of the job's state from the
    values `given` and the path of the table of models. `dataset` is the one that the job reads.
    """

    dataset: str
    key: str
    given: dict


def merged(requests: Iterable[Runs]) -> list[Runs]:
    """The requests in order, each run in one of them: seeds and what is kept are put together.

    Raises `UserError` if two requests want replicates of the same runs in ways that cannot both be
    met, and `ValueError` for a request that no rule can meet.
    """
    found: dict[tuple, Runs] = {}
    for asked in requests:
        if unknown := asked.keeps - {TRACE, WEIGHTS}:
            raise ValueError(f"{asked}: keeps {min(unknown)!r}, which no run leaves")
        if asked.replicates is None and (asked.training or WEIGHTS in asked.keeps):
            raise ValueError(f"{asked}: training and weights of their own are for replicates alone")
        if asked.replicates is not None and WEIGHTS not in asked.keeps:
            raise ValueError(f"{asked}: replicates leave their weights; let `keeps` say so")
        if asked.replicates is not None:
            for known in found.values():
                if known.replicates is not None and known.key[:4] == asked.key[:4]:
                    _refuse_contradiction(known, asked)
        known = found.setdefault(asked.key, asked)
        seeds = tuple(dict.fromkeys([*known.seeds, *asked.seeds]))
        found[asked.key] = replace(known, seeds=seeds, keeps=known.keeps | asked.keeps)
    return list(found.values())


def _refuse_contradiction(known: Runs, asked: Runs) -> None:
    """Files of replicates are named by numbers alone: each number has one training and one job."""
    differ = [known.training != asked.training and "training"]
    if known.replicates == asked.replicates:
        differ.append(known.replicates_per_job != asked.replicates_per_job and "replicates_per_job")
    else:
        differ.append(not set(known.replicates).isdisjoint(asked.replicates) and "replicates")
    for name in filter(None, differ):
        raise UserError(
            f"{asked.model} on {asked.corpus}, size {asked.size}, {asked.variant}: its replicates "
            f"are asked for with {name} {getattr(known, name)} and {getattr(asked, name)}; give "
            "the blocks of both sections the same values"
        )


def parts(numbers: range, most: int) -> Iterator[tuple[int, int]]:
    """First and last of about equal parts of some numbers, none with more than `most`."""
    count = -(-len(numbers) // most)
    edges = [numbers.start + round(part * len(numbers) / count) for part in range(count + 1)]
    for first, after in itertools.pairwise(edges):
        yield first, after - 1
