"""Texts that users bring: segments, embeddings, densities and bins."""

import json
import math
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordPiece
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    BertTokenizerFast,
)

from helpers.experiments import message
from helpers.jobs import do_job
from helpers.user_texts import EXAMPLE, MODELS, ROOT, embedded, write_language_model, write_lines
from palimpsest import tables
from palimpsest.density import Approximation, bins
from palimpsest.density import text_density as densities
from palimpsest.density.kinds import (
    ACCURACY,
    BINS,
    PERPLEXITY,
    SEGMENTS,
    TEXT_BINS,
    TEXT_DENSITY,
    TEXT_EMBEDDINGS,
)
from palimpsest.density.regressions import regress_text
from palimpsest.density.segments import (
    read_texts,
    say_duplicates,
    segmented,
    tabulated,
    windows,
)
from palimpsest.density.text_embedding import (
    hashed_ngrams,
    of_sentences,
)
from palimpsest.density.texts import (
    CORPUS,
    QUERIES,
    QUERY,
    SEGMENT_ROLES,
    check_embedder,
    mistakes,
    outputs,
)
from palimpsest.density.vectors_on_disk import InMemory
from palimpsest.errors import Notice
from palimpsest.models import read_models
from palimpsest.models.limits import Limits
from palimpsest.pretrained.catalogue import SMOLLM2
from palimpsest.pretrained.conversion import convert
from palimpsest.pretrained.embedders import MINILM
from palimpsest.pretrained.making import copy
from palimpsest.pretrained.packages import find, find_folder
from palimpsest.training.texts import encode_texts

SAID = ("segment", "make the window of the text smaller")

TEXT_FILE = "requirements.txt"


# Segments


@given(
    words=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=60),
    window=st.integers(1, 20),
    data=st.data(),
)
def test_every_word_is_in_a_window(words, window, data):
    """Windows begin every `stride` words, and only the last may be shorter."""
    stride = data.draw(st.integers(1, window))
    found = windows(words, window, stride)
    covered = [None] * len(words)
    for number, segment in enumerate(found):
        start = number * stride
        assert list(segment) == words[start : start + window]
        covered[start : start + len(segment)] = segment
    assert covered == words
    assert all(len(segment) == window for segment in found[:-1])
    # No window lies in the one before.
    assert all(number * stride + window < len(words) for number in range(len(found) - 1))


def test_windows_are_the_papers():
    """50 words with a stride of 40: neighbours share 10 words."""
    words = [str(number) for number in range(130)]
    first, second, third = windows(words, 50, 40)
    assert (first[0], second[0], third[0]) == ("0", "40", "80")
    assert first[40:] == second[:10]
    assert third[-1] == "129"


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_counts_are_those_of_equal_segments(tmp_path, suffix):
    """Equal rows are one segment, and whitespace does not tell rows apart."""
    texts = ["a b c", "d e", "a  b\tc", "a b c"]
    path = tmp_path / f"corpus{suffix}"
    if suffix == ".jsonl":
        write_lines(path, *texts)
    else:
        pq.write_table(pa.table({"n": [1, 2, 3, 4], "text": texts}), path)
    corpus = segmented(path, 50, 40)
    assert not corpus.corpus.has_probabilities
    assert corpus.documents == [1, 2, 3, 4]
    parts = corpus, {QUERIES: corpus}
    table = pd.concat([tabulated("mine", part) for part in parts], ignore_index=True)
    tables.write(tmp_path / "segments.parquet", table, SEGMENTS)
    for role in (CORPUS, QUERY):
        own = table[table["role"] == role].set_index("text")
        assert own["count"].to_dict() == {"a b c": 3, "d e": 1}
        assert own.loc["d e", ["n_words", "n_characters"]].tolist() == [2, 3]
        assert own["document"].to_dict() == {"a b c": 1, "d e": 2}
    assert table["segment_id"].nunique() == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "corpus.jsonl: has no texts; write one text a row"),
        ('{"text": "a"}\n\n{"text": \n', "corpus.jsonl:3: is not JSON"),
        ("[1]\n", "corpus.jsonl:1: is no JSON object"),
        (
            '{"txt": "a"}\n',
            "jsonl:1: has no column 'text' (did you mean 'txt'?); it has: txt",
        ),
        ('{"text": "a"}\n{"text": null}\n', "corpus.jsonl:2: 'text' is null"),
        ('{"text": 7}\n', "corpus.jsonl:1: 'text' is 7; must be a text"),
        ('{"text": 7.50}\n', "corpus.jsonl:1: 'text' is 7.50; must be a text"),
        ('{"text": " "}\n', "corpus.jsonl:1: 'text' has no words"),
        ('{"text": "\\ud800"}\n', "corpus.jsonl:1: 'text' has half a character"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, content, words):
    path = tmp_path / "corpus.jsonl"
    path.write_text(content)
    assert words in message(lambda: list(read_texts(path)))


