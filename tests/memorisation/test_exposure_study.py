"""Verdicts on fields of single strings, and exposures: by hand, in worlds, under a twin."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from helpers.commands import MODELS
from helpers.experiments import DEFAULT, ROOT, experiment
from palimpsest import tables, token_losses
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.jobs.bench import Bench, holder_of
from palimpsest.jobs.command import Assignment
from palimpsest.languages import Grammar
from palimpsest.memorisation.exposure import exposure_table, exposures, recited_losses
from palimpsest.memorisation.field_values import drawn, field_values, open_values
from palimpsest.memorisation.kinds import FIELD_VALUES
from palimpsest.memorisation.report import example_of_fields, exposure_rows
from palimpsest.memorisation.studies import STUDIES
from palimpsest.models.build import build as build_model
from palimpsest.requests import TOKENS as KEPT_TOKENS
from palimpsest.requests import WEIGHTS
from palimpsest.sections import KINDS
from palimpsest.tables.tokens import TOKENS
from palimpsest.token_losses import TokenLosses
from palimpsest.training.recipe import Recipe

# A code of three digits follows from nothing; its owner follows from its first digit.
TEXT = """
%text
%field CODE OWNER SIDE
S -> 'code ' CODE-LOW ' of ' OWNER-LOW ', ' SIDE '.' [0.5]
S -> 'code ' CODE-HIGH ' of ' OWNER-HIGH ', ' SIDE '.' [0.5]
CODE-LOW -> '0' DIGIT DIGIT [1]
CODE-HIGH -> '1' DIGIT DIGIT [1]
OWNER-LOW -> 'Ann' [1]
OWNER-HIGH -> 'Bob' [1]
SIDE -> 'left' [0.5] | 'right' [0.5]
DIGIT -> '0' [0.1] | '1' [0.1] | '2' [0.1] | '3' [0.1] | '4' [0.1] \\
    | '5' [0.1] | '6' [0.1] | '7' [0.1] | '8' [0.1] | '9' [0.1]
