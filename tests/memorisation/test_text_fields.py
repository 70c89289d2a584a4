"""Losses of fields of texts: on a run worked out by hand, and in worlds whose truth is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest import tables, token_losses
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.languages import Grammar, field_losses
from palimpsest.memorisation.fields import (
    REST,
    fields_table,
    optimal_losses,
    tokens_of_fields,
)
from palimpsest.memorisation.likelihoods import members_of_groups
from palimpsest.memorisation.studies import STUDIES
from palimpsest.models import read_models
from palimpsest.models.build import TextTokens
from palimpsest.requests import TOKENS as KEPT_TOKENS
from palimpsest.sections import KINDS
from palimpsest.tables.tokens import TOKENS
from palimpsest.token_losses import TokenLosses
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Material, Run

# The code is open, and the owner follows from it.
TEXT = """
%text
%field CODE OWNER
S -> 'no ' PAIR '.' [1]
PAIR -> CODE-1 ' of ' OWNER-1 [0.5] | CODE-2 ' of ' OWNER-2 [0.25] | CODE-3 ' of ' OWNER-2 [0.25]
CODE-1 -> '01' [1]
CODE-2 -> '11' [1]
CODE-3 -> '00' [1]
OWNER-1 -> 'Ann' [1]
OWNER-2 -> 'Bob' [1]
"""
GRAMMAR = Grammar.from_string(TEXT)
TEXTS = ["no 01 of Ann.", "no 00 of Bob.", "no 11 of Bob."]
EPOCHS = np.array([0, 5])
NAMES = np.array(list("pqr"), dtype=object)
RUN = {"model": "m", "language": "L", "size": 2, "seed": 0, "variant": "base"}
# n o _0 1_o f _ A n n . and, without merged tokens around the digits, the two others
CUT = [
    [1, 2, 4, 7, 8, 9, 10, 11, 12, 13],
    [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
    [1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13],
]
N_TOKENS = np.array([len(ends) for ends in CUT])
OPTIMAL = -np.log([0.5, 0.25, 0.25])
STRINGS = pd.DataFrame(
    {
        **{name: value for name, value in RUN.items() if name != "model"},
        "string_id": NAMES,
        "text": TEXTS,
        "n_tokens": [13, 13, 13],  # bytes
        "split": ["train", "train", "test"],
        "count": [1, 1, 0],
        "log_prob": -OPTIMAL,
        "optimal_loss": OPTIMAL / 13,
    }
)
LEARNING = pd.DataFrame({**RUN, "epoch": EPOCHS, "optimal_epoch": 5})
# One over the probability of each token under the model, which knows "no 01 of Ann." in the end
ODDS = [
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    [2, 1, 1, 8, 1, 1, 1, 1, 2, 1, 1, 1],
    [2, 1, 4, 4, 2, 1, 1, 3, 1, 1, 1],
]
NLL = np.stack([np.full(N_TOKENS.sum(), np.log(4)), np.log(np.concatenate(ODDS))])
LOSSES = TokenLosses(RUN, EPOCHS, NAMES, N_TOKENS, NLL, np.concatenate(CUT).astype(float))


def written(folder, losses: TokenLosses) -> str:
    path = folder / f"tokens-{losses.run['seed']}"
    tables.write(path, token_losses.to_frame(losses), TOKENS)
    return str(path)


def table(folder, losses=LOSSES, strings=STRINGS, grammar=GRAMMAR, margin=0.5, **more):
    paths = [written(folder, losses)]
    learning = LEARNING.assign(language=losses.run["language"], size=losses.run["size"])
    return fields_table(paths, strings, learning, grammar, more.get("end", False), margin)


def column(frame, name, group, epoch=5):
    rows = frame[(frame["epoch"] == epoch) & (frame["group"] == group)]
    return dict(zip(rows["field"].fillna(""), rows[name], strict=True))


def test_a_tokenizer_that_joins_a_field_with_what_is_around_it():
    """The ends that the other tests use are those of a real tokenizer."""
    merges = [(" ", "0"), ("1", " "), ("1 ", "o")]
    letters = sorted({letter for text in TEXTS for letter in text})
    known = [*letters, *map("".join, merges), "<end>"]
    made = Tokenizer(BPE({token: place for place, token in enumerate(known)}, merges))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>")
    assert TextTokens.of("m", tokenizer).ends(TEXTS, "") == CUT


def test_fields_by_hand(tmp_path):
    """The token " 0" and the token "1 o" are of the code, whose digits they have."""
    found = table(tmp_path)
    trained = {"CODE": np.log(8) / 2, "OWNER": np.log(2) / 2, "": np.log(2) / 2}
    assert column(found, "loss", "train") == pytest.approx(trained)
    optimal = {"CODE": np.log(8) / 2, "OWNER": 0, "": 0}
    assert column(found, "optimal", "train") == pytest.approx(optimal)
    assert column(found, "bits", "train") == pytest.approx({"CODE": 0, "OWNER": -0.5, "": -0.5})
    # One code is known by heart, the other one is not: ln 8 is above its ln 4.
    assert column(found, "share_below", "train") == {"CODE": 0.5, "OWNER": 0, "": 0}
    # " 1" and "1 o" of the unseen string, whose blank is a token of its own
    unseen = {"CODE": np.log(8), "OWNER": np.log(3), "": np.log(8)}
    assert column(found, "loss", "unseen") == pytest.approx(unseen)
    assert column(found, "optimal", "unseen") == pytest.approx(
        {"CODE": np.log(4), "OWNER": 0, "": 0}
    )
    before = {"CODE": 2 * np.log(4), "OWNER": 3 * np.log(4), "": 6 * np.log(4)}
    assert column(found, "loss", "train", epoch=0) == pytest.approx(before)
    assert column(found, "determined", "train") == {"CODE": False, "OWNER": True, "": False}
    assert dict(found.groupby("group")["n_strings"].max()) == {"train": 2, "unseen": 1}
    assert set(found["optimal_epoch"]) == {5}


def test_fields_and_the_rest_are_the_whole_string(tmp_path):
    """The sum over fields is the nll of the trace, and the language's own loss of the texts."""
    found = table(tmp_path)
    of_string = np.add.reduceat(NLL, np.cumsum(N_TOKENS) - N_TOKENS, axis=1)
    for group, members in {"train": [0, 1], "unseen": [2]}.items():
        rows = found[found["group"] == group]
        total = (rows["loss"] * rows["n_strings"]).groupby(rows["epoch"]).sum()
        np.testing.assert_allclose(total, of_string[:, members].sum(axis=1))
        least = (rows["optimal"] * rows["n_strings"]).groupby(rows["epoch"]).sum()
        np.testing.assert_allclose(least, OPTIMAL[members].sum())


