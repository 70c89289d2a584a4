"""Claims on audits: worlds in which each is true, and false."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from palimpsest.audit.claims import CLAIMS
from palimpsest.audit.kinds import EXPLAINED, OF_ALL, OF_RECITED, PRIVATE
from palimpsest.audit.references import share
from palimpsest.claims import judge_all

FEW_ARE_PRIVATE, MOSTLY, AS_WELL = (claim.claim for claim in CLAIMS)


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
    found = judge_all(CLAIMS[1:], {EXPLAINED.name: pd.DataFrame(table)})
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


def private(n_private, n, side="trained", model="m"):
    """The table of a target that recites `n` of twice as many records; half of all are private."""
    about = {"language": "mine", "model": model, "side": side, "n_records": 2 * n, "n_recited": n}
    found = []
    for name, k, of in ((OF_ALL, n, 2 * n), (OF_RECITED, n_private, n)):
        ends = share(pd.Series(np.arange(of) < k), pd.Series(np.arange(of)))
        ends = dict(zip(("value", "lower", "upper"), ends, strict=True))
        found.append({**about, "statistic": name, **ends})
    return found


def judged_private(table):
    found = judge_all(CLAIMS, {PRIVATE.name: pd.DataFrame(table)})
    return found[found["claim"] == FEW_ARE_PRIVATE]


@pytest.mark.parametrize(
    ("n_private", "n", "verdict"),
    [(4, 50, "agrees"), (45, 50, "disagrees"), (22, 50, "cannot tell"), (0, 2, "cannot tell")],
)
def test_verdicts_on_private_information(n_private, n, verdict):
    (row,) = judged_private(private(n_private, n)).itertuples()
    assert row.verdict == verdict
    assert "of all 100 strings: 0.50" in row.note or n == 2
    assert "names and postal addresses are not looked for" in row.note
    assert row.evidence == "constant"


def test_private_information_of_each_target_beside_its_placebo():
    table = [*private(45, 50), *private(3, 30, "unseen"), *private(2, 40, model="other")]
    found = judged_private(table)
    assert found["verdict"].tolist() == ["disagrees", "agrees"]
    assert "of 30 recited strings never trained on: 0.10" in found["note"].iloc[0]
    nothing = [{**row, "n_recited": 0, "value": np.nan} for row in private(0, 5)]
    assert "no string is recited" in judged_private(nothing)["note"].iloc[0]


@pytest.mark.parametrize("n", [10, 50, 300])
def test_error_rates_of_private_shares(n):
    """With a truth on the bound, each verdict is wrong with a probability of 4 % at most, exact."""
    wrong = dict.fromkeys(("agrees", "disagrees", "cannot tell"), 0.0)
    for number, probability in enumerate(binom.pmf(np.arange(n + 1), n, 0.5)):
        if probability > 1e-6:
            wrong[judged_private(private(number, n))["verdict"].iloc[0]] += probability
    assert 0.003 < wrong["agrees"] < 0.04
    assert 0.003 < wrong["disagrees"] < 0.04
