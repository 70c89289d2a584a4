"""Propensity: samples of a language, and samples with strings by heart."""

import numpy as np
import pytest

from helpers.tiny_language_models import write
from palimpsest import audit
from palimpsest.languages import Grammar
from palimpsest.models.checkpoints import opened

GRAMMAR = Grammar.from_string(
    "%text\nS -> WORD WORD WORD '.' [1]\nWORD -> 'ab' [0.5] | 'cd' [0.3] | 'ef' [0.2]\n"
)
TEXTS = ["ababab.", "cdefab.", "efefef.", "cdcdcd."]
GROUPS = ["trained", "trained", "unseen", "unseen"]
LOG_PROB = GRAMMAR.of_characters().log_prefix_probability([*map(tuple, TEXTS)])


def counted(generated):
    return audit.propensity(generated, TEXTS, LOG_PROB, GROUPS).set_index("group")


def drawn(n, seed):
    return ["".join(string) for string in GRAMMAR.sample(n, seed)]


def test_the_language_itself_has_no_propensity():
    """The interval of the ratio misses 1 in at most 5 % of 200 simulations (10 % is 3 sigma)."""
    np.testing.assert_allclose(np.exp(LOG_PROB), [0.125, 0.03, 0.008, 0.027])
    missed = np.zeros(2)
    for texts in np.array_split(drawn(200 * 300, 0), 200):
        found = counted([f"{text} and more" for text in texts])
        missed += ~((found["lower"] <= 1) & (found["upper"] >= 1)).to_numpy()
    assert (missed <= 20).all()
    assert missed.sum() > 0
    assert found["expected"].tolist() == pytest.approx([300 * 0.155, 300 * 0.035])


def test_strings_by_heart_come_too_often_and_the_placebo_does_not():
    found = counted([*drawn(300, 0), *["cdefab."] * 100])
    assert found.loc["trained", "lower"] > 1.5
    assert found.loc["unseen", "upper"] > 0.5
    assert found.loc["unseen", "lower"] < 1


def test_of_strings_that_the_language_does_not_have_none_is_expected():
    found = audit.propensity(["xyz", "ab"], ["xyz", "ab"], [-np.inf, -1.0], ["none", "some"])
    none, some = found.to_dict("records")
    assert (none["count"], none["expected"]) == (1, 0)
    assert np.isnan([none["ratio"], none["lower"], none["upper"]]).all()
    assert some["ratio"] == pytest.approx(0.5 * np.e)


def test_a_string_that_begins_with_another_one_is_counted_once():
    with pytest.raises(ValueError, match="'abc' begins with 'ab'"):
        audit.propensity(["abc"], ["ab", "abc"], [-1.0, -2.0], ["a", "a"])


def test_free_generations_follow_the_probabilities_of_the_model(tmp_path):
    """First tokens come as often as a forward pass says, also beyond the 50 most probable ones."""
    import torch

    checkpoint = opened(write(tmp_path / "model"))
    made = audit.free_generations(checkpoint, n=2000, n_tokens=1, batch_size=500)
    assert len(made) == 2000
    start = torch.tensor([[checkpoint.tokenizer.bos_token_id]])
    with torch.no_grad():
        chance = checkpoint.model(start).logits[0, -1].softmax(-1).double().numpy()
    names = checkpoint.tokenizer.batch_decode([[token] for token in range(len(chance))])
    likely = max(
        (name for name in names if names.count(name) == 1), key=lambda n: chance[names.index(n)]
    )
    expected = chance[names.index(likely)]
    spread = np.sqrt(expected * (1 - expected) / 2000)
    assert abs(made.count(likely) / 2000 - expected) < 4 * spread
    again = audit.free_generations(checkpoint, n=3, n_tokens=4)
    assert again == audit.free_generations(checkpoint, n=3, n_tokens=4)
