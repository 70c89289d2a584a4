"""Losses of unlearning, against values worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from palimpsest.training import batches
from palimpsest.unlearning.methods import losses, registered

IGNORED = losses.IGNORED

# Two models, one string of two tokens and one of padding, over a vocabulary of two. The first model
# says (1/2, 1/2), then (1/4, 3/4); the second has them the other way round.
HALF, QUARTER = (0.5, 0.5), (0.25, 0.75)
P = torch.tensor([[[HALF, QUARTER, (0.9, 0.1)]], [[QUARTER, HALF, (0.1, 0.9)]]]).log()
Q = torch.tensor([[[QUARTER, QUARTER, HALF]], [[HALF, HALF, HALF]]]).log()
TARGETS = torch.tensor([[[0, 1, IGNORED]], [[0, 1, IGNORED]]])

LOG_2 = 0.693147
KL_HALF_QUARTER = 0.143841  # 1/2 log 2 + 1/2 log 2/3 = 0.346574 - 0.202733
KL_QUARTER_HALF = 0.130812  # 1/4 log 1/2 + 3/4 log 3/2 = -0.173287 + 0.304099
H_QUARTER = 0.562335  # 1/4 log 4 + 3/4 log 4/3 = 0.346574 + 0.215762


def near(values, *expected):
    assert values.tolist() == pytest.approx(expected, abs=2e-6)


def test_padding_is_marked_as_in_training():
    assert losses.IGNORED == batches.IGNORED


def test_nll_sums_over_the_real_tokens_of_a_string():
    # log 2 + log 4/3 = 0.693147 + 0.287682; log 4 + log 2 = 1.386294 + 0.693147
    near(losses.string_nll(P, TARGETS)[:, 0], 0.980829, 2.079442)


def test_cross_entropy_is_that_of_training_for_every_model():
    near(losses.cross_entropy(P, TARGETS), 0.980829 / 2, 2.079442 / 2)


def test_cross_entropy_weighs_tokens_and_not_strings_alike():
    logits = torch.tensor([[[HALF, HALF, HALF], [QUARTER, HALF, HALF]]]).log()
    targets = torch.tensor([[[0, 0, 0], [0, IGNORED, IGNORED]]])
    near(losses.cross_entropy(logits, targets), (3 * LOG_2 + 2 * LOG_2) / 4)


def test_kl_is_a_mean_over_real_tokens_and_not_symmetric():
    near(losses.kl(P, Q, TARGETS), KL_HALF_QUARTER / 2, KL_QUARTER_HALF / 2)
    near(losses.kl(Q, P, TARGETS), KL_QUARTER_HALF / 2, KL_HALF_QUARTER / 2)


def test_symmetric_kl_is_the_mean_of_both_directions():
    both = (KL_HALF_QUARTER + KL_QUARTER_HALF) / 2
    near(losses.symmetric_kl(P, Q, TARGETS), both / 2, both / 2)


def test_kl_does_not_change_when_logits_are_shifted():
    near(losses.kl(P + 3, Q - 5, TARGETS), KL_HALF_QUARTER / 2, KL_QUARTER_HALF / 2)


def test_kl_from_uniform_is_what_entropy_falls_short_of():
    # log 2 - H(1/2, 1/2) = 0, log 2 - H(1/4, 3/4) = 0.693147 - 0.562335
    near(losses.kl_from_uniform(P, TARGETS), (LOG_2 - H_QUARTER) / 2, (LOG_2 - H_QUARTER) / 2)


def test_entropy_gap_is_squared():
    squared = (LOG_2 - H_QUARTER) ** 2
    near(losses.entropy_gap(P, Q, TARGETS), squared / 2, squared / 2)


def test_squared_error_leaves_padding_out():
    values = torch.tensor([[[[1.0, 2.0], [0.0, 0.0], [9.0, 9.0]]]])
    # (1 + 4) / 2 and 0 over two tokens
    near(losses.squared_error(values, torch.zeros_like(values), TARGETS[:1]), 1.25)


def test_string_means_leave_padding_out():
    values = torch.tensor([[[[1.0, 2.0], [3.0, 0.0], [9.0, 9.0]]]])
    near(losses.string_means(values, TARGETS[:1])[0, 0], 2.0, 1.0)


def test_contrastive_by_hand():
    forget = torch.tensor([[[1.0, 0.0]]])
    retain = torch.tensor([[[2.0, 5.0], [0.0, 7.0]]])
    # Similarities 2 and 0, at temperature 2: 1 and 0. log softmax is -log(1 + 1/e) = -0.313262 and
    # -log(1 + e) = -1.313262, and the mean is -0.813262.
    near(losses.contrastive(forget, retain, temperature=2.0), 0.813262)


def test_contrastive_is_least_when_all_are_equally_similar():
    forget = torch.tensor([[[1.0, 0.0]]])
    retain = torch.tensor([[[2.0, 5.0], [2.0, 7.0]]])
    near(losses.contrastive(forget, retain, temperature=2.0), LOG_2)


def test_npo_by_hand():
    nll, reference = torch.tensor([[3.0, 2.0]]), torch.tensor([[2.0, 2.0]])
    # beta 1/2: log(p / p_reference) is -1 and 0; 4 log(1 + e^-0.5) = 4 * 0.474077 = 1.896308 and
    # 4 log 2 = 2.772589; their mean is 2.334448.
    near(losses.npo(nll, reference, beta=0.5), 2.334448)


def test_the_gradient_of_npo_fades_as_a_string_is_forgotten():
    nll = torch.tensor([[2.0, 50.0]], requires_grad=True)
    losses.npo(nll, torch.tensor([[2.0, 2.0]]), beta=0.5).sum().backward()
    # -2 sigmoid(beta * log ratio) / 2 strings: -1/2 at the start, and almost 0 at the end.
    near(nll.grad[0], -0.5, 0.0)


def test_simnpo_by_hand():
    # beta 2, gamma 1, nll 3 over 2 tokens: -log sigmoid(2 * 1.5 - 1) = log(1 + e^-2) = 0.126928
    near(losses.simnpo(torch.tensor([[3.0]]), torch.tensor([[2]]), beta=2.0, gamma=1.0), 0.126928)


def test_dpo_by_hand():
    nll, reference = torch.tensor([[3.0]]), torch.tensor([[2.0]])
    preferred, preferred_reference = torch.tensor([[4.0]]), torch.tensor([[7.0]])
    # log r is 3 and -1; beta 1/2: 2 log(1 + e^-2) = 2 * 0.126928
    near(losses.dpo(nll, reference, preferred, preferred_reference, beta=0.5), 0.253856)


def test_undial_by_hand():
    reference = torch.tensor([[[[np.log(9.0), 0.0]]]])
    logits = torch.tensor([[[[0.0, 0.0, 0.0][:2]]]])
    targets = torch.tensor([[[0]]])
    # 9 : 1 becomes 1 : 1 when the true token is lowered by log 9, and so is the model: log 2.
    near(losses.undial(logits, reference, targets, gamma=float(np.log(9.0))), LOG_2)
    # Unlowered, the teacher is (0.9, 0.1); against (0.25, 0.75): 0.9 log 4 + 0.1 log 4/3 = 1.276433
    logits = torch.tensor([[[QUARTER]]]).log()
    near(losses.undial(logits, reference, targets, gamma=0.0), 1.276433)


def test_weighted_ascent_by_hand():
    # The first model gives its targets 1/2 and 3/4. Their weights at beta1 2 are 1/4 and 9/16:
    # -(0.25 * 0.693147 + 0.5625 * 0.287682) / 2 = -(0.173287 + 0.161821) / 2. The second gives 1/4
    # and 1/2, with weights 1/16 and 1/4: -(0.0625 * 1.386294 + 0.25 * 0.693147) / 2.
    near(losses.weighted_ascent(P, TARGETS, 2.0), -0.167554, -0.129965)
    # With beta2 1, also times 1/2 and 1/4, and times 3/4 and 1/2.
    near(losses.weighted_ascent(P, TARGETS, 2.0, 1.0), -0.063549, -0.075813)


def test_weighted_ascent_without_weights_is_ascent():
    near(losses.weighted_ascent(P, TARGETS, 0.0), -0.980829 / 2, -2.079442 / 2)


def test_the_weights_of_ascent_have_no_gradient():
    logits = torch.tensor([[[QUARTER]]]).log().requires_grad_()
    losses.weighted_ascent(logits, torch.tensor([[[0]]]), 1.0, 1.0).sum().backward()
    # 1/4 * 3/4 * d(log p)/d(logits) = 3/16 * (1 - 1/4, -3/4)
    near(logits.grad.flatten(), 0.140625, -0.140625)


def test_weighted_ascent_is_finite_at_certain_and_at_impossible_tokens():
    logits = torch.tensor([[[[200.0, 0.0], [-200.0, 0.0]]]], requires_grad=True)
    loss = losses.weighted_ascent(logits, torch.tensor([[[0, 0]]]), 0.5, 0.5)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert logits.grad.isfinite().all()


def test_cross_entropy_unlearning_by_hand():
    # Over three tokens, (1/2, 1/4, 1/4) without the first is (0, 1/2, 1/2): log 4. With (1/4, 1/2,
    # 1/4) it is (0, 2/3, 1/3): 2/3 log 2 + 1/3 log 4 = 0.462098 + 0.462098.
    p = torch.tensor([[[(0.5, 0.25, 0.25), (0.25, 0.5, 0.25), (0.1, 0.1, 0.8)]]]).log()
    targets = torch.tensor([[[0, 0, IGNORED]]])
    near(losses.cross_entropy_unlearning(p, targets), (2 * LOG_2 + 0.924196) / 2)


def test_the_gradient_of_cross_entropy_unlearning_is_bounded():
    """It is p - teacher, wherever the true token's probability lies."""
    p = torch.tensor([[[(0.5, 0.25, 0.25)]]])
    logits = p.log().requires_grad_()
    losses.cross_entropy_unlearning(logits, torch.tensor([[[0]]])).sum().backward()
    near(logits.grad.flatten(), 0.5, 0.25 - 0.5, 0.25 - 0.5)


