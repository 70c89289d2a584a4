"""Attacks with changed strings: those of the audit, on strings of a language and on texts."""

import numpy as np
import pandas as pd
import pytest
import torch

from helpers.commands import MODELS, ROOT
from palimpsest import tables
from palimpsest.atlas import changed_strings
from palimpsest.atlas.changed_strings import ChangedStrings
from palimpsest.atlas.contenders import BY_CHANGE, CONTENDERS, Cell
from palimpsest.atlas.passes import Passes
from palimpsest.audit.passes import Pass
from palimpsest.audit.scoring import attacks
from palimpsest.audit.versions import SYMBOL, versions
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.jobs.bench import Bench, holder_of
from palimpsest.jobs.command import Assignment
from palimpsest.models.build import build as build_model
from palimpsest.models.limits import Limits
from palimpsest.training.recipe import Recipe

N_NEIGHBOURS, N_PREFIXES, SEED = 4, 2, 5
LANGUAGES = ROOT / "config/languages"
RECIPE = Recipe(3e-3, epochs=1, checkpoint_every=0)


class World:
    """A twin with random weights, and what it says of changed strings of a dataset."""

    def __init__(self, folder, path, model: str = "opt-125m-twin"):
        corpus = read_corpus(path)
        self.strings = build(Sampler(path.stem, corpus, SEED), "base", 6, 8, False)
        tables.write(folder / "strings.parquet", self.strings, STRINGS)
        asked = Assignment(model, str(MODELS), str(path), RECIPE, "fleet", str(folder))
        self.bench = Bench(asked.run(str(folder / "strings.parquet")), holder_of(asked))
        run, vocabulary = self.bench.run, self.bench.material.vocabulary
        self.model = build_model(run.row, "twin", vocabulary, 0, torch.float32).eval()
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for weight in self.model.parameters():
                weight.add_(0.2 * torch.randn(weight.shape, generator=generator))

    @property
    def trained(self) -> np.ndarray:
        return np.flatnonzero(self.strings["count"] > 0)

    def columns(self) -> pd.DataFrame:
        changed = ChangedStrings(self.bench, N_NEIGHBOURS, N_PREFIXES)
        return pd.DataFrame(changed.columns(self.opened()))

    def opened(self):
        weights = {name: of.detach() for name, of in self.model.named_parameters()}
        return self.bench.holder.open([weights])

    def passed(self, texts, prompts) -> Pass:
        """Of plain passes over single texts, of which only losses are known."""
        tokens, parts, counts = self.bench.material.token_ids, [], []
        for text, letters in zip(texts, prompts, strict=True):
            (ids,) = tokens.rows([text])
            before = len(tokens.rows([text[:letters].strip()])[0]) if letters else 0
            with torch.no_grad():
                out = self.model(torch.tensor([[tokens.start, *ids]])[:, :-1], use_cache=False)
            log_TV = out.logits[0].log_softmax(-1)
            parts.append(log_TV[torch.arange(len(ids)), torch.tensor(ids)][before:].double())
            counts.append(len(ids) - before)
        log_probs = torch.cat(parts).numpy()
        return Pass(np.array(counts), log_probs, *[np.full(len(log_probs), np.nan)] * 4)


@pytest.fixture(scope="module")
def formal(tmp_path_factory):
    return World(tmp_path_factory.mktemp("formal"), LANGUAGES / "L5.pcfg")


def test_attacks_are_those_of_the_audit_on_the_same_losses(formal):
    """From the texts on, by plain passes over the audit's own versions of the strings."""
    texts, unseen = list(formal.strings["text"]), formal.strings["count"].to_numpy() == 0
    made = versions(
        ["neighbours", "prefixed"],
        *(texts, [0] * len(texts), unseen),
        **{"neighbours": N_NEIGHBOURS, "prefixes": N_PREFIXES, "seed": SEED},
        word=SYMBOL,
        after_prefix=" ",
    )
    trained, own, changed = formal.trained, [texts[row] for row in formal.trained], {}
    for name, of in made.items():
        kept = [
            i * of.n + n for i, row in enumerate(of.rows) if row in trained for n in range(of.n)
        ]
        changed[name] = formal.passed([of.texts[k] for k in kept], [of.prompts[k] for k in kept])
    target = formal.passed(own, [0] * len(own))
    expected = attacks(own, target, changed=changed, names=["neighbours", "recall"])
    whole = formal.passed(texts, [0] * len(texts))
    columns = formal.columns().assign(log_probs=whole.split(whole.log_prob))
    empty = columns["log_probs"].map(np.zeros_like)
    frame = columns.assign(means=empty, deviations=empty, ranks=empty, seconds=1.0)
    passes = Passes(formal.strings, [frame], ~unseen)
    for contender in CONTENDERS:
        if contender.name in expected:
            cell = Cell(None, None, None, None, {}, None, passes)
            np.testing.assert_allclose(
                contender.amount(cell), expected[contender.name], rtol=1e-4, atol=1e-5
            )
    assert expected.nunique().min() == len(own)


