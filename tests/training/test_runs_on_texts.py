"""Texts and their prompts as tokens, and runs on texts by both engines."""

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from helpers.commands import MODELS, SCRIPTS
from palimpsest import manifests, tables, token_losses, traces
from palimpsest.corpora import read_corpus
from palimpsest.corpora.kinds import CORPUS
from palimpsest.corpora.records import corpus_table
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.jobs.export import export_run
from palimpsest.models import read_models
from palimpsest.models.alphabets import Alphabet, byte_level_tokenizer
from palimpsest.models.build import SymbolTokens, tokens
from palimpsest.training.batches import IGNORED, TokenisedStrings, encode
from palimpsest.training.fleet import FleetEngine
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Run

MODEL = "llama-3.2-1b"
ROW = read_models(MODELS)[MODEL]
# Of many lengths; some without a prompt, one with a prompt that is longer than its text
RECORDS = [
    {"id": f"r{n}", "text": f"is {n * 37} or {'more ' * (n % 5)}é", "prompt": prompt}
    for n, prompt in enumerate(["The sum: ", "", "What, in all the world, is it?"] * 6)
]
RECIPE = Recipe(
    1e-4,
    epochs=8,
    batch_size=4,
    zero_stage=0,
    precision="fp32",
    evaluation_batch_size=5,
)
TOLERANCE = 1e-4  # nats per token


def test_what_is_predicted_follows_the_contexts():
    rows = [[0, 5, 6, 7], [0, 8], [0, 5, 6]]
    made = TokenisedStrings.of_rows(rows, 1, [2, 0, 1])
    none = IGNORED
    assert made.contexts.tolist() == [3, 1, 2]
    assert made.n_tokens.tolist() == [1, 1, 1]
    assert made.targets.tolist() == [
        [none, none, none, 7],
        [none, 8, none, none],
        [none, none, 6, none],
    ]
    batch = made.batch(np.array([1, 2, -1]), torch.device("cpu"))
    assert batch.targets_BT.tolist() == [[8, none], [none, 6], [none, none]]
    assert batch.ids_BT[:2].tolist() == [[0, 8], [0, 5]]
    without = TokenisedStrings.of_rows(rows, 1)
    assert without.n_tokens.tolist() == [3, 1, 2]
    assert (without.targets != IGNORED).sum(1).tolist() == [3, 1, 2]


@pytest.mark.parametrize("predict_end", [False, True])
def test_prompts_are_read_and_not_predicted(predict_end):
    made = tokens(ROW, "twin", Alphabet(tokenizer=byte_level_tokenizer(["one two"])))
    texts, letters = ["one two", "two", "é two"], [4, 0, 2]
    plain = encode(texts, made, predict_end)
    asked = encode(texts, made, predict_end, letters)
    np.testing.assert_array_equal(asked.ids, plain.ids)
    np.testing.assert_array_equal(asked.lengths, plain.lengths)
    decode = made.tokenizer.decode
    for row, text, n in zip(asked.targets, texts, letters, strict=True):
        predicted = row[row != IGNORED]
        assert (predicted[-1] == made.end) == predict_end
        assert decode(predicted[: len(predicted) - predict_end]).lstrip() == text[n:].lstrip()
    assert encode(texts, made, predict_end, [0, 0, 0]).contexts == 1


def test_symbols_need_no_prompts():
    symbols = SymbolTokens(("a", "b"), (2, 3), 0, 1)
    found = encode(["a b", "b"], symbols, True, [0, 0])
    assert found.n_tokens.tolist() == [3, 2]


ALONE = """
import sys
from pathlib import Path
from palimpsest.corpora import read_corpus
from palimpsest.models import read_models
from palimpsest.training.deepspeed_engine import DeepSpeedEngine
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Run

state, table, corpus, dataset, recipe, model = sys.argv[1:]
recipe = Recipe(**eval(recipe))
engine = DeepSpeedEngine(recipe, state)
row = read_models(table)[model]
run = Run(model + "-twin", row, "twin", read_corpus(corpus), dataset, recipe, by_token=True)
engine.train([run], lambda name: lambda *_: None)
engine.close()
print(engine.state(run).trace)
"""


def losses_of(trace: Path) -> tuple[traces.Trace, token_losses.TokenLosses]:
    return traces.read(trace), token_losses.read(Path(trace).with_name("tokens.parquet"))


