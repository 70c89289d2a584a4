"""Claims on audits: worlds in which each is true, and false."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from palimpsest.audit.claims import CLAIMS
from palimpsest.audit.kinds import EXPLAINED
from palimpsest.audit.references import share
from palimpsest.claims import judge_all

MOSTLY, AS_WELL = (claim.claim for claim in CLAIMS)


def rows(mostly, as_well, n=200, side="trained", reference="other", seed=0):
    """The table of a target and a reference that explains strings with these probabilities."""
    chance, found = np.random.default_rng(seed), []
    about = {"language": "mine", "model": "m", "reference": reference, "side": side}
    names = {"recited": 1.0, "reference >= 0.9": mostly, "reference >= target": as_well}
    for name, probability in names.items():
        holds = pd.Series(chance.random(n) < probability)
        ends = dict(
            zip(("value", "lower", "upper"), share(holds, holds.index.to_series()), strict=True)
        )
        found.append({**about, "n_recited": n, "statistic": name, **ends})
    return found


def judged(table):
    found = judge_all(CLAIMS, {EXPLAINED.name: pd.DataFrame(table)})
    return found.set_index("claim")


def test_verdicts_where_context_explains():
    found = judged([*rows(0.7, 0.6), *rows(0.9, 0.9, 12, "unseen")])
    assert found["verdict"].tolist() == ["agrees", "agrees"]
    assert "of 12 recited strings never trained on" in found["note"].iloc[0]
    assert "m, reference other" in found["note"].iloc[0]
    assert set(found["evidence"]) == {"reference model"}


def test_verdicts_where_strings_are_known_by_heart():
    found = judged(rows(0.1, 0.05))
    assert found["verdict"].tolist() == ["disagrees", "disagrees"]


def test_few_strings_cannot_tell():
    found = judged(rows(0.55, 0.4, n=10))
    assert found["verdict"].tolist() == ["cannot tell", "cannot tell"]


def test_nothing_is_recited():
    table = [{**row, "n_recited": 0, "value": np.nan} for row in rows(0.5, 0.5)]
    found = judged(table)
    assert found["verdict"].tolist() == ["cannot tell", "cannot tell"]
    assert "no string is recited" in found["note"].iloc[0]


def test_every_reference_has_a_row():
    found = judged([*rows(0.9, 0.9, reference="a"), *rows(0.1, 0.1, reference="b")])
    assert found.loc[MOSTLY, "verdict"].tolist() == ["agrees", "disagrees"]
    assert found.loc[AS_WELL, "verdict"].tolist() == ["agrees", "disagrees"]


@pytest.mark.parametrize("n", [10, 50, 300])
@pytest.mark.parametrize(("claim", "truth"), [(MOSTLY, 0.5), (AS_WELL, 1 / 3)])
def test_error_rates(claim, truth, n):
    """With a truth on the bound, each verdict is wrong with a probability of 4 % at most, exact."""
    wrong = dict.fromkeys(("agrees", "disagrees", "cannot tell"), 0.0)
    for number, probability in enumerate(binom.pmf(np.arange(n + 1), n, truth)):
        found = share(pd.Series(np.arange(n) < number), pd.Series(np.arange(n)))
        about = {"language": "mine", "model": "m", "reference": "r", "side": "trained"}
        ends = dict(zip(("value", "lower", "upper"), found, strict=True))
        statistics = ("reference >= 0.9", "reference >= target")
        table = [{**about, "n_recited": n, "statistic": one, **ends} for one in statistics]
        if probability > 1e-6:
            wrong[judged(table).loc[claim, "verdict"]] += probability
    assert 0.003 < wrong["agrees"] < 0.04
    assert 0.003 < wrong["disagrees"] < 0.04