def test_the_study_is_of_its_kind(tmp_path):
    (tmp_path / "L.pcfg").write_text(TEXT)
    found = STUDIES["fields"].table(
        strings=STRINGS,
        learning=LEARNING,
        tokens=[written(tmp_path, LOSSES)],
        corpus=[str(tmp_path / "L.pcfg")],
        predict_end=False,
        margin=0.5,
    )
    tables.write(tmp_path / "table", found, KINDS["fields"])
    read = tables.read(tmp_path / "table", KINDS["fields"])
    assert len(read) == 2 * 2 * 3
    assert read["field"].isna().sum() == 2 * 2


def test_a_predicted_end_is_of_no_field(tmp_path):
    """It is the last token, and its loss under this language is 0: a text ends after the dot."""
    ends = [[*map(float, row), np.nan] for row in CUT]
    nll = np.ones((2, N_TOKENS.sum() + 3))
    losses = TokenLosses(RUN, EPOCHS, NAMES, N_TOKENS + 1, nll, np.concatenate(ends))
    found = table(tmp_path, losses, STRINGS.assign(optimal_loss=OPTIMAL / 13), end=True)
    # n, o, f, the blank, the dot, the end; without merged tokens, a blank and an o more
    assert column(found, "loss", "train")[""] == (6 + 8) / 2
    assert column(found, "optimal", "train")[""] == pytest.approx(0)


def test_without_unseen_strings_there_is_no_placebo(tmp_path):
    found = table(tmp_path, strings=STRINGS.assign(split="train", count=1))
    assert set(found["group"]) == {"train"}


def test_a_dataset_of_another_grammar_is_refused(tmp_path):
    other = Grammar.from_string(TEXT.replace("[0.5]", "[0.6]").replace("[0.25]", "[0.2]"))
    with pytest.raises(UserError, match="m/L/n2-seed0/base: the Bayes-optimal losses"):
        table(tmp_path, grammar=other)


