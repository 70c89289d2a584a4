"""The tokens of terminals, in tokenizers of each kind that models have.

Each tokenizer is made here. Both readers of a tokenizer must agree: transformers, in a job, and the
file alone, before any job.
"""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, trainers
from tokenizers.models import BPE, Unigram, WordLevel, WordPiece
from transformers import AutoTokenizer, PreTrainedTokenizer, PreTrainedTokenizerFast

from palimpsest.errors import UserError
from palimpsest.models import Model, read_models
from palimpsest.models.tokens import Vocabulary, check_local, single_tokens

ROW = Model(**{**asdict(read_models(Path("config/models.tsv"))["llama-3.2-1b"]), "model": "mine"})
TEXT = ["été été, le café est près de 1 2 3 a b c", "the cat sees the dog 诗 诗"] * 3
# Each byte, as a piece of a tokenizer with byte fallback
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPECIALS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
PIECES = ["<unk>", "<s>", "</s>", *BYTES, "▁", "▁the", "the", "▁cat", "a", "▁a", "b", "1", "2", "é"]


def byte_level():
    """As GPT-2's: the names of tokens are bytes, written as letters."""
    made = Tokenizer(BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    specials = ["<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=alphabet, special_tokens=specials, show_progress=False
    )
    made.train_from_iterator(TEXT, trainer)
    return made, {"bos_token": "<s>", "eos_token": "</s>"}


def unigram():
    """As T5's: pieces with scores, a blank before a text, bytes for what is unknown."""
    scores = [(piece, -10.0 if piece in BYTES else -1.0) for piece in PIECES]
    made = Tokenizer(Unigram(scores, unk_id=0, byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    return made, SPECIALS


def byte_fallback():
    """As Llama 2's: merges of letters, a blank before a text, bytes for what is unknown."""
    letters = [*dict.fromkeys("".join(piece.strip("<>") for piece in PIECES[259:]))]
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("▁", "a"), ("c", "a"), ("ca", "t")]
    merges.append(("▁", "cat"))
    pieces = ["<unk>", "<s>", "</s>", *BYTES, *letters, *map("".join, merges)]
    vocabulary = {piece: place for place, piece in enumerate(dict.fromkeys(pieces))}
    made = Tokenizer(BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    return made, SPECIALS


def word_piece():
    """As BERT's: lower case, and `##` before the rest of a word."""
    pieces = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "the", "cat", "a", "b", "##b", "1", "é", "##é"]
    made = Tokenizer(WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = {"unk_token": "[UNK]", "bos_token": "[CLS]", "eos_token": "[SEP]"}
    return made, {**specials, "pad_token": "[PAD]"}


KINDS = {make.__name__: make for make in (byte_level, unigram, byte_fallback, word_piece)}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder with each tokenizer, as a checkpoint has it."""
    found = {}
    for name, make in KINDS.items():
        made, specials = make()
        folder = tmp_path_factory.mktemp(name)
        PreTrainedTokenizerFast(tokenizer_object=made, **specials).save_pretrained(folder)
        found[name] = folder
    return found


@pytest.fixture(scope="module")
def vocabularies(folders):
    """Each tokenizer, as both readers see it."""
    return {
        name: [
            Vocabulary.of_transformers(AutoTokenizer.from_pretrained(folder)),
            Vocabulary.of_file(folder / "tokenizer.json"),
        ]
        for name, folder in folders.items()
    }


def taken(vocabularies, kind, *terminals):
    """The names of the terminals' tokens, which both readers agree on."""
    ids = [single_tokens(ROW, terminals, each) for each in vocabularies[kind]]
    assert ids[0] == ids[1]
    return [vocabularies[kind][0].name(token) for token in ids[0]]


def refused(vocabularies, kind, *terminals):
    """The one line with which both readers refuse terminals."""
    lines = []
    for vocabulary in vocabularies[kind]:
        with pytest.raises(UserError) as error:
            single_tokens(ROW, terminals, vocabulary)
        lines.append(str(error.value))
    assert lines[0] == lines[1]
    assert "\n" not in lines[0]
    assert lines[0].startswith("mine: ")
    assert "choose other terminals" in lines[0]
    return lines[0]


def test_a_token_stands_for_its_text_and_not_for_its_name(vocabularies):
    """In a byte-level vocabulary, `é` names the byte 0xE9; the letter is two bytes, merged here."""
    named_e = vocabularies["byte_level"][0].name
    assert "é" in {named_e(token) for token in range(300)}
    assert taken(vocabularies, "byte_level", "é", "1", "the") == ["Ã©", "1", "the"]
    for kind in ("unigram", "byte_fallback", "word_piece"):
        assert taken(vocabularies, kind, "é", "1") == ["é", "1"]
    # The name of a blank and of a byte that is part of other letters
    for name in ("Ġ", "Ã", "¿"):
        assert f"terminal {name!r} into" in refused(vocabularies, "byte_level", "1", name)


def test_a_terminal_is_a_word_within_a_text(vocabularies):
    """The blank that a tokenizer puts before a text is no part of the terminal.

    A word that has only a token with a blank gets that token.
    """
    for kind in ("unigram", "byte_fallback"):
        assert taken(vocabularies, kind, "1", "a", "the") == ["1", "a", "the"]
    assert taken(vocabularies, "unigram", "cat") == ["▁cat"]


@pytest.mark.parametrize(
    ("kind", "terminal"),
    [
        ("byte_level", "<s>"),
        ("byte_level", "</s>"),
        ("unigram", "<s>"),
        ("unigram", "</s>"),
        ("byte_fallback", "<s>"),
        ("byte_fallback", "</s>"),
        ("word_piece", "[CLS]"),
        ("word_piece", "[PAD]"),
    ],
)
def test_a_special_token_is_never_a_terminals(vocabularies, kind, terminal):
    text = refused(vocabularies, kind, "1", terminal)
    assert f"takes the terminal {terminal!r} for its special token {terminal!r}" in text


@pytest.mark.parametrize(
    ("kind", "terminal"),
    [
        ("unigram", "<unk>"),
        ("byte_fallback", "<unk>"),
        ("word_piece", "[UNK]"),
        ("word_piece", "dog"),
        ("word_piece", "诗"),
    ],
)
def test_the_unknown_token_is_never_a_terminals(vocabularies, kind, terminal):
    assert f"does not know the terminal {terminal!r}" in refused(vocabularies, kind, terminal)


@pytest.mark.parametrize("kind", ["unigram", "byte_fallback"])
def test_a_byte_is_not_a_letter(vocabularies, kind):
    """A letter without a piece is several bytes; the name of a byte is not a word."""
    assert "into 4 tokens" in refused(vocabularies, kind, "诗")  # one is the blank
    assert "'<0x41>'" in refused(vocabularies, kind, "<0x41>")


def test_a_mark_for_a_blank_is_no_terminal(vocabularies):
    """SentencePiece writes a blank as `▁`, and reads `▁` as a blank."""
    assert "leaves out a part of the terminal '▁'" in refused(vocabularies, "unigram", "1", "▁")


def test_terminals_that_share_a_token_are_refused(vocabularies):
    """The lower case of two terminals is one token; copies of a terminal are one as well."""
    line = refused(vocabularies, "word_piece", "1", "The", "the")
    assert "one token for the terminals 'The' and 'the'" in line
    assert taken(vocabularies, "word_piece", "The", "b") == ["the", "b"]


def test_a_word_that_somebody_added_is_a_word(tmp_path):
    """An added token is not special in itself: it is how a user makes a word one token."""
    made, specials = byte_level()
    made.add_tokens(["S1", AddedToken("S2", normalized=False)])
    made.add_special_tokens(["<sep>"])
    made.enable_padding(length=8)
    made.enable_truncation(1)
    PreTrainedTokenizerFast(tokenizer_object=made, **specials).save_pretrained(tmp_path)
    check_local(ROW, tmp_path / "tokenizer.json", [("S1", "S2"), ("1",)])
    with pytest.raises(UserError, match="special token '<sep>'"):
        check_local(ROW, tmp_path / "tokenizer.json", [("S1",), ("S2", "<sep>")])


def test_a_special_token_of_the_configuration_counts(tmp_path):
    """Some files name the start token in `tokenizer_config.json` alone."""
    made, _ = unigram()
    made.save(str(tmp_path / "tokenizer.json"))
    check_local(ROW, tmp_path / "tokenizer.json", [("1", "<s>")])
    (tmp_path / "tokenizer_config.json").write_text('{"bos_token": {"content": "<s>"}}')
    with pytest.raises(UserError, match="special token '<s>'"):
        check_local(ROW, tmp_path / "tokenizer.json", [("1", "<s>")])


def both_readers(folder, made, **specials):
    """A tokenizer as transformers reads it, and as it is read from its file, in a dictionary."""
    folder.mkdir(exist_ok=True)
    PreTrainedTokenizerFast(tokenizer_object=made, **specials).save_pretrained(folder)
    return {"made": read_both(folder)}


def read_both(folder):
    """The tokenizer of a folder, as both readers see it."""
    return [
        Vocabulary.of_transformers(AutoTokenizer.from_pretrained(folder)),
        Vocabulary.of_file(folder / "tokenizer.json"),
    ]


def test_a_token_stands_for_all_letters_of_its_terminal(tmp_path):
    """A tokenizer without an unknown token drops the letters that it does not know."""
    made = Tokenizer(BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    vocabularies = both_readers(tmp_path, made)
    assert taken(vocabularies, "made", "a", "ab") == ["a", "ab"]
    for terminal in ("ac", "ca", "cca"):
        line = refused(vocabularies, "made", terminal)
        assert f"leaves out a part of the terminal {terminal!r}, and gives the token 'a'" in line
    assert "has no token for the terminal 'c'" in refused(vocabularies, "made", "c")


def test_a_token_does_not_stand_for_part_of_a_letter(tmp_path):
    """A byte-level tokenizer that has one of a letter's two bytes drops the other."""
    made = Tokenizer(BPE({"a": 0, "Ã": 1}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    assert "a part of the terminal 'é'" in refused(both_readers(tmp_path, made), "made", "é")


@pytest.mark.parametrize("terminal", ["a ", " a", "a\u200b"])
def test_blanks_and_unseen_characters_are_not_dropped(tmp_path, terminal):
    made, specials = word_piece()
    if not terminal.isprintable():
        made.normalizer = normalizers.BertNormalizer()
    vocabularies = both_readers(tmp_path, made, **specials)
    assert "leaves out a part of the terminal" in refused(vocabularies, "made", terminal)


class TokenizerInPython(PreTrainedTokenizer):
    """A tokenizer without a file of the library `tokenizers`; it drops what is not a letter."""

    def __init__(self, **kwargs):
        self._letters = ["<unk>", *"abcé"]
        super().__init__(unk_token="<unk>", **kwargs)

    @property
    def vocab_size(self):
        return len(self._letters)

    def get_vocab(self):
        return {letter: place for place, letter in enumerate(self._letters)}

    def _tokenize(self, text):
        return [letter for letter in text.lower() if letter.isalpha()]

    def _convert_token_to_id(self, token):
        return self.get_vocab().get(token, 0)

    def _convert_id_to_token(self, index):
        return self._letters[index]


def test_a_tokenizer_that_counts_no_characters_is_checked_by_the_text_of_its_tokens():
    vocabulary = Vocabulary.of_transformers(TokenizerInPython())
    assert {token.width for token in vocabulary.encode("ab")} == {None}
    assert single_tokens(ROW, ["a", "B", "é"], vocabulary) == (1, 2, 4)
    for terminal in ("a1", "a ", "+b"):
        with pytest.raises(UserError, match="leaves out a part of the terminal"):
            single_tokens(ROW, [terminal], vocabulary)


def test_letters_may_change_their_form(tmp_path):
    """Two characters become one letter, and capitals small ones; no text is lost."""
    composed = Tokenizer(BPE({"é": 0, "ガ": 1, "a": 2}, []))
    composed.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    vocabularies = both_readers(tmp_path, composed)
    assert taken(vocabularies, "made", "e\u0301", "ｶﾞ", "A") == ["é", "ガ", "a"]
    line = refused(vocabularies, "made", "é", "e\u0301")
    assert "one token for the terminals" in line


def test_a_byte_level_token_may_begin_with_a_blank(vocabularies):
    """The blank is in the token's text, though the library does not count its width."""
    assert taken(vocabularies, "byte_level", " a", "a") == ["Ġa", "a"]


def test_an_unknown_token_that_is_not_in_the_vocabulary(tmp_path):
    """The library fails for a word that it does not know; other words have their tokens."""
    vocabularies = both_readers(tmp_path, Tokenizer(WordLevel({"a": 0, "b": 1}, "<unk>")))
    assert taken(vocabularies, "made", "a", "b") == ["a", "b"]
    assert "has no token for the terminal 'c'" in refused(vocabularies, "made", "c")


def test_an_unknown_token_that_only_the_model_names(tmp_path):
    vocabularies = both_readers(tmp_path, Tokenizer(WordLevel({"a": 0, "<unk>": 1}, "<unk>")))
    assert "does not know the terminal 'c'" in refused(vocabularies, "made", "c")


@pytest.mark.parametrize(
    "special",
    [
        {"additional_special_tokens": ["x"]},
        {"extra_special_tokens": ["x"]},
        {"extra_special_tokens": {"image_token": "x"}},
        {"image_token": "x"},
        {"added_tokens_decoder": {"2": {"content": "x", "special": True}}},
        {"bos_token": "X"},
    ],
)
def test_each_key_of_the_configuration_makes_a_token_special(tmp_path, special):
    """In a job and before it, also if the tokenizer's own file says that the token is a word."""
    made = Tokenizer(WordLevel({"a": 0, "b": 1}, "a"))
    made.normalizer = normalizers.Lowercase()
    made.add_tokens(["x"])
    both_readers(tmp_path, made)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **special}))
    terminal = special.get("bos_token", "x")
    line = refused({"made": read_both(tmp_path)}, "made", "b", terminal)
    assert f"takes the terminal {terminal!r} for its special token {terminal!r}" in line


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json"])
@pytest.mark.parametrize(
    ("text", "said"), [("[1]", "must hold one JSON object"), ("{bad", "cannot be read as JSON")]
)
def test_a_broken_file_beside_the_tokenizer_is_named(tmp_path, name, text, said):
    made, _ = unigram()
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as error:
        check_local(ROW, tmp_path / "tokenizer.json", [("1",)])
    assert str(error.value).startswith(f"{tmp_path / name}: {said}")


def test_a_file_that_is_no_tokenizer_is_named(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=r"tokenizer\.json: not a tokenizer: .*save_pretrained"):
        check_local(ROW, tmp_path / "tokenizer.json", [("1",)])


@settings(max_examples=60, deadline=None)
@given(terminals=st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=4, unique=True))
@pytest.mark.parametrize("kind", KINDS)
def test_any_terminals_get_their_own_tokens_or_one_line(vocabularies, kind, terminals):
    """Whatever they are, no two share a token, and none is special, unknown or a byte's name."""
    found = []
    for vocabulary in vocabularies[kind]:
        try:
            ids = single_tokens(ROW, terminals, vocabulary)
        except UserError as error:
            found.append(str(error))
            continue
        found.append(ids)
        assert len(set(ids)) == len(terminals)
        assert not set(ids) & (set(vocabulary.special) | vocabulary.unknown)
    assert found[0] == found[1]
