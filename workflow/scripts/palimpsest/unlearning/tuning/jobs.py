"""The trainings, jobs and files of the search for the settings of methods.

The search has problems of its own, which no evaluation uses.
"""

from __future__ import annotations

import copy
import itertools
import random
import zlib
from collections.abc import Iterator
from functools import cache, cached_property

from palimpsest import paths
from palimpsest.configuration.settings import Settings
from palimpsest.regimes import Replicates
from palimpsest.requests import TRACE, WEIGHTS, Runs
from palimpsest.unlearning import kinds
from palimpsest.unlearning.interventions import ORIGINAL, RETAIN
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.methods.phases import ROLES
from palimpsest.unlearning.methods.table import PHASES, REPEAT
from palimpsest.unlearning.run.jobs import (
    UnlearningJobs,
    UnlearningRun,
    dataset_of,
    jobs_of,
    unlearning_runs_of,
)

SEARCH = "palimpsest.unlearning.tuning.search:search"  # the query


@cache
def search_of(settings: Settings) -> SearchJobs:
    return SearchJobs(jobs_of(settings))


class SearchJobs:
    """The trainings, jobs and files of the block `unlearning/search`; the block must exist."""

    searched_path = kinds.SEARCHED.path

    def __init__(self, jobs: UnlearningJobs):
        self.jobs, self.block = jobs, jobs.block["search"]

    @cached_property
    def unlearning_runs(self) -> list[UnlearningRun]:
        return unlearning_runs_of(self.jobs.block, self.block)

    def requests(self) -> Iterator[Runs]:
        for one in self.unlearning_runs:
            for variant in (ORIGINAL, RETAIN):
                yield self.replicates(one, variant)

    def replicates(self, unlearning_run: UnlearningRun, variant: str) -> Runs:
        return Runs(
            unlearning_run.model,
            unlearning_run.language,
            unlearning_run.size,
            variant,
            seeds=(unlearning_run.seed,),
            recipe=unlearning_run.recipe,
            regime=Replicates(range(self.block["n"]), self.jobs.runs_per_job(unlearning_run.model)),
            keeps=frozenset({TRACE, WEIGHTS}),
        )

    def trained(self, unlearning_run: UnlearningRun, variant: str, pattern: str) -> list[str]:
        return self.replicates(unlearning_run, variant).paths(pattern)

    def weights(self, unlearning_run: UnlearningRun) -> list[str]:
        return self.trained(unlearning_run, ORIGINAL, paths.REPLICATES_WEIGHTS)

    @cached_property
    def methods(self) -> dict[str, dict[str, Method]]:
        """For every method of the table that has a grid, by name: the points that are tried.

        If adapters of a model are trained, methods that adapters rule out are not tried.
        """
        found = {
            name: drawn_points(method, self.block["settings"])
            for name, method in self.jobs.table.items()
            if method.grid
        }
        if not any(map(self.jobs.has_adapter, self.jobs.block["models"])):
            return found
        return {
            name: points
            for name, points in found.items()
            if not any(point.ruled_out_by_adapters for point in points.values())
        }

    @property
    def n_unlearnings(self) -> int:
        """The number of unlearnings of a job."""
        return self.block["n"] * sum(map(len, self.methods.values()))

    def values(self) -> dict:
        """What a job is asked: the values of the query `SEARCH`."""
        cutoff = self.jobs.block["cutoff"]
        return {"points": self.phases(), "n": self.block["n"], "cutoff": cutoff}

    def phases(self) -> dict[str, dict[str, list[dict]]]:
        return {
            name: {point: method.written for point, method in points.items()}
            for name, points in self.methods.items()
        }

    def settings(self) -> dict[str, dict[str, dict]]:
        """For every method and point: the values that the point sets."""
        return {
            name: {point: self.jobs.table[name].settings()[point] for point in points}
            for name, points in self.methods.items()
        }

    # The files of some problems

    def searched(self, problems: list[UnlearningRun]) -> list[str]:
        return [
            self.searched_path.format(**vars(one), method=method)
            for one in problems
            for method in self.methods
        ]

    def datasets(self, problems: list[UnlearningRun]) -> list[str]:
        return [dataset_of(one) for one in problems]

    def traces(self, problems: list[UnlearningRun]) -> list[str]:
        """The traces of the retrained models."""
        return [
            path for one in problems for path in self.trained(one, RETAIN, paths.REPLICATES_TRACE)
        ]


