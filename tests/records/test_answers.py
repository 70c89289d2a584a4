"""Answers about records: verdicts by definition, and placebos with a known truth."""

from dataclasses import replace
from math import ceil, floor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from helpers.experiments import message
from palimpsest import memorisation, records
from palimpsest.errors import Notice
from palimpsest.records.intervals import (
    fewest_unseen,
    newcombe,
    quantile_levels,
    share_below_quantile,
)
from palimpsest.records.verdicts import _of_unseen, _rank, corrected, placebo_p_values


def simulated(rng, n=60, n_checkpoints=4, learned=0.0) -> records.Losses:
    """Half of the records were trained on, and learned by so many nats."""
    fall = np.linspace(0, 1, n_checkpoints)[:, None]
    level = rng.uniform(1, 3, n) * (1 - 0.2 * fall)
    trained = np.arange(n) < n / 2
    loss, without = level + 0.1 * rng.standard_normal((2, n_checkpoints, n))
    ids = np.array([f"r{i}" for i in range(n)], dtype=object)
    loss = np.maximum(loss - learned * fall * trained, 0.01)
    return records.Losses(ids, np.arange(n_checkpoints), loss, without, None, trained, ids)


def by_measure(found: records.Answers, measure: str) -> pd.Series:
    return found.placebo.set_index("measure").loc[measure]


def test_the_measures_are_those_of_strings():
    """Scores and thresholds are those of the functions on arrays, at the last checkpoint."""
    given = simulated(np.random.default_rng(0), learned=0.5)
    table = records.answers(given, loss_threshold=1.5).table.set_index(["measure", "id"])
    expected = {
        "recollection": memorisation.recollection(given.loss, 1.5),
        "counterfactual": memorisation.counterfactual(given.loss, given.without),
        "contextual": memorisation.contextual(given.loss, given.without),
    }
    for measure, found in expected.items():
        own = table.loc[measure].loc[given.ids]
        np.testing.assert_array_equal(own["score"], found.score[-1])
        np.testing.assert_array_equal(own["memorised"], found.memorised[-1])
        np.testing.assert_array_equal(own["threshold"], found.threshold[-1])


def test_what_was_learned_is_told_from_what_was_not():
    """Where nothing was learned, half of all records are below the loss of another training."""
    rng = np.random.default_rng(1)
    learned = records.answers(simulated(rng, n=400, learned=0.8))
    of = by_measure(learned, "counterfactual")
    assert of["share_trained"] > 0.95
    assert 0.2 < of["share_unseen"] < 0.6
    assert of["lower"] > 0.3
    nothing = records.answers(simulated(rng, n=400))
    for _, of in nothing.placebo.iterrows():
        assert of["lower"] <= 0 <= of["upper"], of["measure"]


def test_a_reference_is_another_threshold_of_the_record():
    given = simulated(np.random.default_rng(2), learned=0.5)
    found = records.answers(replace(given, reference=given.without)).table.set_index("measure")
    same = ["id", "loss", "threshold", "score", "memorised", "p_value"]
    pd.testing.assert_frame_equal(
        found.loc["reference", same].reset_index(drop=True),
        found.loc["counterfactual", same].reset_index(drop=True),
    )


@pytest.mark.parametrize("is_trained", [True, False])
def test_without_a_placebo_the_false_alarms_are_unknown(is_trained):
    """It is said, and no number takes their place; there is no loss attack either."""
    trained = np.ones(60, bool) if is_trained else None
    given = replace(simulated(np.random.default_rng(3)), trained=trained)
    with pytest.warns(Notice, match="the share of false alarms is unknown; add some"):
        found = records.answers(given)
    assert found.placebo["measure"].tolist() == ["recollection", "counterfactual", "contextual"]
    assert found.placebo[["share_unseen", "difference", "lower", "upper"]].isna().all(axis=None)
    assert found.table["p_value"].isna().all()
    assert found.placebo["share_trained"].notna().all()


def test_a_threshold_may_be_left_out():
    given = simulated(np.random.default_rng(4))
    found = records.answers(given, loss_threshold=None)
    assert "recollection" not in set(found.table["measure"])


def test_losses_alone_need_a_threshold():
    given = replace(simulated(np.random.default_rng(8)), without=None, trained=None)
    assert message(lambda: records.answers(given, loss_threshold=None)) == (
        "losses: nothing to compare the losses with; give a loss_threshold, or one of the columns "
        "loss_without, loss_reference and trained"
    )


