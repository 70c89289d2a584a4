"""Strings that are longer than a model takes, and tokens that a model does not have."""

import json
import shutil
from dataclasses import replace
from functools import partial

import pytest
import torch
from transformers import AutoConfig, GPT2Config

from helpers.checkpoints import write_checkpoint
from helpers.experiments import DEFAULT, ROOT, configuration, experiment, message
from helpers.families import FAMILIES
from palimpsest import tables
from palimpsest.configuration import checks
from palimpsest.configuration.settings import Settings
from palimpsest.corpora import GrammarCorpus, TextCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.languages import Grammar
from palimpsest.models import read_models
from palimpsest.models.build import build as build_model
from palimpsest.models.build import limits
from palimpsest.models.limits import TWIN_POSITIONS, known_positions
from palimpsest.requests import Runs
from palimpsest.sections import KINDS
from palimpsest.training.fleet import FleetEngine
from palimpsest.training.fleet import probe as fleet_probe
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Material, Run

TABLE = ROOT / "config/models.tsv"
DIGITS = "123456789"
RECIPE = Recipe(3e-3, epochs=1, batch_size=2, zero_stage=0, precision="fp32")


def run_of(folder, corpus, model="opt-1.3b-twin", table=TABLE):
    """A run on a dataset of a corpus' strings."""
    strings = build(Sampler("notes", corpus, 0), "base", 2, 1, predict_end=False)
    path = folder / "strings.parquet"
    tables.write(path, strings, KINDS["strings"])
    name = model.removesuffix("-twin")
    scale = "twin" if model.endswith("-twin") else "full"
    return Run(model, read_models(table)[name], scale, corpus, str(path), RECIPE)


def text_of(n_words):
    """A text with one long line."""
    long = tuple(DIGITS[n % 9] for n in range(n_words))
    return TextCorpus("notes.txt", [("1", "2"), long, ("3",)], lines=[1, 4, 5])


@pytest.mark.parametrize("model", [f"{name}-twin" for name in FAMILIES])
def test_a_string_that_a_twin_does_not_take_is_refused(tmp_path, model):
    """In one line with length, limit and remedy, whichever positions the architecture has."""
    text = message(lambda: Material(run_of(tmp_path, text_of(3000), model)))
    assert text.startswith(f"{model}: the string '1 2 3 4 5 6 7 8 9 1 ")
    assert "has 3,001 tokens with the start token, and the model takes at most 1,024" in text
    assert text.endswith("cut line 4 of notes.txt into shorter lines")


def test_the_limit_itself_is_taken(tmp_path):
    """A model with learned positions has one for each of these tokens."""
    run = run_of(tmp_path, text_of(TWIN_POSITIONS - 1))
    material = Material(run)
    assert material.encoded.lengths.max() == TWIN_POSITIONS
    model = build_model(run.row, "twin", material.vocabulary, 0, torch.float32)
    with torch.no_grad():
        assert model(input_ids=torch.zeros((1, TWIN_POSITIONS), dtype=int)).logits.isfinite().all()
    message(lambda: Material(run_of(tmp_path, text_of(TWIN_POSITIONS))))


@pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")
def test_the_remedy_of_a_grammar_is_in_its_rules(tmp_path):
    long = " ".join(f"'{DIGITS[n % 9]}'" for n in range(1100))
    grammar = GrammarCorpus(Grammar.from_string(f"S -> {long} [1.0]", name="long.pcfg"))
    text = message(lambda: Material(run_of(tmp_path, grammar)))
    remedy = "shorten the strings of long.pcfg, or choose a model that takes more"
    assert text.endswith(f"{remedy}: 100.00% of its strings have more than 1,023 symbols")
    grammar = GrammarCorpus(Grammar.from_string("S -> 'a' S [0.9] | 'b' [0.1]", name="loop.pcfg"))
    remedy = "give a higher probability to the rules of loop.pcfg that end it"
    text = f"{remedy}: 72.90% of its strings have more than 3 symbols"
    assert grammar.when_too_long(4) == text