@pytest.mark.parametrize("content", ["", "\ufeff", "\n\r\n\n"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".txt"])
def test_an_empty_file_has_no_texts(tmp_path, suffix, content):
    path = tmp_path / f"corpus{suffix}"
    path.write_text(content, newline="")
    assert message(lambda: list(read_texts(path))).startswith(f"{path}: has no texts; write one")


def test_a_wrong_parquet_file_is_named(tmp_path):
    path = tmp_path / "corpus.parquet"
    path.write_bytes(b"no table")
    assert "cannot be read as Parquet" in message(lambda: list(read_texts(path)))
    pq.write_table(pa.table({"content": ["a"]}), path)
    assert "has no column 'text'" in message(lambda: list(read_texts(path)))
    assert "it has: content" in message(lambda: list(read_texts(path)))
    pq.write_table(pa.table({"text": ["a", None]}), path)
    assert "row 2: 'text' is null" in message(lambda: list(read_texts(path)))


TEXTS = st.lists(
    st.one_of(
        st.sampled_from(["NA", "null", "nan", "01", "1", "1e5", "True", "a  b", 'c "d", e', " x"]),
        st.text(
            st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1
        ).filter(str.strip),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(texts=TEXTS)
def test_texts_are_the_same_in_every_file(texts):
    """Texts are as written, in each format and each of its types of text."""
    frame = pd.DataFrame({"n": range(len(texts)), "content": texts})
    arrow = pa.array(texts)
    typed = {
        "dictionary": arrow.dictionary_encode(),
        "large": arrow.cast(pa.large_string()),
        "view": arrow.cast(pa.string_view()),
    }
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"texts.{name}" for name in ("csv", "tsv", "jsonl", "json")}
        frame.to_csv(paths["csv"], index=False)
        frame.to_csv(paths["tsv"], index=False, sep="\t")
        rows = [json.dumps(row) for row in frame.to_dict("records")]
        paths["jsonl"].write_text("\n\n".join(rows))
        paths["json"].write_text(f"[{','.join(rows)}]")
        for name, column in typed.items():
            paths[name] = Path(folder) / f"{name}.parquet"
            pq.write_table(pa.table({"content": column}), paths[name])
        read = {name: list(read_texts(path, "content")) for name, path in paths.items()}
        assert read == dict.fromkeys(paths, texts)
        lines = Path(folder) / "texts.txt"
        lines.write_text("\n".join(texts))
        assert list(read_texts(lines, "content")) == texts


def test_characters_that_nobody_sees_are_said(tmp_path):
    """A zero-width space makes another word; so does the sign for bytes that were no text."""
    corpus = write_lines(tmp_path / "c.jsonl", "a b", "a\u200b b c\ufffd", "\u200b")
    queries = write_lines(tmp_path / "q.jsonl", "a")
    cut = [segmented(path, 50, 40) for path in (corpus, queries)]
    with pytest.warns(Notice) as caught:
        say_duplicates("mine", cut[0], {QUERIES: cut[1]})
    (said,) = [str(each.message) for each in caught if "nobody sees" in str(each.message)]
    assert said.startswith(
        "mine: words with a character that nobody sees, or that replaced another: 3; such "
        "characters are U+200B, U+FFFD; "
    )


def test_copies_and_two_forms_of_a_word_are_said(tmp_path):
    """Whitespace does not tell texts apart; an accent after its letter does, and looks alike."""
    corpus = write_lines(tmp_path / "c.jsonl", "a b", "a  b", "caf\u00e9", "d")
    queries = write_lines(tmp_path / "q.jsonl", "a b", "a b", "cafe\u0301")
    cut = [segmented(path, 50, 40) for path in (corpus, queries)]
    said = []
    for sets in (None, {QUERIES: cut[1]}):
        with pytest.warns(Notice) as caught:
            say_duplicates("mine", cut[0], sets)
        said += [str(each.message) for each in caught]
    assert said == [
        "mine: copies of other texts in the corpus: 1 of 4; each copy counts",
        "mine: copies of other texts in the queries: 1 of 3; each text is asked once",
        "mine: queries that are also texts of the corpus: 1 of 2; they are at distance 0 from it",
        "mine: words in two forms of the same characters: 1, such as 'caf\\xe9' and "
        "'cafe\\u0301'; they count as different words: normalise the texts (NFC) if they are not",
    ]
    others = segmented(write_lines(tmp_path / "d.jsonl", "e", "f"), 50, 40)
    with warnings.catch_warnings(action="error"):
        say_duplicates("mine", others)
        new = segmented(write_lines(tmp_path / "f.jsonl", "g"), 50, 40)
        say_duplicates("mine", others, {QUERIES: new})


def test_what_is_said_of_texts_is_in_the_log_and_on_the_terminal(tmp_path, capsys):
    job_of_segments(tmp_path, "a b", "a b", "c")
    said = (
        "warning: density/texts/mine: copies of other texts in the corpus: 1 of 3; each copy "
        "counts\n"
    )
    assert (tmp_path / "log").read_text() == said == capsys.readouterr().err


def test_bytes_that_are_no_text_are_named(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'{"text": "\xff"}\n')
    assert "corpus.jsonl:1: not UTF-8 text (byte 0xff)" in message(lambda: list(read_texts(path)))


def job_of_segments(folder, *texts, **block):
    """Do the job that cuts a corpus of 5 segments, with the values of `density`."""
    texts = texts or ("a b c d", "e f g", "a b")
    corpus = write_lines(folder / "corpus.jsonl", *texts)
    sizes = block.pop("approximation", None) or {"k": 0, "m1": 0, "m2": 0}
    resources = {"neighbours": 3, **block, **sizes}
    cut = {"window": 2, "stride": 2, "field": "text"}
    path = folder / "segments.parquet"
    do_job(
        folder,
        "palimpsest.density.segments:of_text",
        input={"corpus": corpus, "queries": []},
        output={"table": path},
        params={**cut, "query_sets": [], "response": "response"},
        wildcards={"language": "mine", "role": CORPUS},
        resources=resources,
    )
    return path


SIZES = {"k": 3, "m1": 100, "m2": 2, "index": "exact"}
TOO_FEW = {
    "neighbours": (
        {"neighbours": 6},
        "density/neighbours: is 6 and must be a whole number at least 1 and at most 5, the number "
        "of segments of density/texts/mine/corpus; lower it, or add texts",
    ),
    "k": (
        {"approximation": {**SIZES, "k": 5}},
        "density/approximation/k: is 5 and must be below 5, the number of segments of "
        "density/texts/mine/corpus; lower it, or add texts",
    ),
    "m2": (
        {"approximation": {**SIZES, "m2": 3}},
        "density/approximation/m2: is 3 and must be at most 2: the sample of a query is drawn from "
        "the first sample of 5 points, without 3 neighbours; lower it",
    ),
}


@pytest.mark.parametrize("block", [{}, {"approximation": SIZES}])
def test_a_corpus_of_just_enough_segments_is_cut(tmp_path, block):
    cut = tables.read(job_of_segments(tmp_path, **block), SEGMENTS)
    assert cut.loc[cut["role"] == CORPUS, "count"].sum() == 5


@pytest.mark.parametrize("mistake", TOO_FEW)
def test_a_corpus_of_too_few_segments_is_refused_before_it_is_cut(tmp_path, capsys, mistake):
    """Nothing is written, so nothing is embedded."""
    block, expected = TOO_FEW[mistake]
    with pytest.raises(SystemExit):
        job_of_segments(tmp_path, **block)
    assert capsys.readouterr().err == f"error: {expected}\n"
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"corpus.jsonl", "log"}


