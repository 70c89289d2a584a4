"""Scores of methods whose quality is known, by hand where it can be."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from helpers.jobs import do_job
from helpers.unlearning_world import FORGET, STRINGS, TRAINED, losses, unlearned, world
from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.sections import KINDS
from palimpsest.statistics import student
from palimpsest.unlearning.attacks import indistinguishability
from palimpsest.unlearning.evaluate import scores
from palimpsest.unlearning.evaluate.scores import Rules, evaluate, retraining
from palimpsest.unlearning.run.jobs import RESIDUAL, SCORED
from palimpsest.unlearning.run.setups import Setup, unlearned_models

RULES = Rules("geometric_mean", "exact", 1e-5, 0.5, 0.2)
OF_TESTS = ("unlearning_tests", "unlearning_string_tests")
MADE = ("epsilons", "unlearning_scores", "unlearning_summary", "unlearning_effects", *OF_TESTS)


def evaluated(made, rules=RULES):
    problem = made.problem()
    cost = retraining(problem, made.manifests, epochs=10, batch_size=8)
    return evaluate(problem, made.methods(problem), rules, cost)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A world with a method whose models predict the same as their paired retrained models."""
    made = world(tmp_path_factory.mktemp("world"), repetitions=2)
    problem = made.problem()
    keys = unlearned_models(made.setups)
    copied = problem.retrained.of(np.array([origin for origin, _ in keys]))
    files = unlearned(made.folder, "copied", keys, copied.loss, steps=9)
    made.unlearned.append(files[0])
    made.models.append(files[1])
    return made


@pytest.fixture(scope="module")
def found(made):
    return evaluated(made)


def quality(found, method, setup="reuse-n-n"):
    """Forgetting quality of every repetition."""
    table = found["unlearning_scores"]
    return table[(table["method"] == method) & (table["setup"] == setup)]["forgetting_quality"]


def test_every_table_is_of_its_kind(found, tmp_path):
    assert set(found) == set(MADE)
    for kind, table in found.items():
        tables.write(tmp_path / f"{kind}.parquet", table, KINDS[kind])
    n_methods, n_repetitions, n_setups = 5, 2, 2
    assert len(found["unlearning_scores"]) == n_methods * n_repetitions * n_setups
    assert len(found["epsilons"]) == len(found["unlearning_scores"]) * FORGET.sum()


def test_only_models_unlike_retrained_ones_are_told(found):
    """By F, by single strings and by all strings together; lower bounds say how surely."""
    told = found["unlearning_tests"].set_index("method")
    for name in ("none", "shifted"):
        assert told.loc[name, ["p_value", "joint_p"]].max() < 0.05
        assert told.loc[name, "n_told"] == told.loc[name, "n_strings"] == FORGET.sum()
    for name in ("good", "retrain"):
        assert told.loc[name, ["p_value", "joint_p"]].min() > 0.05
        assert told.loc[name, ["n_told", "n_bounded"]].max() == 0
    assert told.loc["none", "relative_quality"] == 0 < told.loc["shifted", "relative_quality"] < 1
    assert told.loc["none", "largest_bound"] > 1
    strings = found["unlearning_string_tests"]
    assert (strings["q_value"] >= strings["p_value"]).all()
    excess = strings.groupby("method")["excess"].mean()
    np.testing.assert_allclose(excess[told.index], told["excess_epsilon"])


def test_models_of_one_original_model_are_not_tested(tmp_path):
    """Nothing is relabelled and nothing bounded, for no method; the rest of the tables is there."""
    found = evaluated(world(tmp_path, ["reuse-n-1"], n=6, repetitions=2))
    for kind, table in found.items():
        tables.write(tmp_path / f"{kind}.parquet", table, KINDS[kind])
    tests, strings = (found[kind] for kind in OF_TESTS)
    assert tests[[*indistinguishability.OF_METHOD, "relative_quality"]].isna().all(axis=None)
    assert strings[[*indistinguishability.OF_STRING]].isna().all(axis=None)
    assert tests[["n_models", "n_strings", "forgetting_quality"]].notna().all(axis=None)
    assert strings["epsilon"].notna().all()


