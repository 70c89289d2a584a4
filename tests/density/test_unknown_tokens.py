"""Words that a language model's tokenizer does not know, and texts that look like its own marks."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import BPE, WordLevel
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from helpers.checkpoints import write_checkpoint
from helpers.user_texts import embedded as of_text
from helpers.user_texts import write_lines
from palimpsest import tables
from palimpsest.density.kinds import TEXT_EMBEDDINGS
from palimpsest.density.texts import CORPUS, QUERY
from palimpsest.density.unknown_tokens import unknown_ids, warn_of_left_out, warn_of_unknown
from palimpsest.errors import UserError
from palimpsest.models.limits import Limits
from palimpsest.training.texts import encode_texts

ROOT = Path(__file__).parents[2]
NO_LIMITS = Limits(None, None)
SAID = ("segment", "make the window of the text smaller")


def test_a_special_token_in_a_text_is_a_text(tmp_path):
    """`</s>` in somebody's text does not end it: its letters are read, and here are unknown."""
    write_checkpoint(tmp_path, "opt-1.3b")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "checkpoint")
    assert 2 in tokenizer("1 </s> 2", add_special_tokens=False).input_ids
    encoded = encode_texts("mine", tokenizer, NO_LIMITS, ["1 </s> 2", "1 2"], *SAID)
    assert 2 not in encoded.ids
    assert encoded.ids[1, :3].tolist() == [1, 3, 4]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """The table of a text whose digits the model knows, and what the job said."""
    folder = tmp_path_factory.mktemp("text")
    table = write_checkpoint(folder, "opt-1.3b")
    texts = {"corpus": ["1 2", "3 4"], "queries": ["1 x", "y z"]}
    files = [write_lines(folder / f"{name}.jsonl", *lines) for name, lines in texts.items()]
    _, paths = of_text(folder, "hidden", "mine", table, *files)
    return tables.read_all(paths, TEXT_EMBEDDINGS), (folder / "said").read_text()


def test_unknown_words_are_counted(embedded):
    """For every query; a segment of the corpus has no loss, so no tokens either."""
    found, _ = embedded
    queries = found[found["role"] == QUERY]
    assert queries[["n_tokens", "n_unknown"]].to_numpy().tolist() == [[2, 1], [2, 2]]
    assert found.loc[found["role"] == CORPUS, ["n_tokens", "n_unknown"]].isna().all(axis=None)


def test_unknown_words_are_said(embedded):
    """In one line for each number that they go into, with their share."""
    _, said = embedded
    lines = [line for line in said.splitlines() if "does not know" in line]
    assert len(lines) == 2
    assert all(line.startswith("WARNING: mine: its tokenizer does not know ") for line in lines)
    assert sum("75 % of the tokens of the segments" in line for line in lines) == 1
    assert sum("75 % of the tokens of the queries" in line for line in lines) == 1


def in_transformers(model, **specials):
    """A tokenizer of transformers with this model; words are parted by blanks."""
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, **specials)


def test_an_unknown_token_that_only_the_model_names_is_counted():
    """As in a file without a configuration beside it."""
    tokenizer = in_transformers(WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    assert tokenizer.unk_token_id is None
    assert unknown_ids(tokenizer) == [0]


def test_characters_without_a_token_are_said(caplog):
    """Without an unknown token, they are left out; a text of which nothing is left is refused."""
    tokenizer = in_transformers(BPE({"a": 0, "b": 1, "</s>": 2}, []), eos_token="</s>")
    warn_of_left_out("mine", tokenizer, ["a b", "ba\n"], "queries", "perplexities")
    assert not caplog.text
    warn_of_left_out("mine", tokenizer, ["a xx", "bz"], "queries", "perplexities")
    assert "leaves out 60 % of the characters of the queries, such as 'x' 'z'; do" in caplog.text
    with pytest.raises(UserError, match="mine: its tokenizer has no token for the segment 'xyz'"):
        encode_texts("mine", tokenizer, NO_LIMITS, ["a b", "xyz"], *SAID)


def test_nothing_is_said_if_all_words_are_known(caplog):
    warn_of_unknown("mine", 0.0, "queries", "perplexities")
    assert not caplog.text
    warn_of_unknown("mine", 1.0, "queries", "perplexities")
    assert "100 % of the tokens of the queries" in caplog.text
