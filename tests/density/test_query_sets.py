"""Several sets of queries on one corpus, and responses to queries."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from helpers.experiments import message
from helpers.user_texts import embedded, write_language_model, write_lines
from palimpsest import tables
from palimpsest.density import text_density as densities
from palimpsest.density import text_embedding
from palimpsest.density.bins import text_bins
from palimpsest.density.kinds import PERPLEXITY, RESPONSE, SEGMENTS, TEXT_EMBEDDINGS
from palimpsest.density.regressions import regress_text
from palimpsest.density.segments import answered, of_text, segmented
from palimpsest.density.texts import CORPUS, Text
from palimpsest.errors import Notice

KERNELS = {"gaussian": [0.5]}
CUT = {"field": "text", "window": 3, "stride": 3, "neighbours": 1, "k": 0, "m1": 0, "m2": 0}


def write_answered(path, *rows, name="response"):
    """A JSONL file of queries, some with a response."""
    fields = [{"text": text, **({name: own} if own else {})} for text, own in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in fields))
    return path


def segments_of(folder, sets, **changes):
    corpus = write_lines(folder / "c.jsonl", "a b c d")
    how = {**CUT, "response": "response", **changes}
    return of_text(str(corpus), list(map(str, sets.values())), "mine", query_sets=list(sets), **how)


def test_queries_with_responses_are_not_cut(tmp_path):
    rows = ("a b c d e", "f g"), ("c", None)
    sets = {
        "plain": write_lines(tmp_path / "p.jsonl", "a b c d e"),
        "asked": write_answered(tmp_path / "a.jsonl", *rows),
    }
    table = segments_of(tmp_path, sets).set_index("query_set")
    assert table.loc["plain", "text"].tolist() == ["a b c", "d e"]
    assert table.loc["plain", "response"].isna().all()
    assert table.loc["asked", "text"].tolist() == ["a b c d e", "c"]
    assert table.loc["asked", "response"].tolist() == ["f g", pd.NA]
    with pytest.warns(Notice, match="copies"):  # of the queries
        again = segments_of(tmp_path, {"q": write_answered(tmp_path / "b.jsonl", rows[0], rows[0])})
    assert len(again) == 1


def test_the_field_of_responses_has_any_name(tmp_path):
    path = write_answered(tmp_path / "a.jsonl", ("a b", "c"), name="target")
    assert segments_of(tmp_path, {"q": path})["response"].isna().all()
    assert segments_of(tmp_path, {"q": path}, response="target")["response"].tolist() == ["c"]
    said = message(lambda: segments_of(tmp_path, {"q": path}, response="goal"))
    assert said.startswith(f"{path}: no column 'goal', which density/texts/mine/response names")


@pytest.mark.parametrize(("value", "said"), [(3, "must be a text"), (" ", "has no words")])
def test_a_response_that_is_no_text_is_named(tmp_path, value, said):
    path = write_answered(tmp_path / "a.jsonl", ("a", "b"), ("c", value))
    text = message(lambda: answered(path))
    assert text.startswith(f"{path}:2: 'response' ")
    assert said in text


def test_the_first_of_several_responses_counts(tmp_path):
    path = write_answered(tmp_path / "a.jsonl", ("a", "b"), ("a", "c"), ("d", "e"))
    with pytest.warns(Notice, match="other responses to a query that is there before: 1"):
        found = answered(path)
    assert found.responses == {("a",): "b", ("d",): "e"}


@pytest.fixture(scope="module")
def with_responses(tmp_path_factory):
    """Two sets of queries on one corpus, one with responses, and a tiny language model."""
    folder = tmp_path_factory.mktemp("answered")
    table = write_language_model(folder)
    corpus = write_lines(folder / "c.jsonl", "a b c d e", "f g h", "a a", "i b d f h a c e g")
    rows = ("f g h", "a b c"), ("c b a c", "i i"), ("h", None)
    sets = {
        "asked": answered(write_answered(folder / "q.jsonl", *rows)),
        "plain": segmented(write_lines(folder / "p.jsonl", "b b b b b", "f g h"), 50, 40),
    }
    return folder, embedded(folder, "hidden", "mine", table, corpus, sets)


@pytest.fixture(scope="module")
def own_model(with_responses):
    folder = with_responses[0] / "checkpoint"
    return AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(
        folder
    )


def test_hidden_states_are_the_models_own(with_responses, own_model):
    """Against transformers alone, text by text, without padding."""
    _, (segments, paths) = with_responses
    found = tables.read_all(paths, TEXT_EMBEDDINGS).assign(
        text=tables.read_all(segments, SEGMENTS)["text"]
    )
    assert (found["embedding"] == "hidden").all()
    said = (with_responses[0] / "said").read_text()
    assert said.count("hidden states of the model whose perplexity is explained") == 1
    losses = ["nll", "n_tokens", "response_nll", "response_tokens"]
    assert found.loc[found["role"] == CORPUS, losses].isna().all(axis=None)
    model, tokenizer = own_model
    for row in found.itertuples():
        ids = torch.tensor([[1, *tokenizer(row.text, add_special_tokens=False).input_ids]])
        with torch.no_grad():
            out = model(input_ids=ids, output_hidden_states=True)
        mean = out.hidden_states[-1][0, 1:].mean(dim=0).numpy()
        np.testing.assert_allclose(row.vector, mean / np.linalg.norm(mean), atol=1e-5)


def test_losses_of_responses_are_those_of_their_own_tokens(with_responses, own_model):
    """Against transformers alone: the loss on the response's tokens, after the query."""
    segments, paths = with_responses[1]
    keys = ["query_set", "segment_id"]
    found = densities.read_embedded(segments, paths).queries.set_index(keys)
    model, tokenizer = own_model
    for key, row in tables.read(segments[1], SEGMENTS).set_index(keys).iterrows():
        query = tokenizer(row["text"], add_special_tokens=False).input_ids
        assert found.loc[key, "perplexity"] == pytest.approx(loss(model, [1], query), rel=1e-4)
        if pd.isna(row["response"]):
            assert np.isnan(found.loc[key, "response_perplexity"])
            continue
        response = tokenizer(row["response"], add_special_tokens=False).input_ids
        expected = loss(model, [1, *query], response)
        assert found.loc[key, "response_perplexity"] == pytest.approx(expected, rel=1e-4)
        assert abs(expected - loss(model, [1], response)) > 1e-3  # the query matters
    assert found["response_perplexity"].notna().sum() == 2


