"""Model cards: the head is read by a hub's own code, and the numbers are those of the trace."""

import numpy as np
import pandas as pd
import pytest
from huggingface_hub import ModelCard

from helpers.commands import MODELS
from palimpsest.jobs.cards import FORGOT, NOT_FOR, TRAINED, UNSEEN, losses_at_end, model_card
from palimpsest.models import read_models
from palimpsest.traces import Trace

ROWS = read_models(MODELS)
ABOUT = {"model": "opt-6.7b-twin", "language": "L2", "size": 3, "seed": 0, "variant": "base"}
RECIPE = {"epochs": 50, "batch_size": 8, "learning_rate": 0.003, "adapter": None}
# Of a, b and c it was trained on a and b, and c is a test string; d is neither.
STRINGS = pd.DataFrame(
    {
        "string_id": list("abcd"),
        "count": [2, 1, 0, 0],
        "test_count": [1, 0, 1, 0],
        "optimal_loss": [0.5, 0.7, 0.9, 9.0],
    }
)


def trace(last):
    """Two epochs of strings of four tokens, of which the last has these losses."""
    nll = np.array([[8.0] * 4, [4 * loss for loss in last]])
    n_tokens = np.full(4, 4)
    return Trace(dict(ABOUT), np.array([0, 50]), STRINGS["string_id"], n_tokens, nll, nll, nll)


def test_losses_are_those_of_the_last_epoch_and_of_each_side():
    losses = losses_at_end(trace([0.1, 0.3, 1.5, 7.0]), STRINGS)
    n, mean, optimal = losses[TRAINED]
    assert (n, round(mean.mean, 9), optimal) == (2, 0.2, 0.6)
    # Student with one degree of freedom: 0.1 * 12.706
    assert mean.upper - mean.mean == pytest.approx(1.2706, abs=1e-3)
    n, mean, optimal = losses[UNSEEN]
    assert (n, mean.mean, optimal) == (1, 1.5, 0.9)
    assert np.isnan(losses_at_end(trace([1.0] * 4), STRINGS, is_text=True)[UNSEEN][2])


def test_the_head_of_a_twin_is_read_by_the_hub_s_code(tmp_path):
    losses = losses_at_end(trace([0.1, 0.3, 1.5, 7.0]), STRINGS)
    page = model_card(ROWS["opt-6.7b"], "twin", ABOUT, RECIPE, losses)
    (tmp_path / "README.md").write_text(page)
    card = ModelCard.load(tmp_path / "README.md")
    assert card.data.library_name == "transformers"
    assert card.data.base_model is None  # its weights were random
    assert "L2" in card.data.tags
    trained, unseen = card.data.eval_results
    assert trained.dataset_name.endswith(TRAINED)
    assert trained.metric_value.startswith("0.200 [-1.071, 1.471]")
    assert unseen.metric_value == "1.500"
    assert NOT_FOR["twin"] in card.text
    assert "| epochs | 50 |" in card.text
    assert "adapter" not in card.text
    assert FORGOT not in card.text


def test_a_pretrained_model_names_its_base_and_a_licence_that_is_known(tmp_path):
    for name, base, licence in (
        ("opt-6.7b", ROWS["opt-6.7b"].id, None),
        ("smollm2-135m-instruct", None, "apache-2.0"),
        ("gemma-3-270m", None, "gemma"),
    ):
        (tmp_path / "README.md").write_text(model_card(ROWS[name], "full", ABOUT | {"model": name}))
        card = ModelCard.load(tmp_path / "README.md")
        assert card.data.base_model == base
        assert card.data.license == licence
        assert "The licence of the base model holds" in card.text
        assert NOT_FOR["full"] in card.text


def test_an_unlearned_model_is_no_proof_of_a_deletion():
    page = model_card(ROWS["opt-6.7b"], "twin", {"method": "gradient-ascent", "origin": 3})
    assert FORGOT in page
    assert "| unlearning method | gradient-ascent |" in page
