"""The table of other measures of forgetting, on models whose answers are known."""

import subprocess
import sys
import zlib

import numpy as np
import pytest

from helpers.unlearning_world import FORGET, losses, unlearned, world
from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.sections import KINDS
from palimpsest.statistics import NO_INTERVAL, Interval, student
from palimpsest.unlearning.attacks.membership import auc, membership_accuracy, privleak
from palimpsest.unlearning.evaluate.equality import equal_methods, refuse_equal
from palimpsest.unlearning.evaluate.metrics import differs, metrics

METRICS = [
    "accuracy_gap",
    "mia_gap",
    "mia_accuracy",
    "auc_loss",
    "auc_zlib",
    "auc_calibrated",
    "leak_at_1",
    "leak_at_100",
    "auc_min_k",
    "auc_min_k_plus",
    "extraction",
    "extraction_strength",
    "privleak",
    "privleak_loss",
    "ks_log_p",
    "relearn_steps",
    "relearn_not_reached",
    "relearn_log_p",
    "distance_to_original",
    "distance_to_retrained",
]
AUCS = [name for name in METRICS if name.startswith("auc")]
FROM_TABLES = ["auc_min_k", "auc_min_k_plus", "extraction", "extraction_strength"]
STEPS = np.array([5.0, np.inf, np.nan, np.nan] * 4)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A world in which the ends have tables too; half of the tried ideal models do not relearn."""
    made = world(tmp_path_factory.mktemp("world"), repetitions=2)
    problem = made.problem()
    keys = [(origin, 0) for origin in range(problem.n_reference)]
    for end, loss, steps in (
        ("none", problem.originals.loss[:16], 0.0),
        ("retrain", problem.retrained.loss[16:32], STEPS),
    ):
        files = unlearned(made.folder, end, keys, loss, relearn=steps)
        made.unlearned.append(files[0])
        made.models.append(files[1])
    return made


@pytest.fixture(scope="module")
def found(made):
    problem = made.problem()
    return metrics(problem, made.methods(problem, with_tokens=True))


def of(found, method, metric):
    return found[(found["method"] == method) & (found["metric"] == metric)].iloc[0]


def interval(row):
    return row["estimate"], row["lower"], row["upper"]


def test_every_method_has_every_metric(found, tmp_path):
    tables.write(tmp_path / "metrics.parquet", found, KINDS["unlearning_metrics"])
    assert found.groupby("method")["metric"].apply(list).to_dict() == dict.fromkeys(
        ["none", "good", "shifted", "retrain"], METRICS
    )


def test_gaps_are_between_means_and_their_intervals_are_folded_at_0(made, found):
    """Are we making progress in unlearning?, sections A.5 and A.11."""
    problem = made.problem()
    copies = problem.copies("forget")
    accuracy = problem.originals.accuracy(copies)[:16], problem.retrained.accuracy(copies)[:16]
    row = of(found, "none", "accuracy_gap")
    assert interval(row) == pytest.approx(student(accuracy[0] - accuracy[1]))
    assert row["reference"] == 0
    for metric in ("accuracy_gap", "mia_gap"):
        good, none = of(found, "good", metric), of(found, "none", metric)
        assert good["estimate"] < 0.1 < none["lower"]
        assert good["lower"] == 0
        assert good["upper"] > good["estimate"]


@pytest.mark.parametrize("metric", AUCS)
def test_membership_is_found_in_the_originals_and_in_no_retrained_model(found, metric):
    assert of(found, "none", metric)["estimate"] > 0.95
    row = of(found, "good", metric)
    assert row["estimate"] == pytest.approx(0.5, abs=0.1)
    assert row["reference"] == pytest.approx(0.5, abs=0.1)
    ideal = of(found, "retrain", metric)
    same = metric in FROM_TABLES
    assert (ideal["estimate"] == ideal["reference"]) == same


def test_all_models_are_attacked_and_compared_with_retrained_ones(made, found):
    """The row of Are we making progress in unlearning?, A.11, and AUCs by their definitions."""
    problem = made.problem()
    forget, test = problem.forget, problem.never_trained
    originals, retrained = problem.originals.loss[:16], problem.retrained.loss[:16]
    each = membership_accuracy(originals[:, forget], originals[:, test])
    assert interval(of(found, "none", "mia_accuracy")) == pytest.approx(student(each))
    # A retrained model is compared with the mean of the others, any other model with all.
    others = [retrained.mean(axis=0), (retrained.sum(axis=0) - retrained) / 15]
    calibrated = [originals - others[0], retrained - others[1]]
    sizes = np.array([len(zlib.compress(f"a {i}".encode())) for i in range(45)])
    for metric, (one, other) in {
        "auc_loss": (originals, retrained),
        "auc_calibrated": calibrated,
        "auc_zlib": (10 * originals / sizes, 10 * retrained / sizes),
    }.items():
        row = of(found, "none", metric)
        values = auc(-one[:, forget], -one[:, test])
        assert interval(row) == pytest.approx(student(values)), metric
        reference = auc(-other[:, forget], -other[:, test])
        assert row["reference"] == pytest.approx(reference.mean()), metric
        assert row["n_models"] == 16
    row = of(found, "good", "auc_loss")
    good = next(one for one in made.methods(problem) if one.name == "good").of(problem.stock).loss
    expected = privleak(*(auc(-x[:, forget], -x[:, test]) for x in (good, retrained)))
    assert interval(of(found, "good", "privleak_loss")) == pytest.approx(expected)


def test_privleak_is_negative_where_nothing_is_forgotten(found):
    """MUSE's sign; its own value before unlearning is near -100 %."""
    for metric in ("privleak", "privleak_loss"):
        assert -1 <= of(found, "none", metric)["estimate"] < -0.9
        good = of(found, "good", metric)
        assert good["lower"] < 0 < good["upper"]
    ideal = of(found, "retrain", "privleak")
    assert np.isnan(ideal["estimate"])
    assert ideal["n_models"] == 0