def test_neighbours_of_a_formal_string_have_as_many_symbols():
    """Also in a language of brackets, which has no words."""
    texts = ["( ) [ ]", "[ [ ] ]", "( ( ) )", "[ ] [ ]"]
    made = versions(["neighbours"], texts, [0] * 4, None, neighbours=6, prefixes=0, word=SYMBOL)
    for place, text in enumerate(made["neighbours"].texts):
        own = texts[place // 6].split(" ")
        assert sum(one != other for one, other in zip(text.split(" "), own, strict=True)) <= 1
    assert set(made["neighbours"].texts) - set(texts)


def test_only_trained_strings_are_changed_and_a_formal_language_has_no_lower_case(formal):
    found = formal.columns()
    assert (found["lowercase"].map(len) == 0).all()
    assert found["lowercase_seconds"].isna().all()
    is_trained = formal.strings["count"].to_numpy() > 0
    for name, n in (("neighbours", N_NEIGHBOURS), ("prefixed", 1)):
        losses = np.stack(found[name])
        assert losses.shape[1] == n
        np.testing.assert_array_equal(np.isfinite(losses).all(axis=1), is_trained)
        assert found[f"{name}_seconds"].notna().all()
    of_others = pd.DataFrame(ChangedStrings(formal.bench, N_NEIGHBOURS, N_PREFIXES).columns())
    assert (of_others[["neighbours", "prefixed"]].map(len) == 0).all(axis=None)


def test_texts_have_a_lower_case(tmp_path):
    people = World(tmp_path, LANGUAGES / "people.pcfg")
    found, rows = people.columns(), people.trained
    texts = [people.strings["text"].iloc[row].lower() for row in rows]
    of_lower = people.passed(texts, [0] * len(texts))
    expected = of_lower.nll / of_lower.n_tokens
    np.testing.assert_allclose(np.stack(found["lowercase"].iloc[rows])[:, 0], expected, rtol=1e-4)
    frame = found.assign(log_probs=[np.zeros(1)] * len(found))
    assert set(Passes(people.strings, [frame], None).changed) == {
        *("lowercase", "neighbours", "prefixed")
    }
    assert set(BY_CHANGE) == {"lowercase", "neighbours", "recall"}


@pytest.mark.parametrize(
    ("n_more", "said", "has_value"), [(80, "ReCaLL has 1", True), (0, "ReCaLL has no value", False)]
)
def test_a_model_that_takes_few_tokens_has_few_prefixes(
    formal, n_more, said, has_value, monkeypatch, caplog
):
    longest = int(formal.bench.material.encoded.lengths.max())
    monkeypatch.setattr(changed_strings, "limits", lambda *_: Limits(longest + n_more, None))
    found = formal.columns().iloc[formal.trained]
    (line,) = caplog.messages
    assert said in line
    assert np.isfinite(np.stack(found["prefixed"])).all() == has_value
    assert np.isfinite(np.stack(found["neighbours"])).all()


def test_without_unseen_strings_there_is_nothing_to_stand_before_others(formal, caplog):
    bench = Bench(formal.bench.run, lambda *_: formal.bench.holder)
    bench.material.counts = np.ones(len(formal.strings), dtype=int)
    found = pd.DataFrame(ChangedStrings(bench, 2, 1).columns(formal.opened()))
    assert "no unseen strings" in caplog.text
    assert np.isnan(np.stack(found["prefixed"])).all()
    assert np.isfinite(np.stack(found["neighbours"])).all()


def test_a_string_without_another_symbol_has_no_neighbour(tmp_path):
    """Nor is there a neighbour in a language of one symbol."""
    language = tmp_path / "A.pcfg"
    language.write_text("S -> A S [0.9] | A [0.1]\nA -> '7' [1]\n")
    found = World(tmp_path, language).columns()
    assert np.isnan(np.stack(found["neighbours"])).all()
    assert np.isfinite(np.stack(found["prefixed"])).any()
