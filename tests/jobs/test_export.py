"""Models as folders of Hugging Face: another program reads them, and they predict the same."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from helpers.checkpoints import write_checkpoint
from helpers.commands import MODELS
from palimpsest.errors import UserError
from palimpsest.jobs.export import export, export_run
from palimpsest.models import read_models
from palimpsest.models.alphabets import Alphabet
from palimpsest.models.build import build

TERMINALS = tuple("123456789")
ROWS = read_models(MODELS)
FAMILIES = {row.model_type: row for row in ROWS.values()}


def changed(model) -> dict[str, torch.Tensor]:
    """The weights of a model, three times as large: a folder with other weights is seen."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def predicted(model) -> torch.Tensor:
    ids = torch.tensor([[0, 2, 3, 10, 5, 2, 9], [0, 4, 4, 4, 8, 3, 2]])
    with torch.no_grad():
        return model(input_ids=ids).logits


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_twin_of_every_family_predicts_the_same(tmp_path, kind):
    row = FAMILIES[kind]
    model = build(row, "twin", 11, 5, torch.float32).eval()
    export(tmp_path / "made", row, "twin", Alphabet(TERMINALS), changed(model), {})
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "made")
    torch.testing.assert_close(predicted(loaded), predicted(model))
    assert sorted(loaded.state_dict()) == sorted(model.state_dict())


def test_weights_keep_their_number_format(tmp_path):
    """A model that was trained in bf16 is loaded in bf16."""
    row = FAMILIES["llama"]
    model = build(row, "twin", 11, 5, torch.bfloat16).eval()
    export(tmp_path / "made", row, "twin", Alphabet(TERMINALS), changed(model), {})
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "made")
    assert loaded.dtype == torch.bfloat16
    assert torch.equal(predicted(loaded), predicted(model))


def test_a_twin_has_a_tokenizer_of_its_terminals(tmp_path):
    """A start token comes first; a word that is no terminal is an error and not another token."""
    row, terminals = FAMILIES["llama"], ("a", "bc", "<start>", "é", "x<end>")
    weights = changed(build(row, "twin", 7, 5, torch.float32))
    export(tmp_path / "made", row, "twin", Alphabet(terminals), weights, {"seed": 3})
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "made")
    assert tokenizer("a bc <start> é x<end>").input_ids == [0, 2, 3, 4, 5, 6]
    assert tokenizer.decode([2, 3, 5]) == "a bc é"
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, len(tokenizer)) == (0, 1, 7)
    with pytest.raises(Exception, match="UNK"):
        tokenizer("a d")
    about = json.loads((tmp_path / "made/palimpsest.json").read_text())
    encoding = {"a": 2, "bc": 3, "<start>": 4, "é": 5, "x<end>": 6}
    assert about == {"seed": 3, "tokens": {"start": 0, "end": 1, "terminals": encoding}}


def test_a_full_model_takes_its_tokenizer_along(tmp_path):
    """Also its settings for generation, as they are, and its own tokens for the terminals."""
    row = read_models(write_checkpoint(tmp_path, "llama-3.2-1b"))["mine"]
    given = {"do_sample": False, "temperature": 0.6, "bos_token_id": 1}
    (Path(row.id) / "generation_config.json").write_text(json.dumps(given))
    model = build(row, "full", 0, 0, torch.float32).eval()
    export(tmp_path / "made", row, "full", Alphabet(TERMINALS), changed(model), {})
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "made")
    torch.testing.assert_close(predicted(loaded), predicted(model))
    own, theirs = (AutoTokenizer.from_pretrained(path) for path in (tmp_path / "made", row.id))
    assert own.get_vocab() == theirs.get_vocab()
    found = json.loads((tmp_path / "made/generation_config.json").read_text())
    assert given.items() <= found.items()
    about = json.loads((tmp_path / "made/palimpsest.json").read_text())
    assert about["tokens"]["terminals"]["9"] == own.convert_tokens_to_ids("9")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda weights: weights.pop("model.norm.weight"), "model.norm.weight"),
        (lambda weights: weights.update(more=torch.zeros(1)), "more"),
        (lambda weights: weights.update({"model.norm.weight": torch.zeros(3)}), "size mismatch"),
    ],
    ids=["missing", "unknown", "shape"],
)
def test_other_weights_are_refused_and_leave_nothing(tmp_path, damage, said):
    row = FAMILIES["llama"]
    weights = changed(build(row, "twin", 11, 5, torch.float32))
    damage(weights)
    with pytest.raises(UserError, match=said):
        export(tmp_path / "made", row, "twin", Alphabet(TERMINALS), weights, {})
    assert list(tmp_path.iterdir()) == []


def test_an_older_folder_is_replaced_as_a_whole(tmp_path):
    row = FAMILIES["llama"]
    (tmp_path / "made").mkdir()
    (tmp_path / "made/older.txt").write_text("older")
    weights = changed(build(row, "twin", 11, 5, torch.float32))
    export(tmp_path / "made", row, "twin", Alphabet(TERMINALS), weights, {})
    names = {path.name for path in (tmp_path / "made").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert "older.txt" not in names
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_a_run_whose_model_left_the_table_is_refused(tmp_path):
    with pytest.raises(UserError, match="unknown model 'gone'"):
        export_run(tmp_path / "made", {"model": "gone"}, {}, None, None, MODELS)