# The block of the configuration


def found_mistakes(**changes):
    """The mistakes in a text of the configuration: texts of `config/texts`, with changes."""
    block = {
        "corpus": str(EXAMPLE / "example-corpus.jsonl"),
        "queries": str(EXAMPLE / "example-queries.jsonl"),
        **changes,
    }
    name = block.pop("name", "mine")
    config = {"models_table": MODELS}
    models = read_models(ROOT / MODELS)
    settings = SimpleNamespace(
        config=config,
        models=models,
        block=lambda section: {"texts": {name: block}},
        is_twin=lambda model: model.endswith("-twin"),
    )
    return [f"{mistake.key}: {mistake.text}" for mistake in mistakes(settings)]


def test_the_example_has_no_mistakes():
    assert found_mistakes() == []
    assert found_mistakes(embedding="all-minilm-l6-v2", model="smollm2-135m-instruct") == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "a/b"}, "density/texts/a/b: is not a name"),
        (
            {"queries": {"a b": str(EXAMPLE / "example-queries.jsonl")}},
            "density/texts/mine/queries/a b: is not a name",
        ),
        (
            {"queries": {"a": "none.jsonl"}},
            "density/texts/mine/queries/a: no such file: none.jsonl",
        ),
        ({"corpus": "none.jsonl"}, "density/texts/mine/corpus: no such file: none.jsonl"),
        ({"queries": "README.md"}, "density/texts/mine/queries: 'README.md' is not a .csv, .tsv"),
        (
            {"corpus": TEXT_FILE, "queries": TEXT_FILE, "field": "content"},
            "density/texts/mine/field: 'content' is in no .txt file, which names no columns",
        ),
        ({"queries": "{a}.jsonl"}, "must be a path without braces"),
        ({"stride": 60}, "density/texts/mine/stride: 60 is above density/texts/mine/window, 50"),
        ({"embedding": "hidden"}, "density/texts/mine/model: is null"),
        ({"model": "smollm"}, "density/texts/mine/model: unknown model 'smollm'"),
        ({"model": "opt-1.3b-twin"}, "density/texts/mine/model: opt-1.3b-twin is a twin"),
        ({"embedding": "ngram"}, "'ngram' is unknown, and no folder; choose from ngrams, hidden"),
        ({"embedding": "config"}, "config: has no readable modules.json"),
    ],
)
def test_a_mistake_is_named(monkeypatch, changes, words):
    monkeypatch.chdir(ROOT)
    (found,) = found_mistakes(**changes)
    assert words in found


