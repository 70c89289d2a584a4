"""Memorisation of texts, which a model's tokenizer cuts: it is that of the same symbols."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.experiments import message
from helpers.memorisation_runs import RULE, STRINGS, dataset, trace
from palimpsest.corpora import GrammarCorpus
from palimpsest.corpora.text_grammar_corpus import TextGrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.languages import Grammar
from palimpsest.memorisation.runs import memorisation_tables, of_run
from palimpsest.traces import Trace

# The pieces of a text have one to nine bytes, and a text is cut in one way only.
RULES = """
S -> 'a' S [0.35] | 'née-' S [0.2] | PAIR S [0.15] | 'end.' [0.3]
PAIR -> 'b' 'née-' [0.6] | 'Łódź,' [0.4]
"""
EPOCHS = np.array([0, 1, 3, 4, 6])
SIZE, TEST_SIZE = 30, 40


def by_nats(strings: pd.DataFrame) -> np.ndarray:
    return (strings["optimal_loss"] * strings["n_tokens"]).to_numpy()


def test_a_dataset_gets_the_tokens_of_the_model():
    """The optimal loss of a string keeps its sum of nats; the rows keep their order."""
    of_bytes = dataset()
    n_tokens = np.array([3, 7, 4, 9, 2])  # of the trace's strings: in another order
    of_model = replace(trace(), n_tokens=n_tokens)
    found = of_run(of_model, of_bytes)
    by_string = dict(zip(of_model.string_ids, n_tokens, strict=True))
    assert found["n_tokens"].tolist() == [by_string[name] for name in of_bytes["string_id"]]
    np.testing.assert_allclose(by_nats(found), by_nats(of_bytes), rtol=1e-12)
    others = [name for name in of_bytes if name not in ("n_tokens", "optimal_loss")]
    pd.testing.assert_frame_equal(found[others], of_bytes[others])
    # Once more changes nothing.
    pd.testing.assert_frame_equal(of_run(of_model, found), found)


def test_a_dataset_of_symbols_stays_as_it_is():
    of_symbols = dataset()
    assert of_run(trace(), of_symbols) is of_symbols


def test_a_string_that_is_not_measured_keeps_its_numbers():
    """As in a run that is measured on some strings only."""
    measured = trace(loss={"a": (1.0,), "b": (1.0,)})
    found = of_run(replace(measured, n_tokens=measured.n_tokens * 2), dataset())
    assert found["n_tokens"].tolist() == [20, 40, *STRINGS["n_tokens"][2:]]
    np.testing.assert_allclose(by_nats(found), by_nats(dataset()), rtol=1e-12)


def test_records_without_probabilities_are_refused():
    unknown = dataset().assign(log_prob=np.nan)
    assert "have no known probabilities" in message(lambda: of_run(trace(), unknown))


def world(corpus, seed: int) -> pd.DataFrame:
    return build(Sampler("L", corpus, seed), "base", SIZE, TEST_SIZE, predict_end=True)


def simulated(strings: pd.DataFrame, n_tokens: np.ndarray, seed: int) -> Trace:
    """A model that learns all strings to near the optimum, and training strings beyond it."""
    rng = np.random.default_rng(seed)
    fall = (EPOCHS / EPOCHS[-1])[:, None]
    optimal = by_nats(strings) / n_tokens
    trained = (strings["count"] > 0).to_numpy()
    loss = 2.5 * (1 - fall) + fall * optimal * np.where(trained, 0.3 + rng.random(len(strings)), 1)
    loss = np.maximum(loss + 0.05 * rng.standard_normal(loss.shape), 1e-3)
    n_correct = rng.binomial(n_tokens, 0.2 + 0.7 * fall * np.ones_like(loss))
    return Trace(
        {"model": "m", "language": "L", "size": SIZE, "seed": seed, "variant": "base"},
        EPOCHS,
        strings["string_id"].to_numpy(dtype=object),
        n_tokens,
        loss * n_tokens,
        n_correct,
        2 * n_tokens - n_correct,
    )


@pytest.fixture(scope="module")
def tables() -> tuple[dict, dict]:
    """The tables of one world in symbols and in texts, whose tokens are the symbols."""
    of_symbols = GrammarCorpus(Grammar.from_string(RULES))
    of_texts = TextGrammarCorpus(Grammar.from_string(f"%text\n{RULES}"))
    found, datasets = ([], []), ([], [])
    for seed in (0, 1):
        symbols, texts = world(of_symbols, seed), world(of_texts, seed)
        assert [text.replace(" ", "") for text in symbols["text"]] == texts["text"].tolist()
        assert (texts["n_tokens"] == [len(t.encode()) + 1 for t in texts["text"]]).all()
        assert (texts["n_tokens"] > symbols["n_tokens"]).all()
        n_tokens = symbols["n_tokens"].to_numpy()
        for place, strings in enumerate((symbols, texts)):
            found[place].append(simulated(strings, n_tokens, seed))
            datasets[place].append(strings)
    of_worlds = [memorisation_tables(*world, *RULE) for world in zip(found, datasets, strict=True)]
    names = dict(
        zip(pd.concat(datasets[1])["string_id"], pd.concat(datasets[0])["string_id"], strict=True)
    )
    for name in ("starts", "scores"):
        of_worlds[1][name]["string_id"] = of_worlds[1][name]["string_id"].map(names)
    return tuple(of_worlds)


@pytest.mark.parametrize("name", ["starts", "scores", "training_set", "learning", "averages"])
def test_the_tables_of_texts_are_those_of_symbols(tables, name):
    """Although the dataset of texts counts bytes: all losses are per token of the model."""
    of_symbols, of_texts = (found[name] for found in tables)
    pd.testing.assert_frame_equal(of_texts, of_symbols, rtol=1e-9)


def test_the_world_has_what_the_tables_are_about(tables):
    """Some strings are memorised, and others not; the measures differ."""
    shares = tables[0]["training_set"].query("epoch == 6")["share_memorised"]
    assert ((shares > 0) & (shares < 1)).any()
    assert shares.nunique() > 2