@pytest.fixture(scope="module", params=[False, True], ids=["without the end", "with the end"])
def trained(request, tmp_path_factory) -> dict:
    """A twin on records with prompts, trained by the fleet."""
    folder = tmp_path_factory.mktemp("texts")
    recipe = Recipe(**{**asdict(RECIPE), "predict_end": request.param})
    (folder / "records.json").write_text(json.dumps(RECORDS))
    corpus_file = folder / "corpus.parquet"
    tables.write(corpus_file, corpus_table(folder / "records.json", {}), CORPUS)
    corpus, dataset = read_corpus(corpus_file), str(folder / "strings.parquet")
    strings = build(Sampler("mine", corpus, 0), "base", 12, 6, predict_end=request.param)
    tables.write(dataset, strings, STRINGS)
    run = Run(f"{MODEL}-twin", ROW, "twin", corpus, dataset, recipe, by_token=True)
    engine = FleetEngine(folder / "fleet", 1, 2**33, save_weights=True)
    engine.train([run], lambda name: lambda *_: None)
    return {
        "folder": folder,
        "run": run,
        "corpus_file": corpus_file,
        "state": engine.state(run),
        "strings": strings,
    }


@pytest.mark.slow
def test_the_table_of_a_dataset_counts_the_bytes_after_the_prompt(trained):
    predict_end = trained["run"].recipe.predict_end
    bytes_of = {}
    for record in RECORDS:
        prompt = record["prompt"]
        whole = prompt + "\n" * (prompt[-1:] not in ("", " ")) + record["text"]
        bytes_of[whole] = len(record["text"].encode()) + predict_end
    strings = trained["strings"]
    assert strings["n_tokens"].tolist() == [bytes_of[text] for text in strings["text"]]


@pytest.mark.slow
def test_both_engines_leave_the_same_trace(trained):
    run, folder = trained["run"], trained["folder"]
    words = [folder / "alone", MODELS, trained["corpus_file"], run.dataset]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *map(str, words), str(asdict(run.recipe)), MODEL],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    theirs, their_tokens = losses_of(Path(done.stdout.split()[-1]))
    ours, our_tokens = losses_of(trained["state"].trace)
    np.testing.assert_array_equal(ours.n_tokens, theirs.n_tokens)
    np.testing.assert_array_equal(ours.string_ids, theirs.string_ids)
    assert np.abs(ours.loss - theirs.loss).max() < TOLERANCE
    assert np.abs(our_tokens.nll - their_tokens.nll).max() < TOLERANCE
    assert ours.loss[0].mean() - ours.loss[-1].mean() > 0.05


@pytest.mark.slow
def test_the_losses_of_tokens_are_those_after_the_prompt(trained):
    """Their sums are those of the trace."""
    trace, losses = losses_of(trained["state"].trace)
    firsts = np.cumsum(losses.n_tokens) - losses.n_tokens
    np.testing.assert_allclose(np.add.reduceat(losses.nll, firsts, axis=1), trace.nll, rtol=1e-12)
    assert (losses.nll > 0).all()


@pytest.mark.slow
def test_the_exported_model_has_the_losses_of_the_trace(trained):
    """Worked out with transformers, text after text, as a stranger to this library would."""
    state, folder = trained["state"], trained["folder"] / "exported"
    manifest, trace = manifests.read(state.manifest), traces.read(state.trace)
    export_run(folder, manifest, load_file(state.weights), trace, trained["strings"], MODELS)
    # No lowest loss per token is known of a text.
    card = (folder / "README.md").read_text()
    assert re.search(r"\| strings it was trained on \| \d+ \| [\d.]+ \[.*\] \|  \|", card), card
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    about = json.loads((folder / "palimpsest.json").read_text())
    start, end = about["tokens"]["start"], about["tokens"]["end"]
    assert (start, end) == (tokenizer.bos_token_id, tokenizer.eos_token_id)
    corpus = trained["run"].corpus
    strings = trained["strings"].set_index("string_id").loc[trace.string_ids]
    for place, text in enumerate(strings["text"]):
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ids = [start, *encoded.input_ids, *([end] if about["predict_end"] else [])]
        with torch.no_grad():
            log_p = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        n = corpus.prompts.get(text, 0)
        first = sum(stop <= n for _, stop in encoded.offset_mapping)
        nll = -sum(log_p[at, ids[at + 1]].item() for at in range(first, len(ids) - 1))
        assert trace.n_tokens[place] == len(ids) - 1 - first
        assert trace.nll[-1, place] == pytest.approx(nll, abs=1e-4)
