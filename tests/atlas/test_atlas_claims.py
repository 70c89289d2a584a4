"""The claims of the atlas, in worlds in which each is true, and in which it is false."""

import itertools

import numpy as np
import pandas as pd
import pytest

from palimpsest.atlas.claims import CLAIMS, QUESTIONS
from palimpsest.atlas.kinds import (
    AMOUNT,
    APART,
    BELOW_OPTIMAL,
    BITS,
    CROSS,
    HALVES,
    RANK,
    START,
    UNSEEN,
)
from palimpsest.claims import AGREES, CANNOT_TELL, DISAGREES, judge_all

MEASURES = {
    AMOUNT: (
        *("retraining", "recollection", "contextual", "rarity", "mean_loss", "tracin by adamw"),
        *("high_loss", "extraction", "reference", "difference_in_differences", "ngram_density"),
    ),
    START: ("retraining", "recollection", "contextual"),
    CROSS: ("retraining", "near_strings"),
    HALVES: ("retraining", "trak", "itself"),
    APART: ("retraining", "single removals"),
    UNSEEN: ("retraining", "ek-fac", "trak"),
}
# Rank correlations by question and measure; measures that are not named have the first number.
TRUE = {
    AMOUNT: (0.9, {"recollection": 0.75, "high_loss": 0.6, "ngram_density": 0.6}),
    START: (0.8, {}),
    CROSS: (0.7, {}),
    HALVES: (0.8, {"itself": 0.5}),
    APART: (0.7, {}),
    UNSEEN: (0.7, {"trak": 0.2}),
}
FALSE = {
    AMOUNT: (-0.3, {"mean_loss": -0.4, "difference_in_differences": -0.5, "ngram_density": 0.1}),
    START: (0.2, {}),
    CROSS: (0.1, {"near_strings": -0.1}),
    HALVES: (0.2, {"itself": 0.5}),
    APART: (0.2, {}),
    UNSEEN: (0.2, {}),
}


def frontier(correlations, placebo=0.0, seeds=range(5), spread=0.02) -> pd.DataFrame:
    chance = np.random.default_rng(0)

    def correlation(mean: float) -> float:
        return float(np.clip(mean + spread * chance.standard_normal(), -1, 1))

    rows = [
        {
            "model": model,
            "language": "L2",
            "size": 64,
            "seed": seed,
            "measure": measure,
            "question": question,
            "statistic": RANK,
            "value": correlation(level[1].get(measure, level[0])),
            "placebo": correlation(placebo),
        }
        for model, seed, (question, level) in itertools.product(
            ("a", "b"), seeds, correlations.items()
        )
        for measure in MEASURES[question]
    ]
    return pd.DataFrame(rows)


def conformal(coverage: float) -> pd.DataFrame:
    chance = np.random.default_rng(1)
    rows = [
        {
            "model": "a",
            "language": "L2",
            "size": 64,
            "seed": seed,
            "held_out": held_out,
            "coverage": coverage + 0.002 * chance.standard_normal(),
            "width": 0.1,
            "single_width": 0.2,
            "refused": 0.0,
            "told_apart": False,
        }
        for seed in range(5)
        for held_out in ("string", "seed", "language", "family")
    ]
    return pd.DataFrame(rows)


def foretelling(r_squared=0.8, by_rarity=0.6, coverage=0.9, before=True) -> pd.DataFrame:
    """Later runs that were foretold as well as said; the last two seeds before only if `before`."""
    chance = np.random.default_rng(2)
    rows = [
        {
            **{"model": model, "language": "L2", "size": 64, "seed": seed},
            **{"outcome": outcome, "new": new, "foretold_before": before or seed < 4},
            "r_squared": r_squared + 0.02 * chance.standard_normal(),
            "r_squared_by_rarity": by_rarity + 0.02 * chance.standard_normal(),
            **{"r_squared_by_mean": -0.1, "placebo": -0.9, "width": 0.1},
            "coverage": coverage + 0.002 * chance.standard_normal(),
        }
        for model, seed, outcome, new in itertools.product(
            ("a", "b"), range(6), (BITS, BELOW_OPTIMAL), ("seed", "model", "language")
        )
    ]
    return pd.DataFrame(rows)


def verdicts(table: pd.DataFrame, coverage: float = 0.9, told=None) -> dict[str, str]:
    told = foretelling() if told is None else told
    tables = {"frontier": table, "conformal": conformal(coverage), "foretelling": told}
    judged = judge_all(CLAIMS, tables)
    return dict(zip(judged["claim"], judged["verdict"], strict=True))


def of_foretelling(told: pd.DataFrame) -> pd.DataFrame:
    tables = {"frontier": None, "conformal": None, "foretelling": told}
    return judge_all(CLAIMS, tables)


def test_every_claim_agrees_where_it_is_true():
    assert set(verdicts(frontier(TRUE)).values()) == {AGREES}


def test_every_claim_disagrees_where_it_is_false():
    told = foretelling(r_squared=0.1, by_rarity=0.3, coverage=0.6)
    assert set(verdicts(frontier(FALSE), 0.6, told).values()) == {DISAGREES}


def test_what_was_known_is_not_foretold():
    """Runs that began before their predictions are in no statistic, and the remark counts them."""
    lucky = foretelling(before=False)
    lucky.loc[~lucky["foretold_before"], ["r_squared", "coverage"]] = 0.0
    found = of_foretelling(lucky)
    assert set(found["verdict"]) == {AGREES}
    assert found["note"].str.contains("4 runs are left out: not foretold before").all()
    none = of_foretelling(foretelling().assign(foretold_before=False))
    assert set(none["verdict"]) == {CANNOT_TELL}


def test_a_correlation_that_placebos_have_too_is_none():
    """All that is left agrees: retraining with itself, and comparisons of two measures."""
    found = verdicts(frontier(TRUE, placebo=0.8))
    agreeing = {claim for claim, verdict in found.items() if verdict == AGREES}
    about_one = ("itself", "says more", "far higher", "Intervals", "foretold", "foretell")
    others = [c for c in agreeing if not any(words in c for words in about_one)]
    assert others == []
    assert len(agreeing) == 17


def test_few_noisy_seeds_cannot_tell():
    found = verdicts(frontier(TRUE, seeds=range(2), spread=0.8))
    assert list(found.values()).count(CANNOT_TELL) > 9


def test_nothing_is_claimed_where_nothing_was_asked_for():
    assert judge_all(CLAIMS, dict.fromkeys(("frontier", "conformal", "foretelling"))).empty


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.claim)
def test_a_claim_answers_a_question_of_the_section(claim):
    assert claim.question in QUESTIONS
    assert claim.on_request