@pytest.mark.parametrize("names", [("reuse-n-1", "reuse-n-n"), ("reuse-n-n", "reuse-n-1")])
def test_luck_of_original_models_is_no_difference_to_retrained_ones(tmp_path, names):
    """A model is as lucky as its original, and both kinds of models are as lucky on average."""
    problem = world(tmp_path, names, n=12, repetitions=2, methods=()).problem()
    chance, rules = np.random.default_rng(1), Rules("geometric_mean", "grid", 1e-5, 0.5, 0.2)
    false, n_studies = 0, 20
    for _ in range(n_studies):
        luck, retrained = chance.standard_normal((2, 12, FORGET.sum()))
        unlearned = luck[problem.stock.origins]
        unlearned = unlearned + 0.1 * chance.standard_normal(unlearned.shape)
        row, _ = indistinguishability.tell_apart(problem, "lucky", (unlearned, retrained), rules)
        false += min(2 * row["p_value"], 2 * row["joint_p"]) <= 0.05
    assert false <= stats.binom.ppf(0.99, n_studies, 0.05)


def test_methods_are_ranked_as_they_forget(found):
    """Equal predictions cannot be told apart; the original's are told apart without an error."""
    assert (quality(found, "copied") == 1).all()
    assert (quality(found, "none") == 0).all()
    assert quality(found, "good").mean() > 5 * quality(found, "shifted").mean()
    epsilons = found["epsilons"].groupby("method")["epsilon"]
    assert epsilons.max()["copied"] < 1e-4
    assert epsilons.min()["none"] == 50


def test_held_out_attackers_rank_what_lies_between_the_ends(tmp_path):
    """Losses that fall short of retrained models' by one, two and four standard deviations."""
    made = world(tmp_path, ["reuse-n-n"], n=32, repetitions=3, methods=("good",))
    keys, chance = unlearned_models(made.setups), np.random.default_rng(1)
    for method, short in (("near", 0.1), ("halfway", 0.2), ("far", 0.4)):
        loss = losses(chance, len(keys), TRAINED & ~FORGET)
        loss[:, FORGET] *= np.exp(-short)
        files = unlearned(made.folder, method, keys, loss)
        made.unlearned.append(files[0])
        made.models.append(files[1])
    effects = evaluated(made)["unlearning_effects"]
    held = effects[(effects["effect"] == "attacker") & (effects["attacker"] == "held-out")]
    by_split = held.pivot(index="repetition", columns="method", values="forgetting_quality")
    assert len(by_split) == scores.SPLITS
    for worse, better in (("far", "halfway"), ("halfway", "near"), ("near", "retrain")):
        assert (by_split[better] > by_split[worse]).mean() >= 0.9, (worse, better)
        assert by_split[better].mean() > by_split[worse].mean() + 0.1, (worse, better)
    assert (by_split["none"] == 0).all()
    assert by_split["far"].mean() > 0
    assert by_split["good"].mean() == pytest.approx(by_split["retrain"].mean(), abs=0.1)
    assert by_split["good"].mean() > by_split["near"].mean() + 0.2


def test_final_score_of_equal_predictions_is_their_quality(found):
    table = found["unlearning_scores"].set_index("method").loc["copied"]
    np.testing.assert_allclose(table["final_score"], 1)
    for name in ("retain", "test", "forget"):
        np.testing.assert_allclose(table[f"{name}_accuracy"], table[f"{name}_accuracy_retrained"])


def test_accuracy_counts_copies_and_averages_over_models(made, found):
    problem = made.problem()
    row = found["unlearning_scores"].iloc[0]
    assert (row["method"], row["setup"], row["repetition"]) == ("none", "reuse-n-n", 0)
    copies = {"retain": STRINGS["count"].where(STRINGS["split"] == "train", 0)}
    copies["forget"] = STRINGS["count"].where(FORGET, 0)
    copies["test"] = STRINGS["test_count"].mask(FORGET, 0)
    for whose, models in (("", problem.originals), ("_retrained", problem.retrained)):
        for name, weights in copies.items():
            shares = [
                sum(w * c for w, c in zip(weights, models.n_correct[model], strict=True))
                / sum(w * t for w, t in zip(weights, models.n_tokens, strict=True))
                for model in range(16)
            ]
            assert row[f"{name}_accuracy{whose}"] == pytest.approx(sum(shares) / 16)
    accuracies = [row[f"{name}_accuracy"] for name in copies]
    assert len(set(accuracies)) == 2  # of strings that were trained on, and of the test set
    assert row["forget_accuracy_retrained"] < row["forget_accuracy"]


def test_costs_are_shares_of_retraining(found):
    """19 retained strings in batches of 8 are 3 steps an epoch; 4 retrainings took 40 seconds."""
    table = found["unlearning_scores"].groupby("method").first()
    assert table.loc["good", "steps_share"] == pytest.approx(4 / 30)
    assert table.loc["copied", "steps_share"] == pytest.approx(9 / 30)
    assert table.loc["good", "seconds_share"] == pytest.approx(2 / 10)
    assert table["within_cutoff"].to_dict() == {
        "none": True,
        "good": True,
        "shifted": True,
        "copied": False,
        "retrain": True,
    }
    assert table.loc["none", "steps_share"] == 0
    assert table.loc["retrain", "seconds_share"] == 1