def loss(model, before, tokens):
    """exp of the mean loss of tokens after others."""
    ids = torch.tensor([[*before, *tokens]])
    labels = torch.tensor([[*[-100] * len(before), *tokens]])
    with torch.no_grad():
        return np.exp(model(input_ids=ids, labels=labels).loss.item())


def test_every_set_has_its_own_rows_of_one_corpus(with_responses):
    """The same query in two sets has the same density; a copy is at distance 0 in both."""
    _, files = with_responses
    density = densities.text_density(densities.read_embedded(*files), KERNELS, 2)
    assert density.groupby("query_set").size().to_dict() == {"asked": 3, "plain": 2}
    twice = density[density.duplicated("segment_id", keep=False)]
    assert len(twice) == 2
    assert (twice["nearest"] == 0).all()
    assert twice["log_density"].nunique() == 1
    corpus = tables.read(files[1][0], TEXT_EMBEDDINGS)
    assert corpus["query_set"].isna().all()


def test_the_corpus_is_embedded_in_parts_and_once(tmp_path, monkeypatch):
    """Small parts give the same vectors, and queries that the corpus has are not embedded again."""
    whole = [tables.read(path, TEXT_EMBEDDINGS) for path in embedded(tmp_path, "ngrams")[1]]
    counted = []
    count = text_embedding.hashed_ngrams
    monkeypatch.setattr(
        text_embedding, "hashed_ngrams", lambda texts: counted.append(len(texts)) or count(texts)
    )
    monkeypatch.setattr(text_embedding, "AT_ONCE", 2)
    parts = [tables.read(path, TEXT_EMBEDDINGS) for path in embedded(tmp_path, "ngrams")[1]]
    assert max(counted) == 2
    names = [set(table["segment_id"]) for table in whole]
    assert sum(counted) == len(names[0] | names[1]) < len(names[0]) + len(names[1])
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(np.stack(one["vector"]), np.stack(other["vector"]))


def answered_queries(n=200, follows=1.0, seed=0):
    """A table `text_density` of two sets; in one, only responses follow the distance."""
    chance = np.random.default_rng(seed)
    distance = chance.uniform(0.5, 1, n)
    table = pd.DataFrame(
        {
            "language": "mine",
            "query_set": np.where(np.arange(n) % 2, "asked", "plain"),
            "segment_id": [f"{number:04}" for number in range(n)],
            "embedding": "ngrams",
            "n_characters": chance.integers(100, 200, n),
            "document": np.arange(n),
            "id": "1",
            "text": "a",
            "perplexity": np.exp(3 + 0.1 * chance.normal(size=n)),
            "response_perplexity": np.exp(1 + follows * distance + 0.1 * chance.normal(size=n)),
            "kernel": "gaussian",
            "bandwidth": 0.5,
            "log_density": -4 * distance,
            "k": 10,
            "nearest": distance * 0.9,
            "mean_distance": distance,
            **dict.fromkeys(["log_local", "log_random", "log_approximate", "local_share"], np.nan),
        }
    )
    table.loc[table["query_set"] == "plain", "response_perplexity"] = np.nan
    return table


def test_responses_have_regressions_and_bins_of_their_own():
    density = answered_queries()
    found = regress_text(density)
    rows = found[(found["regression"] == "distance") & (found["term"] == "mean distance")]
    rows = rows.set_index(["query_set", "outcome"])
    assert set(rows.index) == {("asked", PERPLEXITY), ("asked", RESPONSE), ("plain", PERPLEXITY)}
    assert rows.loc[("asked", RESPONSE), "p_value"] < 1e-6
    assert rows.loc[("asked", RESPONSE), "estimate"] > 0
    assert rows.loc[("asked", PERPLEXITY), "p_value"] > 0.01
    alone = regress_text(density[density["query_set"] == "plain"])
    again = found[found["query_set"] == "plain"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, again)
    outliers = density.assign(
        response_perplexity=density["response_perplexity"].where(density.index > 20, 61.0)
    )
    bins = text_bins(outliers)
    of_responses = bins[bins["outcome"] == RESPONSE]
    assert set(of_responses["query_set"]) == {"asked"}
    assert of_responses["mean_y"].max() < 60  # those above do not count, as in the paper


def test_one_file_of_queries_is_a_set():
    assert Text("mine", "c.jsonl", "q.jsonl").query_sets == {"queries": "q.jsonl"}
    several = Text("mine", "c.jsonl", {"a": "x.jsonl", "b": "y.jsonl"})
    assert several.files == {"corpus": "c.jsonl", "queries/a": "x.jsonl", "queries/b": "y.jsonl"}
