"""What strings are made of, and the tokenizer of twins of texts."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizer, PreTrainedTokenizerFast

from helpers.commands import MODELS, SCRIPTS
from helpers.experiments import message
from helpers.tiny_language_models import SPECIALS, byte_level, sentence_piece, word_piece
from palimpsest.corpora import GrammarCorpus
from palimpsest.corpora.records import Records
from palimpsest.corpora.records_corpus import RecordsCorpus
from palimpsest.languages import Grammar
from palimpsest.models import read_models
from palimpsest.models.alphabets import (
    TEXT_VOCABULARY,
    TWIN_SPECIALS,
    Alphabet,
    byte_level_tokenizer,
)
from palimpsest.models.build import TextTokens, tokens, twin_tokenizer
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Run

ROW = read_models(MODELS)["llama-3.2-1b"]
TEXTS = [f"Person {n} of {town} wrote to us." for n in range(60) for town in ("Lund", "Łódź")]
# All that a string of Python may hold, but halves of characters and NUL
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
OTHER_PROCESS = """
import json, sys
from palimpsest.models.alphabets import byte_level_tokenizer
print(byte_level_tokenizer({text: None for text in json.load(sys.stdin)}))
"""


@pytest.fixture(scope="module")
def text_tokens() -> TextTokens:
    return tokens(ROW, "twin", Alphabet(tokenizer=byte_level_tokenizer(TEXTS)))


def of_records(texts, prompts=None) -> RecordsCorpus:
    ids = np.array([f"r{n}" for n in range(len(texts))], dtype=object)
    prompts = None if prompts is None else np.array(prompts, dtype=object)
    return RecordsCorpus("mine", Records(ids, np.array(texts, object), None, ids, prompts=prompts))


def configuration(corpus, scale="twin") -> dict:
    recipe = Recipe(1e-3, epochs=1, batch_size=1, precision="fp32")
    return Run("m", ROW, scale, corpus, "no dataset is read", recipe).configuration()


def test_the_same_texts_give_the_same_tokenizer():
    """In another process, in which hashes differ, and in another order."""
    shuffled = random.Random(0).sample(TEXTS, len(TEXTS))
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS],
        input=json.dumps(shuffled),
        env={"PYTHONPATH": str(SCRIPTS), "PYTHONHASHSEED": "7", "RAYON_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == byte_level_tokenizer(TEXTS)
    assert byte_level_tokenizer(TEXTS[:-1]) != byte_level_tokenizer(TEXTS)


@settings(max_examples=200)
@given(st.lists(ANY_TEXT, min_size=1, max_size=5))
def test_every_text_is_encoded_without_loss(text_tokens, texts):
    """And no text has the token of start or end, whatever it says."""
    for text, ids in zip(texts, text_tokens.rows(texts), strict=True):
        assert text_tokens.tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text
        assert not {text_tokens.start, text_tokens.end} & {*ids}
        assert max(ids) < text_tokens.vocabulary


def test_the_names_of_special_tokens_in_a_text_are_letters():
    """Even if the tokenizer was trained on little else."""
    texts = ["<start>", "a<end>b", "<start><start>"]
    made = tokens(ROW, "twin", Alphabet(tokenizer=byte_level_tokenizer(texts * 500)))
    assert (made.start, made.end) == (TWIN_SPECIALS["start"], TWIN_SPECIALS["end"]) == (0, 1)
    for text, ids in zip(texts, made.rows(texts), strict=True):
        assert not {0, 1} & {*ids}
        assert made.tokenizer.decode(ids) == text


def test_few_different_words_give_a_small_vocabulary():
    small = twin_tokenizer(byte_level_tokenizer(["aa aa", "aa"]))
    assert len(TWIN_SPECIALS) + 256 < len(small) < len(TWIN_SPECIALS) + 256 + 5
    rich = [f"word{n * 7919} and {n * 104729}" for n in range(500)]
    assert len(twin_tokenizer(byte_level_tokenizer(rich))) == TEXT_VOCABULARY
    assert len(twin_tokenizer(byte_level_tokenizer([]))) == len(TWIN_SPECIALS) + 256


@pytest.mark.parametrize("scale", ["twin", "full"])
def test_the_key_of_a_run_on_symbols_knows_no_tokenizer(scale):
    corpus = GrammarCorpus(Grammar.from_string("S -> 'b' S [0.5] | 'a' [0.5]"))
    found = configuration(corpus, scale)
    assert found["terminals"] == [*corpus.alphabet.terminals] == ["a", "b"]
    assert not {"tokenizer", "prompts"} & found.keys()


def test_the_key_of_a_run_on_texts_has_what_decides_it():
    """The tokenizer of a twin; that of a full model is in its row. Prompts, if there are any."""
    plain = of_records(["one", "two"])
    found = configuration(plain)
    assert found["tokenizer"] == byte_level_tokenizer(["one", "two"])
    assert not {"terminals", "prompts"} & found.keys()
    assert configuration(plain, "full")["tokenizer"] == "of the model"
    assert configuration(of_records(["one", "two"], ["", ""])) == found
    # The same whole texts, with more or less of them predicted
    whole, after, later = (
        configuration(of_records(["two", text], ["", prompt]))
        for text, prompt in (("Q x one", ""), ("x one", "Q "), ("one", "Q x "))
    )
    assert after == {**whole, "prompts": after["prompts"]}
    assert later == {**whole, "prompts": later["prompts"]}
    assert after["prompts"] != later["prompts"]


def test_an_alphabet_is_read_back_from_a_key():
    for alphabet in (Alphabet(("a", "b")), Alphabet(tokenizer=byte_level_tokenizer(["a"]))):
        assert Alphabet.of_configuration(alphabet.decisive("twin")) == alphabet


def with_blank_first():
    """Like the tokenizer of RoBERTa: a text begins with a blank, which is no letter of it."""
    made = byte_level()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.post_processor = processors.ByteLevel(trim_offsets=True)
    return made


def of_tokenizer(made) -> TextTokens:
    return TextTokens.of("m", PreTrainedTokenizerFast(tokenizer_object=made, **SPECIALS))


def words():
    """Words between blanks, of which those of special tokens are in the vocabulary."""
    made = Tokenizer(WordLevel({"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3, "b": 4}, "<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


def with_a_merged_name():
    """Byte-level, with merges of the letters of a special token."""
    made = byte_level()
    written = json.loads(made.to_str())
    written["model"]["merges"] += [["<", "s"], ["<s", ">"], ["<s>", "b"]]
    for word in ("<s", "<s>b"):
        written["model"]["vocab"].setdefault(word, len(written["model"]["vocab"]))
    return Tokenizer.from_str(json.dumps(written))


@pytest.mark.parametrize(
    "make", [byte_level, with_a_merged_name, sentence_piece, word_piece, words]
)
def test_no_text_has_a_special_token(make):
    """Also not where its name is a word of the vocabulary; other texts have the tokens they had."""
    made = of_tokenizer(make())
    texts = ["a b", "<s>", "a <s> b</s>", "</s><s>b", "b a"]
    rows = made.rows(texts)
    assert not {made.start, made.end} & {id for row in rows for id in row}
    assert rows == [made.rows([text])[0] for text in texts]
    plain = made.tokenizer([texts[0], texts[-1]], add_special_tokens=False)["input_ids"]
    assert [rows[0], rows[-1]] == plain
    ends = made.ends(texts, "")
    assert [*map(len, rows)] == [*map(len, ends)]
    assert [places[-1] for places in ends] == [*map(len, texts)]
    if make in (byte_level, with_a_merged_name, sentence_piece):
        assert [made.tokenizer.decode(row) for row in rows] == texts


def test_a_special_token_that_stays_in_a_text_is_refused():
    """A tokenizer in Python cannot be read without its special tokens."""

    class Slow(PreTrainedTokenizer):
        vocab_size = 3

        def get_vocab(self):
            return {"<s>": 0, "</s>": 1, "a": 2}

        def _tokenize(self, text, **_):
            return text.split()

        def _convert_token_to_id(self, token):
            return self.get_vocab()[token]

        def _convert_id_to_token(self, index):
            return list(self.get_vocab())[index]

    made = TextTokens.of("m", Slow(bos_token="<s>", eos_token="</s>"))
    assert made.rows(["a"]) == [[2]]
    said = message(lambda: made.rows(["a", "a <s>"]))
    assert said.startswith("m: its tokenizer reads a special token in 'a <s>'; leave this text out")


@pytest.mark.parametrize("make", [byte_level, sentence_piece, word_piece, with_blank_first])
def test_a_prompt_has_the_tokens_that_end_within_it(make):
    """The tokens of the text after it are not fewer than those that its letters are in."""
    made = of_tokenizer(make())
    text, prompt = "Ann Ek was born in Lund. 東京", "Ann Ek was "
    (whole,) = made.rows([text])
    counts = made.prompts([text] * len(text), range(len(text)))
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] < len(whole)
    n_prompt = counts[len(prompt)]
    if make is not with_blank_first:
        (head,) = made.rows([prompt.rstrip()])
        assert whole[: len(head)] == head
        assert len(head) <= n_prompt <= len(head) + 1  # and the blank, where it is a token
    # Letters of the prompt are in no token of the text.
    assert "born" in made.tokenizer.decode(whole[n_prompt:])
    assert "Ek" not in made.tokenizer.decode(whole[n_prompt:])


def test_a_token_that_begins_in_the_prompt_and_ends_after_it_is_predicted():
    made = of_tokenizer(byte_level())
    (ids,) = made.rows(["was"])
    assert made.tokenizer.convert_ids_to_tokens(ids) == ["w", "as"]
    assert made.prompts(["was", "was", "was"], [1, 2, 0]) == [1, 1, 0]


def test_a_text_without_a_prompt_keeps_a_token_of_no_letter():
    """It is predicted in company as it is alone."""
    made = of_tokenizer(with_blank_first())
    rows = made.rows(["zoo", "zoo zoo"])
    assert len(rows[0]) == 4
    assert made.prompts(["zoo", "zoo zoo"], [0, 4]) == [0, 5]


def test_a_text_that_has_no_token_after_its_prompt_is_refused():
    """Its loss would be 0, and it would be called memorised."""
    made = word_piece()
    made.normalizer = normalizers.BertNormalizer()
    said = message(lambda: of_tokenizer(made).prompts(["Ann Ek\n\u200b"], [7], "record"))
    assert said.startswith("m: its tokenizer has no token for '\\u200b', the text after the prompt")
