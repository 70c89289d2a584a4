"""Memorisation before and after unlearning, on models that are known to have forgotten or not."""

import numpy as np
import pandas as pd
import pytest

from helpers.unlearning_world import FORGET, STRINGS, TRAINED, losses, unlearned, world
from palimpsest import tables
from palimpsest.sections import KINDS
from palimpsest.unlearning.evaluate.memorised import measures, memorisation
from palimpsest.unlearning.evaluate.samples import RETAIN, read_trained
from palimpsest.unlearning.run.setups import unlearned_models

IDS = STRINGS["string_id"].to_numpy(dtype=object)
N = 39  # the 5 % quantile of so many values is the second smallest
N_FORGET = FORGET.sum()


def table_of(made, loss_threshold=0.2):
    """The memorisation in a world."""
    problem = made.problem()
    retrained = read_trained(made.retrained, RETAIN, IDS, "all")
    return memorisation(problem, made.methods(problem), retrained, loss_threshold, 0.95)


def add(made, name, loss):
    """Add a method whose models have these losses."""
    files = unlearned(made.folder, name, unlearned_models(made.setups), loss)
    made.unlearned.append(files[0])
    made.models.append(files[1])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A world with a method that raises the loss of the forget set by 3 nats."""
    folder = tmp_path_factory.mktemp("world")
    made = world(folder, names=["reuse-n-n"], n=N, repetitions=2)
    loss = losses(np.random.default_rng(1), len(unlearned_models(made.setups)), TRAINED)
    loss[:, FORGET] += 3
    add(made, "wrecked", loss)
    return made


@pytest.fixture(scope="module")
def found(made):
    return table_of(made)


def of(found, method, measure, strings="forget"):
    """The rows of a method and a measure."""
    chosen = (found["method"] == method) & (found["measure"] == measure)
    return found[chosen & (found["string_role"] == strings)]


def test_the_table_has_every_method_string_and_measure(found, tmp_path):
    tables.write(tmp_path / "memorisation.parquet", found, KINDS["unlearning_memorisation"])
    assert len(found) == 5 * 2 * 5 * N_FORGET
    # Two forget strings may have the same placebo.
    forget = found[found["string_role"] == "forget"]
    assert not forget.duplicated(["method", "string_id", "measure"]).any()
    assert set(forget["string_id"]) == set(IDS[FORGET])
    placebo = found[found["string_role"] == "placebo"]
    unseen = STRINGS.loc[STRINGS["split"] == "test", "string_id"]
    assert set(placebo["string_id"]) <= set(unseen)
    assert len(placebo) == len(forget)


def test_thresholds_and_shares_are_counted(made, found):
    """By counting models in the traces; the world's losses are lowest before the last epoch."""
    problem = made.problem()
    reference, ideal = (
        problem.retrained.of(some).loss[:, FORGET] for some in (np.arange(N), N + np.arange(N))
    )
    second = np.sort(reference, axis=0)[1]
    originals = problem.originals.loss[:, FORGET]
    right = problem.originals.n_correct[:, FORGET] / 10
    for measure, threshold in {
        "counterfactual": second,
        "contextual": 0.9 * second,
        "bayes": np.ones(N_FORGET),
        "recollection": np.full(N_FORGET, 0.2),
    }.items():
        rows = of(found, "good", measure)
        np.testing.assert_allclose(rows["threshold"], threshold)
        np.testing.assert_allclose(rows["before"], (originals < threshold).mean(0))
        np.testing.assert_allclose(rows["retrained"], (ideal < threshold).mean(0))
    rows = of(found, "good", "recollection_accuracy")
    np.testing.assert_allclose(rows["threshold"], 0.05)
    np.testing.assert_allclose(rows["before"], (right > 0.95).mean(0))


def test_methods_that_forget_and_one_that_does_not(found):
    for measure in ("counterfactual", "contextual", "bayes"):
        assert (of(found, "none", measure)["before"] == 1).all()
        assert (of(found, "wrecked", measure)["after"] == 0).all()
        assert of(found, "good", measure)["after"].mean() < 0.15
    assert of(found, "shifted", "bayes")["after"].mean() > 0.5
    assert (of(found, "none", "recollection")["before"] == 0).all()
    none = found[found["method"] == "none"]
    np.testing.assert_array_equal(none["before"], none["after"])
    retrain = found[found["method"] == "retrain"]
    np.testing.assert_array_equal(retrain["retrained"], retrain["after"])


def test_the_ideal_shares_no_model_with_the_thresholds(made, found):
    """Otherwise the share of retrained models below would be 1 of 39, the lowest, always."""
    shares = of(found, "none", "counterfactual")["retrained"]
    assert shares.nunique() > 1


# Error rates


def test_one_retrained_model_in_twenty_is_below_its_threshold():
    """On 3000 simulated strings, each with its own distribution of losses."""
    chance = np.random.default_rng(0)
    spread = chance.uniform(0.05, 1, 3000)

    def drawn(n):
        return 2 + spread * chance.gamma(2.0, size=(n, 1, 3000))

    strings = pd.DataFrame({"optimal_loss": np.ones(3000)})
    for n, level in ((N, 2 / 40), (99, 5 / 100)):
        asked = {one.measure: one for one in measures(strings, drawn(n), 0.2, 0.95)}
        below = drawn(100)[:, 0] < asked["counterfactual"].threshold
        assert below.mean() == pytest.approx(level, abs=0.004)


def test_a_placebo_is_memorised_by_one_original_model_in_twenty(tmp_path):
    """And by one unlearned model in twenty; the means are over eight worlds."""
    shares = []
    for seed in range(8):
        folder = tmp_path / str(seed)
        made = world(folder, names=["reuse-n-n"], n=N, repetitions=1, methods=["good"], seed=seed)
        rows = of(table_of(made), "good", "counterfactual", "placebo").drop_duplicates("string_id")
        shares.append(rows[["before", "after", "retrained"]].mean())
    mean = np.mean(shares, axis=0)
    np.testing.assert_allclose(mean, 0.05, atol=0.015)


# Questions that a measure cannot answer


def answerable_in(optimal, loss, threshold=0.5):
    """Whether each measure is answerable for strings with losses [epochs, strings] of one model."""
    strings = pd.DataFrame({"optimal_loss": np.array(optimal, dtype=float)})
    found = measures(strings, np.array(loss, dtype=float)[None], threshold, 0.95)
    return {one.measure: one.answerable.tolist() for one in found}


def test_recollection_is_answerable_in_strings_that_a_perfect_learner_would_not_recollect():
    asked = answerable_in([0.4, 0.5, 0.6], np.ones((1, 3)))
    assert asked["recollection"] == asked["recollection_accuracy"] == [False, False, True]
    assert asked["bayes"] == asked["counterfactual"] == [True] * 3


def test_contextual_memorisation_is_asked_where_its_threshold_is_another():
    """Lower than the last loss by more than 0.01 nats per token."""
    asked = answerable_in([1, 1, 1, 1], [[2, 1.5, 1.995, 1.0], [1.5, 1.5, 2.0, 1.2]])
    assert asked["contextual"] == [False, False, False, True]


def test_without_probabilities_every_string_is_asked_and_bayes_is_absent():
    asked = answerable_in([np.nan, np.nan], np.ones((1, 2)))
    assert asked["recollection"] == [True, True]
    assert "bayes" not in asked