@given(
    loss=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5]), min_size=2, max_size=30),
    n_trained=st.integers(1, 29),
    share=st.floats(0.01, 0.99),
)
def test_a_threshold_is_a_low_loss_of_other_unseen_records(loss, n_trained, share):
    """By the definition: the losses of the others, sorted, and one rank for both sides."""
    loss = np.array(loss)
    trained = np.arange(len(loss)) < min(n_trained, len(loss) - 1)
    found = _of_unseen(loss, trained, share)
    for place in range(len(loss)):
        others = np.sort([v for i, v in enumerate(loss) if not trained[i] and i != place])
        rank = int(np.floor(share * (np.count_nonzero(~trained) + 1)))
        assert found[place] == (others[rank - 1] if 0 < rank <= len(others) else 0.0)


@pytest.mark.parametrize("n", [10, 60, 200])
def test_the_loss_attack_has_few_false_alarms(n):
    """On average over studies in which nothing was learned, for both kinds of records."""
    rng, shares = np.random.default_rng(n), []
    for _ in range(200):
        given = simulated(rng, n=n, n_checkpoints=1)
        shares.append(by_measure(records.answers(given, false_alarms=0.1), "loss attack"))
    found = pd.DataFrame(shares)[["share_trained", "share_unseen"]].astype(float)
    error = found.std() / np.sqrt(len(found))
    assert (found.mean() < 0.1 + 3 * error + 1e-9).all()
    if n > 20:
        assert (found.mean() > 0.05).all()


@pytest.mark.parametrize("measure", ["recollection", "counterfactual", "loss attack"])
def test_p_values_are_seldom_small_for_what_was_not_learned(measure):
    """At most a share x of them is below x."""
    rng, values = np.random.default_rng(5), []
    for _ in range(100):
        found = records.answers(simulated(rng, n=78, n_checkpoints=2))
        table = found.table[found.table["measure"] == measure]
        values.append(table.loc[table["trained"].astype(bool), "p_value"])
    values = np.concatenate(values)
    for level in (0.05, 0.1, 0.5):
        assert (values <= level).mean() < level + 3 * np.sqrt(level / len(values))


def test_equal_records_have_equal_p_values():
    given = simulated(np.random.default_rng(6), n=20)
    given.loss[:, 1] = given.loss[:, 0]
    found = records.answers(given).table
    own = found[found["measure"] == "recollection"].set_index("id")["p_value"]
    assert own["r0"] == own["r1"]


# The interval


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # Newcombe (1998), table II, method 10
        ((56, 70, 48, 80), (0.0524, 0.3339)),
        ((9, 10, 3, 10), (0.1705, 0.8090)),
        ((6, 7, 2, 7), (0.0582, 0.8062)),
        ((5, 56, 0, 29), (-0.0381, 0.1926)),
        ((0, 10, 0, 20), (-0.1611, 0.2775)),
        ((10, 10, 0, 10), (0.6075, 1.0)),
    ],
)
def test_the_interval_is_the_published_one(counts, expected):
    a, m, b, n = counts
    assert newcombe(a / m, b / n, m, n) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize(("share", "other"), [(0.5, 0.5), (0.9, 0.3), (0.1, 0.02)])
def test_the_interval_covers_the_truth(share, other, together):
    """Also if the records of a group are all alike; at most 6 % of the intervals do not."""
    rng, n_groups, missed = np.random.default_rng(7), 40, 0
    for _ in range(500):
        sides = [rng.random(n_groups) < p for p in (share, other)]
        groups = np.arange(2 * n_groups).repeat(together)
        loss = np.where(np.concatenate(sides), 0.1, 1.0).repeat(together)[None]
        ids, trained = np.arange(len(groups)), groups < n_groups
        given = records.Losses(ids, np.zeros(1), loss, None, None, trained, groups)
        found = by_measure(records.answers(given), "recollection")
        missed += not found["lower"] <= share - other <= found["upper"]
    assert missed <= 0.06 * 500 + 2 * np.sqrt(500 * 0.06)


@given(share=st.floats(0, 1), other=st.floats(0, 1), n=st.integers(1, 500), m=st.integers(1, 500))
def test_the_interval_holds_the_difference_and_turns_with_it(share, other, n, m):
    lower, upper = newcombe(share, other, n, m)
    assert -1 - 1e-9 <= lower <= share - other + 1e-9
    assert share - other - 1e-9 <= upper <= 1 + 1e-9
    assert newcombe(other, share, m, n) == pytest.approx((-upper, -lower))