# Phases, which put losses together


def task_with(logits, reference):
    return SimpleNamespace(
        models=SimpleNamespace(logits=lambda ids: logits),
        reference=SimpleNamespace(logits=lambda batch: reference),
    )


BATCH = SimpleNamespace(ids_MBT=None, targets_MBT=TARGETS)


def loss_of(name, **values):
    phase = registered()[name](share=1, rate=1, **values)
    return phase.loss(task_with(P, Q), BATCH, None)


def test_scrub_goes_away_from_the_original_where_it_forgets():
    near(loss_of("scrub-max"), -KL_QUARTER_HALF / 2, -KL_HALF_QUARTER / 2)


def test_scrub_goes_to_the_original_where_it_retains():
    ce = 0.980829 / 2, 2.079442 / 2
    kl = KL_QUARTER_HALF / 2, KL_HALF_QUARTER / 2
    near(loss_of("scrub-min", weight=0.1), ce[0] + 0.1 * kl[0], ce[1] + 0.1 * kl[1])


def test_amnesiacs_distils_model_first():
    near(loss_of("distil"), KL_HALF_QUARTER / 2, KL_QUARTER_HALF / 2)


def test_ascent_is_the_negative_of_training():
    near(loss_of("gradient-ascent"), -0.980829 / 2, -2.079442 / 2)


