"""Cheap measures that the frontier's tests take as they are."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from helpers.atlas_worlds import passes_of, planted_run
from helpers.commands import ROOT, SCRIPTS
from palimpsest.atlas.contenders import (
    BANDWIDTH,
    CONTENDERS,
    LOWER_CASE,
    N_GRAM,
    OTHER_SEEDS,
    UNSEEN,
    cell_of,
    said_of,
    unique_n_grams,
)
from palimpsest.density.vectors import ngram_vectors
from palimpsest.memorisation.all_measures import Thresholds

RULES = Thresholds("after_last_miss", 0.2, 0.95)
PROGRAM = """
from helpers.atlas_worlds import planted_run
from palimpsest.atlas.contenders import cell_of, unique_n_grams
from palimpsest.memorisation.all_measures import Thresholds
run = planted_run()
rules = Thresholds("after_last_miss", 0.2, 0.95)
cell = cell_of(run.trace, run.strings, run.tokens, [], rules)
print(unique_n_grams(cell).tobytes().hex())
"""


def test_rare_n_grams_are_those_of_few_training_strings():
    run = planted_run()
    cell = cell_of(run.trace, run.strings, run.tokens, [], RULES)
    of_strings = []
    for text in cell.strings["text"]:
        symbols = text.split()
        places = range(len(symbols) - N_GRAM + 1)
        of_strings.append({" ".join(symbols[n : n + N_GRAM]) for n in places})
    expected = [
        np.mean([1 / sum(gram in other for other in of_strings) for gram in grams])
        for grams in of_strings
    ]
    np.testing.assert_allclose(unique_n_grams(cell), expected)


def test_measures_do_not_depend_on_the_order_of_sets():
    """Equal strings would otherwise differ in the last bit, and be no ties any more."""
    path = os.pathsep.join([str(SCRIPTS), str(ROOT / "tests")])
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


BY_NAME = {contender.name: contender for contender in CONTENDERS}
N_SEEDS = 3


@pytest.fixture(scope="module")
def runs():
    return [planted_run(seed) for seed in range(N_SEEDS)]


def cell_with(runs, passes=None):
    run = runs[0]
    return cell_of(run.trace, run.strings, run.tokens, [], RULES, passes or passes_of(runs))


def test_extraction_counts_the_samples_that_hold_the_second_half(runs):
    cell = cell_with(runs)
    samples = 10 ** -BY_NAME["extraction"].amount(cell)
    n_tokens = cell.strings["n_tokens"].to_numpy()
    likely = np.exp(-cell.loss[-1] * (n_tokens - n_tokens // 2))  # equal losses of all tokens
    assert 1 - (1 - likely) ** samples == pytest.approx(0.5)


@pytest.mark.parametrize(("wrong", "is_found"), [(0, True), (-1, False)])
def test_discoverable_strings_are_those_whose_second_half_is_all_right(runs, wrong, is_found):
    passes = passes_of(runs)
    place = passes.trained[3]
    ranks = passes.frames[0]["ranks"].to_list()
    ranks[place] = np.ones(len(ranks[place]))
    ranks[place][wrong] = 2
    passes.frames[0] = passes.frames[0].assign(ranks=ranks)
    cell = cell_with(runs, passes)
    assert BY_NAME["discoverable"].amount(cell)[3] == is_found
    n_last = len(ranks[place]) - 1 if is_found else 0
    strength = BY_NAME["extraction_strength"].amount(cell)
    assert strength[3] == pytest.approx(n_last / len(ranks[place]))
    assert np.delete(strength, 3).max() < 0.9


def test_the_difference_in_differences_is_0_for_what_unseen_strings_learn_alike(runs):
    """Stand-ins fall by 0.4 of about 2.1 nats, training strings by 0.9."""
    run = runs[0]
    measure = BY_NAME["difference_in_differences"].amount
    found = measure(cell_with(runs))
    has_stand_in = np.isfinite(found)
    assert has_stand_in.sum() > 15
    assert found[has_stand_in] == pytest.approx(0.5 * 2.1, abs=0.15)
    unseen = run.strings["count"].to_numpy() == 0
    alike = run.trace.nll * np.where(unseen, 1, np.array([1, 1, 6])[:, None])
    trace = type(run.trace)(**{**vars(run.trace), "nll": alike})
    cell = cell_of(trace, run.strings, run.tokens, [], RULES)
    assert measure(cell)[has_stand_in] == pytest.approx(0, abs=0.15)


@pytest.mark.parametrize("name", ["hidden_density", "ngram_density"])
def test_densities_are_those_of_all_other_training_strings(runs, name):
    cell = cell_with(runs)
    copies, vectors = cell.strings["count"].to_numpy(), cell.passes.vectors
    assert copies.max() > 1
    if name == "ngram_density":
        vectors = ngram_vectors([text.split() for text in cell.strings["text"]])
    expected = []
    for place, vector in enumerate(vectors):
        kernels = np.exp(-((vectors - vector) ** 2).sum(axis=1) / (2 * BANDWIDTH**2))
        others = copies - (np.arange(len(copies)) == place)
        expected.append(-np.log((others * kernels).sum() / (copies.sum() - 1)))
    np.testing.assert_allclose(BY_NAME[name].amount(cell), expected, rtol=1e-6)


def test_the_references_are_the_models_of_the_other_seeds(runs):
    """The reference of the ratio is the mean over the models of the other seeds."""
    cell = cell_with(runs)
    passes = cell.passes
    own, *others = (passes.pass_of(passes.trained, of).nll for of in range(N_SEEDS))
    n_bytes = [len(text) for text in cell.strings["text"]]
    found = BY_NAME["reference"].amount(cell)
    known = np.isfinite(found)
    assert known.sum() > 15
    expected = (np.mean(others, axis=0) - own) / n_bytes
    np.testing.assert_allclose(found[known], expected[known])
    assert (BY_NAME["rmia"].amount(cell)[known] == 1).all()  # more probable than any unseen string
    assert (BY_NAME["lira"].amount(cell)[known] > 3).all()


def test_a_string_of_another_seed_has_no_reference(runs):
    """It is left out of the attacks with references, and of nothing else."""
    cell = cell_with(runs)
    others = pd.concat([run.strings for run in runs[1:]])
    known = others.loc[others["count"] > 0, "text"]
    is_shared = cell.strings["text"].isin(known).to_numpy()
    assert 0 < is_shared.sum() < 10
    for contender in CONTENDERS:
        if contender.needs == LOWER_CASE:  # a formal language has none
            continue
        unknown = np.isnan(contender.amount(cell))
        if contender.needs == OTHER_SEEDS:
            np.testing.assert_array_equal(unknown, is_shared)
        elif contender.needs != UNSEEN:
            assert not unknown.any()
    _, given = cell.passes.beside_references
    assert not set(known) & set(given.texts)


def test_few_seeds_give_few_attacks(runs):
    """LiRA needs two references for a spread, and without any, no attack with them is there."""
    cell = cell_with(runs, passes_of(runs[:2]))
    assert np.isnan(BY_NAME["lira"].amount(cell)).all()
    assert np.isfinite(BY_NAME["rmia"].amount(cell)).sum() > 15
    for passes, lacking in ((passes_of(runs[:1]), {OTHER_SEEDS}), (None, None)):
        run = runs[0]
        said, _ = said_of(run.trace, run.strings, run.tokens, run.ids, [], RULES, passes)
        left_out = set(BY_NAME) - set(said["measure"])
        if lacking:
            assert {BY_NAME[name].needs for name in left_out} == lacking | {LOWER_CASE}
        else:
            lacking = {"min_k_plus", "lira", "discoverable", "hidden_density", "neighbours"}
            assert lacking < left_out
            assert "extraction" not in left_out


def test_min_k_plus_needs_the_distribution_of_each_token(runs):
    cell = cell_with(runs)
    frame = cell.passes.frames[0].loc[cell.strings["string_id"]]
    expected = []
    for log_probs, means in zip(frame["log_probs"], frame["means"], strict=True):
        standard = np.sort((log_probs - means) / 0.5)
        expected.append(standard[: max(1, int(0.2 * len(standard)))].mean())
    np.testing.assert_allclose(BY_NAME["min_k_plus"].amount(cell), expected)