def test_the_test_of_all_models_tells_the_originals_and_not_the_good_ones(found):
    assert of(found, "none", "ks_log_p")["estimate"] == pytest.approx(np.log(1 / 1000))
    for method in ("good", "retrain"):
        row = of(found, method, "ks_log_p")
        assert row["estimate"] > np.log(0.05)
        assert row["reference"] == -1
        assert np.isnan([row["lower"], row["upper"]]).all()


def test_extraction_by_its_definitions(made, found):
    problem = made.problem()
    nll = problem.originals.nll[:16][:, FORGET]
    expected = {
        "leak_at_1": np.exp(-nll).mean(axis=1),
        "leak_at_100": (1 - (1 - np.exp(-nll)) ** 100).mean(axis=1),
    }
    # The world's strings have 10 tokens, and its originals get all right; half count as the last.
    last = np.clip(np.round(10 * (1.8 - nll / 10)), 0, 10) // 2
    expected["extraction"] = (last >= 5).mean(axis=1)
    expected["extraction_strength"] = (last / 10).mean(axis=1)
    for metric, values in expected.items():
        assert interval(of(found, "none", metric)) == pytest.approx(student(values)), metric
    assert of(found, "none", "extraction")["estimate"] > 0.9
    assert of(found, "none", "extraction")["reference"] == 0


def test_models_that_do_not_relearn_are_censored(found):
    """Eight of sixteen ideal models were tried: four took 5 steps, four took more than 10."""
    row = of(found, "retrain", "relearn_steps")
    expected = student([5, 10] * 4)
    assert interval(row) == pytest.approx(expected)
    assert row["n_models"] == 8
    share = of(found, "retrain", "relearn_not_reached")
    assert (share["estimate"], share["n_models"]) == (0.5, 8)
    # Clopper and Pearson's interval of 4 of 8, from their table.
    assert interval(share)[1:] == pytest.approx((0.157, 0.843), abs=5e-4)
    good = of(found, "good", "relearn_steps")
    assert (good["estimate"], good["reference"]) == (3, 7.5)
    assert np.isnan([good["lower"], good["upper"]]).all()
    assert of(found, "good", "relearn_log_p")["estimate"] < np.log(0.001)
    assert np.isnan(of(found, "retrain", "relearn_log_p")["estimate"])


