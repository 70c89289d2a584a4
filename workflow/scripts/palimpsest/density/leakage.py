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


def has_questions(settings: Settings, name: str) -> bool:
    """Whether a name is that of a file of questions."""
    given = settings.records.get(name)
    return given is not None and given.columns.get("form") == "questions"


def _too_few_questions(settings: Settings, key: str, name: str) -> Iterator[Mistake]:
    """Fewer questions than are asked for, or with paraphrases."""
    asked, corpus = block(settings), settings.corpus(name)
    if asked["size"] > (n := len(corpus.trained)):
        yield Mistake(
            f"{key}/size",
            f"{asked['size']} is more than the {n} questions of {name} that may be trained on; "
            "lower it, or add questions",
        )
    rephrased = [corpus.questions[corpus.strings[place]].rephrased for place in corpus.unseen]
    n = sum(len(own) >= MOST_PARAPHRASES for own in rephrased)
    # Without splits, the same questions may be trained on.
    n -= 0 if corpus.is_trained is not None else min(n, asked["size"])
    if asked["tests"] > n:
        yield Mistake(
            f"{key}/tests",
            f"{asked['tests']} is more than the {n} questions of {name} that are not trained on "
            f"and have {MOST_PARAPHRASES} different paraphrases; lower it, or add paraphrases",
        )


def mistakes(settings: Settings) -> Iterator[Mistake]:
    asked, key = block(settings), "density/leakage"
    if asked is None:
        return
    questions = [name for name in asked["languages"] if has_questions(settings, name)]
    others = [name for name in asked["languages"] if name not in questions]
    of_others = {**asked, "languages": others}
    yield from of_one_study(settings, key, of_others, asked["size"] + asked["tests"], NEEDS)
    for name in questions:
        yield from _too_few_questions(settings, key, name)
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
