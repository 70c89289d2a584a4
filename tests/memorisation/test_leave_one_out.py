"""Exact retraining of every training string, on worlds whose truth is known by construction."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from palimpsest import tables
from palimpsest.datasets.choices import placebo_of
from palimpsest.errors import UserError
from palimpsest.memorisation import leave_one_out_tables
from palimpsest.memorisation.leave_one_out import rank_correlation
from palimpsest.memorisation.studies import STUDIES
from palimpsest.sections import KINDS
from palimpsest.traces import Trace

EPOCHS = np.arange(0, 22, 2)
N = 60  # training strings; for each there is one test string of the same frequency
LOG_PROB = -np.arange(1.0, N + 1)
NAMES = np.array([f"{'ab'[test]}{i:011x}" for test in (0, 1) for i in range(N)], dtype=object)


def dataset(seed=0):
    """The first third of the training strings is repeated."""
    in_train = np.arange(2 * N) < N
    count = np.where(in_train, np.where(np.arange(2 * N) < N // 3, 3, 1), 0)
    return pd.DataFrame(
        {
            "language": "L",
            "size": int(count.sum()),
            "seed": seed,
            "variant": "base",
            "string_id": NAMES,
            "split": np.where(in_train, "train", "test"),
            "count": count,
            "test_count": (~in_train).astype(int),
            "log_prob": np.tile(LOG_PROB, 2),
            "n_tokens": 8,
            "optimal_loss": 0.2 + np.tile(np.arange(N), 2) / (2 * N),
        }
    )


def curves(level):
    """Losses [epochs, strings] that fall to their lowest at epoch 10 and rise again."""
    return np.asarray(level) * (1 + ((EPOCHS[:, None] - 10) / 10.0) ** 2)


def trace(loss, variant="base", seed=0):
    n_tokens = np.full(loss.shape[1], 8)
    return Trace(
        run={"model": "m", "language": "L", "size": 100, "seed": seed, "variant": variant},
        epochs=EPOCHS,
        string_ids=NAMES,
        n_tokens=n_tokens,
        nll=loss * n_tokens,
        n_correct=np.zeros(loss.shape, int),
        rank_sum=np.full(loss.shape, 8),
    )


def world(level_without, level_test=None, falls_to=0.1, seed=0):
    """A base run, and a run without each training string.

    `level_without` are the losses of the strings in the runs without them. In the base run, the
    loss of a training string falls to a share of `falls_to` of its level.
    """
    level_test = level_without if level_test is None else level_test
    falling = np.linspace(1.6, falls_to, len(EPOCHS))[:, None]
    trained = np.asarray(level_without) * falling
    base = np.hstack([trained, curves(level_test)])
    runs = []
    for i, name in enumerate(NAMES[:N]):
        loss = base.copy()
        loss[:, i] = curves(level_without)[:, i]
        runs.append(trace(loss, f"without-{name}", seed))
    return trace(base, seed=seed), dataset(seed).assign(size=100), runs


def measured(base, strings, runs, start="after_last_miss", again=None):
    again = None if again is None else [again]
    return leave_one_out_tables([base], [strings], [runs], start, again=again)


def whole_again(base):
    """The first run of leave-one-out-again: on the whole training set."""
    return replace(base, run={**base.run, "variant": "again"})


LEVEL = 0.3 + np.random.default_rng(1).permutation(N) / N


def chosen(table, quantity, statistic, measure="contextual", group="all", column="value"):
    wanted = {"measure": measure, "group": group, "quantity": quantity, "statistic": statistic}
    rows = table[(table[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    assert len(rows) == 1
    return rows[column].iloc[0]


def rows_of(table, measure, evidence):
    wanted = (table["measure"] == measure) & (table["evidence"] == evidence)
    return table[wanted].reset_index(drop=True)


@pytest.fixture(scope="module")
def perfect():
    """Every test string behaves like the left-out training string of the same frequency."""
    return measured(*world(LEVEL))


def test_tables_are_of_their_kinds(perfect, tmp_path):
    study = STUDIES["exact"].table(**perfect)
    for kind, frame in {**perfect, "exact": study}.items():
        tables.write(tmp_path / f"{kind}.parquet", frame, KINDS[kind])
        assert len(tables.read(tmp_path / f"{kind}.parquet", KINDS[kind])) == len(frame)
    assert len(perfect["leave_one_out"]) == 5 * N
    # Three approximations, four quantities, three groups; of thresholds and others, four each.
    assert len(perfect["approximation"]) == 3 * 4 * 3 * 4
    assert len(study) == 3 * 4 * N
    shown = study[(study["measure"] == "bayes") & (study["quantity"] == "start")]
    told = chosen(perfect["approximation"], "start", "correlation", "bayes")
    np.testing.assert_allclose(shown["correlation"], told)


@pytest.mark.parametrize("measure", ["counterfactual", "contextual"])
def test_perfect_stand_ins_are_exact(perfect, measure):
    table = perfect["approximation"]
    approximate = rows_of(perfect["leave_one_out"], measure, "same-frequency")
    exact = rows_of(perfect["leave_one_out"], measure, "retraining")
    for column in ("threshold", "start", "score_at_optimum", "score_at_end", "self_influence"):
        np.testing.assert_allclose(approximate[column], exact[column])
    for quantity in ("threshold", "start", "score_at_optimum", "score_at_end"):
        assert chosen(table, quantity, "mean_error", measure) == pytest.approx(0, abs=1e-12)
        assert chosen(table, quantity, "mean_absolute_error", measure) == pytest.approx(
            0, abs=1e-12
        )
    for group, n in (("all", N), ("repeated", N // 3), ("single", N - N // 3)):
        assert chosen(table, "threshold", "correlation", measure, group) == pytest.approx(1)
        ends = [
            chosen(table, "threshold", "correlation", measure, group, column)
            for column in ("lower", "upper")
        ]
        np.testing.assert_allclose(ends, 1)
        assert chosen(table, "threshold", "correlation", measure, group, "n_strings") == n
        assert chosen(table, "score_at_end", "same_verdict", measure, group) == 1
    assert chosen(table, "threshold", "mean_relative_error", measure) == pytest.approx(0, abs=1e-12)


def test_constant_values_have_no_correlation(perfect):
    """All strings fall alike relative to their threshold, so start and score are the same."""
    for quantity in ("start", "score_at_end"):
        for column in ("value", "lower", "upper"):
            assert np.isnan(
                chosen(perfect["approximation"], quantity, "correlation", column=column)
            )
    # On a language whose strings are all alike, the Bayes-optimal loss differs by rounding alone.
    base, strings, runs = world(LEVEL)
    noise = 1e-15 * np.random.default_rng(0).standard_normal(2 * N)
    alike = measured(base, strings.assign(optimal_loss=0.35 + noise), runs)["approximation"]
    assert np.isnan(chosen(alike, "threshold", "correlation", "bayes"))


def test_shuffled_stand_ins_have_nothing_to_do_with_it():
    shuffled = np.random.default_rng(2).permutation(LEVEL)
    table = measured(*world(LEVEL, shuffled, falls_to=0.8))["approximation"]
    value, lower, upper = (
        chosen(table, "threshold", "correlation", column=column)
        for column in ("value", "lower", "upper")
    )
    assert abs(value) < 0.3
    assert lower < 0 < upper
    assert chosen(table, "threshold", "mean_error") == pytest.approx(0, abs=1e-12)
    assert chosen(table, "threshold", "mean_absolute_error") > 0.2
    assert chosen(table, "score_at_end", "same_verdict") < 1


def test_too_high_a_threshold_is_a_positive_error_and_an_early_start():
    """Stand-ins of twice the loss: the error has the size of the exact threshold itself."""
    made = measured(*world(LEVEL, 2 * LEVEL))
    table, rows = made["approximation"], made["leave_one_out"]
    assert chosen(table, "threshold", "mean_error") == pytest.approx(LEVEL.mean())
    assert chosen(table, "threshold", "mean_relative_error") == pytest.approx(1)
    assert chosen(table, "threshold", "correlation") == pytest.approx(1)
    exact = rows_of(rows, "contextual", "retraining")["start"]
    approximate = rows_of(rows, "contextual", "same-frequency")["start"]
    assert (approximate < exact).all()
    assert chosen(table, "start", "mean_error") == pytest.approx((approximate - exact).mean())


def test_an_error_is_seen_epoch_by_epoch():
    """Stand-ins too high at the beginning and too low at the end are not right on average."""
    base, strings, runs = world(LEVEL)
    tilt = np.linspace(0.2, -0.2, len(EPOCHS))[:, None] * np.ones(N)
    nll = base.nll.copy()
    nll[:, N:] += 8 * tilt
    table = measured(replace(base, nll=nll), strings, runs)["approximation"]
    error = chosen(table, "threshold", "mean_error", "counterfactual")
    assert error == pytest.approx(0, abs=1e-12)
    distance = chosen(table, "threshold", "mean_absolute_error", "counterfactual")
    assert distance == pytest.approx(np.abs(tilt).mean())


def test_rows_by_hand():
    """The optimum is at epoch 10, where losses without a string are at their lowest, `LEVEL`."""
    rows = measured(*world(LEVEL))["leave_one_out"]
    falling = np.linspace(1.6, 0.1, len(EPOCHS))
    without = 1 + ((EPOCHS - 10) / 10.0) ** 2
    contextual = rows_of(rows, "contextual", "retraining")
    np.testing.assert_allclose(contextual["threshold"], LEVEL)
    np.testing.assert_array_equal(contextual["start"], EPOCHS[np.argmax(falling < 1)])
    np.testing.assert_allclose(contextual["score_at_optimum"], 1 - falling[5])
    np.testing.assert_allclose(contextual["score_at_end"], 0.9)
    np.testing.assert_allclose(contextual["assumption_broken"], (falling > without).mean())
    counterfactual = rows_of(rows, "counterfactual", "retraining")
    np.testing.assert_allclose(counterfactual["threshold"], LEVEL * without.mean())
    np.testing.assert_allclose(counterfactual["self_influence"], LEVEL * (without - falling).mean())
    np.testing.assert_array_equal(counterfactual["threshold_distance"], 0)
    bayes = rows_of(rows, "bayes", "language")
    np.testing.assert_allclose(bayes["threshold"], dataset()["optimal_loss"][:N])
    np.testing.assert_allclose(
        bayes["threshold_distance"], np.abs(dataset()["optimal_loss"][:N] - LEVEL)
    )
    assert bayes[["self_influence", "assumption_broken"]].isna().all(axis=None)


def test_a_string_that_the_run_without_it_knows_as_well_is_never_memorised():
    """If leaving it out changes nothing, the string adds nothing."""
    base, strings, runs = world(LEVEL)
    runs[7] = trace(base.loss, runs[7].run["variant"])
    rows = measured(base, strings, runs)["leave_one_out"]
    same = rows[(rows["string_id"] == NAMES[7]) & (rows["evidence"] == "retraining")]
    assert set(same["measure"]) == {"counterfactual", "contextual"}
    assert same["start"].isna().all()
    np.testing.assert_array_equal(same[["score_at_optimum", "score_at_end"]], 0)
    np.testing.assert_allclose(same["self_influence"], 0, atol=1e-12)


def test_strings_that_never_start_rank_last_and_have_no_error_of_start():
    base, strings, runs = world(LEVEL)
    for i in range(N // 2):
        runs[i] = trace(base.loss, runs[i].run["variant"])
    table = measured(base, strings, runs)["approximation"]
    assert chosen(table, "start", "mean_error", column="n_strings") == N // 2
    assert chosen(table, "start", "same_verdict", column="n_strings") == N
    assert chosen(table, "start", "same_verdict") == 0.5
    # Bayes: some start by it, and of these some never do by retraining.
    bayes = chosen(table, "start", "correlation", "bayes")
    rows = measured(base, strings, runs)["leave_one_out"]
    starts = [
        rows_of(rows, *key)["start"].fillna(99)
        for key in (("bayes", "language"), ("contextual", "retraining"))
    ]
    assert bayes == pytest.approx(stats.spearmanr(*starts).statistic)


def test_every_seed_has_its_rows_and_its_statistics():
    first, second = world(LEVEL, seed=0), world(LEVEL[::-1], seed=1)
    bases, datasets, left_out = zip(first, second, strict=True)
    made = leave_one_out_tables(list(bases), list(datasets), iter(left_out), "after_last_miss")
    assert made["leave_one_out"].groupby("seed").size().to_dict() == {0: 5 * N, 1: 5 * N}
    assert set(made["approximation"]["seed"]) == {0, 1}
    alone = measured(*second)["leave_one_out"]
    both = made["leave_one_out"].query("seed == 1").reset_index(drop=True)
    pd.testing.assert_frame_equal(both, alone)


def test_equal_runs_give_equal_intervals(perfect):
    pd.testing.assert_frame_equal(
        measured(*world(LEVEL))["approximation"], perfect["approximation"]
    )


def test_the_order_of_the_runs_does_not_matter(perfect):
    base, strings, runs = world(LEVEL)
    again = measured(base, strings, runs[::-1])
    pd.testing.assert_frame_equal(again["leave_one_out"], perfect["leave_one_out"])


def test_the_interval_is_that_of_the_bootstrap():
    """Compared with scipy's own bootstrap, which draws other resamples."""
    level_test = LEVEL + 0.8 * np.random.default_rng(3).random(N)
    made = measured(*world(LEVEL, level_test))["approximation"]
    ours = [chosen(made, "threshold", "correlation", column=end) for end in ("lower", "upper")]
    theirs = stats.bootstrap(
        (LEVEL, level_test), lambda x, y: stats.spearmanr(x, y).statistic, paired=True,
        vectorized=False, n_resamples=1000, method="percentile", rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    np.testing.assert_allclose(ours, theirs, atol=0.03)


@given(
    pairs=st.lists(
        st.tuples(st.integers(0, 4), st.one_of(st.integers(0, 4), st.just(np.inf))),
        min_size=2,
        max_size=12,
    ).filter(lambda pairs: all(len(set(values)) > 1 for values in zip(*pairs, strict=True)))
)
def test_rank_correlation_is_spearman_s(pairs):
    x, y = np.array(pairs, dtype=float).T
    finite = np.where(np.isinf(y), 99, y)
    assert rank_correlation(x, y) == pytest.approx(stats.spearmanr(x, finite).statistic)
    stacked = rank_correlation(np.stack([x, y]), np.stack([x, x]))
    np.testing.assert_allclose(stacked, [1, rank_correlation(x, y)])


def one_line(work, *parts):
    with pytest.raises(UserError) as error:
        work()
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message


def test_runs_that_do_not_fit_are_refused_with_one_line():
    base, strings, runs = world(LEVEL)
    name, remedy = "m/L/n100-seed0/leave-one-out", "delete it and rerun"

    def refused(runs, *parts):
        one_line(lambda: measured(base, strings, runs), name, remedy, *parts)

    refused([], "no runs")
    refused([*runs, runs[0]], "61 runs for 60 training strings")
    stranger = replace(runs[0], run={**runs[0].run, "variant": f"without-{NAMES[N]}"})
    refused([*runs, stranger], f"a run without {NAMES[N]}, no training string")
    other_strings = replace(runs[3], string_ids=runs[3].string_ids[::-1].copy())
    other_strings.string_ids[NAMES[::-1] == NAMES[3]] = "another"
    refused([*runs[:3], other_strings, *runs[4:]], f"without-{NAMES[3]} was not measured on")
    cut = replace(runs[3], epochs=EPOCHS[1:], nll=runs[3].nll[1:])
    refused([*runs[:3], cut, *runs[4:]], f"without-{NAMES[3]} was measured at other epochs")
    other_seed = replace(runs[3], run={**runs[3].run, "seed": 1})
    refused([*runs[:3], other_seed, *runs[4:]], "is of m/L/n100-seed1/without-")
    one_line(lambda: leave_one_out_tables([base], [], [runs], "after_last_miss"), "one per trace")
    one_line(
        lambda: measured(base, strings, runs, again=[whole_again(base), *runs[1:]]),
        f"no run without the training string {NAMES[0]} (59 of 60 have one)",
    )
    one_line(lambda: measured(base, strings.assign(seed=3), runs), "is paired with the dataset of")


def test_one_string_has_no_interval():
    """A group with one string has no correlation; a group without strings has no rows."""
    base, strings, runs = world(LEVEL)
    alone = strings.assign(
        count=np.where(np.arange(2 * N) == 0, 3, np.minimum(strings["count"], 1))
    )
    made = measured(base, alone, runs)["approximation"]
    assert np.isnan(chosen(made, "threshold", "correlation", group="repeated"))
    assert chosen(made, "threshold", "mean_error", group="repeated") == pytest.approx(0, abs=1e-12)
    assert np.isnan(chosen(made, "threshold", "mean_error", group="repeated", column="lower"))
    single = strings.assign(count=np.minimum(strings["count"], 1))
    assert set(measured(base, single, runs)["approximation"]["group"]) == {"all", "single"}


def test_some_strings_left_out():
    """Their values are those that they have among all strings; the others have no rows."""
    base, strings, runs = world(LEVEL)
    some = [runs[place] for place in (41, 3, 20)]
    every, few = (measured(base, strings, each)["leave_one_out"] for each in (runs, some))
    assert list(few["string_id"].unique()) == [NAMES[3], NAMES[20], NAMES[41]]
    own = every[every["string_id"].isin(few["string_id"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(own.assign(weight=20.0), few)


def only_what_is_measured(run, strings):
    """The trace as a training leaves it: the string that is left out, and its placebo."""
    own = run.run["variant"].removeprefix("without-")
    chosen = run.column_of([own, placebo_of(strings, own)])
    columns = {name: getattr(run, name)[:, chosen] for name in ("nll", "n_correct", "rank_sum")}
    return replace(run, string_ids=run.string_ids[chosen], n_tokens=run.n_tokens[chosen], **columns)


def test_two_measured_strings_are_enough():
    """Runs that are measured on the string and its placebo give the same tables as on all."""
    base, strings, runs = world(LEVEL)
    few = [only_what_is_measured(run, strings) for run in runs]
    for name, table in measured(base, strings, runs).items():
        pd.testing.assert_frame_equal(table, measured(base, strings, few)[name])


def test_the_placebo_tells_what_retraining_alone_changes():
    """Runs without a string know every unseen string worse: so its placebo counts as memorised."""
    base, strings, runs = world(LEVEL)
    equal = rows_of(measured(base, strings, runs)["leave_one_out"], "contextual", "retraining")
    assert (equal["placebo_below_at_optimum"] == 0).all()
    assert (equal["below_at_optimum"] == 1).all()
    worse = [replace(run, nll=run.nll * np.where(NAMES[i] == NAMES, 1, 1.25)) for i, run in
             enumerate(runs)]  # fmt: skip
    found = rows_of(measured(base, strings, worse)["leave_one_out"], "contextual", "retraining")
    assert (found["placebo_below_at_optimum"] == 1).all()
    np.testing.assert_allclose(found["placebo_margin_at_optimum"], 0.2)
    np.testing.assert_allclose(found["margin_at_optimum"], equal["margin_at_optimum"])
    cheap = rows_of(measured(base, strings, worse)["leave_one_out"], "bayes", "language")
    assert cheap["placebo_below_at_optimum"].isna().all()


def test_retraining_once_more_is_the_ceiling():
    """Equal runs agree fully with themselves; runs of other levels agree as far as these do."""
    base, strings, runs = world(LEVEL)
    equal = measured(base, strings, runs, again=[whole_again(base), *runs])
    table = equal["approximation"]
    ceiling = table[(table["evidence"] == "replicate") & (table["group"] == "all")]
    assert (ceiling.loc[ceiling["statistic"] == "correlation", "value"].dropna() == 1).all()
    assert (ceiling.loc[ceiling["statistic"] == "same_verdict", "value"] == 1).all()
    noisy = LEVEL * np.random.default_rng(2).uniform(0.6, 1.4, N)
    other, _, others = world(noisy)
    table = measured(base, strings, runs, again=[whole_again(other), *others])["approximation"]
    wanted = (table["evidence"] == "replicate") & (table["measure"] == "contextual")
    found = chosen(table[wanted], "threshold", "correlation")
    assert found == pytest.approx(stats.spearmanr(LEVEL, noisy).statistic)


def test_a_string_counts_for_all_that_it_was_drawn_from():
    """Of 20 repeated and 40 other strings, 4 and 2 are left out: weights 5 and 20."""
    base, strings, runs = world(LEVEL)
    some = [runs[place] for place in (0, 5, 10, 15, 30, 50)]
    rows = measured(base, strings, some)["leave_one_out"]
    found = rows.drop_duplicates("string_id")
    assert list(found["weight"]) == [5] * 4 + [20] * 2
    assert (measured(base, strings, runs)["leave_one_out"]["weight"] == 1).all()