def test_outputs_are_those_of_every_text():
    settings = SimpleNamespace(
        block=lambda section: {"texts": {n: {"corpus": "c", "queries": "q"} for n in "ab"}}
    )
    assert len(list(outputs(settings))) == 6


# Embeddings


def write_sentence_model(folder):
    """A tiny sentence-transformers model with random weights, in a folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    torch.manual_seed(0)
    inner = folder / "bert"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
    words += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    made = Tokenizer(WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]"}
    BertTokenizerFast(tokenizer_object=made, sep_token="[SEP]", **specials).save_pretrained(inner)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=512,
    )
    BertModel(config).save_pretrained(inner)
    transformer = Transformer(str(inner))
    model = SentenceTransformer(modules=[transformer, Pooling(16)], device="cpu")
    model.save(str(folder / "model"))
    return folder / "model"


@pytest.fixture(scope="module")
def sentence_model(tmp_path_factory):
    return write_sentence_model(tmp_path_factory.mktemp("sentences"))


def no_connections(monkeypatch):
    """Let every attempt to reach the network fail the test."""

    def refuse(*_):
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("embedding", ["ngrams", "sentences"])
def test_copies_are_at_distance_0(tmp_path, request, monkeypatch, embedding):
    """The first two queries of the example are copies; one of them is there three times."""
    if embedding == "sentences":
        embedding = str(request.getfixturevalue("sentence_model"))
        no_connections(monkeypatch)
    text = densities.read_embedded(*embedded(tmp_path, embedding))
    found = densities.text_density(text, {"gaussian": [0.1], "exponential": [0.05]}, k=3)
    tables.write(tmp_path / "density.parquet", found, TEXT_DENSITY)
    assert found["log_local"].isna().all()
    assert found["perplexity"].isna().all()
    known = tables.read(tmp_path / CORPUS / "segments.parquet", SEGMENTS)
    corpus = known.set_index("segment_id")["count"]
    vectors = np.concatenate([block.copy() for block in text.corpus.blocks(3)])
    assert len(vectors) == text.corpus.n == corpus.sum() > len(corpus)
    is_copy = found["segment_id"].isin(corpus.index)
    assert is_copy.sum() >= 4
    assert (found.loc[is_copy, "nearest"] == 0).all()
    assert (found.loc[~is_copy, "nearest"] > 0).all()
    thrice = found[found["segment_id"].isin(corpus.index[corpus == 3])]
    assert len(thrice) == 2
    assert (thrice["mean_distance"] == 0).all()
    # Three copies at distance 0, each with a kernel of 1
    assert (thrice["log_density"] >= np.log(3 / corpus.sum()) - 1e-6).all()
    assert (found["embedding"] == Path(embedding).name).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_counting_words_needs_no_torch(tmp_path):
    """Which loads slowly; without a language model, nothing else needs it."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'workflow/scripts')!r})\n"
        "from palimpsest.density.text_embedding import TextJob, embed_text\n"
        "from palimpsest.training.attempts import Attempts\n"
        "name, segments, path, state = sys.argv[1:]\n"
        "job = TextJob(name, segments, path, 'ngrams', None, '', 'fp32')\n"
        "asked = {'micro_batch_size': 1, 'evaluation_batch_size': 4}\n"
        "embed_text(job, Attempts(state, asked))\n"
        "assert 'torch' not in sys.modules\n"
    )
    segments = job_of_segments(tmp_path)
    path = tmp_path / "embeddings.parquet"
    files = [str(each) for each in (segments, path, tmp_path / "attempts.json")]
    done = subprocess.run([sys.executable, "-c", code, "mine", *files], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert len(tables.read(path, TEXT_EMBEDDINGS)) == 4


def test_more_words_in_common_are_nearer():
    """Order counts, and what is hashed is near what is counted."""
    texts = ["a b c d e f g h", "a b c d e f g x", "h g f e d c b a", "p q r s t u v w"]
    vectors = hashed_ngrams(texts)
    apart = np.linalg.norm(vectors[1:] - vectors[0], axis=1)
    assert (np.diff(apart) > 0).all()
    # 21 n-grams each; the second text shares 18
    assert apart[0] == pytest.approx(math.sqrt(2 - 2 * 18 / 21), rel=0.1)
    assert apart[2] == pytest.approx(math.sqrt(2), rel=0.1)


def test_hashing_keeps_distances(tmp_path):
    """Against exact counts, on the example: a few per cent, in a width of 2048."""
    from palimpsest.density.vectors import ngram_vectors

    segments = segmented(EXAMPLE / "example-corpus.jsonl", 50, 40).corpus.strings
    exact, hashed = ngram_vectors(segments), hashed_ngrams([" ".join(s) for s in segments])
    apart = [
        np.linalg.norm(v[:, None] - v[None], axis=2)[np.triu_indices(len(v), 1)]
        for v in (exact, hashed)
    ]
    differ = apart[0] > 0
    assert np.abs(apart[1][differ] / apart[0][differ] - 1).max() < 0.1
    assert np.abs(apart[1][differ] / apart[0][differ] - 1).mean() < 0.03


def test_a_segment_that_is_too_long_for_the_model_is_named(tmp_path):
    write_language_model(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "checkpoint")
    encoded = encode_texts("mine", tokenizer, Limits(5, 12), ["a", "a b c d"], *SAID)
    assert encoded.ids.tolist() == [[1, 3, 1, 1, 1], [1, 3, 4, 5, 6]]
    assert encoded.n_tokens.tolist() == [1, 4]
    texts = ["a", "a b c d"]
    text = message(lambda: encode_texts("mine", tokenizer, Limits(4, 12), texts, *SAID))
    assert text.startswith("mine: the segment 'a b c d' has 5 tokens with the start token")
    assert "takes at most 4; make the window of the text smaller" in text
    text = message(
        lambda: encode_texts("mine", tokenizer, Limits(None, 6), ["a", "a b c d"], *SAID)
    )
    assert "gives the token 6, and its weights have only the tokens 0 to 5" in text


def test_what_is_cut_off_is_said(sentence_model, caplog):
    list(of_sentences(str(sentence_model), 4, lambda: iter([["a b"], ["a " * 600]])))
    assert "the end of 1 of 2 segments does not count" in caplog.text


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: (folder / "modules.json").unlink(), "has no readable modules.json"),
        (
            lambda folder: (folder / "modules.json").write_text(
                '[{"path": "", "type": "custom.Model"}]'
            ),
            "the module custom.Model is code that comes with the model",
        ),
        (
            lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
            "pytorch_model.bin: pickled weights are not read",
        ),
        (lambda folder: (folder / "model.safetensors").unlink(), "has no weights"),
    ],
)
def test_a_folder_that_is_not_safe_is_refused(tmp_path, sentence_model, spoil, words):
    folder = tmp_path / "model"
    shutil.copytree(sentence_model, folder)
    check_embedder(folder)
    spoil(folder)
    assert words in message(lambda: check_embedder(folder))
    assert words in message(lambda: next(of_sentences(str(folder), 4, lambda: iter([["a"]]))))


