"""Losses of records under a checkpoint, against transformers used by hand."""

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from helpers.experiments import message
from helpers.tiny_language_models import TEXTS, byte_level, sentence_piece, word_piece, write
from palimpsest import records


def read(tmp_path, texts=TEXTS, **columns) -> records.Records:
    path = tmp_path / "records.jsonl"
    rows = [
        {"text": text, **{name: values[place] for name, values in columns.items()}}
        for place, text in enumerate(texts)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return records.read_records(path)


def by_hand(folder: str, text: str, prompt: int = 0) -> tuple[float, int]:
    """The nll in nats of the tokens that end after so many letters of a text, and their number.

    Token after token. Special tokens have other names, so that no text has them.
    """
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    start = tokenizer.bos_token_id
    start = tokenizer.eos_token_id if start is None else start
    written = Path(folder, "tokenizer.json").read_text()
    for name in ("<s>", "</s>"):
        written = written.replace(json.dumps(name), json.dumps(f"the token {name}"))
    cut = Tokenizer.from_str(written).encode(text, add_special_tokens=False)
    ids = cut.ids
    assert not {tokenizer.bos_token_id, tokenizer.eos_token_id} & {*ids}
    with torch.no_grad():
        logits = model(torch.tensor([[start, *ids]])).logits[0]
    log_p = logits.double().log_softmax(-1)
    ends = [end for _, end in cut.offsets]
    losses = [-log_p[place, ids[place]].item() for place, end in enumerate(ends) if end > prompt]
    return sum(losses), len(losses)


@pytest.mark.parametrize("tokenizer", [byte_level, sentence_piece, word_piece])
@pytest.mark.parametrize("start", [True, False])
@pytest.mark.parametrize(
    "settings", [{}, {"vocab_size": 512}, {"tie_word_embeddings": True}], ids=str
)
def test_losses_are_those_by_hand(tmp_path, tokenizer, start, settings):
    """In shards; with padded vocabularies and tied weights; a text in company and alone."""
    folder = write(tmp_path / "model", tokenizer, start=start, **settings)
    given = read(tmp_path)
    nats = records.measure(given, folder, unit="nats per token", batch_size=2)
    assert nats.unit == "nats per token"
    bits = records.measure(given, folder)
    for place, text in enumerate(TEXTS):
        nll, n_tokens = by_hand(folder, text)
        assert nats.loss[0, place] * n_tokens == pytest.approx(nll, abs=1e-4)
        n_bytes = len(text.encode())
        assert bits.loss[0, place] * n_bytes * math.log(2) == pytest.approx(nll, abs=1e-4)


def test_a_reference_with_other_tokens_is_compared_in_bits_per_byte(tmp_path):
    own, other = write(tmp_path / "own"), write(tmp_path / "other", word_piece, seed=1)
    given = read(tmp_path, trained=[True, True, True, False, False])
    found = records.answers(records.measure(given, own, other), loss_threshold=None)
    assert found.placebo["measure"].tolist() == ["reference", "loss attack"]
    assert found.placebo[["n_trained", "n_unseen"]].iloc[0].tolist() == [3, 2]
    assert "cuts the records into other tokens" in message(
        lambda: records.measure(given, own, other, unit="nats per token")
    )


def test_one_model_under_two_names_is_no_reference(tmp_path):
    own, other = write(tmp_path / "own"), write(tmp_path / "other")
    said = message(lambda: records.measure(read(tmp_path), own, other))
    assert said.startswith(f"{other}: gives every record the same loss as {own}; they are one")


def test_a_checkpoint_without_a_weight_is_refused(tmp_path):
    """Transformers would draw the weight at random, with a warning."""
    folder = write(tmp_path / "model", num_hidden_layers=1)
    for path in (tmp_path / "model").glob("*.safetensors"):
        path.unlink()
    (tmp_path / "model/model.safetensors.index.json").unlink()
    torch.manual_seed(0)
    config = LlamaConfig.from_pretrained(folder)
    weights = LlamaForCausalLM(config).state_dict()
    name = "model.layers.0.mlp.up_proj.weight"
    kept = {key: value.contiguous() for key, value in weights.items() if key != name}
    save_file(kept, tmp_path / "model/model.safetensors", {"format": "pt"})
    assert name not in load_file(tmp_path / "model/model.safetensors")
    said = message(lambda: records.measure(read(tmp_path), folder))
    assert said.startswith(f"{folder}: its files have no weight {name!r}, so its answers would be")


def test_a_text_that_is_too_long_is_named_with_its_remedy(tmp_path):
    folder = write(tmp_path / "model", max_position_embeddings=20)
    said = message(lambda: records.measure(read(tmp_path), folder))
    assert "has " in said
    assert "the model takes at most 20; cut the records into windows: the key window" in said


@pytest.mark.parametrize("tokenizer", [byte_level, sentence_piece, word_piece])
@pytest.mark.parametrize("start", [True, False])
def test_the_loss_after_a_prompt_is_that_by_hand(tmp_path, tokenizer, start):
    """Of the tokens that end after the prompt, which the model has read; a new line parts them.

    A record without a prompt has the loss that it has in company without any prompt.
    """
    folder = write(tmp_path / "model", tokenizer, start=start)
    prompts = ["Ann Ek", "", "Grüße an Zoë: ", "東京", "x " * 30]
    parts = ["Ann Ek\n", "", "Grüße an Zoë: ", "東京\n", "x " * 30]
    given = read(tmp_path, prompt=prompts)
    nats = records.measure(given, folder, unit="nats per token", batch_size=2)
    bits = records.measure(given, folder)
    for place, (text, before) in enumerate(zip(TEXTS, parts, strict=True)):
        nll, n_tokens = by_hand(folder, before + text, len(before))
        assert nats.loss[0, place] == pytest.approx(nll / n_tokens, abs=1e-4 / n_tokens)
        n_bytes = len(text.encode())
        assert bits.loss[0, place] * n_bytes * math.log(2) == pytest.approx(nll, abs=1e-4)
    alone = records.measure(read(tmp_path), folder)
    assert bits.loss[0, 1] == pytest.approx(alone.loss[0, 1], abs=1e-6)
    assert (bits.loss[0] != alone.loss[0]).tolist() == [True, False, True, True, True]


def test_what_is_no_model_is_named_with_its_remedy(tmp_path):
    (tmp_path / "empty").mkdir()
    said = message(lambda: records.measure(read(tmp_path), tmp_path / "empty"))
    assert said.startswith(f"{tmp_path / 'empty'}: cannot be loaded: ")
    assert "\n" not in said
    with pytest.raises(ValueError, match="unknown unit 'nats'; known: bits per byte, nats per"):
        records.measure(read(tmp_path), tmp_path / "empty", unit="nats")


def test_records_without_ids_are_numbered(tmp_path):
    found = read(tmp_path, ["one", "two"], group=["g", "g"])
    assert found.ids.tolist() == ["1", "2"]
    assert found.groups.tolist() == ["g", "g"]
    assert found.trained is None


@pytest.mark.parametrize(
    ("texts", "columns", "said"),
    [
        (["one", " "], {}, "records.jsonl:2: text ' ' has no words; mend the row"),
        (["one", None], {}, "records.jsonl:2: text is null or missing"),
        (
            ["one", "two", "three"],
            {"id": ["a", "b", "a"]},
            "records.jsonl:3: the id 'a' is that of line 1 already; give every record an id of its",
        ),
        (["one"], {"trained": [False]}, "records.jsonl: no record was trained on"),
        (["one"], {"trained": ["so"]}, "records.jsonl:1: trained 'so' is not true or false"),
    ],
)
def test_records_that_cannot_be_read_are_refused_in_a_line(tmp_path, texts, columns, said):
    found = message(lambda: read(tmp_path, texts, **columns))
    assert said in found
    assert "\n" not in found


def test_broken_json_is_named_with_its_line(tmp_path):
    (tmp_path / "mine.jsonl").write_text('{"text": "one"}\n{"text": "two"\n')
    found = message(lambda: records.read_records(tmp_path / "mine.jsonl"))
    assert found.startswith(f"{tmp_path / 'mine.jsonl'}:2: is not JSON")