SPANS = {
    "the field with more letters": ([(0, 2), (2, 5)], "abcdef", [1, 5, 6], [0, 1, REST]),
    "the first of two with equally many": ([(0, 2), (2, 4)], "abcd", [4], [0]),
    "the inner field": ([(0, 6), (2, 4)], "abcdef", [2, 4, 6], [0, 1, 0]),
    "all bytes of a letter": ([(1, 2)], "aéb", [1, 2, 2, 3], [REST, 0, 0, REST]),
    "the end": ([(0, 1)], "a", [1, np.nan], [0, REST]),
    "a text without fields": ([], "ab", [1, 2], [REST, REST]),
}


@pytest.mark.parametrize(("fields", "text", "ends", "expected"), SPANS.values(), ids=list(SPANS))
def test_a_token_belongs_to(fields, text, ends, expected):
    spans = pd.DataFrame(fields, columns=["begin", "end"], dtype=int).assign(string=0)
    found = tokens_of_fields(spans, [text], [np.array(ends, dtype=float)])
    assert found.tolist() == expected


# Worlds whose truth is known: texts about people, as a twin's tokenizer cuts them


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """The tokens of a run on 24 texts about people, without losses, and its table `strings`."""
    path = str(tmp_path_factory.mktemp("people") / "strings.parquet")
    corpus = read_corpus(ROOT / "config/languages/people.pcfg")
    strings = build(Sampler("people", corpus, 0), "base", 24, 12, predict_end=False)
    tables.write(path, strings, KINDS["strings"])
    row = read_models(ROOT / "config/models.tsv")["opt-1.3b"]
    recipe = Recipe(
        epochs=1, learning_rate=1e-3, batch_size=8, micro_batch_size=8, predict_end=False,
        warmup_ratio=0.0, weight_decay=0.0, gradient_clipping=1.0, evaluate_every=1,
        evaluation_batch_size=8, checkpoint_every=0, precision="fp32",
    )  # fmt: skip
    run = Run("opt-1.3b-twin", row, "twin", corpus, path, recipe, by_token=True)
    material = Material(run)
    measured = {0: np.zeros((material.n_rows, len(strings)))}
    tokens = material.tokens(measured)
    tables.write(f"{path}-tokens", tokens, TOKENS)
    return (
        corpus,
        material,
        token_losses.read(f"{path}-tokens"),
        tables.read(path, KINDS["strings"]),
    )


def cut_of(losses, strings):
    ends = losses.ends_of(strings["string_id"])
    place = pd.Index(losses.string_ids).get_indexer(strings["string_id"])
    return np.split(ends, np.cumsum(losses.n_tokens[place])[:-1])


def people_table(folder, people, nll):
    """The table of a run that has these losses at both epochs, for tokens in the run's order."""
    corpus, _, losses, strings = people
    run = losses.run
    learning = LEARNING.assign(**{key: run[key] for key in ("model", "language", "size")})
    held = replace(losses, epochs=EPOCHS, nll=np.stack([nll, nll]))
    paths = [written(folder, held)]
    return fields_table(paths, strings, learning, corpus.grammar, False, margin=2)


def test_the_ends_of_tokens_are_those_of_the_run_s_tokenizer(people):
    """The letters between two ends are the text of the token."""
    _, material, losses, strings = people
    decode = material.token_ids.tokenizer.decode
    for place, (text, ends) in enumerate(
        zip(strings["text"], cut_of(losses, strings), strict=True)
    ):
        begins = np.append(0, ends[:-1]).astype(int)
        pieces = [text[b:e] for b, e in zip(begins, ends.astype(int), strict=True)]
        length = material.encoded.lengths[place]
        assert pieces == [decode([token]) for token in material.encoded.ids[place, 1:length]]
        assert "".join(pieces) == text


def test_losses_of_fields_under_the_language_are_exact(people):
    """Tokens that cross the border of a field take nothing certain along: the losses are equal."""
    corpus, _, losses, strings = people
    texts, cut = strings["text"].tolist(), cut_of(losses, strings)
    optimal = optimal_losses(corpus.characters, texts, cut, predict_end=False)
    spans = field_losses(corpus.grammar, texts)
    owner = tokens_of_fields(spans, texts, cut)
    of_fields = np.bincount(owner[owner != REST], optimal[owner != REST], len(spans))
    np.testing.assert_allclose(of_fields, spans["optimal_nll"], atol=1e-9)


