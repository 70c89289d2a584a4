"""Arguments that the public functions do not allow: one line that names the argument."""

import numpy as np
import pytest

from palimpsest import density, information, memorisation, unlearning
from palimpsest.errors import UserError
from palimpsest.unlearning.attacks.lower_bounds import bound_of_errors
from palimpsest.unlearning.evaluate.gaps import pooled_share, string_shares
from palimpsest.unlearning.evaluate.variance import split_variance

CHANCE = np.random.default_rng(0)
A, B = CHANCE.normal(size=(2, 12, 3))
LOSS = np.abs(CHANCE.normal(size=(4, 3)))
GAP = (A, A + 1, B + 9)
WORDS = "abc"
# Numbers that are not whole ones from 0 on, and none that is above 0 and below 1
NO_COUNT = (-1, 2.5, np.nan, np.inf, None, True, "3", [3])
NO_SHARE = (0, 1, 1.5, -1, np.nan, None, "0.9", [0.9])
NO_TABLE = (None, WORDS, [["a", "b"]], [[1, 2], [3]], [[1j, 2, 3]] * 3, np.zeros(3), object())


def no_statistic(x, y):
    return x.mean() - y.mean()


def calls():
    """Name of an argument, a value that is not allowed, and a call with it."""
    for n in (0, *NO_COUNT):
        yield "bins", n, lambda n=n: information.neuron_entropy(A, n)
        yield "k", n, lambda n=n: information.mutual_information(A, n)
        yield "k", n, lambda n=n: density.nearest(A, B, n)
        yield "k", n, lambda n=n: density.Approximation(k=n)
        yield "m1", n, lambda n=n: density.Approximation(m1=n)
        yield "n", n, lambda n=n: unlearning.permutation_null(A, B, no_statistic, n)
        yield "n", n, lambda n=n: pooled_share([GAP], n)
        yield "most", n, lambda n=n: information.sampled_pairs(9, n)
        yield "n_models", n, lambda n=n: unlearning.forgetting_quality([1.0], n)
    for seed in NO_COUNT:
        yield "seed", seed, lambda s=seed: information.mutual_information(A, seed=s)
        yield "seed", seed, lambda s=seed: information.sampled_pairs(9, 3, s)
        yield "seed", seed, lambda s=seed: density.nearest(A, B, 2, seed=s)
        yield "seed", seed, lambda s=seed: density.Approximation(seed=s)
        yield "seed", seed, lambda s=seed: unlearning.permutation_null(A, B, no_statistic, 9, s)
        yield "seed", seed, lambda s=seed: unlearning.epsilon_lower_bound(A, B, seed=s)
        yield "seed", seed, lambda s=seed: pooled_share([GAP], seed=s)
    for share in NO_SHARE:
        yield "confidence", share, lambda c=share: unlearning.epsilon_lower_bound(A, B, 1e-5, c)
        yield "confidence", share, lambda c=share: bound_of_errors(1, 1, 9, 9, confidence=c)
        yield "confidence", share, lambda c=share: split_variance(A, c)
        yield "confidence", share, lambda c=share: string_shares(*GAP, c)
        yield "confidence", share, lambda c=share: pooled_share([GAP], confidence=c)
    for delta in NO_SHARE[1:]:
        yield "delta", delta, lambda d=delta: unlearning.epsilon(A, B, d)
        yield "delta", delta, lambda d=delta: unlearning.epsilon_lower_bound(A, B, d)
    for width in (0, -1, np.nan, np.inf, None, "1", [1.0]):
        yield "bandwidth", width, lambda w=width: density.kernel_density(A, B, w)
        yield "bin_width", width, lambda w=width: unlearning.forgetting_quality([1.0], 9, w)
    yield "k", 12, lambda: information.mutual_information(A, 12)
    yield "k", 13, lambda: density.nearest(A, B, 13)
    for table in (*NO_TABLE, np.zeros((0, 3)), np.zeros((3, 0))):
        yield "activations", table, lambda t=table: information.neuron_entropy(t)
        yield "activations", table, lambda t=table: information.mutual_information(t)
        yield "activations", table, lambda t=table: information.is_degenerate(t)
        yield "queries", table, lambda t=table: density.kernel_density(t, B, 1.0)
    for table in (*NO_TABLE, np.zeros((0, 3)), np.zeros((1, 3)), A * np.nan, A * np.inf):
        yield "unlearned", table, lambda t=table: unlearning.epsilon(t, B)
        yield "unlearned", table, lambda t=table: unlearning.epsilon_lower_bound(t, B)
        yield "unlearned", table, lambda t=table: unlearning.joint_attack(t, B)
        yield "retrained", table, lambda t=table: unlearning.permutation_null(A, t, no_statistic)
    yield "statistic", None, lambda: unlearning.permutation_null(A, B, None)
    yield "statistic", "a", lambda: unlearning.permutation_null(A, B, lambda x, y: "a")
    for table in (*NO_TABLE, np.zeros((0, 3)), -LOSS, LOSS * np.nan, LOSS * np.inf):
        yield "loss", table, lambda t=table: memorisation.recollection(t, 0.2)
        yield "loss", table, lambda t=table: memorisation.counterfactual(t, LOSS)
        yield "loss", table, lambda t=table: memorisation.contextual(LOSS, t)
        yield "loss", table, lambda t=table: memorisation.bayes(t, LOSS[0])
    for table in (*NO_TABLE, np.zeros((0, 3)), -LOSS, LOSS * np.inf):
        yield "loss", table, lambda t=table: memorisation.lemma_assumption_broken(LOSS, t)
    for threshold in (-1, np.nan, np.inf, None, "a", [0.1], [[0.1, 0.2, 0.3]]):
        yield "threshold", threshold, lambda t=threshold: memorisation.recollection(LOSS, t)
        yield "optimal_loss", threshold, lambda t=threshold: memorisation.bayes(LOSS, t)
    for samples in (0, -1, np.nan, np.inf, None, "a"):
        yield "samples", samples, lambda s=samples: memorisation.extraction_probability(-1.0, s)
    for log_p in (0.1, np.nan, None, "a"):
        yield "log_prob", log_p, lambda p=log_p: memorisation.extraction_probability(p, 5)
    yield "language_nll", [1], lambda: memorisation.memorised_bits([1, 2], [1, 2, 3])
    yield "n_tokens", 0, lambda: memorisation.stand_ins([1.0], [1.0], [0])
    yield "n_tokens", 2, lambda: memorisation.stand_ins([1.0], [1.0], [1, 2])
    for gap in (-1, np.nan, None):
        yield "largest_gap", gap, lambda g=gap: memorisation.stand_ins([1.0], [1.0], [1], g)
    for pair in ([3], [-1], [0.0], [0], [0, 2]):
        pairs = information.Pairs(pair, [0])
        yield "pairs", pair, lambda p=pairs: information.mutual_information_of_pairs(A, p)


CALLS = list(calls())


@pytest.mark.parametrize("place", range(len(CALLS)))
def test_what_is_not_allowed_is_refused_in_one_line_that_names_it(place):
    name, value, call = CALLS[place]
    with pytest.raises((UserError, ValueError)) as error:
        call()
    text = str(error.value)
    assert name in text or (name == "k" and "activations" in text), (value, text)
    assert "\n" not in text
    assert "np." not in text
    # The message is ours: no library's own error comes through.
    assert "/palimpsest/" in str(error.traceback[-1].path)
