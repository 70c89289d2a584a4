"""Memorised bits by rule: on runs worked out by hand, and beside the study `bits`."""

import numpy as np
import pandas as pd
import pytest

from palimpsest import tables, token_losses, traces
from palimpsest.errors import UserError
from palimpsest.languages import Grammar
from palimpsest.memorisation.bits import bits_table
from palimpsest.memorisation.bits_by_rule import bits_by_rule_table
from palimpsest.memorisation.studies import STUDIES
from palimpsest.sections import KINDS
from palimpsest.tables.tokens import TOKENS
from palimpsest.token_losses import TokenLosses
from palimpsest.traces import Trace

# The first symbol belongs to A, the second to nothing, the third to B.
TEXT = """
S -> A 'x' B [1]
A -> 'a' [0.5]
A -> 'b' [0.5]
B -> 'c' [0.25]
B -> 'd' [0.75]
"""
GRAMMAR = Grammar.from_string(TEXT)
A, B, C, D = ("A -> 'a'", "A -> 'b'", "B -> 'c'", "B -> 'd'")
EPOCHS = np.array([0, 5])
# Two training strings, one of them three times, and an unseen one; the last one is held out.
TEXTS = ["a x c", "b x d", "a x d", "b x c"]
NAMES = np.array(list("pqrs"), dtype=object)
RUN = {"model": "m", "language": "L", "size": 4, "seed": 0, "variant": "base"}
OPTIMAL = -np.log([1 / 8, 3 / 8, 3 / 8, 1 / 8])
STRINGS = pd.DataFrame(
    {
        **{name: value for name, value in RUN.items() if name != "model"},
        "string_id": NAMES,
        "text": TEXTS,
        "n_tokens": 3,
        "split": ["train", "train", "test", "held_out"],
        "count": [3, 1, 0, 0],
        "log_prob": -OPTIMAL,
        "optimal_loss": OPTIMAL / 3,
    }
)
LEARNING = pd.DataFrame({**RUN, "epoch": EPOCHS, "optimal_epoch": 5})
# One over the probability of each token under the model: it knows "a x c" in the end.
ODDS = np.array(
    [
        [[4, 4, 4], [4, 4, 4], [4, 4, 4], [4, 4, 4]],
        [[1, 1, 1], [4, 2, 1], [1, 2, 8], [9, 9, 9]],
    ],
    dtype=float,
)
LOSSES = TokenLosses(
    RUN, EPOCHS, NAMES, np.full(4, 3), np.log(ODDS).reshape(2, -1), np.full(12, np.nan)
)


@pytest.fixture
def path(tmp_path):
    """The losses of tokens, on disk."""
    tables.write(tmp_path / "tokens", token_losses.to_frame(LOSSES), TOKENS)
    return str(tmp_path / "tokens")


def table(path, strings=STRINGS, grammar=GRAMMAR):
    return bits_by_rule_table([path], strings, LEARNING, grammar, predict_end=False)


def column(frame, name, epoch=5):
    rows = frame[frame["epoch"] == epoch]
    return dict(zip(rows["rule"].fillna(""), rows[name], strict=True))


def test_losses_of_tokens_are_read_as_they_were_written(path):
    found = token_losses.read(path)
    assert found.run == RUN
    for name in ("epochs", "string_ids", "n_tokens", "nll", "ends"):
        np.testing.assert_array_equal(getattr(found, name), getattr(LOSSES, name))
    np.testing.assert_array_equal(found.of(["s", "p"])[1], [*np.log([9, 9, 9]), 0, 0, 0])
    with pytest.raises(KeyError, match="not in the table: z"):
        found.of(["z"])


