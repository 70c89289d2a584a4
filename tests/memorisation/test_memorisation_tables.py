"""From traces and datasets to tables, on runs small enough to work out by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.memorisation_runs import EPOCHS, LOSS, RULE, STRINGS, curve, dataset, trace
from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.memorisation import memorisation_tables, target_tables
from palimpsest.memorisation.studies import STUDIES
from palimpsest.sections import KINDS


@pytest.fixture(scope="module")
def made():
    return memorisation_tables([trace(0), trace(1)], [dataset(0), dataset(1)], *RULE, np.inf)


def test_every_table_is_of_its_kind(made, tmp_path):
    for kind, frame in made.items():
        tables.write(tmp_path / f"{kind}.parquet", frame, KINDS[kind])
        again = tables.read(tmp_path / f"{kind}.parquet", KINDS[kind])
        pd.testing.assert_frame_equal(again, frame[again.columns], check_dtype=False)


@pytest.mark.parametrize(
    ("measure", "starts"),
    [
        ("recollection", (4, np.nan)),
        ("recollection_accuracy", (4, np.nan)),
        ("counterfactual", (4, 6)),
        ("contextual", (4, 6)),
        ("bayes", (4, np.nan)),
    ],
)
def test_starts_are_epochs_not_indices(made, measure, starts):
    np.testing.assert_array_equal(curve(made["starts"], measure, "start"), starts)


def test_stand_ins_are_unseen_test_strings(made):
    """c stands in for a, and d for b; h would be as near to a but is held out."""
    np.testing.assert_allclose(curve(made["starts"], "contextual", "stand_in_gap"), [0, 0])
    assert np.isnan(curve(made["starts"], "recollection", "stand_in_gap")).all()
    threshold = curve(made["scores"], "counterfactual", "threshold").reshape(4, 2)
    np.testing.assert_allclose(threshold.T, [LOSS["c"], LOSS["d"]])


def test_scores_by_hand(made):
    contextual = curve(made["scores"], "contextual", "score").reshape(4, 2)
    np.testing.assert_allclose(contextual, [[0, 0], [0, 0], [0.8, 0], [0.8, 0.2]])
    counterfactual = curve(made["scores"], "counterfactual", "score").reshape(4, 2)
    np.testing.assert_allclose(counterfactual, [[0, 0], [0, 0], [0.8, 0], [8 / 9, 3 / 7]])
    np.testing.assert_allclose(curve(made["starts"], "contextual", "score_at_optimum"), [0.8, 0])
    np.testing.assert_allclose(curve(made["starts"], "contextual", "score_at_end"), [0.8, 0.2])
    np.testing.assert_array_equal(curve(made["scores"], "bayes", "epoch"), np.repeat(EPOCHS, 2))


def test_dataset_counts_copies_and_distinct_strings(made):
    expected = {
        "share_memorised": (0, 0, 0.75, 1),
        "mean_score": (0, 0, 0.6, 0.65),
        "share_memorised_distinct": (0, 0, 0.5, 1),
        "mean_score_distinct": (0, 0, 0.4, 0.5),
        "share_memorised_unseen": (0, 0, 0, 0),
        "band_first": (4, 4, 4, 4),
        "band_last": (6, 6, 6, 6),
        "assumption_broken": (0.25, 0.25, 0.25, 0.25),
    }
    for column, values in expected.items():
        np.testing.assert_allclose(
            curve(made["training_set"], "contextual", column), values, err_msg=column
        )
    assert np.isnan(curve(made["training_set"], "recollection", "assumption_broken")).all()
    np.testing.assert_array_equal(curve(made["training_set"], "recollection", "band_last"), [4] * 4)


def test_false_alarms_by_hand():
    """c and d stand in for each other; neither was trained on, h is held out and not counted.

    The Bayes-optimal loss of d is 0.1 above that of c: c has the loss of d minus 0.1, and d has the
    loss of c plus 0.1.
    """
    loss = {**LOSS, "a": (2.0, 1.0, 1.0, 1.0), "d": (2.0, 1.0, 0.4, 0.25)}
    table = memorisation_tables([trace(loss=loss)], [dataset()], *RULE, np.inf)["training_set"]
    expected = {
        # d is below (2.1, 0.6, 0.6, 1) from epoch 4 on, c below (1.9, 0.9, 0.3, 0.15) at epoch 2.
        "counterfactual": ((0, 0, 0.5, 0.5), (0, 0, 1 / 6, 0.75 / 2)),
        # d is below the lowest of these, 0.6; the lowest for c, 0.15, is never undercut.
        "contextual": ((0, 0, 0.5, 0.5), (0, 0, 1 / 6, 0.35 / 0.6 / 2)),
        # d is below its Bayes-optimal loss, 0.3, at the end.
        "bayes": ((0, 0, 0, 0.5), (0, 0, 0, 0.05 / 0.3 / 2)),
        "recollection": ((0, 0, 0, 0), (0, 0, 0, 0)),
        "recollection_accuracy": ((0, 0, 0, 0), (0, 0, 0, 0)),
    }
    assert set(table["measure"]) >= set(expected)
    for measure, (fraction, weighted) in expected.items():
        np.testing.assert_allclose(curve(table, measure, "share_memorised_unseen"), fraction)
        np.testing.assert_allclose(curve(table, measure, "mean_score_unseen"), weighted)
    # Before epoch 2 d is below, and at epoch 2 c, but neither stays there: it is not memorised.
    below = curve(table, "counterfactual", "below_unseen")
    np.testing.assert_allclose(below, (0.5, 0.5, 0.5, 0.5))
    depth = curve(table, "counterfactual", "margin_unseen")
    np.testing.assert_allclose(depth, (0.1 / 2.1 / 2, 0.4 / 0.9 / 2, 1 / 6, 0.75 / 2))
    np.testing.assert_allclose(curve(table, "bayes", "below_unseen"), (0, 0, 0, 0.5))


def test_measures_are_compared_on_the_strings_with_stand_ins():
    """b has none, since d is too far away; by recollection, b counts where all strings do."""
    strings = STRINGS.assign(optimal_loss=[0.2, 0.3, 0.2, 0.33, 0.2])
    strings = pd.concat([strings, strings[2:3].assign(string_id="e")], ignore_index=True)
    loss = {**LOSS, "b": (2.0, 0.1, 0.1, 0.1), "d": (2.0, 0.1, 0.1, 0.1), "e": LOSS["c"]}
    tokens = pd.concat([STRINGS, STRINGS[2:3].assign(string_id="e")])
    made = trace(loss=LOSS)
    names = np.array(sorted(loss), dtype=object)
    n_tokens = tokens.set_index("string_id").loc[names, "n_tokens"].to_numpy()
    curves = np.array([loss[name] for name in names]).T
    made = replace(
        made,
        string_ids=names,
        n_tokens=n_tokens,
        nll=curves * n_tokens,
        n_correct=0 * curves.astype(int),
        rank_sum=n_tokens + 0 * curves.astype(int),
    )
    table = memorisation_tables([made], [dataset(strings=strings)], *RULE)["training_set"]
    np.testing.assert_allclose(curve(table, "recollection", "below_distinct"), [0, 0.5, 1, 1])
    np.testing.assert_allclose(curve(table, "recollection", "below_covered"), [0, 0, 1, 1])
    # c and e stand in for each other; d, which is recollected, has no stand-in.
    np.testing.assert_allclose(curve(table, "recollection", "below_unseen"), [0] + [1 / 3] * 3)
    np.testing.assert_array_equal(curve(table, "recollection", "below_unseen_covered"), [0] * 4)
    np.testing.assert_array_equal(
        curve(table, "contextual", "below_covered"), curve(table, "contextual", "below_distinct")
    )


def test_one_unseen_string_has_no_other_to_stand_in(tmp_path):
    made = memorisation_tables(
        [trace()], [dataset(strings=STRINGS[STRINGS["string_id"] != "d"])], *RULE
    )
    table = made["training_set"]
    for measure in ("counterfactual", "contextual"):
        assert np.isnan(curve(table, measure, "share_memorised_unseen")).all()
        assert np.isnan(curve(table, measure, "mean_score_unseen")).all()
    np.testing.assert_array_equal(curve(table, "bayes", "share_memorised_unseen"), [0] * 4)
    tables.write(tmp_path / "training_set.parquet", table, KINDS["training_set"])
    tables.write(tmp_path / "averages.parquet", made["averages"], KINDS["averages"])


def test_a_string_without_stand_ins_is_left_out_and_counted(tmp_path):
    """The Bayes-optimal loss of d is 0.03 per token from that of b, so 0.6 nats over 20 tokens."""
    strings = STRINGS.assign(optimal_loss=[0.2, 0.3, 0.2, 0.33, 0.2])
    made = memorisation_tables([trace()], [dataset(strings=strings)], *RULE)
    for name, frame in made.items():
        tables.write(tmp_path / f"{name}.parquet", frame, KINDS[name])
    for measure in ("counterfactual", "contextual"):
        assert np.isnan(curve(made["starts"], measure, "start")).tolist() == [False, True]
        assert np.isnan(curve(made["starts"], measure, "score_at_end")).tolist() == [False, True]
        assert np.isnan(curve(made["scores"], measure, "score")).reshape(4, 2).sum(0).tolist() == [
            0,
            4,
        ]
        # Three copies of a, one of b: the shares are about a alone.
        np.testing.assert_array_equal(curve(made["training_set"], measure, "coverage"), [0.75] * 4)
        for column in ("share_memorised", "share_memorised_distinct"):
            np.testing.assert_array_equal(
                curve(made["training_set"], measure, column), [0, 0, 1, 1]
            )
    np.testing.assert_array_equal(curve(made["training_set"], "bayes", "coverage"), [1] * 4)
    frame = STUDIES["frequency"].table(
        starts=made["starts"], scores=made["scores"], learning=made["learning"], share=0.5
    )
    groups = frame.groupby(["measure", "group"]).size()
    assert groups["bayes"].to_dict() == {"bottom": 4, "top": 4}
    contextual = frame[frame["measure"] == "contextual"].groupby("group")
    assert contextual["n_strings"].first().to_dict() == {"bottom": 0, "top": 1}
    assert contextual["share_memorised_distinct"].count().to_dict() == {"bottom": 0, "top": 4}
    # Neither has stand-ins that have stand-ins of their own.
    assert contextual["coverage"].max().to_dict() == {"bottom": 0, "top": 0}
    assert frame["below_matched"].isna().all()
    wide = memorisation_tables([trace()], [dataset(strings=strings)], *RULE, 0.7)
    np.testing.assert_array_equal(curve(wide["training_set"], "contextual", "coverage"), [1] * 4)


def test_a_perfect_learner_is_a_placebo():
    """Only recollection calls it memorising: the best loss of a, 0.15, is below its threshold."""
    strings = STRINGS.assign(optimal_loss=[0.15, 0.3, 0.15, 0.3, 0.15])
    table = memorisation_tables([trace()], [dataset(strings=strings)], *RULE)["training_set"]
    for measure in ("counterfactual", "contextual", "bayes"):
        np.testing.assert_array_equal(curve(table, measure, "share_memorised_perfect"), [0] * 4)
        np.testing.assert_array_equal(curve(table, measure, "mean_score_perfect"), [0] * 4)
    np.testing.assert_array_equal(
        curve(table, "recollection", "share_memorised_perfect"), [0.75] * 4
    )
    assert np.isnan(curve(table, "recollection_accuracy", "share_memorised_perfect")).all()


def planted_run(trained_gain):
    """A world whose strings differ only by chance, and by what training gains on a string."""
    generator = np.random.default_rng(0)
    n = 400
    names = np.array([f"{i:03}" for i in range(n)], dtype=object)
    in_train = np.arange(n) < n // 2
    strings = pd.DataFrame(
        {
            "string_id": names,
            "n_tokens": 10,
            "split": np.where(in_train, "train", "test"),
            "count": in_train.astype(int),
            "test_count": (~in_train).astype(int),
            "log_prob": -generator.integers(1, 40, n).astype(float),
            "optimal_loss": 0.5,
        }
    )
    level = 0.5 + 0.1 * generator.standard_normal(n) - trained_gain * in_train
    curves = np.clip([level + 1.0, level + 0.2, level, level - 0.01], 0, None)
    made = replace(
        trace(loss={"a": LOSS["a"]}),
        string_ids=names,
        n_tokens=np.full(n, 10),
        nll=10 * curves,
        n_correct=np.zeros(curves.shape, int),
        rank_sum=np.full(curves.shape, 10),
    )
    return memorisation_tables([made], [dataset(strings=strings)], *RULE)["training_set"]


@pytest.mark.parametrize("measure", ["counterfactual", "contextual", "bayes", "recollection"])
def test_without_memorisation_the_excess_over_the_false_alarms_is_about_zero(measure):
    table = planted_run(trained_gain=0)
    fraction, unseen = (
        curve(table, measure, f"share_memorised_{of}")[-1] for of in ("distinct", "unseen")
    )
    assert fraction == pytest.approx(unseen, abs=0.1)
    if measure != "recollection":
        assert unseen > 0.3
        # Where there is memorisation, it is seen above the false alarms.
        gained = planted_run(trained_gain=0.3)
        assert curve(gained, measure, "share_memorised_distinct")[-1] > 0.9
        assert curve(gained, measure, "share_memorised_unseen")[-1] == unseen


def test_false_alarms_are_averaged_and_studied(made):
    averages = made["averages"]
    chosen = averages[averages["quantity"].isin(["share_memorised_unseen", "mean_score_unseen"])]
    assert set(chosen["measure"]) == set(made["training_set"]["measure"])
    assert set(chosen["n_seeds"]) == {2}
    for study, needs in (
        ("tradeoff", ("training_set", "learning")),
        ("deduplication", ("training_set", "learning")),
    ):
        frame = STUDIES[study].table(**{kind: made[kind] for kind in needs})
        np.testing.assert_array_equal(
            curve(frame, "counterfactual", "below_unseen"),
            curve(made["training_set"], "counterfactual", "below_unseen"),
        )


def test_learning_by_hand(made):
    learning = made["learning"][made["learning"]["seed"] == 0]
    expected = {
        "train_loss": (2, 0.88, 0.3, 0.22),
        "test_loss": (2, 0.76, 0.42, 0.66),
        "unseen_loss": (2, 0.75, 0.5, 0.8),
        "train_accuracy": (0, 0, 0.6, 0.6),
        "test_accuracy": (0, 0, 0.2, 0.2),
        "test_loss_distinct": [np.mean([LOSS[name][e] for name in "acd"]) for e in range(4)],
        "test_spread": [np.std([LOSS[name][e] for name in "acd"]) for e in range(4)],
        "optimal_test_loss_distinct": [(0.2 + 0.2 + 0.3) / 3] * 4,
        "optimal_test_spread": [np.std([0.2, 0.2, 0.3])] * 4,
        "optimal_train_loss": [0.24] * 4,
        "optimal_test_loss": [0.24] * 4,
        "optimal_epoch": [4] * 4,
    }
    for column, values in expected.items():
        np.testing.assert_allclose(learning[column], values, err_msg=column)


def test_first_crossing_lets_the_score_return_to_zero():
    loss = {**LOSS, "a": (2.0, 0.1, 0.6, 0.1)}
    made = memorisation_tables([trace(loss=loss)], [dataset()], "first_crossing", 0.2, 0.95)
    assert curve(made["starts"], "contextual", "start")[0] == 2
    np.testing.assert_allclose(
        curve(made["training_set"], "contextual", "share_memorised"), [0, 0.75, 0, 1]
    )


def test_runs_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match=r"m/L/n4-seed1/base is paired with .* L/n4-seed0/base"):
        memorisation_tables([trace(1)], [dataset(0)], *RULE)
    with pytest.raises(UserError, match="one per trace"):
        memorisation_tables([trace(0)], [], *RULE)
    short = {name: loss for name, loss in LOSS.items() if name != "b"}
    with pytest.raises(UserError, match="not in the trace: b"):
        memorisation_tables([trace(loss=short)], [dataset()], *RULE)
    seen = dataset(strings=STRINGS[STRINGS["split"] != "test"])
    with pytest.raises(UserError, match="m/L/n4-seed0/base: no unseen string"):
        memorisation_tables([trace()], [seen], *RULE)


# One target, b, over two seeds and three epochs.
WITH = {0: (2.0, 0.4, 0.4), 1: (2.0, 0.72, 0.1)}
WITHOUT = {0: (2.0, 0.5, 0.6), 1: (2.0, 0.6, 0.6)}
D = (2.0, 0.5, 0.7)


@pytest.fixture(scope="module")
def exact():
    strings = STRINGS.assign(role=[None, "s0", None, None, None])
    short = {name: loss[:3] for name, loss in LOSS.items()}
    with_traces = [
        trace(seed, "with-s0", {**short, "b": loss, "d": D}) for seed, loss in WITH.items()
    ]
    without_traces = [
        trace(seed, "without-s0", {**short, "b": loss}) for seed, loss in WITHOUT.items()
    ]
    datasets = [dataset(seed, "with-s0", strings) for seed in WITH]
    return target_tables(with_traces, datasets, without_traces[::-1], *RULE)


def target(table, measure, evidence, column, seed=None):
    rows = table[(table["measure"] == measure) & (table["evidence"] == evidence)]
    rows = rows[rows["seed"].isna() if seed is None else rows["seed"] == seed]
    return rows[column].to_numpy(dtype=float)


def only(made, kinds):
    """The tables of some kinds, for a study that reads just these."""
    return {kind: made[kind] for kind in kinds.split()}


def test_exact_tables_are_of_their_kind(exact, tmp_path):
    assert (
        STUDIES["disagreement"].table(target_scores=exact["target_scores"])
        is exact["target_scores"]
    )
    for kind, frame in exact.items():
        tables.write(tmp_path / f"{kind}.parquet", frame, KINDS[kind])
        assert len(tables.read(tmp_path / f"{kind}.parquet", KINDS[kind])) == len(frame)
    # Of every measure and its evidence: three epochs of two seeds and their mean. Those that need
    # retraining have two kinds of evidence.
    scores = exact["target_scores"]
    kinds = scores.groupby("measure")["evidence"].agg(set)
    assert kinds["contextual"] == kinds["counterfactual"] == {"retraining", "same-frequency"}
    assert kinds["bayes"] == {"language"}
    assert len(scores) == kinds.map(len).sum() * 3 * (2 + 1)
    assert len(exact["agreement"]) == 3 * 2


def test_the_mean_loss_is_taken_before_the_start(exact):
    """The seeds start at epochs 2 and 4; the mean curve starts at 4, not at their mean."""
    starts = [
        target(exact["target_scores"], "contextual", "retraining", "start", s)[0] for s in (0, 1)
    ]
    assert starts == [2, 4]
    mean = exact["target_scores"]
    np.testing.assert_allclose(
        target(mean, "contextual", "retraining", "loss"), [2, 0.56, 0.25], rtol=1e-12
    )
    np.testing.assert_allclose(
        target(mean, "contextual", "retraining", "loss_without"), [2, 0.55, 0.6], rtol=1e-12
    )
    assert target(mean, "contextual", "retraining", "start")[0] == 4
    np.testing.assert_allclose(
        target(mean, "contextual", "retraining", "score"), [0, 0, 0.3 / 0.55], rtol=1e-12
    )


def test_the_expected_score_is_the_mean_of_the_seeds_scores(exact):
    """Not the score of mean losses; rows of a seed have none."""
    table = exact["target_scores"]
    for measure, evidence in {*zip(table["measure"], table["evidence"], strict=True)}:
        scores = [target(table, measure, evidence, "score", seed) for seed in (0, 1)]
        expected = target(table, measure, evidence, "expected_score")
        np.testing.assert_allclose(expected, np.mean(scores, axis=0))
        assert np.isnan(target(table, measure, evidence, "expected_score", 0)).all()
    differ = [
        target(table, "contextual", "retraining", name) for name in ("score", "expected_score")
    ]
    assert not np.allclose(*differ)


def test_exact_by_hand(exact):
    table = exact["target_scores"]
    np.testing.assert_allclose(
        target(table, "counterfactual", "retraining", "score", 0), [0, 0.2, 1 / 3]
    )
    np.testing.assert_allclose(target(table, "counterfactual", "same-frequency", "threshold", 0), D)
    np.testing.assert_allclose(
        target(table, "counterfactual", "retraining", "assumption_broken", 1), [1 / 3] * 3
    )
    assert np.isnan(target(table, "bayes", "language", "loss_without", 0)).all()
    assert np.isnan(target(table, "recollection", "constant", "start", 0)).all()
    assert target(table, "recollection", "constant", "start", 1)[0] == 4


def test_agreement_by_hand(exact):
    table = exact["agreement"]
    counterfactual = ("counterfactual", "same-frequency")
    np.testing.assert_allclose(target(table, *counterfactual, "threshold_error", 0), 0.1 / 3)
    np.testing.assert_allclose(target(table, *counterfactual, "start_error", 0), 0)
    contextual = ("contextual", "same-frequency")
    np.testing.assert_allclose(target(table, *contextual, "threshold_error", 1), -0.1)
    np.testing.assert_allclose(
        target(table, *contextual, "score_error", 1), (0.5 / 0.6 - 0.4 / 0.5) / 3
    )
    np.testing.assert_allclose(target(table, *contextual, "same_verdict", 1), 1)
    # Under the language 0.3 nats are optimal: by that threshold seed 0 never starts.
    bayes = ("bayes", "language")
    np.testing.assert_allclose(target(table, *bayes, "threshold_error", 0), -0.2)
    assert np.isnan(target(table, *bayes, "start_error", 0)).all()
    np.testing.assert_allclose(target(table, *bayes, "same_verdict", 0), 1 / 3)


def test_a_target_without_its_other_run_is_refused():
    strings = STRINGS.assign(role=[None, "s0", None, None, None])
    pair = ([trace(0, "with-s0")], [dataset(0, "with-s0", strings)])
    with pytest.raises(UserError, match="no trace of m/L/n4-seed0/without-s0"):
        target_tables(*pair, [trace(1, "without-s0")], *RULE)
    with pytest.raises(UserError, match="one training string of role s0; it has 0"):
        target_tables(
            [trace(0, "with-s0")],
            [dataset(0, "with-s0")],
            [trace(0, "without-s0")],
            *RULE,
        )