def test_interval_is_students_by_hand():
    """For 1, 2, 4: mean 7/3, variance 7/3, and the quantile for two degrees of freedom."""
    mean, lower, upper = student(np.array([1, 2, 4]))
    half = 4.302652729749464 * np.sqrt(7 / 3 / 3)
    assert (mean, lower, upper) == pytest.approx((7 / 3, 7 / 3 - half, 7 / 3 + half))
    values = np.random.default_rng(0).normal(size=20)
    expected = stats.t.interval(0.95, 19, values.mean(), stats.sem(values))
    assert student(values)[1:] == pytest.approx(expected)


def test_summary_is_over_the_repetitions(found):
    table = found["unlearning_summary"]
    one = table[
        (table["method"] == "good")
        & (table["setup"] == "bootstrap")
        & (table["quantity"] == "forgetting_quality")
    ].iloc[0]
    assert one["n_repetitions"] == 2
    assert (one["mean"], one["lower"], one["upper"]) == pytest.approx(
        student(quality(found, "good", "bootstrap"))
    )


def test_what_is_not_drawn_anew_has_no_interval(found):
    """Under reuse-n-n, the original and the retrained models are the same in every repetition."""
    table = found["unlearning_summary"]
    missing = table[["lower", "upper"]].isna()
    assert (missing["lower"] == missing["upper"]).all()
    ends = table["method"].isin(["none", "retrain"])
    of_retrained = table["quantity"].str.endswith("_retrained")
    n_of_retrained = sum(name.endswith("_retrained") for name in scores.QUANTITIES)
    expected = (table["setup"] == "reuse-n-n") & (ends | of_retrained)
    assert expected.sum() == 2 * len(scores.QUANTITIES) + 3 * n_of_retrained
    pd.testing.assert_series_equal(missing["lower"], expected, check_names=False)
    assert table["mean"].notna().all()


@pytest.mark.parametrize(("setup", "drawn"), [("full", True), ("reuse-n-1", False)])
def test_the_ends_have_an_interval_where_they_are_drawn_anew(setup, drawn, tmp_path):
    made = world(tmp_path, [setup], n=4, repetitions=2, methods=("good",))
    table = evaluated(made)["unlearning_summary"].set_index(["method", "quantity"])["lower"]
    for row in (("none", "forget_accuracy"), ("retrain", "final_score"),
                ("good", "test_accuracy_retrained")):  # fmt: skip
        assert pd.notna(table[row]) == drawn
    assert pd.notna(table["good", "forgetting_quality"])


def test_one_repetition_has_no_interval(tmp_path):
    made = world(tmp_path, ["reuse-n-n"], n=8, repetitions=1)
    table = evaluated(made)["unlearning_summary"]
    assert table[["lower", "upper"]].isna().all(axis=None)
    assert table["mean"].notna().all()
    tables.write(tmp_path / "summary.parquet", table, KINDS["unlearning_summary"])


def test_two_evaluations_are_identical(made, found):
    again = evaluated(made)
    for kind in MADE:
        pd.testing.assert_frame_equal(again[kind], found[kind], check_exact=True)


def test_attackers_are_evaluated_on_models_that_they_were_not_fitted_on(made, monkeypatch):
    seen = []

    def spy(*samples):
        seen.append(samples[:4])
        return held_out(*samples)

    held_out = scores.held_out_epsilon
    monkeypatch.setattr(scores, "held_out_epsilon", spy)
    evaluated(made)
    assert len(seen) == 5 * scores.SPLITS * 2  # methods, splits, and 8 or 4 models that evaluate
    for fit, evaluation in [pair for s in seen for pair in ((s[0], s[2]), (s[1], s[3]))]:
        assert len(fit) == 8
        assert len(evaluation) in (8, 4)
        assert not np.isin(evaluation, fit).any()


def test_shuffles_are_not_those_that_the_bootstrap_draws_with(made, monkeypatch):
    seen = []

    def spy(stock, places):
        seen.append(tuple(places))
        return chosen(stock, places)

    chosen = scores._chosen
    monkeypatch.setattr(scores, "_chosen", spy)
    evaluated(made)
    for repetition in range(2):
        drawn = Setup("bootstrap", 16, 2, 16).members(repetition).origins
        assert tuple(drawn) in seen, "the spy sees what is drawn"
        same_stream = np.random.default_rng([0, repetition]).permutation(16)
        assert tuple(same_stream[:8]) not in seen


