"""Extraction and memorised bits: closed forms, and their studies on runs worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from palimpsest import tables, traces
from palimpsest.errors import UserError
from palimpsest.languages import Grammar
from palimpsest.memorisation import extraction_probability, memorised_bits
from palimpsest.memorisation.bits import bits_table
from palimpsest.memorisation.extraction import SAMPLES, extraction_table
from palimpsest.memorisation.studies import STUDIES
from palimpsest.sections import KINDS
from palimpsest.tables.trace import TRACE
from palimpsest.traces import Trace

LOG_PROBABILITIES = st.floats(-2000, 0)
COUNTS = st.integers(1, 10**6)


@given(LOG_PROBABILITIES)
def test_one_sample_produces_a_string_with_its_probability(log_probability):
    np.testing.assert_allclose(
        extraction_probability(log_probability, 1), np.exp(log_probability), rtol=1e-12
    )


@given(st.lists(LOG_PROBABILITIES, min_size=2, max_size=2), st.lists(COUNTS, min_size=2))
def test_extraction_grows_with_the_probability_and_with_the_samples(log_probability, samples):
    found = extraction_probability(np.sort(log_probability)[:, None], np.sort(samples))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found, axis=0) >= -1e-15).all()
    assert (np.diff(found, axis=1) >= -1e-15).all()


def test_a_tiny_probability_is_not_rounded_to_nothing():
    """1 - 1e-30 is 1 for a computer, so the textbook's formula gives 0."""
    found = extraction_probability(np.log(1e-30), np.array([1, 10**6]))
    np.testing.assert_allclose(found, [1e-30, 1e-24], rtol=1e-12)
    assert extraction_probability(-1e4, 10**6) == 0


def test_a_certain_string_is_always_produced():
    np.testing.assert_array_equal(extraction_probability(0.0, np.array([1, 10**6])), [1, 1])


def test_extraction_of_a_language_is_the_share_of_samples_of_it_that_hold_the_string():
    grammar = Grammar.from_string("S -> 'a' 'b' [0.3] | 'b' 'b' [0.7]\n")
    n, k = 2000, 4
    samples = grammar.sample(n * k, seed=0)
    held = sum(("a", "b") in samples[i : i + k] for i in range(0, n * k, k))
    probability = extraction_probability(grammar.log_probability([("a", "b")])[0], k)
    np.testing.assert_allclose(probability, 1 - 0.7**4, rtol=1e-12)
    assert binom.ppf(1e-4, n, probability) <= held <= binom.ppf(1 - 1e-4, n, probability)


@pytest.mark.parametrize(
    ("log_probability", "samples", "message"),
    [
        (0.1, 1, "log_probability: must be at most 0"),
        (np.nan, 1, "log_probability: must be at most 0"),
        (-1.0, 0, "samples: must be at least 1"),
    ],
)
def test_extraction_refuses_what_is_no_probability(log_probability, samples, message):
    with pytest.raises(ValueError, match=message):
        extraction_probability(log_probability, samples)


def test_bits_of_somebody_who_knows_the_language_or_the_string():
    language_nll = np.log([2.0, 8.0, 1024.0])
    np.testing.assert_array_equal(memorised_bits(language_nll, language_nll), 0)
    np.testing.assert_allclose(memorised_bits(np.zeros(3), language_nll), [1, 3, 10])
    with pytest.raises(ValueError, match="nll: must be finite"):
        memorised_bits(np.array([np.inf]), np.array([1.0]))
    with pytest.raises(ValueError, match="language_nll: must be finite"):
        memorised_bits(np.array([1.0]), np.array([np.nan]))


@given(*(arrays(float, 6, elements=st.floats(0.01, 1)) for _ in range(2)))
def test_a_model_holds_no_bits_of_new_strings_on_average(language, model):
    """Gibbs' inequality: over draws of the language, no model beats the language."""
    language, model = language / language.sum(), model / model.sum()
    assert language @ memorised_bits(-np.log(model), -np.log(language)) <= 1e-12


# a and b are trained on, c and d are not; h is only measured. Each has two predicted tokens.
EPOCHS = np.array([0, 2, 4])
NAMES = np.array(list("abcdh"), dtype=object)
STRINGS = pd.DataFrame(
    {
        "string_id": NAMES,
        "n_tokens": 2,
        "split": ["train", "train", "test", "test", "held_out"],
        "count": [3, 1, 0, 0, 0],
        "log_prob": -np.log([2, 8, 4, 16, 2]),
        # The probabilities of the predicted tokens, as the tables `strings` have them
        "optimal_loss": np.log([2, 8, 4, 16, 2]) / 2,
    }
)
# One over the probability of each string under the model; 2 is the epoch of optimal learning.
ODDS = np.array([[64, 64, 64, 64, 64], [2, 4, 4, 32, 1], [1, 2, 16, 64, 1]])


def trace(seed=0, odds=ODDS, variant="base"):
    return Trace(
        run={"model": "m", "language": "L", "size": 4, "seed": seed, "variant": variant},
        epochs=EPOCHS,
        string_ids=NAMES,
        n_tokens=np.full(5, 2),
        nll=np.log(odds.astype(float)),
        n_correct=np.zeros(odds.shape, int),
        rank_sum=np.full(odds.shape, 2),
    )


def stacked(frame, **columns):
    """A table of the datasets or runs of two seeds."""
    run = {"language": "L", "size": 4, "variant": "base", **columns}
    return pd.concat([frame.assign(**run, seed=seed) for seed in (0, 1)], ignore_index=True)


DATASETS = stacked(STRINGS)
LEARNING = stacked(pd.DataFrame({"epoch": EPOCHS, "optimal_epoch": 2}), model="m")