def test_tables_of_other_segments_are_refused(tmp_path):
    segments, paths = embedded(tmp_path, "ngrams")
    for place in range(len(SEGMENT_ROLES)):
        other = tables.read(segments[place], SEGMENTS).iloc[1:]
        tables.write(tmp_path / "other.parquet", other, SEGMENTS)
        mixed = [*segments]
        mixed[place] = tmp_path / "other.parquet"
        text = message(lambda mixed=mixed: densities.read_embedded(mixed, paths))
        assert text.startswith(f"{paths[place]}: is not of the segments in")


ASKED = Approximation(k=3, m1=6, m2=2)


def test_without_the_exact_sum_there_are_parts_and_no_exact_density(tmp_path):
    """With it, the parts are the same."""
    text = densities.read_embedded(*embedded(tmp_path, "ngrams"))
    kernels = {"gaussian": [0.1, 0.5], "exponential": [0.05]}
    both = densities.text_density(text, kernels, 2, ASKED)
    alone = densities.text_density(text, kernels, 2, ASKED, is_exact=False)
    tables.write(tmp_path / "density.parquet", alone, TEXT_DENSITY)
    assert alone["log_density"].isna().all()
    exact = densities.text_density(text, kernels, 2)
    pd.testing.assert_series_equal(both["log_density"], exact["log_density"])
    pd.testing.assert_frame_equal(
        both.drop(columns="log_density"), alone.drop(columns="log_density")
    )
    share = ASKED.k / text.corpus.n
    local, random = share * np.exp(both["log_local"]), (1 - share) * np.exp(both["log_random"])
    np.testing.assert_allclose(np.exp(both["log_approximate"]), local + random)
    np.testing.assert_allclose(both["local_share"], local / (local + random))
    assert exact["local_share"].isna().all()


