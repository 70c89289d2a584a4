"""Datasets with leaked test strings, and datasets without the strings of one production.

All datasets of a seed have the same test strings. A training string is replaced for every leaked
copy and paraphrase, so that all runs take equally many steps on equally many strings.

Source: LMD3: Language Model Data Density Dependence, section 5.3 and appendix A.6.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest.corpora import String, string_of, text_of
from palimpsest.datasets.build import DatasetRequest, tabulate
from palimpsest.datasets.strings import string_id
from palimpsest.density.interventions import (
    NO_LEAK,
    Leak,
    leak_of,
    production_left_out,
)
from palimpsest.density.kinds import CHOICE, TESTED
from palimpsest.density.paraphrases import in_ascending_order
from palimpsest.density.tested_strings import Tested, tested_of
from palimpsest.errors import UserError

PARAPHRASE = "paraphrase"
MORE_DRAWS = (1, 2, 4, 8, 16, 32)  # times the number of training strings


class Tests(NamedTuple):
    """The test strings of a seed: leaked, placebo and never.

    `paraphrases` are those of the leaked strings, from the least to the most similar one. `wrong`
    has the test strings with each wrong answer; it is empty in languages without right answers.
    """

    leaked: list[String]
    placebo: list[String]
    never: list[String]
    paraphrases: dict[String, list[String]]
    wrong: dict[String, list[String]]

    @property
    def strings(self) -> list[String]:
        return [*self.leaked, *self.placebo, *self.never]


def leaked(request: DatasetRequest) -> pd.DataFrame:
    """Training strings; some are copies and paraphrases of leaked test strings.

    Options: `tests`, the number of test strings; `leaked`, how many of them are leaked, and how
    many others are placebos; `level`, see `Paraphraser`.
    """
    leak = leak_of(request.variant)
    base = request.sampler.train(request.size)
    tests = drawn_tests(request, _tested(request), base)
    planted = planted_strings(tests, leak)
    train = Counter([*base[: request.size - len(planted)], *planted])
    return tabulated(request, train, tests, leak)


def without_production(request: DatasetRequest) -> pd.DataFrame:
    """Training strings without those of one production; others of the corpus take their place.

    Options: as for `leaked`, so that the test strings are the same.
    """
    base = request.sampler.train(request.size)
    tested = _tested(request)
    tests = drawn_tests(request, tested, base)
    corpus, measured = request.sampler.corpus, {*tests.strings}
    left_out = corpus.productions()[production_left_out(request.variant) - 1]
    # Draw more strings until the other productions have enough
    for times in MORE_DRAWS:
        drawn = [s for s in tested.training(times * request.size) if s not in measured]
        groups = tested.groups(drawn)
        kept = [s for s in drawn if groups[s] != left_out]
        if len(kept) >= request.size:
            return tabulated(request, Counter(kept[: request.size]), tests, NO_LEAK)
    raise UserError(
        f"density/leakage/leave_out: {MORE_DRAWS[-1] * request.size:,} strings of "
        f"{request.sampler.language} hold only {len(kept):,} of {request.size:,} that do not begin "
        f"with {left_out!r}; set it to false, or choose a language with more even productions"
    )


def _tested(request: DatasetRequest) -> Tested:
    return tested_of(request.sampler, request.options["level"], request.options["redrawn"])


def drawn_tests(request: DatasetRequest, tested: Tested, base: Sequence[String]) -> Tests:
    """The test strings of a seed, drawn at random among strings that are not trained on.

    Every test string has enough paraphrases, whether leaked or not. So leaked strings, placebos and
    others are random samples of one distribution.

    Raises `UserError` if too few strings have paraphrases at this level.
    """
    options, sampler = request.options, request.sampler
    n_tests, n_leaked = options["tests"], options["leaked"]
    trained = set(base)
    candidates = tested.candidates(n_tests, trained)
    chance = np.random.default_rng([sampler.seed, n_tests])
    # Frequent strings are drawn first, so the order is shuffled.
    shuffled = [candidates[place] for place in chance.permutation(len(candidates))]
    but, found = {*trained, *candidates}, {}
    for string in shuffled:
        made = tested.paraphrases(string, chance, but)
        if made is not None:
            found[string] = made
            but.update(made)
        if len(found) == n_tests:
            break
    if len(found) < n_tests:
        raise tested.too_few(len(found), n_tests)
    tests = list(found)
    own = tests[:n_leaked]
    return Tests(
        own,
        tests[n_leaked : 2 * n_leaked],
        tests[2 * n_leaked :],
        {s: in_ascending_order(s, found[s]) for s in own},
        tested.wrong(tests),
    )


def planted_strings(tests: Tests, leak: Leak) -> list[String]:
    """The copies and paraphrases of a condition; the least similar paraphrases come first."""
    return [
        planted
        for string in tests.leaked
        for planted in [string] * leak.n_copies + tests.paraphrases[string][: leak.paraphrases]
    ]


def tabulated(request: DatasetRequest, train: Counter, tests: Tests, leak: Leak) -> pd.DataFrame:
    table = tabulate(request, train, Counter(tests.strings), is_leaked=True)
    roles = {}
    for string in tests.leaked:
        for number, paraphrase in enumerate(tests.paraphrases[string][: leak.paraphrases]):
            roles[string_id(paraphrase)] = f"{PARAPHRASE}-{number + 1}-{string_id(string)}"
    for role in TESTED:
        roles |= {string_id(string): role for string in getattr(tests, role)}
    strings = [string_of(request.sampler.corpus, text) for text in table["text"]]
    groups = _tested(request).groups(strings)
    table = table.assign(
        role=table["string_id"].map(roles).astype("string"),
        group=pd.array([groups[string] for string in strings], dtype="string"),
    )
    return pd.concat([table, _choices(table, tests)], ignore_index=True) if tests.wrong else table


def _choices(table: pd.DataFrame, tests: Tests) -> pd.DataFrame:
    """Rows of the test strings with wrong answers. They are measured, and have no probability."""
    pairs = [(string, wrong) for string in tests.strings for wrong in tests.wrong[string]]
    own = [string_id(string) for string, _ in pairs]
    rows = table.set_index("string_id", drop=False).loc[own].reset_index(drop=True)
    return rows.assign(
        string_id=[string_id(wrong) for _, wrong in pairs],
        text=[text_of(wrong) for _, wrong in pairs],
        role=pd.array([f"{CHOICE}-{name}" for name in own], dtype="string"),
        split="held_out",
        count=0,
        test_count=0,
        **dict.fromkeys(("derivation_log_prob", "log_prob", "optimal_loss"), np.nan),
    )