def test_strings_of_many_lengths_stand_end_to_end(tmp_path):
    lengths = np.array([2, 1, 3])
    nll, ends = np.arange(12.0).reshape(2, 6), np.array([2, 5, 1, 3, 4, np.nan])
    losses = TokenLosses(RUN, EPOCHS, NAMES[:3], lengths, nll, ends)
    tables.write(tmp_path / "tokens", token_losses.to_frame(losses), TOKENS)
    found = token_losses.read(tmp_path / "tokens")
    np.testing.assert_array_equal(found.n_tokens, lengths)
    np.testing.assert_array_equal(found.of(["r", "q"]), [[3, 4, 5, 2], [9, 10, 11, 8]])
    np.testing.assert_array_equal(found.ends_of(["r", "q"]), [3, 4, np.nan, 1])


def test_bits_by_rule_by_hand(path):
    """Distinct strings count once; bits per string are the mean over two training strings."""
    found = table(path)
    assert column(found, "symbols") == pytest.approx({A: 0.5, B: 0.5, C: 0.5, D: 0.5, "": 1})
    most = {A: 0.5, B: 0.5, C: 1, D: np.log2(4 / 3) / 2, "": 0}
    assert column(found, "optimal") == pytest.approx(most)
    # p has all its bits; q loses one bit of b, one of the x that is certain, and has all of d.
    held = {A: 0.5, B: -0.5, C: 1, D: np.log2(4 / 3) / 2, "": -0.5}
    assert column(found, "bits") == pytest.approx(held)
    unseen = {A: 1, B: 0, C: 0, D: np.log2(4 / 3) - 3, "": -1}
    assert column(found, "bits_unseen") == pytest.approx(unseen)
    before = {A: -0.5, B: -0.5, C: 0, D: np.log2(4 / 3) / 2 - 1, "": -2}
    assert column(found, "bits", epoch=0) == pytest.approx(before)
    assert set(found.loc[found["rule"].notna(), "level"]) == {1}
    assert found.loc[found["rule"].isna(), "level"].isna().all()
    assert set(found["n_train"]) == {2}
    assert set(found["n_unseen"]) == {1}
    assert set(found["optimal_epoch"]) == {5}


def test_the_rows_sum_to_the_study_bits(path, tmp_path):
    trace = Trace(
        run=RUN,
        epochs=EPOCHS,
        string_ids=NAMES,
        n_tokens=np.full(4, 3),
        nll=np.log(ODDS).sum(axis=2),
        n_correct=np.zeros((2, 4), int),
        rank_sum=np.full((2, 4), 3),
    )
    tables.write(tmp_path / "trace", traces.to_frame(trace), KINDS["trace"])
    whole = bits_table([str(tmp_path / "trace")], STRINGS, LEARNING, {"m": 100}).set_index("epoch")
    split = table(path).groupby("epoch")[["bits", "bits_unseen"]].sum()
    for name in ("bits", "bits_unseen"):
        np.testing.assert_allclose(split[name], whole[name], atol=1e-12)
    total = table(path).groupby("epoch")["optimal"].sum() * 2
    np.testing.assert_allclose(total, OPTIMAL[:2].sum() / np.log(2))


def test_the_study_is_of_its_kind(path, tmp_path):
    (tmp_path / "L.pcfg").write_text(TEXT)
    found = STUDIES["bits_by_rule"].table(
        strings=STRINGS,
        learning=LEARNING,
        tokens=[path],
        corpus=[str(tmp_path / "L.pcfg")],
        predict_end=False,
    )
    tables.write(tmp_path / "table", found, KINDS["bits_by_rule"])
    read = tables.read(tmp_path / "table", KINDS["bits_by_rule"])
    assert len(read) == 2 * 5
    assert read["rule"].isna().sum() == 2


def test_without_unseen_strings_there_is_no_placebo(path):
    found = table(path, STRINGS[STRINGS["split"] != "test"])
    placebo = ["symbols_unseen", "optimal_unseen", "bits_unseen"]
    assert found[placebo].isna().all().all()
    assert found["bits"].notna().all()


def test_a_dataset_of_another_grammar_is_refused(path):
    other = Grammar.from_string(TEXT.replace("0.25", "0.3").replace("0.75", "0.7"))
    with pytest.raises(UserError, match="m/L/n4-seed0/base: the Bayes-optimal losses"):
        table(path, grammar=other)