def test_every_engine_refuses_before_training(tmp_path):
    """No engine learns of a long string from an error of torch."""
    engine = FleetEngine(tmp_path / "state", 1, 2**33)
    run = run_of(tmp_path, text_of(3000))
    text = message(partial(engine.train, [run], None))
    assert "has 3,001 tokens" in text
    assert "stacked" not in text


# Full models


@pytest.mark.parametrize("model", FAMILIES)
def test_a_full_models_limit_is_in_its_configuration(tmp_path, model):
    """It is known without loading, and equal to the one that transformers reads."""
    table = write_checkpoint(tmp_path, model)
    config = tmp_path / "checkpoint/config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "max_position_embeddings": 77}))
    row = read_models(table)["mine"]
    assert known_positions(row, "full") == limits(row, "full").positions == 77
    assert limits(row, "full").vocabulary == 12
    text = message(lambda: Material(run_of(tmp_path, text_of(80), "mine", table)))
    assert "has 81 tokens with the start token, and the model takes at most 77" in text


def test_configurations_with_other_names_or_no_limit(tmp_path):
    """GPT-2 has another key, some models have a part for text, and some have no limit."""
    row = read_models(write_checkpoint(tmp_path, "opt-1.3b"))["mine"]
    folder = tmp_path / "checkpoint"
    gpt2, bloom = (replace(row, model_type=name) for name in ("gpt2", "bloom"))
    GPT2Config(n_positions=55).save_pretrained(folder)
    assert known_positions(gpt2, "full") == 55
    assert limits.__wrapped__(gpt2, "full").positions == 55
    AutoConfig.for_model("bloom").save_pretrained(folder)
    assert known_positions(bloom, "full") is None
    assert limits.__wrapped__(bloom, "full").positions is None
    of_text = {"model_type": "opt", "max_position_embeddings": 9}
    (folder / "config.json").write_text(json.dumps({"model_type": "both", "text_config": of_text}))
    assert known_positions(row, "full") == 9
    assert known_positions(replace(row, id="owner/name"), "full") is None


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("{", "cannot be read as JSON"),
        ("[1]", "must hold one JSON object"),
        ('{"max_position_embeddings": "4"}', "max_position_embeddings is '4'; it must be a whole"),
        ('{"model_type": "gpt2"}', "model_type is 'gpt2', and 'opt' in the table of models"),
    ],
)
def test_a_broken_configuration_is_refused(tmp_path, config, said):
    """It must not switch the check of lengths off."""
    row = read_models(write_checkpoint(tmp_path, "opt-1.3b"))["mine"]
    path = tmp_path / "checkpoint/config.json"
    path.write_text(config)
    text = message(lambda: known_positions(row, "full"))
    assert f"{path}: {said}" in text
    assert "\n" not in text


def test_a_token_without_weights_is_refused(tmp_path):
    """A tokenizer grows by a word, and the weights do not."""
    table = write_checkpoint(tmp_path, "opt-1.3b")
    config = tmp_path / "checkpoint/config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "vocab_size": 8}))
    text = message(lambda: Material(run_of(tmp_path, text_of(9), "mine", table)))
    assert "its tokenizer gives the token 11, and its weights have only the tokens 0 to 7" in text
    assert "resize_token_embeddings" in text


# Before any job


@pytest.fixture
def long_text(tmp_path, monkeypatch):
    """A folder of languages with a text whose third line is long."""
    monkeypatch.chdir(ROOT)
    folder = tmp_path / "languages"
    shutil.copytree("config/languages", folder)
    lines = ["a b c", "", " ".join(["word"] * 1024), *(f"line {n} of a text" for n in range(300))]
    (folder / "notes.txt").write_text("\n".join(lines))
    return folder