# The interval of a share below a quantile of the placebo


@given(n=st.integers(2, 300), level=st.floats(0.01, 0.99))
def test_the_levels_of_a_quantile_are_between_whole_ranks(n, level):
    """The order statistic of a whole rank is below the quantile as often as the binomial says."""
    for end, confidence in zip(quantile_levels(level, n), (0.975, 0.025), strict=True):
        rank = end * (n + 1)
        below, above = (binom.sf(whole - 1, n, level) for whole in (floor(rank), ceil(rank)))
        assert above - 1e-6 <= confidence <= below + 1e-6


def learned(rng, n_groups, together, shift) -> records.Losses:
    """Groups of equal losses, lower by a shift where they were trained on."""
    level = rng.normal(10, 1, 2 * n_groups) - shift * (np.arange(2 * n_groups) < n_groups)
    groups = np.arange(2 * n_groups).repeat(together)
    return records.Losses(
        np.arange(len(groups)),
        np.zeros(1),
        level.repeat(together)[None],
        None,
        None,
        groups < n_groups,
        groups,
    )


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("shift", [0, 1, 2])
def test_a_quantile_of_the_placebo_is_no_constant(shift, together):
    """The interval of what is detected, and of the loss attack's difference, holds the truth.

    With 100 groups a side. With the quantile taken as given, a fifth of them does not, for a shift
    of 1.
    """
    rng, n_studies, missed, missed_attack = np.random.default_rng(9), 200, 0, 0
    n = 100 * together
    level = np.floor(0.05 * (n + 1)) / (n + 1)
    truth = norm.cdf(norm.ppf(level) + shift)
    for _ in range(n_studies):
        given = learned(rng, 100, together, shift)
        found = by_measure(records.answers(given, loss_threshold=None), "loss attack")
        assert found["detected"] == found["share_trained"]
        missed += not found["detected_lower"] <= truth <= found["detected_upper"]
        missed_attack += not found["lower"] <= truth - found["share_unseen"] <= found["upper"]
    most = 0.05 * n_studies + 2 * np.sqrt(n_studies * 0.05)
    assert missed <= most
    assert missed_attack <= most


def test_what_few_records_of_a_placebo_can_tell():
    """Nothing is below all of 19 for certain: the 5 % quantile may be lower than all of them."""
    given = learned(np.random.default_rng(0), 19, 1, 100)
    found = by_measure(records.answers(given, loss_threshold=None), "loss attack")
    assert found["detected"] == found["detected_upper"] == 1
    assert 0 < found["detected_lower"] < 0.3
    too_few = learned(np.random.default_rng(0), 18, 1, 100)
    found = by_measure(records.answers(too_few, loss_threshold=None), "loss attack")
    unknown = ["detected", "detected_lower", "detected_upper", "detected_unseen", "lower", "upper"]
    assert found[unknown].isna().all()
    assert found["difference"] == 0


@given(
    values=st.lists(st.sampled_from([0.0, 1.0, 2.0, np.inf]), min_size=1, max_size=20),
    others=st.lists(st.sampled_from([0.0, 1.0, 2.0, np.inf]), min_size=1, max_size=20),
    share=st.floats(0, 1),
)
def test_the_interval_holds_the_share_below_the_quantile(values, others, share):
    """With ties and infinite values, too."""
    rank = 1 + int(share * (len(others) - 1))
    found = share_below_quantile(np.array(values), np.array(others), rank, len(values), len(others))
    assert found.mean == np.mean([value < sorted(others)[rank - 1] for value in values])
    assert 0 <= found.lower <= found.mean <= found.upper <= 1


def test_both_sides_of_the_loss_attack_have_one_level():
    """Where all records are alike, the difference of the shares is 0 on average.

    With 19 unseen records, a trained one is found with a probability of 1/20 and an unseen one with
    1/19: the lowest of 19 losses is below that of all others.
    """
    chance, differences = np.random.default_rng(0), []
    for _ in range(400):
        trained = np.arange(119) < 100
        threshold = _of_unseen(loss := chance.exponential(1, 119), trained, 0.05)
        below = loss < threshold
        assert below[~trained].mean() == 1 / 19
        differences.append(below[trained].mean() - below[~trained].mean())
    assert np.mean(differences) == pytest.approx(1 / 20 - 1 / 19, abs=0.01)


@given(st.floats(0.001, 0.999))
def test_the_fewest_unseen_records_are_those_that_a_low_p_value_needs(false_alarms):
    n = fewest_unseen(false_alarms)
    assert _rank(n, false_alarms) >= 1
    assert n == 0 or _rank(n - 1, false_alarms) == 0