@pytest.fixture
def paths(tmp_path):
    """Traces of two seeds, and of the first seed's leave-one-out, on disk."""
    without = ODDS.copy()
    without[:, :2] = [[64, 64], [4, 8], [8, 32]]
    left_out = [trace(odds=without, variant=f"without-{name}") for name in "ab"]
    given = {"0": [trace(0)], "1": [trace(1)], "left-out": left_out}
    for name, runs in given.items():
        frame = pd.concat([traces.to_frame(run) for run in runs], ignore_index=True)
        tables.write(tmp_path / name, frame, TRACE)
    return {name: str(tmp_path / name) for name in given}


def probabilities(table, moment, group, source, seed=0, column="probability"):
    wanted = {"moment": moment, "group": group, "source": source, "seed": seed}
    rows = table[(table[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    return rows.set_index("samples")[column]


@pytest.mark.parametrize(
    ("moment", "group", "source", "odds"),
    [
        ("optimum", "train", "model", [2, 4]),
        ("optimum", "train", "language", [2, 8]),
        ("optimum", "train", "retraining", [4, 8]),
        ("optimum", "unseen", "model", [4, 32]),
        ("end", "train", "model", [1, 2]),
        ("end", "train", "language", [2, 8]),
        ("end", "train", "retraining", [8, 32]),
        ("end", "unseen", "model", [16, 64]),
        ("end", "unseen", "language", [4, 16]),
    ],
)
def test_extraction_by_hand(paths, moment, group, source, odds):
    """Distinct strings count once, whatever their copies; held-out strings do not count."""
    table = extraction_table([paths["0"], paths["1"]], [paths["left-out"]], DATASETS, LEARNING)
    found = probabilities(table, moment, group, source)
    assert list(found.index) == list(SAMPLES)
    missed = 1 - 1 / np.array(odds, float)
    for k in (1, 2, 5, 100):
        np.testing.assert_allclose(found[k], np.mean(1 - missed**k), rtol=1e-12)
    likely = probabilities(table, moment, group, source, column="share_likely")
    assert likely[2] == np.mean(1 - missed**2 >= 0.5)
    assert set(table["n_strings"]) == {2}


def test_only_runs_with_leave_one_out_have_it(paths):
    table = extraction_table([paths["0"], paths["1"]], [paths["left-out"]], DATASETS, LEARNING)
    assert set(table.loc[table["source"] == "retraining", "seed"]) == {0}
    table = extraction_table([paths["1"]], [], DATASETS, LEARNING)
    assert set(table["source"]) == {"model", "language"}


def test_bits_by_hand(paths):
    table = bits_table([paths["0"], paths["1"]], DATASETS, LEARNING, {"m": 100})
    first = table[table["seed"] == 0].set_index("epoch")
    expected = {
        # a: log2(2 / 64), 0, 1; b: log2(8 / 64), 1, 2
        "bits": [-4, 0.5, 1.5],
        # c: log2(4 / 64), 0, -2; d: log2(16 / 64), -1, -2
        "bits_unseen": [-3, -0.5, -2],
        "positive": [0, 0.5, 1.5],
        "positive_unseen": [0, 0, 0],
        "total": [-8, 1, 3],
        "total_corrected": [-2, 2, 7],
        "per_parameter": [-0.08, 0.01, 0.03],
        "corrected_per_parameter": [-0.02, 0.02, 0.07],
        "n_train": [2, 2, 2],
        "n_unseen": [2, 2, 2],
        "optimal_epoch": [2, 2, 2],
    }
    for column, values in expected.items():
        np.testing.assert_allclose(first[column], values, atol=1e-12, err_msg=column)


def test_without_unseen_strings_there_is_no_placebo(paths):
    seen = DATASETS[DATASETS["split"] != "test"]
    bits = bits_table([paths["0"]], seen, LEARNING, {"m": 100})
    undefined = ["bits_unseen", "positive_unseen", "total_corrected", "corrected_per_parameter"]
    assert bits[undefined].isna().all().all()
    assert bits["total"].notna().all()
    assert set(extraction_table([paths["0"]], [], seen, LEARNING)["group"]) == {"train"}
    tables.write(paths["0"] + "-bits", bits, KINDS["bits"])


def test_studies_are_of_their_kind(paths, tmp_path):
    given = {"strings": DATASETS, "learning": LEARNING, "traces": [paths["0"], paths["1"]]}
    (tmp_path / "manifest.json").write_text('{"model": "m", "parameters": 100}')
    made = {
        "extraction": STUDIES["extraction"].table(**given, left_out=[paths["left-out"]]),
        "bits": STUDIES["bits"].table(**given, manifests=[str(tmp_path / "manifest.json")]),
    }
    rows = {"extraction": 2 * len(SAMPLES) * (2 * 4 + 1), "bits": 2 * len(EPOCHS)}
    for name, frame in made.items():
        assert len(frame) == rows[name]
        tables.write(tmp_path / name, frame, KINDS[name])
        tables.read(tmp_path / name, KINDS[name])


def test_runs_that_do_not_fit_are_refused(paths):
    other = LEARNING[LEARNING["seed"] == 1]
    with pytest.raises(UserError, match="m/L/n4-seed0/base has no table `strings` or `learning`"):
        bits_table([paths["0"]], DATASETS, other, {"m": 100})
    unknown = DATASETS.assign(log_prob=np.nan)
    with pytest.raises(UserError, match="have no known probabilities"):
        extraction_table([paths["0"]], [], unknown, LEARNING)
    part = DATASETS.assign(count=[3, 0, 1, 0, 0] * 2)
    with pytest.raises(UserError, match=r"a run without .*, no training string"):
        extraction_table([paths["0"]], [paths["left-out"]], part, LEARNING)