DIRECT, LIGHT = "direct", "light"  # ways to tune a method for another problem
FACTORS = (1 / 3, 1.0, 3.0)  # of rates, three values as in the paper's light tuning


@cache
def transfer_of(settings: Settings) -> TransferJobs | None:
    jobs = jobs_of(settings)
    return TransferJobs(jobs) if jobs.block["transfer"] else None


class TransferJobs(SearchJobs):
    """The trainings, jobs and files of the block `unlearning/transfer`; the block must exist.

    On every problem, all points of light tuning are tried. Those of `tuning_seeds` choose a point,
    and those of `seeds` judge the point.

    Source: Are we making progress in unlearning?, section 6, Q5, and appendix A.7.2.
    """

    searched_path = kinds.TRANSFER_SEARCHED

    def __init__(self, jobs: UnlearningJobs):
        self.jobs, self.block = jobs, jobs.block["transfer"]

    @cached_property
    def unlearning_runs(self) -> list[UnlearningRun]:
        seeds = [*self.block["tuning_seeds"], *self.block["seeds"]]
        problems = {"languages": self.block["languages"], "seeds": seeds}
        return unlearning_runs_of(self.jobs.block, problems)

    @cached_property
    def methods(self) -> dict[str, dict[str, Method]]:
        """The points of every method that is applied, by its name."""
        return {
            name: {point: method for point, (_, method) in self._light[name].items()}
            for name in self.jobs.block["methods"]
        }

    @cached_property
    def _light(self) -> dict[str, dict[str, tuple[dict, Method]]]:
        return {name: light_points(self.jobs.table[name]) for name in self.jobs.block["methods"]}

    def settings(self) -> dict[str, dict[str, dict]]:
        return {
            name: {point: factors for point, (factors, _) in points.items()}
            for name, points in self._light.items()
        }

    def of(self, model: str, language: str) -> list[UnlearningRun]:
        """The problems of one table."""
        return [
            one for one in self.unlearning_runs if (one.model, one.language) == (model, language)
        ]

    def tables(self) -> list[str]:
        paths = [kinds.TRANSFER.path.format(**vars(one)) for one in self.unlearning_runs]
        return list(dict.fromkeys(paths))


def light_points(method: Method) -> dict[str, tuple[dict[str, float], Method]]:
    """The factors and phases of every point of light tuning; the point `direct` is the method.

    All rates of the erase phases have one factor, and all those of the repair phases another.
    """
    roles = list(dict.fromkeys(role for role, _ in _rates(method.written)))
    points = {DIRECT: (dict.fromkeys(roles, 1.0), method)}
    for factors in itertools.product(FACTORS, repeat=len(roles)):
        if set(factors) == {1.0}:
            continue
        written = copy.deepcopy(method.written)
        of_roles = dict(zip(roles, factors, strict=True))
        for role, entry in _rates(written):
            entry["rate"] *= of_roles[role]
        name = "-".join(f"{role}-{factor:.2g}" for role, factor in of_roles.items())
        points[name] = of_roles, Method.of(method.name, written)
    return points


def _rates(written: list[dict]) -> Iterator[tuple[str, dict]]:
    """Every phase with a rate, with its role."""
    for entry in written:
        if REPEAT in entry:
            yield from _rates(entry[PHASES])
        elif "rate" in entry:
            yield next(key for key in entry if key in ROLES), entry


def drawn_points(method: Method, n: int) -> dict[str, Method]:
    """`n` points of a method's grid, drawn at random without replacement; all if there are fewer.

    The draw depends only on the method's name, so that the same points are tried everywhere. The
    points are in the order of the grid.
    """
    names = sorted(method.settings())
    if len(names) <= n:
        return method.points()
    return method.points(set(random.Random(zlib.crc32(method.name.encode())).sample(names, n)))
