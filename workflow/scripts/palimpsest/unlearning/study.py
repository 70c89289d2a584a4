"""What the section `unlearning` of the configuration asks for: models, jobs and their files.

Only light modules are imported: Snakemake reads this while it builds its graph of jobs.
"""

from __future__ import annotations

import bisect
import itertools
import math
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from palimpsest.errors import nearest
from palimpsest.models import resolve
from palimpsest.unlearning.methods import Method, read_methods
from palimpsest.unlearning.setups import (
    BOOTSTRAP,
    ENDS,
    NONE,
    RETRAIN,
    Setup,
    n_originals,
    n_retrained,
    wanted,
)
from palimpsest.variants import DRAWN, ORIGINAL, RETAIN, UNLEARNED

if TYPE_CHECKING:
    from palimpsest.configuration import RunGroup, Study


@dataclass(frozen=True)
class Problem:
    """A model that is to forget a part of what it was trained on."""

    model: str
    language: str
    size: int
    seed: int


class UnlearningStudy:
    """Answers to what the unlearning half of a checked configuration has to make."""

    def __init__(self, section: dict, study: Study):
        self.section, self.study = section, study

    @cached_property
    def problems(self) -> list[Problem]:
        """Every model on every language."""
        size, seed = self.section["size"], self.section["seed"]
        return [
            Problem(model, language, size, seed)
            for model in self.section["models"]
            for language in self.section["languages"]
        ]

    @cached_property
    def setups(self) -> list[Setup]:
        """The set-ups, the one that analyses take first."""
        keys = ("n", "repetitions", "pool", "seed")
        return [
            Setup(name, **{key: self.section[key] for key in keys})
            for name in self.section["setups"]
        ]

    @cached_property
    def table(self) -> dict[str, Method]:
        """Every method of the table, and every point of every grid, by name."""
        methods = read_methods(self.section["table"])
        points = {name: m for method in methods.values() for name, m in method.points().items()}
        return {**methods, **points}

    @cached_property
    def methods(self) -> list[str]:
        """The methods to apply, between the two ends."""
        return [NONE, *self.section["methods"], RETRAIN]

    @cached_property
    def points(self) -> list[str]:
        """The points of the grids that are searched."""
        return [point for name in self.section["tuning"] for point in self.table[name].points()]

    def n_trained(self, variant: str) -> int:
        """Models that are trained on a variant; of retrained ones the ideal needs as many again."""
        if variant == ORIGINAL:
            return self._n_originals
        return 2 * self._n_retrained

    def runs(self, method: str) -> list[tuple[int, int]]:
        """The origin and draw of each unlearned model of a method, in order."""
        counts = {NONE: self._n_originals, RETRAIN: self._n_retrained}
        if method in counts:
            return [(origin, 0) for origin in range(counts[method])]
        return self._wanted

    # Of tens of thousands of models, and asked for by every job: worked out once.

    @cached_property
    def _wanted(self) -> list[tuple[int, int]]:
        return wanted(self.setups)

    @cached_property
    def _n_originals(self) -> int:
        return n_originals(self.setups)

    @cached_property
    def _n_retrained(self) -> int:
        return n_retrained(self.setups)

    # Jobs

    def runs_per_job(self, model: str) -> int:
        """Models that one job trains or unlearns."""
        full = resolve(model, self.study.models)[1] == "full"
        return 1 if full else self.section["runs_per_job"]

    def draws(self, model: str, variant: str) -> list[tuple[int, int]]:
        """First and last draw of each job that trains models on a variant.

        The ideal's are trained apart, so that no method waits for them.
        """
        most = self.runs_per_job(model)
        if variant == ORIGINAL:
            return _parts(0, self.n_trained(ORIGINAL), most)
        half = self._n_retrained
        return [*_parts(0, half, most), *_parts(half, half, most)]

    def parts(self, model: str, method: str) -> list[tuple[int, int]]:
        """First and last place, in `runs`, of each job that applies a method."""
        return _parts(0, len(self.runs(method)), self.runs_per_job(model))

    def starts(self, method: str, first: int, last: int) -> tuple[str, list[int]]:
        """The variant and draws of the models that a job of a method starts from.

        The ideal is a retrained model that no other is compared with.
        """
        origins = self.origins(method, first, last)
        if method == RETRAIN:
            return RETAIN, [self._n_retrained + origin for origin in origins]
        return ORIGINAL, origins

    def origins(self, method: str, first: int, last: int) -> list[int]:
        """The draws of the original models that the models of a job of a method belong to."""
        return [origin for origin, _ in self.runs(method)[first : last + 1]]

    def draws_with(self, model: str, variant: str, draws: list[int]) -> list[tuple[int, int]]:
        """The training jobs among which some draws are, as far as these are trained."""
        ends = [last for _, last in self.draws(model, variant)]
        jobs = {bisect.bisect_left(ends, draw) for draw in set(draws) if draw <= ends[-1]}
        return [self.draws(model, variant)[job] for job in sorted(jobs)]

    def phases(self, method: str) -> str:
        """What a method does, as JSON; the two ends do nothing."""
        return "[]" if method in ENDS else self.table[method].as_json()

    def settings_of_points(self) -> dict[str, dict]:
        """The method of every point of the grids that are searched, and what it sets."""
        return {
            point: {"method": name, "settings": settings}
            for name in self.section["tuning"]
            for point, settings in self.table[name].settings().items()
        }

    def training(self, model: str) -> dict:
        """The section `training` as it holds for the models of the unlearning."""
        return {**self.study.training(model), **self.section["training"]}

    # The plan

    def groups(self) -> list[tuple[RunGroup, int, int]]:
        """Every problem's models, with its seed and their number: trained ones, unlearned ones."""
        from palimpsest.configuration import RunGroup

        counts = {variant: self.n_trained(variant) for variant in (ORIGINAL, RETAIN)}
        counts[UNLEARNED] = sum(len(self.runs(method)) for method in self._applied)
        return [
            (RunGroup(problem.model, problem.language, problem.size, variant), problem.seed, n)
            for problem in self.problems
            for variant, n in counts.items()
        ]

    def files(self, group: RunGroup) -> list[str]:
        """The manifests of all jobs that make a group's models, in the folder of its problem."""
        if group.variant != UNLEARNED:
            parts = self.draws(group.model, group.variant)
            return [f"{group.variant}/draws-{a}-{b}/manifest.json" for a, b in parts]
        return [
            f"{UNLEARNED}/{method}/runs-{first}-{last}/manifest.json"
            for method in self._applied
            for first, last in self.parts(group.model, method)
        ]

    @property
    def _applied(self) -> list[str]:
        """Every method and point that models are made with."""
        return [*self.methods, *self.points]

    # Checks, each an error's key and text

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the section beyond its schema; `UserError` of the table's own."""
        table, forget = self.section["table"], self.section["forget"]
        if not os.path.isfile(table):
            return [("table", f"no such file: {table}")]
        found = []
        if forget != DRAWN and not os.path.isfile(forget):
            remedy = f"give a text file with one string a line, or {DRAWN}"
            found.append(("forget", f"no such file: {forget}; {remedy}"))
        for key in ("methods", "tuning"):
            for place, name in enumerate(self.section[key]):
                if name in ENDS:
                    found.append((f"{key}[{place}]", f"{name!r} is always there; leave it out"))
                elif name not in self.table:
                    found.append((f"{key}[{place}]", self._unknown(name)))
                elif key == "tuning" and not self.table[name].points():
                    found.append(
                        (f"{key}[{place}]", f"{name!r} has no grid in {self.section['table']}")
                    )
        share, size = self.section["share"], self.section["size"]
        if forget == DRAWN and round(share * size) == 0:
            least = 1 / size
            found.append(
                ("share", f"{share:g} of {size} strings is none; raise it to {least:.2g} or more")
            )
        n, pool = self.section["n"], self.section["pool"]
        if BOOTSTRAP in self.section["setups"] and pool < n:
            found.append(("pool", f"{pool} models are fewer than unlearning/n, which is {n}"))
        return found

    def _unknown(self, name: str) -> str:
        known = [method for method in self.table if "." not in method]  # points are not asked for
        hint = nearest(name, known)
        return (
            f"unknown method {name!r}; known: {', '.join(known)}{hint}. Add it to "
            f"{self.section['table']}"
        )


def _parts(first: int, n: int, most: int) -> list[tuple[int, int]]:
    """First and last place of about equal parts of n things from a place on, none too large."""
    count = math.ceil(n / most)
    edges = [first + round(part * n / count) for part in range(count + 1)]
    return [(edge, after - 1) for edge, after in itertools.pairwise(edges)]