def test_attackers_overfit_and_effects_have_every_value(found):
    table = found["unlearning_effects"]
    good = table[table["method"] == "good"]
    by = good.groupby(["effect", "attacker", "level"])["forgetting_quality"]
    assert by.size().to_dict() == {
        ("attacker", "held-out", 8): scores.SPLITS,
        ("attacker", "same", 8): scores.SPLITS,
        ("n", "held-out", 4): scores.SPLITS,
        ("n", "held-out", 8): scores.SPLITS,
        ("pool", "same", 4): 2,
        ("pool", "same", 8): 2,
        ("pool", "same", 16): 2,
        ("repetitions", "same", 5): 5,
        ("repetitions", "same", 10): 10,
        ("repetitions", "same", 20): 20,
    }
    assert by.mean()["attacker", "held-out", 8] > by.mean()["attacker", "same", 8] + 0.3
    assert by.mean()["n", "held-out", 8] == by.mean()["attacker", "held-out", 8]


def test_the_largest_pool_is_the_bootstrap(found):
    """The set-up draws from the same models in the same way."""
    effects = found["unlearning_effects"]
    for method in ("good", "shifted", "retrain"):
        of_pool = effects[
            (effects["method"] == method) & (effects["effect"] == "pool") & (effects["level"] == 16)
        ]
        expected = quality(found, method, "bootstrap").to_numpy()
        np.testing.assert_array_equal(of_pool["forgetting_quality"], expected)


@pytest.mark.parametrize(
    ("n", "stock", "pools"),
    [
        (4, 32, [4, 8, 16, 32]),
        (4, 40, [4, 8, 16, 32]),
        (32, 32, [4, 8, 16, 32]),
        (16, 20, [4, 8, 16]),
    ],
)
def test_pools_go_as_far_as_the_models(n, stock, pools):
    assert scores._pools(n, stock) == pools


def test_too_few_models_are_not_split(tmp_path):
    made = world(tmp_path, ["reuse-n-n"], n=6, repetitions=2)
    effects = evaluated(made)["unlearning_effects"]
    assert set(effects["effect"]) == {"pool", "repetitions"}


def test_the_grid_gives_tables_too(made, tmp_path):
    """A narrow sample has no thresholds, and is written all the same."""
    rules = Rules("sequence", "grid", 1e-5, 0.5, 0.2)
    problem = made.problem()
    narrow = next(made.methods(problem))
    nll = narrow.predictions.nll
    nll[:] = nll[:1]
    cost = retraining(problem, made.manifests, 10, 8)
    table = evaluate(problem, [narrow], rules, cost)["epsilons"]
    assert set(table["attack"]) == {"narrow"}
    tables.write(tmp_path / "epsilons.parquet", table, KINDS["epsilons"])


def test_retrained_models_that_predict_nothing_are_refused(made):
    problem = made.problem()
    problem.retrained.n_correct[:] = 0
    with pytest.raises(UserError, match="predict no token of the retain set"):
        evaluate(problem, made.methods(problem), RULES, retraining(problem, made.manifests, 10, 8))


SETUPS = {"setups": ["reuse-n-n", "bootstrap"], "n": 16, "repetitions": 2, "pool": 16}
SCORING = {
    "confidence": "geometric_mean",
    "thresholds": "exact",
    "delta": 1e-5,
    "bin_width": 0.5,
    "cutoff": 0.2,
    "epochs": 10,
    "batch_size": 8,
}
EVALUATIONS = {
    "forgetting": ({kind.name: kind.name for kind in SCORED}, SCORING),
    "other_metrics": ({"table": "unlearning_metrics"}, {}),
    "residual_tables": (
        {kind.name: kind.name for kind in RESIDUAL},
        {"loss_threshold": 0.2, "accuracy_threshold": 0.95},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EVALUATIONS)
def test_jobs_write_their_tables(made, tmp_path, name):
    kinds, params = EVALUATIONS[name]
    outputs = {key: tmp_path / f"{key}.parquet" for key in kinds}
    files = ["originals", "retrained", "dataset", "unlearned", "models"]
    files += ["manifests"] if name == "forgetting" else []
    do_job(
        tmp_path,
        f"palimpsest.unlearning.evaluate.evaluation:{name}",
        input={key: getattr(made, key) for key in files},
        output=outputs,
        params={**SETUPS, **params},
        wildcards={"seed": "0"},
    )
    for key, kind in kinds.items():
        assert len(tables.read(outputs[key], KINDS[kind])) > 0