def found_elsewhere(text, path, k, change=lambda table: table) -> str:
    """A file of the k nearest distinct segments of every query, by a search of all."""
    corpus = tables.read_arrow(path, TEXT_EMBEDDINGS).to_pandas()
    vectors = np.stack(corpus["vector"])
    rows = []
    for name, vector in zip(text.queries["segment_id"], text.query_vectors, strict=True):
        apart = np.linalg.norm(vectors - vector, axis=1)
        for place in np.argsort(apart, kind="stable")[:k][::-1]:
            rows.append((name, corpus["segment_id"].iloc[place], apart[place]))
    found = change(pd.DataFrame(rows, columns=["query", "neighbour", "distance"]))
    found.to_csv(path.parent / "found.csv", index=False)
    return str(path.parent / "found.csv")


def test_neighbours_from_a_file_give_what_a_search_gives(tmp_path):
    """A segment that is there three times in the corpus is three neighbours."""
    segments, path = embedded(tmp_path, "ngrams")
    text = densities.read_embedded(segments, path)
    file = found_elsewhere(text, path[0], 5)
    own = {"kernels": {"gaussian": [0.5]}, "neighbours": 2, "approximation": SIZES}
    searched, found = (
        densities.of_text(segments, path, "mine", **own, given=given) for given in (None, file)
    )
    pd.testing.assert_frame_equal(found["text_density"], searched["text_density"], atol=1e-4)


STRANGE = {
    "too few": (
        5,
        lambda t: t.groupby("query").tail(1),
        "neighbours, with their copies in the cor",
    ),
    "of no segment": (5, lambda t: t.assign(neighbour="abc"), "is no segment of the corpus"),
    "twice": (5, lambda t: pd.concat([t, t.tail(1)]), "is there twice for its query"),
    "below 0": (5, lambda t: t.assign(distance=-1.0), "is below 0"),
    "of another measure": (
        5,
        lambda t: t.assign(distance=t["distance"] ** 2 + 0.1),
        "by the vectors",
    ),
    "without distances": (5, lambda t: t.drop(columns="distance"), "distance"),
}


@pytest.mark.parametrize("strange", STRANGE)
def test_neighbours_in_a_file_that_cannot_be_are_refused(tmp_path, strange):
    k, change, said = STRANGE[strange]
    segments, path = embedded(tmp_path, "ngrams")
    file = found_elsewhere(densities.read_embedded(segments, path), path[0], k, change)
    own = {"kernels": {"gaussian": [0.5]}, "neighbours": 2, "approximation": SIZES}
    text = message(lambda: densities.of_text(segments, path, "mine", **own, given=file))
    assert said in text
    assert "\n" not in text


# Bins


def strings(n=400, seed=0, runs=1):
    """Strings whose y falls with x, in some runs."""
    chance = np.random.default_rng(seed)
    names = np.repeat([f"{number:03}" for number in range(n)], runs)
    x = chance.normal(size=n * runs)
    return pd.DataFrame(
        {
            "string_id": names,
            "length": np.repeat(chance.integers(10, 30, n), runs),
            "x": x,
            "y": np.exp(1 - 0.2 * x + 0.1 * chance.normal(size=n * runs)),
        }
    )


