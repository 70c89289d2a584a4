"""Requests: the runs that a section needs trained.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from palimpsest.errors import UserError
from palimpsest.paths import fill
from palimpsest.variants import BASE, LEAVE_ONE_OUT_AGAIN, LEAVING_ONE_OUT, dataset_variant

DEFAULT = "default"  # the recipe that has every key; other recipes have the keys that differ
TRACE, WEIGHTS, TOKENS, FOLDER = "trace", "weights", "tokens", "huggingface"
CHECKPOINTS = "checkpoints"  # the weights after every epoch that is measured


@dataclass(frozen=True)
class OnePass:
    """A stream, for the plan: the numbers of its macro-batches and of the strings it measures.

    `every` is the number of macro-batches between two measurements.
    """

    cohorts: int
    measured: int
    every: int = 1


@dataclass(frozen=True)
class Runs:
    """Runs that a section needs trained. Runs that several sections request are trained once.

    A run is one model trained on one variant of a corpus' dataset with one seed. With `replicates`,
    each seed is trained several times; the range holds the numbers of these replicates. One job
    trains at most `replicates_per_job` replicates. `recipe` names a recipe of the configuration.
    `keeps` names the files of a run: always "trace", and sometimes "weights", "tokens" or
    "checkpoints".
    Replicates always keep their weights; with `save_weights`, all runs do. "huggingface" is the
    folder that is made from the weights of a single run with `save_weights: huggingface`. "tokens"
    are the losses of single tokens, and "checkpoints" the weights after every epoch that is
    measured; only single runs keep them. With a variant of leave-one-out, at
    most `left_out` training strings are left out, each in a run of its own; None means every
    string. A stream says in `one_pass` how long it is.
    """

    model: str
    corpus: str
    size: int
    variant: str = BASE
    seeds: tuple[int, ...] = ()
    recipe: str = DEFAULT
    replicates: range | None = None
    keeps: frozenset = frozenset({TRACE})
    replicates_per_job: int = 1
    left_out: int | None = None
    one_pass: OnePass | None = None

    @property
    def key(self) -> tuple:
        """Identifies the runs of a request, without their seeds."""
        return *self.names.values(), self.replicates

    @property
    def names(self) -> dict[str, str | int]:
        """The values of the wildcards in the runs' paths, except the seed."""
        return {
            "recipe": self.recipe,
            "model": self.model,
            "language": self.corpus,
            "size": self.size,
            "variant": self.variant,
        }

    @property
    def dataset_variant(self) -> str:
        """The variant whose dataset the runs read."""
        return dataset_variant(self.variant)

    @property
    def has_one_model(self) -> bool:
        """Whether the files of a run hold one model, and not one for each replicate or string."""
        return self.replicates is None and self.variant not in LEAVING_ONE_OUT

    @property
    def trainings(self) -> int:
        """The number of trainings for one seed."""
        if self.replicates is not None:
            return len(self.replicates)
        if self.variant not in LEAVING_ONE_OUT:
            return 1
        n_left_out = self.size if self.left_out is None else min(self.size, self.left_out)
        return n_left_out + (self.variant == LEAVE_ONE_OUT_AGAIN)

    @property
    def jobs(self) -> list[tuple[int, int]]:
        """First and last replicate of each job."""
        return list(parts(self.replicates, self.replicates_per_job))

    def paths(self, pattern: str, **more) -> list[str]:
        """The paths of a pattern for every seed and, if the pattern has them, for every job's part.

        A job's part is its first and last replicate: the wildcards `first` and `last`.
        """
        named = {**self.names, **more}
        jobs = [] if self.replicates is None else self.jobs
        spans = [{"first": first, "last": last} for first, last in jobs] or [{}]
        filled = (
            fill(pattern, **named, seed=seed, **span) for seed in self.seeds for span in spans
        )
        return list(dict.fromkeys(filled))

    def of_some_seeds(self, most: int) -> list["Runs"]:
        """The same runs, in parts with at most `most` seeds each."""
        spans = parts(range(len(self.seeds)), most)
        return [replace(self, seeds=self.seeds[first : last + 1]) for first, last in spans]

    def on(self, variant: str) -> "Runs":
        """The same runs on another variant."""
        return replace(self, variant=variant)


@dataclass(frozen=True)
class Unfinished:
    """A section's own job that keeps state while it works; used to list stale state.

    `key` names a function, as "module:function". That function computes the key of the job's state
    from the path of the table of models and the values `given`. `dataset` is the path of the
    dataset that the job reads.
    """

    dataset: str
    key: str
    given: dict


def merged(requests: Iterable[Runs]) -> list[Runs]:
    """Merge requests for the same runs, so that each run is in one request; the order is kept.

    A merged request has the seeds and the kept files of all its requests. Raises `UserError` if two
    requests for the same replicates contradict each other, and `ValueError` for a request that no
    rule can fulfil.
    """
    found: dict[tuple, Runs] = {}
    for asked in requests:
        if unknown := asked.keeps - {TRACE, WEIGHTS, TOKENS, CHECKPOINTS}:
            raise ValueError(f"{asked}: keeps {min(unknown)!r}, which no run makes")
        if not asked.has_one_model and asked.keeps & {TOKENS, CHECKPOINTS}:
            raise ValueError(f"{asked}: only single runs keep the losses of tokens or checkpoints")
        if asked.variant in LEAVING_ONE_OUT and WEIGHTS in asked.keeps:
            raise ValueError(f"{asked}: a section cannot ask for the weights of leave-one-out")
        if asked.replicates is not None and WEIGHTS not in asked.keeps:
            raise ValueError(f"{asked}: replicates always keep their weights; add them to `keeps`")
        if asked.replicates is not None:
            for known in found.values():
                if known.replicates is not None and known.names == asked.names:
                    _refuse_contradiction(known, asked)
        known = found.setdefault(asked.key, asked)
        if known.left_out != asked.left_out:
            raise ValueError(f"{asked}: leaves out other strings than {known}")
        seeds = tuple(dict.fromkeys([*known.seeds, *asked.seeds]))
        found[asked.key] = replace(known, seeds=seeds, keeps=known.keeps | asked.keeps)
    return list(found.values())


def _refuse_contradiction(known: Runs, asked: Runs) -> None:
    """Raise an error if two requests need different files with the same names.

    The names of replicates' files hold only the replicates' numbers, so each number can belong to
    one job only.
    """
    if known.replicates == asked.replicates:
        name, differs = "replicates_per_job", known.replicates_per_job != asked.replicates_per_job
    else:
        name, differs = "replicates", not set(known.replicates).isdisjoint(asked.replicates)
    if differs:
        raise UserError(
            f"{asked.model} on {asked.corpus}, size {asked.size}, {asked.variant}: its replicates "
            f"are asked for with {name} {getattr(known, name)} and {getattr(asked, name)}; give "
            "the blocks of both sections the same values, or recipes of different names"
        )


def parts(numbers: range, most: int) -> Iterator[tuple[int, int]]:
    """Cut a range into about equal parts of at most `most` numbers; first and last of each part."""
    count = -(-len(numbers) // most)
    edges = [numbers.start + round(part * len(numbers) / count) for part in range(count + 1)]
    for first, after in itertools.pairwise(edges):
        yield first, after - 1