def test_distances_are_means(found):
    row = of(found, "good", "distance_to_original")
    assert interval(row) == pytest.approx(student(1 + np.arange(16)))


def test_ends_without_tables_have_no_metrics_of_tables(made):
    problem = made.problem()
    files = [[path for path in of if "/none/" not in path and "/retrain/" not in path]
             for of in (made.unlearned, made.models)]  # fmt: skip
    few = metrics(problem, problem.methods(*files, with_tokens=True))
    for metric in (*FROM_TABLES, "privleak", "relearn_steps", "distance_to_original"):
        row = of(few, "none", metric)
        assert np.isnan(row["estimate"]), metric
        assert row["n_models"] == 0
    assert np.isnan(of(few, "good", "auc_min_k")["reference"])
    assert of(few, "good", "auc_min_k")["n_models"] == 16
    assert np.isnan(of(few, "good", "relearn_log_p")["estimate"])
    assert of(few, "none", "auc_loss")["estimate"] > 0.95


def test_one_original_model_counts_once(tmp_path):
    """Under reuse-n-1, all models of a method come from one original model."""
    made = world(tmp_path, names=("reuse-n-1",), n=6, pool=6, repetitions=2)
    problem = made.problem()
    found = metrics(problem, made.methods(problem, with_tokens=True))
    for metric in ("accuracy_gap", "auc_loss", "ks_log_p"):
        assert of(found, "none", metric)["n_models"] == 1
        assert np.isnan(of(found, "none", metric)["lower"])
        assert of(found, "good", metric)["n_models"] == 6
    # One model among seven: p is 1/7 at the least.
    assert of(found, "none", "ks_log_p")["estimate"] == pytest.approx(np.log(1 / 7), abs=0.3)


def test_methods_with_equal_predictions_are_found(made, tmp_path):
    problem = made.problem()
    assert equal_methods(problem, made.methods(problem, with_tokens=True)) == []
    assert len(list(refuse_equal(problem, made.methods(problem)))) == 4
    keys = [(origin, 0) for origin in range(16)]
    other = losses(np.random.default_rng(5), 16, FORGET)
    idle = unlearned(tmp_path, "idle", keys, problem.originals.loss[:16])
    twins = [unlearned(tmp_path, name, keys, other) for name in ("one", "two")]
    for method, files in (("idle", [idle]), ("two", twins)):
        given = problem.methods([made.unlearned[0], *(one[0] for one in files)], [])
        pair = ("none", "idle") if method == "idle" else ("one", "two")
        methods = list(given)
        assert equal_methods(problem, methods) == [pair]
        with pytest.raises(UserError, match=f"{method} and {pair[0]} make models") as error:
            list(refuse_equal(problem, methods))
        assert "\n" not in str(error.value)


def test_scikit_learn_is_not_imported():
    code = "import sys, palimpsest.unlearning.evaluate.metrics; print('sklearn' in sys.modules)"
    path = {"PYTHONPATH": "workflow/scripts"}
    done = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, check=True)
    assert done.stdout.split() == [b"False"]


def test_a_difference_counts_the_chance_of_both_sides():
    """Of models that are alike, 5 % differ; an interval of one side alone would say 16 %."""
    chance = np.random.default_rng(1)
    both, alone = [], []
    for _ in range(2000):
        one, other = map(student, chance.normal(size=(2, 16)))
        both.append(differs(one, other))
        alone.append(differs(one, Interval(other.mean, np.nan, np.nan)))
    assert 0.035 < np.mean(both) < 0.065
    assert 0.13 < np.mean(alone) < 0.2


def test_what_differs_is_said_of_each_row():
    """By its interval and that of the reference; not without an interval."""
    found = Interval(0.6, 0.55, 0.65)
    assert differs(found, Interval(0.5, np.nan, np.nan))
    assert not differs(found, Interval(0.5, 0.4, 0.6))
    assert differs(found, Interval(0.7, 0.68, 0.72))
    assert differs(Interval(0.6, np.nan, np.nan), found) is None
    assert differs(found, NO_INTERVAL) is None
