"""The tables of neurons, of pairs and of runs, from activations and answers by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.experiments import message
from palimpsest import tables
from palimpsest.information import kraskov
from palimpsest.information.comparison import Results, information_table
from palimpsest.information.entropy import neuron_entropy
from palimpsest.information.kinds import ACTIVATIONS, ANSWERS, INFORMATION, MARKERS, SHUFFLES
from palimpsest.information.kraskov import mutual_information
from palimpsest.information.measured import How, measured, pairs_of
from palimpsest.traces import Trace

KEYS = {"model": "m", "language": "L3", "size": 4, "seed": 0}
N_STRINGS, N_NEURONS = 40, 6


def activations(variant="marked-50", degenerate=(), layers=(0, 1)) -> pd.DataFrame:
    """A table of drawn activations; some neurons are constant, and one is not finite."""
    chance = np.random.default_rng(0)
    parts = []
    for layer in layers:
        values = chance.normal(size=(N_STRINGS, N_NEURONS)).astype(np.float32)
        values[:, 1] += values[:, 0]
        for place, neuron in enumerate(degenerate):
            values[:, neuron] = 0.5
            values[0, neuron] = np.inf if place == 0 else 0.5
        part = {"string_id": [f"{n:012}" for n in range(N_STRINGS)], "vector": list(values)}
        about = {**KEYS, "variant": variant, "layer": layer, "place": "mlp", "position": "last"}
        parts.append(pd.DataFrame(part).assign(**about))
    return pd.concat(parts, ignore_index=True)[ACTIVATIONS.names]


def values_of(table: pd.DataFrame, layer: int) -> np.ndarray:
    """The activations of a layer, float[strings, neurons]."""
    return np.stack(table.loc[table["layer"] == layer, "vector"].tolist())


@pytest.mark.parametrize("threads", [1, 2])
def test_measures_are_those_of_the_library(threads):
    """Of every site alone; pairs are in order."""
    given = activations()
    found = measured(given, How(10, 3, "all"), threads=threads)
    for layer in (0, 1):
        values = values_of(given, layer)
        neurons = found["neurons"].query("layer == @layer")
        assert neurons["neuron"].tolist() == list(range(N_NEURONS))
        np.testing.assert_array_equal(neurons["entropy"], neuron_entropy(values, 10))
        assert not neurons["is_degenerate"].any()
        pairs = found["pairs"].query("layer == @layer")
        assert list(zip(pairs["first"], pairs["second"], strict=True)) == list(
            zip(*np.triu_indices(N_NEURONS, 1), strict=True)
        )
        every = mutual_information(values)
        np.testing.assert_array_equal(
            pairs["mutual_information"], every[pairs["first"], pairs["second"]]
        )


def test_degenerate_neurons_are_in_no_pair():
    """A sample is drawn from the pairs of all neurons, so that other runs have the same pairs."""
    found = measured(activations(degenerate=(2, 4)), How(10, 3, 5))
    assert found["neurons"].groupby("neuron")["is_degenerate"].all().tolist() == [
        False, False, True, False, True, False,
    ]  # fmt: skip
    entropy = found["neurons"].set_index("neuron")["entropy"]
    assert entropy[2].isna().all()
    assert (entropy[4] == 0).all()
    pairs = found["pairs"]
    whole = measured(activations(), How(10, 3, 5))["pairs"]
    assert whole.groupby("layer").size().tolist() == [5, 5]
    without = whole[~whole["first"].isin([2, 4]) & ~whole["second"].isin([2, 4])]
    places = ["layer", "first", "second"]
    assert pairs[places].to_numpy().tolist() == without[places].to_numpy().tolist()
    assert 0 < len(pairs) < len(whole)
    assert not {2, 4} & {*pairs["first"], *pairs["second"]}
    assert np.isfinite(pairs["mutual_information"]).all()


def test_a_site_may_have_no_pair():
    found = measured(activations(degenerate=range(1, 6)), How(10, 3, "all"))
    assert found["pairs"].empty
    assert found["neurons"]["is_degenerate"].sum() == 2 * 5


def test_too_few_strings_are_refused():
    said = message(lambda: measured(activations(), How(10, N_STRINGS, 3)))
    assert "at least 41 samples" in said
    assert "raise the number of evaluated strings" in said


def test_more_pairs_than_memory_holds_are_refused(monkeypatch):
    """In one line that says how many sampled pairs there may be."""
    monkeypatch.setattr(kraskov, "available_memory", lambda: 8000)
    said = message(lambda: measured(activations(), How(10, 3, "all")))
    assert "30 pairs at 2 sites of up to 6 neurons need" in said
    assert said.endswith("take at most 6 sampled pairs of a site")
    assert len(measured(activations(), How(10, 3, 6))["pairs"]) == 12


def test_no_activations_are_refused():
    said = message(lambda: measured(activations()[:0], How(10, 3, 3)))
    assert said == "activations: there are none; name a layer, a place and a position"


def results(variant: str, degenerate=()) -> Results:
    """A run with four training strings, eight evaluated and three held out, each of two tokens."""
    table = activations(variant, degenerate)
    found = measured(table, How(10, 3, "all"))
    ids = [f"{n:012}" for n in range(15)]
    # The Bayes-optimal loss is 1 nat per token; one held-out string is not in the language.
    strings = pd.DataFrame(
        {
            "string_id": ids,
            "count": [1] * 3 + [2] + [0] * 11,
            "test_count": [0] * 4 + [1] * 8 + [0] * 3,
            "optimal_loss": [1.0] * 14 + [np.nan],
            "split": ["train"] * 4 + ["test"] * 8 + ["held_out"] * 3,
        }
    )
    about, is_marked = {**KEYS, "variant": variant}, variant.startswith("marked")
    # At the end, two training strings have a loss below 1 per token, and one that is held out.
    nll = np.stack([np.full(15, 8.0), [1.0, 1.0, 3.0, 8.0, 1.0, *[6.0] * 7, 1.0, 6.0, 1.0]])
    names, n_tokens = np.array(ids, dtype=object), np.full(15, 2)
    trace = Trace(about, np.array([0, 30]), names, n_tokens, nll, n_correct=0 * nll, rank_sum=nll)
    roles = ["agrees"] * 2 + ["disagrees"] * 6 if is_marked else [None] * 8
    answers = pd.DataFrame(
        {
            **about,
            "string_id": ids[4:12],
            "answer": "1",
            "given": "1",
            "is_right": [True, True, True, False, False, False, False, False],
            "role": pd.array(roles, "string"),
            "nll": 1.0,
        }
    )[ANSWERS.names]
    norms = pd.DataFrame([{**about, "two_norm": 0.5, "frobenius": 1.5}])
    return Results(strings, trace, answers, norms, found["neurons"], found["pairs"])


def columns(runs: list[Results]) -> zip:
    """The datasets of some runs, their traces and so on, as `information_table` takes them."""
    return zip(*(vars(run).values() for run in runs), strict=True)


def test_the_comparison_by_hand(tmp_path):
    runs = [results("marked-75", degenerate=(5, 4)), results("shuffled-100")]
    table = information_table(*columns(runs), 2)
    tables.write(tmp_path / "information.parquet", table, INFORMATION)
    assert table["intervention"].tolist() == [MARKERS] * 2 + [SHUFFLES] * 2
    assert table["share"].tolist() == [0.75] * 2 + [1.0] * 2
    assert table["layer"].tolist() == [0, 1, 0, 1]
    assert table["n_degenerate"].tolist() == [2, 2, 0, 0]
    assert table["n_pairs"].tolist() == [6, 6, 15, 15]
    for row, (run, layer) in enumerate((run, layer) for run in runs for layer in (0, 1)):
        own = run.neurons[run.neurons["layer"] == layer]
        neurons = own[~own["is_degenerate"]]
        assert table["entropy"][row] == pytest.approx(neurons["entropy"].mean())
        pairs = run.pairs[run.pairs["layer"] == layer]
        expected = pairs["mutual_information"].mean()
        assert table["mutual_information"][row] == pytest.approx(expected)
    assert (table["accuracy"] == 3 / 8).all()
    assert table["accuracy_agrees"].iloc[:2].tolist() == [1.0, 1.0]
    assert table["accuracy_disagrees"].iloc[:2].tolist() == [1 / 6, 1 / 6]
    assert table[["accuracy_agrees", "accuracy_disagrees"]].iloc[2:].isna().all(axis=None)
    # Five training strings with copies have ten tokens.
    assert (table["train_loss"] == (1 + 1 + 3 + 2 * 8) / 10).all()
    assert table["test_loss"].to_numpy() == pytest.approx((1 + 7 * 6) / 16)
    assert (table["memorised"] == 2 / 4).all()
    assert (table["memorised_unseen"] == 1 / 2).all()
    assert (table["n_layers"] == 2).all()


def test_strings_that_the_language_does_not_have_are_no_placebo(tmp_path):
    """None of the held-out strings is in the language of the training strings."""
    run = results("marked-100")
    never = run.strings["split"] == "held_out"
    strings = run.strings.assign(optimal_loss=run.strings["optimal_loss"].mask(never))
    table = information_table(*columns([replace(run, strings=strings)]), 2)
    tables.write(tmp_path / "information.parquet", table, INFORMATION)
    assert table["memorised_unseen"].isna().all()
    assert (table["memorised"] == 2 / 4).all()


def test_a_site_of_degenerate_neurons_has_no_means(tmp_path):
    """It is in the table all the same."""
    table = information_table(*columns([results("marked-0", degenerate=range(6))]), 2)
    tables.write(tmp_path / "information.parquet", table, INFORMATION)
    assert table["n_degenerate"].tolist() == [6, 6]
    assert table["n_pairs"].tolist() == [0, 0]
    assert table[["entropy", "mutual_information"]].isna().all(axis=None)


def test_permuted_strings_have_no_mutual_information():
    """Of a neuron with a copy of itself, too: that of the pair is high, the placebo's is near 0."""
    chance = np.random.default_rng(3)
    one = chance.normal(size=(400, 1))
    values = np.concatenate([one, one + 0.01 * chance.normal(size=one.shape), one**3], axis=1)
    found = pairs_of(values, k=3, most="all")
    assert (found["mutual_information"] > 2).all()
    assert (found["permuted"].abs() < 0.15).all()
