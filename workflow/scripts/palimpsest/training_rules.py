"""Rules of Snakemake that train single runs: their names, and patterns that tell files apart."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Set

from palimpsest.requests import CHECKPOINTS, TOKENS, WEIGHTS, Runs

KEPT = frozenset({WEIGHTS, TOKENS, CHECKPOINTS})  # files that only some runs keep
Job = list[Runs]


def by_name(
    groups: Iterable[list[Job]], is_twin: Callable[[str], bool], kept_alone: Set[str]
) -> dict[str, list[Job]]:
    """The jobs of each rule that trains several runs, by the rule's name; equal names get numbers.

    A full model's job with only one model belongs to the rule `train_one_run`, if that rule makes
    all files of the run: of `KEPT`, those in `kept_alone`.
    """
    rules, seen = {}, Counter()
    for jobs in groups:
        first = jobs[0]
        of_twins = is_twin(first[0].model)
        if not of_twins and _fits_one_run(first, kept_alone):
            continue
        labels = [runs.label or runs.job or runs.variant for runs in first]
        scale = "twins" if of_twins else "full"
        name = re.sub(r"\W", "_", f"train_{scale}_on_{'_and_'.join(dict.fromkeys(labels))}")
        seen[name] += 1
        rules[f"{name}__{seen[name]}" if seen[name] > 1 else name] = jobs
    return rules


def _fits_one_run(job: Job, kept_alone: Set[str]) -> bool:
    runs, *others = job
    is_single = not others and len(runs.seeds) == 1 and runs.regime.has_one_model
    return is_single and runs.keeps & KEPT <= kept_alone


def recipes_of(jobs: Iterable[Job]) -> str:
    """A pattern for the wildcard `recipe` that matches in the paths of some jobs only."""
    return _matching(
        (runs.recipe, f"{re.escape(runs.model)}/{re.escape(runs.corpus)}/n{runs.size}\\b")
        for runs, *_ in jobs
    )


def variants_of_others(rules: Iterable[list[Job]], variant: str) -> str:
    """The pattern `variant` of any variant, but for those in paths of these rules' jobs."""
    taken = [
        (
            runs.variant,
            f"{re.escape(runs.recipe)}/{re.escape(runs.model)}/{re.escape(runs.corpus)}"
            f"/n{runs.size}-seed(?:{'|'.join(map(str, runs.seeds))})/",
        )
        for jobs in rules
        for job in jobs
        for runs in job
    ]
    return (f"(?!{_matching(taken)})" if taken else "") + variant


def _matching(names: Iterable[tuple[str, str]]) -> str:
    """A pattern for names; in a path, one of a name's folders follows the name.

    Names with equal folders share one alternative, because thousands of alternatives are slow.
    """
    of_name, alike = {}, {}
    for name, folder in names:
        of_name.setdefault(name, []).append(folder)
    for name, folders in of_name.items():
        alike.setdefault("|".join(folders), []).append(re.escape(name))
    return "|".join(f"(?:{'|'.join(names)})(?=/(?:{folders}))" for folders, names in alike.items())
