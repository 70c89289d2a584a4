"""Attacks that know other models: against worlds in which the best test is known."""

import numpy as np
import pytest
from scipy.stats import norm

from palimpsest.audit.optimum import (
    OF_MODELS,
    calibrated,
    lira_of_tokens,
    lira_offline,
    lira_online,
    optimum,
)
from palimpsest.records.roc_curves import auc

N_MODELS, N_TEXTS = 128, 60
SEEDS = np.arange(N_MODELS) // 2


def world(seed, effect=1.0, spread=None):
    """Normal losses: members of a model's data have a loss that is lower by `effect` deviations."""
    chance = np.random.default_rng(seed)
    inside = chance.permuted(np.tile(np.arange(N_MODELS) < N_MODELS // 2, (N_TEXTS, 1)), axis=1).T
    level = chance.uniform(1, 5, N_TEXTS)
    spread = np.full(N_TEXTS, 0.3) if spread is None else spread
    loss = level + spread * (chance.normal(size=inside.shape) - effect * inside)
    return loss, inside, level, spread


def mean_auc(score, inside):
    return np.mean([auc(own, member) for own, member in zip(score, inside, strict=True)])


def test_scores_by_hand():
    """Mean and spread, shared by texts, of the logits of the models of other units."""
    chance = np.random.default_rng(0)
    loss, inside = chance.uniform(0.2, 4, (12, 2)), np.tile(np.arange(12) % 2 == 0, (2, 1)).T
    unit = np.arange(12) // 2
    logit = np.log(np.exp(-loss) / (1 - np.exp(-loss)))
    found = {name: attack(loss, inside, unit) for name, attack in OF_MODELS.items()}
    for model in range(12):
        others = [m for m in range(12) if m // 2 != model // 2]
        outs = [[logit[m, t] for m in others if not inside[m, t]] for t in range(2)]
        ins = [[logit[m, t] for m in others if inside[m, t]] for t in range(2)]
        spread_out = np.sqrt(np.mean([np.var(own, ddof=1) for own in outs]))
        spread_in = np.sqrt(np.mean([np.var(own, ddof=1) for own in ins]))
        for t in range(2):
            away = np.mean([loss[m, t] for m in others if not inside[m, t]]) - loss[model, t]
            assert found["calibrated loss"][model, t] == pytest.approx(away)
            away = (logit[model, t] - np.mean(outs[t])) / spread_out
            assert found["LiRA, offline"][model, t] == pytest.approx(away, rel=1e-4)
            ratio = norm.logpdf(logit[model, t], np.mean(ins[t]), spread_in)
            ratio -= norm.logpdf(logit[model, t], np.mean(outs[t]), spread_out)
            assert found["LiRA, online"][model, t] == pytest.approx(ratio, rel=1e-4)


def test_the_optimum_is_nearly_that_of_the_truth():
    """The true ratio's AUC is Phi(effect / sqrt 2); the estimates reach most of what is beyond."""
    loss, inside, *_ = world(1)
    truth = norm.cdf(1 / np.sqrt(2))
    for score in (lira_online, optimum, lira_offline):
        reached = (mean_auc(score(loss, inside), inside) - 0.5) / (truth - 0.5)
        assert 0.9 < reached < 1.05, score.__name__
    raw = mean_auc(-loss, inside)
    assert raw < truth - 0.1, "a raw loss mixes easy texts with members"


def test_tokens_by_hand():
    """Texts of two tokens and of one: each token has likelihoods of its own, which are summed."""
    chance = np.random.default_rng(0)
    loss, text = chance.uniform(0.2, 4, (10, 3)), np.array([0, 0, 1])
    inside = chance.permuted(np.tile(np.arange(10) < 5, (2, 1)), axis=1).T
    logit = np.log(np.exp(-loss) / (1 - np.exp(-loss)))
    found = lira_of_tokens(loss, text, inside)
    expected = np.zeros((10, 2))
    for model in range(10):
        others = np.arange(10) != model
        for token, of in enumerate(text):
            for sign, kind in ((1, inside[:, of]), (-1, ~inside[:, of])):
                judges = logit[others & kind, token]
                density = norm.logpdf(logit[model, token], judges.mean(), judges.std(ddof=1))
                expected[model, of] += sign * density
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_tokens_tell_what_their_sum_hides():
    """Of ten tokens, training makes one more probable; the others are noise in the sum."""
    loss, inside, *_ = world(2, effect=2.0)
    chance = np.random.default_rng(3)
    tokens = np.repeat(loss[:, :, None] + 3, 10, axis=2)
    tokens[:, :, 1:] = 3 + chance.normal(0, 0.3, tokens[:, :, 1:].shape)
    flat, text = tokens.reshape(len(loss), -1), np.repeat(np.arange(N_TEXTS), 10)
    of_sum = mean_auc(lira_online(tokens.mean(axis=2), inside, SEEDS), inside)
    of_tokens = mean_auc(lira_of_tokens(flat, text, inside, SEEDS), inside)
    truth = norm.cdf(2 / np.sqrt(2))
    assert of_sum < 0.72 < 0.87 < of_tokens < truth + 0.01


def test_texts_that_are_not_normal():
    """Members lie on both sides of the others: only the free estimate can see this."""
    chance = np.random.default_rng(2)
    loss, inside, *_ = world(3, effect=0.0)
    sides = np.where(chance.random(loss.shape) < 0.5, -1.0, 1.0)
    loss = loss + 2 + inside * sides
    assert mean_auc(optimum(loss, inside), inside) > 0.9
    assert mean_auc(calibrated(loss, inside), inside) < 0.6


def test_without_an_effect_nothing_is_found():
    """No model judges itself, so noise is not learned."""
    loss, inside, *_ = world(4, effect=0.0)
    for score in (lira_online, lira_offline, calibrated, optimum):
        assert 0.47 < mean_auc(score(loss, inside), inside) < 0.53, score.__name__


def test_models_of_one_seed_do_not_judge_each_other():
    """Two models of a seed share their luck, and one has what the other lacks."""
    chance = np.random.default_rng(6)
    half = chance.permuted(np.tile(np.arange(N_TEXTS) < N_TEXTS // 2, (64, 1)), axis=1)
    inside = np.stack([half, ~half], axis=1).reshape(N_MODELS, N_TEXTS)
    luck = np.repeat(chance.normal(size=(64, N_TEXTS)), 2, axis=0)
    loss = 3 + 0.3 * (0.9 * luck + 0.4 * chance.normal(size=luck.shape))
    alone, units = (mean_auc(optimum(loss, inside, unit), inside) for unit in (None, SEEDS))
    assert alone < 0.46, "what one says of the other is taken for the effect of the text"
    assert 0.47 < units < 0.53


def test_models_that_agree_are_no_division_by_zero():
    loss, inside, *_ = world(5, spread=np.zeros(N_TEXTS))
    for score in (lira_online, lira_offline, calibrated, optimum):
        assert np.isfinite(score(loss, inside)).all()


def test_too_few_models():
    with pytest.raises(ValueError, match="judged by 0 other models"):
        lira_online(np.zeros((9, 2)), np.tile(np.arange(9) < 1, (2, 1)).T)
    with pytest.raises(ValueError, match="inside: has 3 texts, and loss has 2"):
        lira_online(np.zeros((9, 2)), np.zeros((9, 3)))
