"""Requests: the runs that a section needs trained."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from palimpsest.errors import UserError
from palimpsest.interventions import BASE
from palimpsest.paths import DATASET, fill
from palimpsest.regimes import SINGLE, LeaveOneOut, OnePass, Regime, Replicates

DEFAULT = "default"  # the recipe that has every key; other recipes have the keys that differ
TRACE, WEIGHTS, TOKENS, FOLDER = "trace", "weights", "tokens", "huggingface"
CHECKPOINTS = "checkpoints"  # the weights after every epoch that is measured


@dataclass(frozen=True)
class Runs:
    """Runs that a section needs trained. Runs that several sections request are trained once.

    A run is one model, trained with one seed on the dataset of an intervention, by a recipe of the
    configuration and under a regime.

    Parameters
    ----------
    keeps : the files of a run: always "trace", and sometimes "weights", "tokens" or "checkpoints"
        Replicates always keep their weights; with `save_weights`, all runs do. "huggingface" is the
        folder that is made from the weights of a single run with `save_weights: huggingface`.
        "tokens" are the losses of single tokens, and "checkpoints" the weights after every epoch
        that is measured; only runs with one model keep them.
    job : runs of a twin share a job if they have equal models, corpora, sizes, recipes and this
    label : what rules are named by; by default `job` or else the variant
    """

    model: str
    corpus: str
    size: int
    intervention: str = BASE
    seeds: tuple[int, ...] = ()
    recipe: str = DEFAULT
    regime: Regime = SINGLE
    keeps: frozenset = frozenset({TRACE})
    job: str = ""
    label: str = ""

    @property
    def variant(self) -> str:
        """The name of the runs' folder, and of the column `variant`: intervention and regime."""
        return self.regime.folder(self.intervention)

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
    def replicates(self) -> range | None:
        """The numbers of the replicates; None if each seed is trained in one run."""
        return self.regime.numbers if isinstance(self.regime, Replicates) else None

    @property
    def one_pass(self) -> OnePass | None:
        """The pass over a stream; None if each string is trained on for several epochs."""
        return self.regime if isinstance(self.regime, OnePass) else None

    @property
    def trainings(self) -> int:
        return self.regime.trainings(self.size)

    @property
    def jobs(self) -> list[tuple[int, int]]:
        """First and last replicate of each job; [] without replicates."""
        if self.replicates is None:
            return []
        return list(parts(self.replicates, self.regime.per_job))

    @property
    def datasets(self) -> list[str]:
        return self.paths(DATASET, variant=self.intervention)

    def paths(self, pattern: str, **more) -> list[str]:
        """The paths of a pattern for every seed and, if the pattern has them, for every job's part.

        A job's part is its first and last replicate: the wildcards `first` and `last`.
        """
        named = {**self.names, **more}
        spans = [{"first": first, "last": last} for first, last in self.jobs] or [{}]
        filled = (
            fill(pattern, **named, seed=seed, **span) for seed in self.seeds for span in spans
        )
        return list(dict.fromkeys(filled))

    def of_some_seeds(self, most: int) -> list["Runs"]:
        spans = parts(range(len(self.seeds)), most)
        return [replace(self, seeds=self.seeds[first : last + 1]) for first, last in spans]

    def on(self, intervention: str) -> "Runs":
        return replace(self, intervention=intervention)


def paths_of(runs: Iterable[Runs], *patterns: str) -> list[str]:
    """The paths of some patterns for some runs, run after run, each path once."""
    found = (path for one in runs for pattern in patterns for path in one.paths(pattern))
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Unfinished:
    """A query's job, which keeps state while it works; used to list stale state.

    `dataset` is the path of the dataset that the job reads. `given` holds the values that decide
    the keys of its states (`palimpsest.jobs.query.keys_of_job`).
    """

    dataset: str
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
        if not asked.regime.has_one_model and asked.keeps & {TOKENS, CHECKPOINTS}:
            raise ValueError(f"{asked}: only single runs keep the losses of tokens or checkpoints")
        if isinstance(asked.regime, LeaveOneOut) and WEIGHTS in asked.keeps:
            raise ValueError(f"{asked}: a section cannot ask for the weights of {asked.variant}")
        if asked.replicates is not None and WEIGHTS not in asked.keeps:
            raise ValueError(f"{asked}: replicates always keep their weights; add them to `keeps`")
        if asked.replicates is not None:
            for known in found.values():
                if known.replicates is not None and known.names == asked.names:
                    _refuse_contradiction(known, asked)
        known = found.setdefault(asked.key, asked)
        if (known.regime, known.job) != (asked.regime, asked.job):
            raise ValueError(f"{asked}: has another regime or job than {known}")
        seeds = tuple(dict.fromkeys([*known.seeds, *asked.seeds]))
        found[asked.key] = replace(known, seeds=seeds, keeps=known.keeps | asked.keeps)
    return list(found.values())


def _refuse_contradiction(known: Runs, asked: Runs) -> None:
    """Raise an error if two requests need different files with the same names.

    The names of replicates' files hold only the replicates' numbers, so each number can belong to
    one job only.
    """
    if known.replicates == asked.replicates:
        name, ours, theirs = "replicates per job", known.regime.per_job, asked.regime.per_job
        differs = ours != theirs
    else:
        name, ours, theirs = "replicates", known.replicates, asked.replicates
        differs = not set(ours).isdisjoint(theirs)
    if differs:
        raise UserError(
            f"{asked.model} on {asked.corpus}, size {asked.size}, {asked.variant}: its replicates "
            f"are asked for with {name} {ours} and {theirs}; give the "
            "blocks of both sections the same values, or recipes of different names"
        )


def parts(numbers: range, most: int) -> Iterator[tuple[int, int]]:
    """Cut a range into about equal parts of at most `most` numbers; first and last of each part."""
    count = -(-len(numbers) // most)
    edges = [numbers.start + round(part * len(numbers) / count) for part in range(count + 1)]
    for first, after in itertools.pairwise(edges):
        yield first, after - 1