def asked(folder):
    """The experiment in which a text is unlearned."""
    unlearning = {"languages": ["notes"], "groups": "string"}
    return experiment(
        DEFAULT, command_line={"languages_folder": str(folder), "unlearning": unlearning}
    )


def test_a_texts_longest_line_is_refused_before_any_job(long_text):
    text = message(lambda: asked(long_text))
    assert f"the longest line of {long_text}/notes.txt has 1,025 tokens" in text
    assert text.endswith(f"cut line 3 of {long_text}/notes.txt into shorter lines")


def test_a_text_that_fits_is_planned(long_text):
    path = long_text / "notes.txt"
    path.write_text(path.read_text().replace("word ", "", 1))
    assert "notes" in asked(long_text).languages


@pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")
@pytest.mark.parametrize(("repeats", "refused"), [("0.999", True), ("0.99", False)])
def test_a_language_whose_strings_are_too_long_is_refused(long_text, repeats, refused):
    """If its datasets have such strings all but surely; a job refuses a rarer string."""
    path = long_text / "notes.pcfg"
    (long_text / "notes.txt").unlink()
    path.write_text(f"S -> 'a' S [{repeats}] | 'b' S [0.0005] | 'b' [{0.9995 - float(repeats)}]")
    if not refused:
        assert "notes" in asked(long_text).languages
        return
    text = message(lambda: asked(long_text))
    assert (
        f"strings of {path} have more tokens than the model takes, which is at most 1,024" in text
    )
    assert "give a higher probability to the rules" in text
    assert text.endswith("of its strings have more than 1,023 symbols")


def test_a_language_too_long_for_a_local_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    table = write_checkpoint(tmp_path, "opt-1.3b")
    config = tmp_path / "checkpoint/config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "max_position_embeddings": 4}))
    (tmp_path / "loop.pcfg").write_text("S -> '1' S [0.9] | '2' [0.1]")
    given = {"models_table": str(table), "languages_folder": str(tmp_path)}
    settings = Settings({**configuration(DEFAULT), **given})
    asked = [Runs("mine", "loop", 16, seeds=(0,))]
    text = message(lambda: checks.long_strings(settings, asked))
    assert "mine: strings of" in text
    assert "at most 4 with the start token" in text
    assert "72.90% of its strings" in text
    checks.long_strings(settings, [Runs("mine-twin", "loop", 16, seeds=(0,))])


def test_only_what_is_all_but_sure_counts():
    """A million strings; each is shorter with probability 0.9 ** limit."""
    corpus = GrammarCorpus(Grammar.from_string("S -> 'a' S [0.9] | 'b' [0.1]"))
    assert not corpus.has_longer(100, 0)
    assert corpus.has_longer(100, 10**6)  # 0.9 ** 100 is 2.7e-5
    assert not corpus.has_longer(100, 10**5)
    finite = GrammarCorpus(Grammar.from_string("S -> 'a' 'b' [1]"))
    assert finite.has_longer(1, 1)
    assert not finite.has_longer(2, 10**9)


# What the fleet says of a model that it cannot train


class Failing(torch.nn.Module):
    """A model whose own code fails."""

    def __init__(self, error):
        super().__init__()
        self.weight, self.error = torch.nn.Parameter(torch.ones(1)), error

    def forward(self, **_):
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (IndexError("index out of range in self"), "fails on its strings (IndexError: index out"),
        (torch.OutOfMemoryError("CUDA out of memory"), "the memory is too small for one model"),
        (MemoryError(), "the memory is too small for one model"),
    ],
)
def test_the_cause_of_a_failure_is_named(tmp_path, monkeypatch, error, said):
    """It is not the stack's if the model itself fails; then another engine would not help."""
    run = run_of(tmp_path, text_of(5))
    monkeypatch.setattr(fleet_probe, "_built", lambda member: Failing(error))
    text = message(partial(FleetEngine(tmp_path / "state", 1, 2**33).train, [run], None))
    assert said in text
    assert "stacked" not in text
    assert "deepspeed" not in text