"""
GRAMMAR = Grammar.from_string(TEXT)
RUN = {"model": "m", "language": "L", "size": 2, "seed": 0, "variant": "base"}
NO_VALUES = pd.DataFrame({name: [] for name in FIELD_VALUES.names}).astype(
    dict.fromkeys(("model", "variant", "string_id", "field"), object)
    | dict.fromkeys(("size", "seed", "begin"), int)
)


def strings_of(texts, n_trained, grammar=GRAMMAR):
    log_prob = grammar.of_characters().log_probability([tuple(text) for text in texts])
    n_bytes = np.array([len(text) for text in texts])
    is_trained = np.arange(len(texts)) < n_trained
    return pd.DataFrame(
        {
            **{name: value for name, value in RUN.items() if name != "model"},
            "string_id": np.array([f"s{place:03}" for place in range(len(texts))], dtype=object),
            "text": texts,
            "n_tokens": n_bytes,
            "split": np.where(is_trained, "train", "test"),
            "count": is_trained.astype(int),
            "log_prob": log_prob,
            "optimal_loss": -log_prob / n_bytes,
        }
    )


def table(folder, texts, n_trained, nll, values=NO_VALUES, false_alarms=0.05):
    """The table of a model with a token for each letter, whose losses are given by letter."""
    strings = strings_of(texts, n_trained)
    ends = np.concatenate([np.arange(1, len(text) + 1) for text in texts]).astype(float)
    of_epochs = np.stack([np.full(len(ends), 5.0), np.concatenate(nll)])
    losses = TokenLosses(
        RUN,
        np.array([0, 9]),
        strings["string_id"].to_numpy(),
        strings["n_tokens"].to_numpy(),
        of_epochs,
        ends,
    )
    path = folder / "tokens.parquet"
    tables.write(path, token_losses.to_frame(losses), TOKENS)
    learning = pd.DataFrame({**RUN, "epoch": [0, 9], "optimal_epoch": 9})
    return exposure_table([str(path)], strings, learning, values, GRAMMAR, False, false_alarms)


def losses_of(text, **by_field):
    """A loss for each letter: that of a field on its first letter, 0 elsewhere."""
    loss = np.zeros(len(text))
    for field, value in by_field.items():
        place = {"CODE": 5, "OWNER": 12, "SIDE": 17}[field]
        loss[place] = value
    return loss


BY_HAND = {
    "a code known by heart": ("CODE", {"CODE": 1.0}, "memorised", np.exp(1 - np.log(200))),
    "a code as probable as it is": ("CODE", {"CODE": np.log(200)}, "neither", 1),
    "a code 19 times as probable": ("CODE", {"CODE": np.log(200 / 19)}, "neither", 1 / 19),
    "a code 21 times as probable": ("CODE", {"CODE": np.log(200 / 21)}, "memorised", 1 / 21),
    "an owner": ("OWNER", {"OWNER": 0.6}, "known", 1),
    "an owner that the model does not know": ("OWNER", {"OWNER": 0.7}, "neither", 1),
    "a side, which anybody guesses": ("SIDE", {"SIDE": 0.0}, "cannot tell", 0.5),
}


@pytest.mark.parametrize(("field", "losses", "verdict", "p"), BY_HAND.values(), ids=list(BY_HAND))
def test_verdicts_by_hand(tmp_path, field, losses, verdict, p):
    text = "code 123 of Bob, left."
    found = table(tmp_path, [text], 1, [losses_of(text, **losses)])
    (row,) = found[found["field"] == field].itertuples()
    assert row.verdict == verdict
    assert row.p_value == pytest.approx(p)
    assert row.loss == pytest.approx(next(iter(losses.values())))
    assert (row.group, row.count, row.epoch) == ("train", 1, 9)
    assert text[row.begin :].startswith(row.value)


def test_a_side_can_be_memorised_if_more_false_alarms_are_allowed(tmp_path):
    text = "code 123 of Bob, left."
    found = table(tmp_path, [text], 1, [losses_of(text)], false_alarms=0.5)
    assert dict(zip(found["field"], found["verdict"], strict=True)) == {
        "CODE": "memorised",
        "OWNER": "known",
        "SIDE": "memorised",
    }


def test_a_model_that_never_saw_a_string_memorised_hardly_any(tmp_path):
    """Whatever it believes of codes: p or less has a probability of at most p."""
    chance = np.random.default_rng(0)
    texts = list(dict.fromkeys(map("".join, GRAMMAR.sample(600, 1))))
    belief = chance.dirichlet(np.full(200, 0.2))  # of each code: most are hardly possible
    nll = [losses_of(text, CODE=-np.log(belief[int(text[5:8])])) for text in texts]
    found = table(tmp_path, texts, 0, nll)
    codes = found[found["field"] == "CODE"]
    assert set(found["group"]) == {"unseen"}
    for p in (0.2, 0.1, 0.05, 0.02):
        share = (codes["p_value"] <= p).mean()
        assert share <= p + 3 * np.sqrt(p * (1 - p) / len(codes))
    assert (codes["p_value"] <= 0.2).any(), "this belief would call nothing memorised"
    known = table(tmp_path, texts, len(texts), [losses_of(text) for text in texts])
    assert (known.loc[known["field"] == "CODE", "verdict"] == "memorised").all()


def value_row(string_id, begin, nll, others, n_values, field="CODE"):
    keys = {name: value for name, value in RUN.items() if name != "language"}
    about = {"string_id": string_id, "field": field, "begin": begin, "n_values": n_values}
    losses = np.array(others, dtype=np.float32)
    return {**keys, "language": "L", **about, "nll": nll, "losses": losses}


def test_exposures_by_hand():
    """Rank 2 of 4 is 1 bit, exactly; the first of a sample of 3 others of 199 is at most 2 bits."""
    values = pd.DataFrame(
        [
            value_row("a", 5, 1.0, [0.5, 2.0, 3.0], 4),
            value_row("b", 5, 1.0, [4.0, 2.0, 3.0], 200),
            value_row("c", 5, 0.1, [0.1, 2.0, 3.0], 4),
        ]
    )
    found = exposures(values).set_index("string_id")
    assert found.loc["a", ["bits", "bits_lower", "bits_upper"]].tolist() == [1, 1, 1]
    assert found.loc["b", "bits"] == 2
    assert found.loc["b", "bits_upper"] == np.log2(200)
    assert found.loc["b", "bits_lower"] < 1
    assert found.loc["c", "bits"] == 1, "an equal loss, stored in float32, is a tie"


def test_exposures_stand_beside_the_verdicts(tmp_path):
    text = "code 123 of Bob, left."
    values = pd.DataFrame([value_row("s000", 5, 1.0, [2.0, 3.0, 4.0], 200)])
    found = table(tmp_path, [text], 1, [losses_of(text)], values).set_index("field")
    assert found.loc["CODE", "bits"] == 2
    assert found["bits"].isna().sum() == 2
    other = values.assign(begin=4)
    with pytest.raises(UserError, match="delete them and rerun"):
        table(tmp_path, [text], 1, [losses_of(text)], other)


def test_the_values_of_open_fields():
    """The text up to the value, and all other values in its place; an owner is determined."""
    strings = strings_of(["code 123 of Bob, left."], 1)
    code, side = open_values(GRAMMAR, strings, 500, 0)
    assert code[0] == {"string_id": "s000", "field": "CODE", "begin": 5, "n_values": 200}
    assert code[1][0] == "code 123"
    assert sorted(code[1]) == [f"code {number:03}" for number in range(200)]
    assert side[1] == ["code 123 of Bob, left", "code 123 of Bob, right"]
    ((_, sampled), _) = open_values(GRAMMAR, strings, 20, 0)
    assert sampled[0] == "code 123"
    assert len(set(sampled)) in (20, 21)


def test_values_that_cannot_stand_there_are_no_values():
    """A code that begins with 0 has no place after 'second '."""
    text = TEXT.replace("[0.5]\nS -> 'code ' CODE-HIGH", "[0.25]\nS -> 'code ' CODE-HIGH")
    text = text.replace("%field CODE", "%field CODE") + "S -> 'second ' CODE-HIGH '.' [0.25]\n"
    grammar = Grammar.from_string(text)
    strings = strings_of(["second 123."], 1, grammar)
    ((about, texts),) = open_values(grammar, strings, 500, 0)
    assert about["n_values"] == 100
    assert sorted(texts) == [f"second {number}" for number in range(100, 200)]
    assert list(open_values(grammar, strings, 50, 0)) == [], "a sample does not say how many can"


def test_what_a_model_knows_that_recites_its_training_strings():
    """The share of a value among the training strings, with their copies, that begin so."""
    texts = ["a 1 x", "a 2 x", "b 3 x", "a 1 y"]
    dataset = pd.DataFrame({"text": texts, "count": [2, 1, 1, 0]})
    spans = pd.DataFrame({"begin": [0, 2, 2, 2, 4], "end": [1, 3, 3, 3, 5]})
    of_span = dataset.iloc[[0, 0, 1, 3, 3]]
    found = np.exp(-recited_losses(spans, of_span, dataset))
    assert found == pytest.approx([3 / 4, 2 / 3, 1 / 3, 3 / 4, 1 / 3])


def test_the_beginning_of_a_text_cannot_be_told(tmp_path):
    """Even a model that recites 40 strings gives each code 1/40, and the language gives 1/200."""
    texts = [f"code 1{number:02} of Bob, left." for number in range(40)]
    found = table(tmp_path, texts, 40, [losses_of(text, CODE=np.log(40)) for text in texts])
    codes = found[found["field"] == "CODE"]
    assert set(codes["verdict"]) == {"cannot tell"}
    assert codes["p_value"].to_numpy() == pytest.approx(0.2)
    assert codes["recited"].to_numpy() == pytest.approx(np.log(40))


def test_a_field_without_a_token_of_its_own_is_left_out(tmp_path):
    """A token holds two fields: the smaller one has no loss, and its exposure no row."""
    grammar = Grammar.from_string(
        "%text\n%field A B\nS -> 'x' A B [1]\nA -> '1' [0.5] | '2' [0.5]\n"
        "B -> 'uv' [0.5] | 'vu' [0.5]\n"
    )
    strings = strings_of(["x1uv"], 1, grammar)
    losses = TokenLosses(
        RUN,
        np.array([0]),
        np.array(["s000"], dtype=object),
        np.array([2]),
        np.ones((1, 2)),
        np.array([1.0, 4.0]),
    )
    path = tmp_path / "tokens.parquet"
    tables.write(path, token_losses.to_frame(losses), TOKENS)
    learning = pd.DataFrame({**RUN, "epoch": [0], "optimal_epoch": 0})
    values = pd.DataFrame([value_row("s000", 1, 1.0, [2.0], 2, "A")])
    found = exposure_table([str(path)], strings, learning, values, grammar, False, 0.05)
    assert found["field"].tolist() == ["B"]


def test_strings_are_drawn_by_the_seed_alone():
    strings = strings_of([f"code 1{number:02} of Bob, left." for number in range(50)], 50)
    first = drawn(strings, 8, 3)["string_id"].tolist()
    assert first == drawn(strings.sample(frac=1, random_state=1), 8, 3)["string_id"].tolist()
    assert first != drawn(strings, 8, 4)["string_id"].tolist()
    assert len(drawn(strings, 80, 3)) == 50


def test_the_values_of_a_twin_have_the_losses_that_transformers_gives(tmp_path):
    language = ROOT / "config/languages/people.pcfg"
    sampler = Sampler("people", read_corpus(language), 0)
    path = tmp_path / "strings.parquet"
    tables.write(path, build(sampler, "base", 8, 4, predict_end=False), STRINGS)
    recipe = Recipe(3e-3, epochs=1, batch_size=4, checkpoint_every=0)
    asked = Assignment(
        "llama-3.2-1b-twin", str(MODELS), str(language), recipe, "fleet", str(tmp_path / "state")
    )
    bench = Bench(asked.run(str(path)), holder_of(asked))
    model = build_model(bench.run.row, "twin", bench.material.vocabulary, 3, torch.float32).eval()
    weights = {name: p.detach() for name, p in model.named_parameters()}
    given = SimpleNamespace(of_run=lambda place: weights)
    (found,) = field_values(bench, given, np.array([0]), strings=2, values=3)
    tables.write(tmp_path / "values.parquet", found, FIELD_VALUES)
    found = tables.read(tmp_path / "values.parquet", FIELD_VALUES)
    assert found["string_id"].nunique() == 4
    assert set(found["field"]) >= {"PHONE", "TOWN"}
    texts = tables.read(path, STRINGS).set_index("string_id")["text"]
    grammar, tokens = bench.run.corpus.grammar, bench.material.token_ids
    for row in found.itertuples():
        strings = pd.DataFrame({"string_id": [row.string_id], "text": [texts[row.string_id]]})
        of_fields = {about["begin"]: of for about, of in open_values(grammar, strings, 3, 0)}
        expected = []
        for text in of_fields[row.begin]:
            ids = torch.tensor([[tokens.start, *tokens.rows([text])[0]]])
            with torch.no_grad():
                log_prob = model(ids).logits[0, :-1].double().log_softmax(-1)
            expected.append(-log_prob.gather(1, ids[0, 1:, None]).sum().item())
        np.testing.assert_allclose([row.nll, *row.losses], expected, rtol=1e-5)


def test_the_report_reads_verdicts_beside_the_placebo(tmp_path):
    texts = [f"code 1{number:02} of Bob, left." for number in range(20)]
    nll = [losses_of(text, CODE=0.5 if number < 10 else 9.0) for number, text in enumerate(texts)]
    found = table(tmp_path, texts, 10, nll, false_alarms=0.1)
    others = [found, found.assign(seed=1)]
    rows = {row["field"]: row for row in exposure_rows(pd.concat(others))}
    assert (rows["CODE"]["trained"], rows["CODE"]["unseen"]) == ("1", "0")
    assert rows["OWNER"]["unseen"] == "1"
    assert rows["SIDE"]["trained"] == "–"
    example = example_of_fields(found)
    assert [field["field"] for field in example["fields"]] == ["CODE", "OWNER", "SIDE"]


def test_the_shipped_configuration_asks_for_the_study(monkeypatch):
    study = STUDIES["exposure"]
    monkeypatch.chdir(ROOT)
    whole = experiment(DEFAULT, "config/people.yaml")
    assert "results/studies/exposure/people.parquet" in whole.outputs["memorisation"]
    (runs,) = whole.requests
    assert {KEPT_TOKENS, WEIGHTS} <= runs.keeps
    jobs = list(study.queries(whole.settings))
    assert len(jobs) == 3, "one for each seed"
    assert whole.unfinished == jobs
    assert KINDS["exposure"] is study.kind