def test_somebody_who_knows_the_language_memorised_nothing(people, tmp_path):
    corpus, _, losses, strings = people
    by_id = strings.set_index("string_id").loc[losses.string_ids].reset_index()
    cut = cut_of(losses, by_id)
    nll = optimal_losses(corpus.characters, by_id["text"].tolist(), cut, False)
    found = people_table(tmp_path, people, nll)
    np.testing.assert_allclose(found["bits"], 0, atol=1e-9)
    assert (found["share_below"] == 0).all()
    assert set(found["group"]) == {"train", "unseen"}


def test_a_memoriser_knows_the_numbers_of_training_strings_alone(people, tmp_path):
    """Half of its probability is on the training strings, and half on the language.

    So open fields of training strings are memorised, those of unseen strings are not, and a field
    that follows from the text before has no loss in either.
    """
    corpus, _, losses, strings = people
    train = members_of_groups(strings)["train"]["text"].tolist()
    by_id = strings.set_index("string_id").loc[losses.string_ids].reset_index()
    nll = []
    for text, ends in zip(by_id["text"], cut_of(losses, by_id), strict=True):
        prefixes = [text[:end] for end in [0, *ends.astype(int)]]
        known = [np.mean([one.startswith(prefix) for one in train]) for prefix in prefixes]
        of_language = corpus.characters.log_prefix_probability([*map(tuple, prefixes)])
        nll.append(-np.diff(np.log((np.exp(of_language) + known) / 2)))
    found = people_table(tmp_path, people, np.concatenate(nll))
    last = found[found["epoch"] == 5].set_index(["field", "determined", "group"])
    # Where the number comes first, nothing says which of the training strings follows.
    assert last.loc[("PHONE", False, "train"), "bits"] > 0.9 * 7 * np.log2(10)
    assert last.loc[("PHONE", False, "train"), "share_below"] == 1
    assert last.loc[("PHONE", False, "unseen"), "share_below"] == 0
    assert last.loc[("PHONE", False, "unseen"), "bits"] < 0
    for group in ("train", "unseen"):
        assert last.loc[("EMAIL", True, group), "loss"] == pytest.approx(0, abs=1e-9)


# The configuration


def asked(**block):
    whole = {"models": ["opt-1.3b-twin"], "languages": ["people"], "recipe": "default"}
    study = {**whole, "size": 64, "margin": 2, **block}
    return {"memorisation": {"studies": {"fields": study}}}


@pytest.fixture
def _in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("_in_the_repository")
def test_the_runs_of_the_study_keep_the_losses_of_tokens():
    whole = experiment(DEFAULT, command_line=asked())
    keeping = [runs for runs in whole.requests if runs.names["language"] == "people"]
    assert [KEPT_TOKENS in runs.keeps for runs in keeping] == [True]


@pytest.mark.usefixtures("_in_the_repository")
def test_a_language_without_fields_is_refused(tmp_path):
    symbols = message(lambda: experiment(DEFAULT, command_line=asked(languages=["people", "L2"])))
    assert symbols == (
        "--config: memorisation/studies/fields/languages[1]: 'L2' is a language of "
        "symbols, and only texts have fields (%text); name a language of text with fields"
    )
    (tmp_path / "plain.pcfg").write_text("%text\nS -> 'a b' [0.5] | 'c' [0.5]\n")
    over = {
        **asked(languages=["plain"], size=2),
        "languages_folder": str(tmp_path),
        "languages": ["plain"],
        "sizes": [2],
        **dict.fromkeys(("unlearning", "profiles", "density", "information")),
    }
    over["memorisation"]["studies"]["only"] = ["fields"]
    over["datasets"] = {"high_entropy_counterpart": None}
    without = message(lambda: experiment(DEFAULT, command_line=over))
    assert "'plain' has no fields; write a line %field into its grammar" in without


@pytest.mark.usefixtures("_in_the_repository")
def test_the_shipped_configuration_asks_for_the_study():
    """Its one further study needs no further run."""
    whole = experiment(DEFAULT, "config/people.yaml")
    assert "results/studies/fields/people.parquet" in whole.outputs["memorisation"]
    (runs,) = whole.requests
    assert KEPT_TOKENS in runs.keeps
