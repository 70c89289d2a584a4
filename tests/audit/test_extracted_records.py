"""Extraction by hand, and against samples that are drawn."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from helpers.continuations import continuation
from helpers.experiments import message
from helpers.tiny_language_models import write as write_model
from palimpsest import audit, tables
from palimpsest.audit.extraction import extracted_records, log10_samples, longest_span
from palimpsest.audit.kinds import EXTRACTED, EXTRACTION
from palimpsest.memorisation.extraction import extraction_probability
from palimpsest.models.checkpoints import opened


def row(name, n_right, probability, trained=True, role="target", generated="in Lund"):
    return continuation(
        name,
        n_right,
        role,
        trained,
        prompt="Ann was born ",
        continuation="in Lund",
        generated=generated,
        n_tokens=4,
        nll=-np.log(probability),
    )


TABLE = pd.DataFrame(
    [
        row("a", 4, 1.0),
        row("b", 4, 0.5),
        row("c", 1, 0.01, generated="at Lund"),
        row("d", 4, 0.9, trained=False),
        row("a", 0, 0.001, role="base", generated="###"),
    ]
)


def test_what_comes_out(tmp_path):
    found = extracted_records(TABLE)
    for kind in (EXTRACTED, EXTRACTION):
        tables.write(tmp_path / "table.parquet", found[kind.name], kind)
    records = found[EXTRACTED.name].set_index(["role", "id"])
    assert records.loc[("target", "c"), "span"] == " Lund"
    assert records.loc[("base", "a"), "span_letters"] == 0
    needed = 10 ** records["log10_samples"]
    assert needed["target", "a"] == needed["target", "b"] == 1
    assert needed["target", "c"] == pytest.approx(np.log(0.5) / np.log(0.99))
    shares = found[EXTRACTION.name].set_index(["role", "side", "samples", "probability"])
    counts = shares["n_extracted"].to_dict()
    about = "target", "trained"
    assert [counts[*about, 1, p] for p in (0.1, 0.5, 0.9)] == [2, 2, 1]
    assert [counts[*about, 100, p] for p in (0.1, 0.5, 0.9)] == [3, 3, 2]
    assert counts["target", "unseen", 1, 0.5] == 1
    assert counts["base", "trained", 1000, 0.5] == 1
    greedy = found[EXTRACTION.name].query("decoding == 'greedy' and role == 'target'").iloc[0]
    exact = binomtest(2, 3).proportion_ci()
    assert (greedy["n_extracted"], greedy["n_records"]) == (2, 3)
    np.testing.assert_allclose(greedy[["lower", "upper"]].astype(float), exact, rtol=1e-7)


def test_records_of_one_group_are_not_independent():
    alone = extracted_records(TABLE)[EXTRACTION.name]
    grouped = extracted_records(TABLE.assign(group="all"))[EXTRACTION.name]
    assert (grouped["upper"] - grouped["lower"] >= alone["upper"] - alone["lower"]).all()
    assert grouped["upper"].iloc[0] - grouped["lower"].iloc[0] > 0.9


@pytest.mark.parametrize("log_probability", [-1e-9, -0.1, -3.0, -25.0, -40.0, -800.0])
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_samples_are_the_inverse_of_the_probability(log_probability, probability):
    needed = log10_samples(log_probability, probability)
    if needed > 250:
        expected = (np.log(-np.log1p(-probability)) - log_probability) / np.log(10)
        assert needed == pytest.approx(expected)
    elif needed > 0:
        found = extraction_probability(log_probability, 10**needed)
        assert found == pytest.approx(probability, rel=1e-6)
    else:
        assert extraction_probability(log_probability, 1) >= probability


def test_the_longest_span():
    assert longest_span("born in Lund on", "lives in Lund, at") == " in Lund"
    assert longest_span("abc", "xyz") == ""


def test_texts_that_can_be_extracted(tmp_path):
    """The model's own greedy text is extractable, and another one is not.

    The seed is one whose greedy text is whole letters.
    """
    checkpoint = opened(write_model(tmp_path / "model", seed=5))
    text = "Ann Ek was born in Lund."
    given = audit.cut(checkpoint, [text], [0], 3, 3)
    made = audit.continued(checkpoint, given).generated[0]
    own = given.texts[0][: given.prompts[0]] + made
    found = audit.extractable(checkpoint, [own, text], prompt=3, continuation=3)
    assert found.tolist() == [True, False]
    said = message(lambda: audit.extractable(checkpoint, [text, "a"], 3, 3))
    assert said.startswith("text 1 has fewer than 3 + 3 tokens")
    assert ", namely 1; " in said


def test_a_tokenizer_that_does_not_give_back_the_continuation():
    """So a reference whose tokens cross the end of the prompt: its letters are not known."""
    rows = [continuation("a", 10), continuation("b", 3)]
    given = pd.DataFrame(rows).assign(prompt="", continuation="Lund", generated=["Lund", None])
    found = extracted_records(given)[EXTRACTED.name]
    assert found["span"].tolist() == ["Lund", ""]
    assert found["accuracy"].tolist() == [1.0, 0.3]
