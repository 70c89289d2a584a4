"""The study of leakage: the runs that it needs, and the mistakes in its block.

Source: LMD3: Language Model Data Density Dependence, sections 5.3 and 6.1, appendix A.6.
"""

from collections.abc import Iterator

from palimpsest.configuration.checks import of_one_study
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.density.interventions import (
    LEAK_CONDITIONS,
    MOST_COPIES,
    MOST_PARAPHRASES,
    WITHOUT_PRODUCTION,
    leak_of,
    leaked,
    leaked_times,
)
from palimpsest.density.interventions import without_production as without
from palimpsest.requests import TRACE, WEIGHTS, Runs

FACTORIAL = tuple(map(leaked, LEAK_CONDITIONS))
NEEDS = "the paraphrases of leaked strings, which need a grammar"


def block(settings: Settings) -> dict | None:
    return settings.block("density")["leakage"]


def without_productions(settings: Settings, language: str) -> list[str]:
    """The variants of a language that lack one production each; [] if there is only one."""
    if not block(settings)["leave_out"]:
        return []
    n_productions = len(settings.corpus(language).productions())
    return [without(number + 1) for number in range(n_productions)] if n_productions > 1 else []


def variants(settings: Settings, language: str) -> list[str]:
    return [*FACTORIAL, *without_productions(settings, language)]


def runs(settings: Settings) -> Iterator[Runs]:
    asked, keeps = block(settings), frozenset({TRACE, WEIGHTS})
    for language in asked["languages"] if asked else ():
        for variant in variants(settings, language):
            names = asked["model"], language, asked["size"], variant
            # A twin has a job for each number of copies, and one for all left-out productions.
            leak = leak_of(variant)
            job = leaked_times(leak.n_copies) if leak else WITHOUT_PRODUCTION
            yield Runs(*names, settings.seeds, asked["recipe"], keeps=keeps, job=job)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    asked, key = block(settings), "density/leakage"
    if asked is None:
        return
    yield from of_one_study(settings, key, asked, asked["size"] + asked["tests"], NEEDS)
    if 2 * asked["leaked"] >= asked["tests"]:
        yield Mistake(
            f"{key}/tests",
            f"{asked['tests']} test strings are too few for {asked['leaked']} leaked ones and as "
            f"many placebos; raise it above {2 * asked['leaked']}, so that some are never treated",
        )
    planted = asked["leaked"] * (MOST_COPIES + MOST_PARAPHRASES)
    if planted > asked["size"] // 2:
        yield Mistake(
            f"{key}/leaked",
            f"{asked['leaked']} strings with a copy and {MOST_PARAPHRASES} paraphrases each are "
            f"{planted} of {asked['size']} training strings; at most half of them may be planted: "
            f"lower it to {asked['size'] // 2 // (MOST_COPIES + MOST_PARAPHRASES)}",
        )
    if asked["size"] - planted < (k := settings.block("density")["neighbours"]):
        yield Mistake(
            "density/neighbours",
            f"{k} is more than the {asked['size'] - planted} training strings that are not "
            "planted; lower it",
        )