def test_bins_have_equal_mass_and_order():
    frame = strings()
    found = bins.binned(frame, PERPLEXITY)
    assert list(found.columns) == BINS.split()
    kept = frame[frame["length"].between(found["shortest"][0], found["longest"][0])]
    assert 0.5 <= len(kept) / len(frame) < 0.7
    assert found["n_strings"].sum() == len(kept)
    assert np.ptp(found["n_strings"]) <= 1
    assert len(found) == min(20, len(kept) // 10)
    assert found["mean_x"].is_monotonic_increasing
    weighted = (found["mean_y"] * found["n_strings"]).sum() / len(kept)
    assert weighted == pytest.approx(kept["y"].mean())
    assert ((found["lower"] < found["mean_y"]) & (found["mean_y"] < found["upper"])).all()
    shuffled = frame.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(bins.binned(shuffled, PERPLEXITY), found)


def test_outliers_and_what_is_missing_do_not_count():
    frame = strings()
    spoilt = frame.copy()
    spoilt.loc[0, "y"], spoilt.loc[1, "x"] = 501, np.nan
    without = frame.drop([0, 1])
    pd.testing.assert_frame_equal(bins.binned(spoilt, PERPLEXITY), bins.binned(without, PERPLEXITY))
    assert bins.binned(frame.assign(x=np.nan), PERPLEXITY).empty


@pytest.mark.parametrize(("n", "sizes"), [(3, []), (9, []), (10, [10]), (19, [19]), (25, [13, 12])])
def test_few_strings_have_few_bins_or_none(n, sizes):
    found = bins.binned(strings(n).assign(length=10), PERPLEXITY)
    assert found["n_strings"].tolist() == sizes


@settings(max_examples=30, deadline=None)
@given(st.integers(10, 60), st.integers(1, 9), st.integers(0, 1000))
def test_a_bin_has_ten_strings_however_many_rows_they_have(n, runs, seed):
    """A string whose rows are close together would fill a bin alone."""
    frame = strings(n, seed, runs).assign(length=10)
    close = frame.assign(x=frame.groupby("string_id")["x"].transform("mean"))
    for rows in (frame, close, frame.sample(frac=0.7, random_state=seed)):
        found = bins.binned(rows, PERPLEXITY)
        assert (found["n_strings"] >= 10).all()
        assert found.empty == (rows["string_id"].nunique() < 10)


@pytest.mark.parametrize("outcome", [PERPLEXITY, ACCURACY])
def test_intervals_hold_over_strings(outcome):
    """A string's runs are alike; the interval holds the truth in about 95 % of samples."""
    chance = np.random.default_rng(0)
    n, runs, n_samples, held = 40, 3, 200, 0
    truth = {PERPLEXITY: np.exp(1 + 0.5**2 / 2), ACCURACY: 0.9}[outcome]
    for _ in range(n_samples):
        if outcome == PERPLEXITY:
            y = np.exp(1 + 0.5 * chance.normal(size=n))
        else:
            y = (chance.random(n) < truth).astype(float)
        frame = pd.DataFrame(
            {
                "string_id": np.repeat(np.arange(n).astype(str), runs),
                "length": 10,
                "x": np.arange(float(n * runs)),
                "y": np.repeat(y, runs),
            }
        )
        found = bins.binned(frame, outcome, most_bins=1).iloc[0]
        assert found["n_strings"] == n
        held += found["lower"] <= truth <= found["upper"]
    assert 0.9 < held / n_samples <= 0.99


def test_an_interval_is_over_documents_whose_queries_are_alike():
    """20 documents of 15 queries: with intervals over queries, 69 % of the bins hold the truth."""
    held, n_bins, truth = 0, 0, 60 * np.exp(0.3**2 * (1 + 0.6**2) / 2)
    for seed in range(30):
        chance = np.random.default_rng(seed)
        document = np.repeat(np.arange(20), 15)
        level, other = chance.normal(size=(2, 20))
        noise, more = chance.normal(size=(2, 300))
        frame = pd.DataFrame(
            {
                "string_id": np.arange(300).astype(str),
                "document": document,
                "length": 10,
                "x": level[document] + 0.3 * noise,
                "y": 60 * np.exp(0.3 * (other[document] + 0.6 * more)),
            }
        )
        found = bins.binned(frame, PERPLEXITY)
        held += ((found["lower"] <= truth) & (truth <= found["upper"])).sum()
        n_bins += found["lower"].notna().sum()
    assert held / n_bins > 0.85
    # Where each string is a document, the interval is Student's.
    alone = frame.assign(document=range(300))
    expected = bins.binned(frame.drop(columns="document"), PERPLEXITY)
    pd.testing.assert_frame_equal(bins.binned(alone, PERPLEXITY), expected)
    assert bins.binned(frame.assign(document=1), PERPLEXITY)["lower"].isna().all()


def test_an_interval_of_equal_answers_has_a_width():
    frame = strings(20).assign(y=1.0, length=10)
    found = bins.binned(frame, ACCURACY)
    np.testing.assert_allclose(found["upper"], 1)
    assert (found["lower"] < 0.9).all()


def test_a_corpus_that_shares_nothing_with_the_queries_predicts_nothing():
    """Every distance is sqrt(2) up to rounding in float32, by which densities differ as well."""
    chance = np.random.default_rng(0)
    vectors = chance.uniform(size=(500, 384))
    vectors[:300, :192] = vectors[300:, 192:] = 0
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    queries = pd.DataFrame(
        {
            "language": "mine",
            "query_set": "queries",
            "segment_id": [f"{number:03}" for number in range(300)],
            "embedding": "ngrams",
            "n_characters": chance.integers(100, 200, 300),
            "document": np.arange(300) // 3,
            "id": "1",
            "text": "a",
            "perplexity": chance.uniform(10, 20, 300),
            "response_perplexity": np.nan,
        }
    )
    kernels = {"gaussian": [0.02, 0.5, 5.0], "exponential": [0.02, 0.5, 5.0]}
    asked = Approximation(k=10, m1=150, m2=100)
    shared = vectors.copy()
    shared[:300, :192] = chance.uniform(0, 0.1, size=(300, 192))
    for embeddings, is_empty in ((vectors, True), (shared, False)):
        text = densities.EmbeddedText(queries, embeddings[:300], InMemory(embeddings[300:]))
        table = densities.text_density(text, kernels, 10, asked)
        assert np.ptp(table["mean_distance"]) > 0
        assert bins.text_bins(table).empty == is_empty
        found = regress_text(table)
        found = found[found["term"].isin(["density", "mean distance"])]
        assert found["estimate"].isna().all() == is_empty
        assert found["estimate"].isna().any() == is_empty


def test_equal_x_have_no_bins():
    frame = strings()
    for x in (0.1, frame["x"] * 1e-17 + 0.1):
        assert bins.binned(frame.assign(x=x), PERPLEXITY).empty


def test_text_bins_are_of_every_setting_and_part(tmp_path):
    """Without an approximation there are two parts; without perplexities there is no row."""
    frame = strings(100)
    density = pd.DataFrame(
        {
            "language": "mine",
            "query_set": "queries",
            "segment_id": frame["string_id"],
            "embedding": "ngrams",
            "n_characters": frame["length"],
            "perplexity": frame["y"],
            "response_perplexity": np.nan,
            "kernel": "gaussian",
            "bandwidth": 0.1,
            "log_density": frame["x"],
            "log_local": np.nan,
            "log_random": np.nan,
            "log_approximate": np.nan,
            "k": 3,
            "nearest": -frame["x"],
            "mean_distance": -frame["x"],
        }
    )
    both = pd.concat([density, density.assign(bandwidth=0.5)])
    found = bins.text_bins(both)
    tables.write(tmp_path / "bins.parquet", found, TEXT_BINS)
    groups = found.groupby(["bandwidth", "part"]).size()
    assert set(groups.index) == {(b, p) for b in (0.1, 0.5) for p in ("exact", "distance")}
    silent = bins.text_bins(density.assign(perplexity=np.nan))
    assert silent.empty
    tables.write(tmp_path / "silent.parquet", silent, TEXT_BINS)


# Pretrained models


@pytest.mark.pretrained
def test_pretrained_models_find_copies_and_meaning(tmp_path):
    """all-MiniLM-L6-v2 and SmolLM2: copies at 0, then near copies, the same topic, and others."""
    copy(MINILM, find_folder(MINILM), tmp_path / "minilm")
    convert(SMOLLM2, find(SMOLLM2), tmp_path / "smollm2")
    rows = (ROOT / MODELS).read_text().replace(SMOLLM2.folder, str(tmp_path / "smollm2"))
    (tmp_path / "models.tsv").write_text(rows)
    segments, path = embedded(
        tmp_path, str(tmp_path / "minilm"), SMOLLM2.name, tmp_path / "models.tsv"
    )
    text = densities.read_embedded(segments, path)
    found = densities.text_density(text, {"gaussian": [0.5]}, k=1)
    known = tables.read_all(segments, SEGMENTS).drop_duplicates("segment_id")
    known = known.set_index("segment_id")
    of_queries = dict(zip(known.loc[found["segment_id"], "text"], found["nearest"], strict=True))
    order = ["This text may", "Ice is lighter", "The baker lets", "The committee"]
    found = [next(d for t, d in of_queries.items() if t.startswith(words)) for words in order]
    assert found[0] == 0
    assert (np.diff(found) > 0).all()
    assert text.queries["perplexity"].between(2, 500).all()