@pytest.mark.parametrize("n_unseen", [18, 19])
def test_too_small_a_placebo_is_said(n_unseen, recwarn):
    """With 19 records that are not trained on, a p-value of 0.05 is possible; with 18 it is not."""
    given = simulated(np.random.default_rng(4), learned=2.0)
    given = replace(given, trained=np.arange(60) >= n_unseen, loss=given.loss[:, ::-1])
    found = records.answers(given, loss_threshold=None)
    said = [str(warning.message) for warning in recwarn if warning.category is Notice]
    few = "losses: 18 records never trained on; with fewer than 19, no p-value can be 0.05 or less"
    assert said == ([f"{few}; give more of them"] if n_unseen == 18 else [])
    assert (found.table["p_value"].min() <= 0.05) == (n_unseen == 19)


def test_the_default_threshold_is_for_nats_alone(recwarn):
    """In bits per byte, 0.2 would call most records recollected that a model predicts well."""
    given = simulated(np.random.default_rng(4), learned=2.0)
    given = replace(given, loss=given.loss / 20, unit="bits per byte")
    of_default = records.answers(given)
    (said,) = [str(one.message) for one in recwarn if "recollection" in str(one.message)]
    assert "the losses are in bits per byte, and the default of loss_threshold, 0.2, is in" in said
    assert "recollection" not in {*of_default.table["measure"]}
    of_own = records.answers(given, loss_threshold=0.2)
    assert of_own.placebo.set_index("measure")["share_trained"]["recollection"] == 1
    for unit in (None, "nats per token"):
        measures = {*records.answers(replace(given, unit=unit)).table["measure"]}
        assert "recollection" in measures


def test_a_small_p_value_does_not_need_the_verdict():
    """The constant threshold is not crossed, and still the loss is lower than the placebo's."""
    loss = np.concatenate([[1.0], np.linspace(2, 3, 20)])
    frame = pd.DataFrame({"id": range(21), "checkpoint": 0, "loss": loss})
    given = records.to_losses(frame.assign(trained=frame["id"] == 0))
    row = records.answers(given).table.query("measure == 'recollection'").iloc[0]
    assert (row["memorised"], row["p_value"]) == (False, 1 / 21)


# One measure, corrected for the number of records


def test_p_values_are_corrected_for_the_number_of_records_trained_on():
    """By the definition: the lowest of p m / rank over the ranks from one's own on."""
    found = records.answers(simulated(np.random.default_rng(5), n=120, learned=0.2)).table
    for _, rows in found.groupby("measure"):
        own = rows[rows["trained"].astype(bool)].sort_values("p_value")
        scaled = own["p_value"] * len(own) / np.arange(1, len(own) + 1)
        expected = scaled[::-1].cummin()[::-1].clip(upper=1)
        np.testing.assert_allclose(own["p_corrected"], expected)
        assert rows.loc[~rows["trained"].astype(bool), "p_corrected"].isna().all()


def test_few_records_are_found_falsely_and_those_that_were_learned_are_found():
    draws = np.random.default_rng(0)
    trained = np.arange(240) < 40
    is_learned = np.arange(240) < 20
    n_wrong, false_shares = 0, []
    for _ in range(400):
        distance = draws.normal(size=240)
        n_wrong += (corrected(placebo_p_values(distance, trained), trained) <= 0.05).any()
        learned = distance - 6 * is_learned
        is_found = corrected(placebo_p_values(learned, trained), trained) <= 0.05
        assert is_found[is_learned].all()
        false_shares.append((is_found & ~is_learned).sum() / is_found.sum())
    assert n_wrong <= binom.ppf(0.999, 400, 0.05)
    assert np.mean(false_shares) <= 0.05


def test_retraining_takes_no_kind_for_memorisation_and_a_loss_attack_does():
    """Nothing was learned; the records trained on are easier for every model."""
    given = simulated(np.random.default_rng(6), n=400)
    easier = np.where(given.trained, 0.4, 1.0)
    given = replace(given, loss=given.loss * easier, without=given.without * easier)
    found = records.answers(given).placebo.set_index("measure")["detected"]
    assert found["loss attack"] > 0.4
    assert found["contextual"] < 0.15
    learned = simulated(np.random.default_rng(6), n=400, learned=1.0)
    assert records.answers(learned).placebo.set_index("measure").loc["contextual", "detected"] > 0.8
