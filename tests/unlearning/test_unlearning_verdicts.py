"""The numbers of a verdict: told from retraining, what is closed beyond placebos, and harm."""

import numpy as np
import pandas as pd
import pytest

from helpers.unlearning_claim_worlds import problem
from palimpsest.unlearning.evaluate.verdicts import told_from_retraining, verdict


def rows_of(*p_values):
    rows = [
        problem(seed) | {"p_value": p, "joint_p": joint} for seed, (p, joint) in enumerate(p_values)
    ]
    return pd.DataFrame(rows)


def gaps_of(*shares, placebo=0.0, retained=None, error=0.05):
    controls = {"placebo": placebo} | ({} if retained is None else {"retained": retained})
    rows = [
        {
            **problem(seed),
            "string_role": kind,
            "share": value,
            "lower": value - 1.96 * error,
            "upper": value + 1.96 * error,
        }
        for seed, share in enumerate(shares)
        for kind, value in {"forget": share, **controls}.items()
    ]
    columns = ["string_role", "share", "lower", "upper", *problem(0)]
    return pd.DataFrame(rows, columns=columns)


def scores_of(retain=0.8, test=0.7):
    return pd.DataFrame(
        {
            "retain_probability": [retain],
            "retain_probability_retrained": [0.8],
            "test_probability": [test],
            "test_probability_retrained": [0.7],
        }
    )


def found(tests, gaps, scores=None, retrain=None):
    retrain = gaps_of() if retrain is None else retrain
    return verdict(tests, gaps, scores_of() if scores is None else scores, retrain)


@pytest.mark.parametrize(
    ("p_values", "told"),
    [
        ((0.0025, 0.5), 1),
        ((0.5, 0.0025), 1),
        ((0.03, 0.04), 0),  # Holm: twice the smaller one
        ((0.5, 0.5), 0),
    ],
)
def test_two_tests_of_one_problem(p_values, told):
    assert found(rows_of(p_values), gaps_of(0.5)).n_told == told


def test_what_is_closed_beyond_placebos():
    one = found(rows_of((0.5, 0.5)), gaps_of(0.48, placebo=0.45))
    assert one.closed == pytest.approx((0.48, 0.382, 0.578))
    assert one.beyond.lower < 0 < one.beyond.mean
    several = found(rows_of(*[(0.5, 0.5)] * 3), gaps_of(0.4, 0.5, 0.6, placebo=0.1))
    assert several.closed == pytest.approx((0.5, 0.252, 0.748), abs=0.001)
    assert several.beyond == pytest.approx((0.4, 0.152, 0.648), abs=0.001)


def test_raising_the_loss_of_all_training_strings_is_no_forgetting():
    """Placebos stay as they are, because no model knew them; retained strings are lost, too."""
    tests = rows_of(*[(0.5, 0.5)] * 3)
    method = found(tests, gaps_of(0.4, 0.5, 0.6, placebo=0.1, retained=0.5))
    assert method.beyond == pytest.approx((0.0, -0.248, 0.248), abs=0.001)
    one = found(tests.head(1), gaps_of(0.5, placebo=0.1, retained=0.48))
    assert one.beyond.mean == pytest.approx(0.02)
    assert one.beyond.lower < 0


def test_damage_to_retained_strings_is_measured_from_that_of_retraining():
    tests = rows_of(*[(0.5, 0.5)] * 3)
    retrain = gaps_of(1.0, 1.0, 1.0, retained=0.1)
    method = found(tests, gaps_of(0.4, 0.5, 0.6, retained=0.3), retrain=retrain)
    assert method.damage_to_retained == pytest.approx((0.2, 0.2, 0.2))
    assert np.isnan(found(tests, gaps_of(0.4, 0.5, 0.6)).damage_to_retained.mean)


def test_damage_is_measured_from_the_placebos_of_retraining():
    tests, gaps = rows_of(*[(0.5, 0.5)] * 3), gaps_of(0.4, 0.5, 0.6, placebo=0.3)
    retrain = gaps_of(1.0, 1.0, 1.0, placebo=0.2)
    assert found(tests, gaps, retrain=retrain).damage == pytest.approx((0.1, 0.1, 0.1))
    assert found(tests, gaps).damage == pytest.approx((0.3, 0.3, 0.3)), "unknown: 0"
    assert found(tests, gaps, retrain=retrain.tail(4)).damage.mean == pytest.approx(0.1)
    one = found(tests.head(1), gaps.head(2), retrain=retrain.head(2)).damage
    reach = 1.96 * np.hypot(0.05, 0.05)
    assert one == pytest.approx((0.1, 0.1 - reach, 0.1 + reach))


def test_harm_is_named():
    tests, gaps = rows_of((0.5, 0.5)), gaps_of(0.5)
    assert found(tests, gaps, scores_of(0.72)).lost == ("retained",)
    assert not found(tests, gaps, scores_of(0.77, 0.68)).lost


def test_problems_are_counted():
    tests = rows_of((0.0025, 0.5), (0.5, 0.5), (0.0025, 0.0025))
    counted = found(tests, gaps_of(0.4, 0.5, 0.6))
    assert (counted.n_told, counted.n_problems) == (2, 3)
    none = rows_of((0.02, 0.5), (0.5, 0.5), (0.5, 0.5))
    assert found(none, gaps_of(0.4, 0.5, 0.6)).n_told == 0


def test_nothing_tested():
    nothing = found(rows_of((0.5, 0.5)).head(0), gaps_of(0.5).head(0), scores_of())
    assert nothing.n_problems == 0
    assert np.isnan([*nothing.closed, *nothing.beyond, *nothing.damage]).all()


@pytest.mark.parametrize("n_problems", [1, 3, 6])
@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_a_method_like_retraining_is_rarely_told(n_problems, correlation):
    """Any false "told", in any of the problems, in at most 6 % of the studies."""
    from scipy.special import ndtr

    chance = np.random.default_rng(n_problems)
    wrong = 0
    for _ in range(2000):
        shared, *own = chance.standard_normal((3, n_problems))
        p_values = ndtr(np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * np.array(own)).T
        wrong += told_from_retraining(rows_of(*p_values)).any()
    assert wrong <= 120