def test_neggrad_balances_both_sets():
    phase = registered()["neggrad"](share=1, rate=1, alpha=0.75)
    loss = phase.loss(task_with(P, Q), BATCH, BATCH)
    near(loss, 0.5 * 0.980829 / 2, 0.5 * 2.079442 / 2)  # 0.75 - 0.25 of the same


@pytest.mark.parametrize(
    ("name", "forget"),
    [
        ("gradient-difference", (-0.980829 / 2, -2.079442 / 2)),
        ("wga", (-0.281168, -0.346574)),  # p^1: -(1/2 * log 2 + 3/4 * log 4/3) / 2, as above
        # p^5 (1 - p) is 1/64 at 1/2, 243/4096 at 3/4 and 3/4096 at 1/4.
        ("satimp", (-0.013949, -0.005923)),
        ("ce-u", None),
    ],
)
@pytest.mark.parametrize("retain_loss", ["cross-entropy", "kl"])
def test_a_retain_loss_is_added_times_its_weight(name, forget, retain_loss):
    """The same batch stands for both sets."""
    phase = registered()[name](share=1, rate=1, retain=3, retain_loss=retain_loss)
    if forget is None:
        forget = losses.cross_entropy_unlearning(P, TARGETS).tolist()
    retain = {
        "cross-entropy": (0.980829 / 2, 2.079442 / 2),
        "kl": (KL_QUARTER_HALF / 2, KL_HALF_QUARTER / 2),
    }[retain_loss]
    expected = [ours + 3 * other for ours, other in zip(forget, retain, strict=True)]
    near(phase.loss(task_with(P, Q), BATCH, BATCH), *expected)
