"""Memorisation before and after unlearning, on models that are known to have forgotten or not."""

import numpy as np
import pytest

from helpers.unlearning_world import FORGET, STRINGS, TRAINED, losses, unlearned, world
from palimpsest import memorisation as measures
from palimpsest import tables
from palimpsest.sections import KINDS
from palimpsest.unlearning.memorised import memorisation
from palimpsest.unlearning.samples import RETAIN, read_trained
from palimpsest.unlearning.setups import wanted

IDS = STRINGS["string_id"].to_numpy(dtype=object)
KEYS = ["measure", "evidence"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A world with a method that raises the loss of the forget set by 3 nats."""
    made = world(tmp_path_factory.mktemp("world"), repetitions=2)
    keys = wanted(made.setups)
    loss = losses(np.random.default_rng(1), len(keys), TRAINED)
    loss[:, FORGET] += 3
    for files, path in zip(
        (made.unlearned, made.models), unlearned(made.folder, "wrecked", keys, loss), strict=True
    ):
        files.append(path)
    return made


@pytest.fixture(scope="module")
def found(made):
    problem = made.problem()
    retrained = read_trained(made.retrained, RETAIN, IDS[FORGET], "all")
    return memorisation(problem, made.methods(problem), retrained, 0.2, 0.95)


def of(found, method, measure):
    return found[(found["method"] == method) & (found["measure"] == measure)]


def test_the_table_has_every_method_string_and_measure(found, tmp_path):
    tables.write(tmp_path / "memorisation.parquet", found, KINDS["unlearning_memorisation"])
    assert len(found) == 5 * 5 * FORGET.sum()
    assert not found.duplicated(["method", "string_id", *KEYS]).any()


def test_shares_and_scores_are_the_platforms_measures(made, found):
    """Each model as a run of one epoch, measured by the public functions."""
    problem = made.problem()
    curves = read_trained(made.retrained, RETAIN, IDS[FORGET], "all").loss[:16].mean(axis=0)
    contextual = measures.contextual(curves, curves).threshold[0]
    np.testing.assert_allclose(contextual, 0.9 * curves[-1])  # where the world's traces are lowest
    for name, models in (
        ("before", problem.originals),
        ("retrained", problem.retrained.of(np.arange(16))),
    ):
        loss = models.loss[:16, FORGET]
        expected = {
            "counterfactual": [measures.counterfactual(row[None], curves[-1:]) for row in loss],
            "contextual": [measures.contextual(row[None], contextual[None]) for row in loss],
            "bayes": [measures.bayes(row[None], np.ones(FORGET.sum())) for row in loss],
            "recollection": [measures.recollection(row[None], 0.2) for row in loss],
            "recollection_accuracy": [
                measures.recollection(1 - row[None] / 10, 1 - 0.95)
                for row in models.n_correct[:16, FORGET]
            ],
        }
        for measure, results in expected.items():
            rows = of(found, "good", measure)
            shares = np.mean([result.memorised[0] for result in results], axis=0)
            scores = np.mean([result.score[0] for result in results], axis=0)
            np.testing.assert_allclose(rows[name], shares)
            np.testing.assert_allclose(rows[f"score_{name}"], scores)
            np.testing.assert_allclose(rows["threshold"], results[0].threshold[0])


def test_methods_that_forget_and_one_that_does_not(found):
    for measure in ("counterfactual", "contextual", "bayes"):
        assert (of(found, "none", measure)["before"] == 1).all()
        assert (of(found, "wrecked", measure)["after"] == 0).all()
        assert of(found, "good", measure)["after"].mean() < 0.6
    assert (of(found, "none", "recollection")["before"] == 0).all()
    none = found[found["method"] == "none"]
    np.testing.assert_array_equal(none["before"], none["after"])
    np.testing.assert_array_equal(none["score_before"], none["score_after"])


def test_retrained_models_are_below_their_own_mean_about_half_of_the_time(found):
    for column, method in (("retrained", "good"), ("after", "retrain")):
        assert of(found, method, "counterfactual")[column].mean() == pytest.approx(0.5, abs=0.15)


def test_scores_are_within_0_and_1_and_only_where_memorised(found):
    for when in ("before", "after", "retrained"):
        share, score = found[when], found[f"score_{when}"]
        assert ((score >= 0) & (score <= share)).all()
        assert ((share > 0) == (score > 0)).all()
