"""Datasets as folders: what other programs read is what the table of strings holds."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from helpers.commands import MODELS
from helpers.programs import program
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.exported import CONFORMS_TO, NO_LICENCE, _size, export_dataset
from palimpsest.datasets.sampling import Sampler
from palimpsest.jobs.export import export
from palimpsest.languages import load
from palimpsest.models import read_models
from palimpsest.models.alphabets import Alphabet
from palimpsest.models.build import build as build_model

ROOT = Path(__file__).parents[2]
L2 = ROOT / "config/languages/L2.pcfg"
NAMED = {"language": "L2", "size": 12, "seed": 0, "variant": "base"}


def exported(folder, predict_end=False):
    """The strings of a small dataset, and its folder."""
    sampler = Sampler("L2", GrammarCorpus.from_file(L2), 0)
    strings = build(sampler, "base", 12, 20, predict_end)
    export_dataset(folder, strings, str(L2), **NAMED, predict_end=predict_end)
    return strings, folder


def test_a_split_is_a_table_of_its_strings(tmp_path):
    strings, folder = exported(tmp_path / "made")
    for split, rows in strings.groupby("split"):
        found = pd.read_parquet(folder / f"data/{split}.parquet")
        assert found["text"].tolist() == rows["text"].tolist()
        assert np.array_equal(found["log_prob"], rows["log_prob"])
        assert not found.isna().all().any()
        assert "group" not in found  # of these strings, none has one
    assert (folder / "grammar.pcfg").read_bytes() == L2.read_bytes()


def test_the_card_names_every_file_and_no_licence(tmp_path):
    _, folder = exported(tmp_path / "made")
    _, head, text = (folder / "README.md").read_text().split("---\n", 2)
    head = yaml.safe_load(head)
    (config,) = head["configs"]
    for entry in config["data_files"]:
        rows = pq.read_metadata(folder / entry["path"]).num_rows
        assert f"| {entry['split']} | {rows} |" in text
    assert "license" not in head
    assert NO_LICENCE in text
    assert head["size_categories"] == ["n<1K"]
    assert str(tmp_path) not in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("n", "said"), [(999, "n<1K"), (1000, "1K<n<10K"), (99_999, "10K<n<100K"), (10**6, "1M<n<10M")]
)
def test_categories_of_sizes(n, said):
    assert _size(n) == said


def test_croissant_has_the_fields_that_the_specification_requires(tmp_path):
    strings, folder = exported(tmp_path / "made")
    found = json.loads((folder / "croissant.json").read_text())
    assert found["@type"] == "sc:Dataset"
    assert found["conformsTo"] == CONFORMS_TO
    for name in ("@context", "name", "description", "version", "datePublished"):
        assert found[name], name
    files = {file["@id"]: file for file in found["distribution"]}
    for file in files.values():
        content = (folder / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert file["contentSize"] == f"{len(content)} B"
    assert {one["@id"] for one in found["recordSet"]} == set(strings["split"])
    for one in found["recordSet"]:
        for field in one["field"]:
            assert field["source"]["fileObject"]["@id"] in files
            assert field["description"]
            assert field["dataType"].startswith("sc:")


def test_a_task_ends_its_strings_if_models_learn_their_end(tmp_path):
    for predict_end, end in ((False, ""), (True, " <end>")):
        strings, folder = exported(tmp_path / str(predict_end), predict_end)
        lines = (folder / "lm-eval/train.jsonl").read_text().splitlines()
        texts = strings.loc[strings["split"] == "train", "text"]
        assert [json.loads(line)["text"] for line in lines] == [text + end for text in texts]
    assert "pretrained=MODEL,add_bos_token=False" in (folder / "README.md").read_text()
    task = yaml.safe_load((folder / "lm-eval/palimpsest_L2_train.yaml").read_text())
    assert task["dataset_kwargs"]["data_files"] == {"test": "train.jsonl"}


READERS = """
import json, sys
import mlcroissant
folder, model = sys.argv[1:]
read = {}
dataset = mlcroissant.Dataset(f"{folder}/croissant.json")
assert not dataset.metadata.issues.errors, dataset.metadata.issues.errors
for one in dataset.metadata.record_sets:
    records = dataset.records(one.id)
    read[one.id] = [record[f"{one.id}/text"].decode() for record in records]

import lm_eval
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
lm = HFLM(pretrained=model, device="cpu", batch_size=8, dtype="float32", add_bos_token=False)
found = lm_eval.simple_evaluate(
    lm, tasks=["palimpsest_L2_train"], task_manager=TaskManager(include_path="."), bootstrap_iters=0
)
print(json.dumps({"read": read, "results": found["results"]["palimpsest_L2_train"]}))
"""


@pytest.mark.costly
def test_programs_of_others_read_the_folders(tmp_path):
    """Croissant's own library reads all strings; the harness finds the loss that we find."""
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    if uv := program("uv"):  # faster, where it is installed
        pip = [uv, "pip", "install", "--python", sys.executable]
    file = ROOT / "requirements-exports.txt"
    alone = ["--quiet", "--no-deps", "--target", site, "--requirement", file]
    subprocess.run([*pip, *alone], check=True)
    strings, folder = exported(tmp_path / "made", predict_end=True)
    alphabet = Alphabet(load("L2").terminals)
    row = read_models(MODELS)["opt-1.3b"]
    model = build_model(row, "twin", 2 + len(alphabet.terminals), 0, torch.float32).eval()
    weights = {name: value.detach().clone() for name, value in model.named_parameters()}
    export(tmp_path / "model", row, "twin", alphabet, weights, {})
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", READERS, folder, tmp_path / "model"],
        cwd=folder / "lm-eval",
        env={**os.environ, **offline, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for split, rows in strings.groupby("split"):
        assert found["read"][split] == rows["text"].tolist()

    tokens = json.loads((tmp_path / "model/palimpsest.json").read_text())["tokens"]
    nll, n_tokens = 0.0, 0
    for text in strings.loc[strings["split"] == "train", "text"]:
        ids = [tokens["terminals"][symbol] for symbol in text.split()] + [tokens["end"]]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[tokens["start"], *ids[:-1]]])).logits[0]
        nll += torch.nn.functional.cross_entropy(logits, torch.tensor(ids), reduction="sum").item()
        n_tokens += len(ids)
    theirs = np.log(found["results"]["word_perplexity,none"])
    assert theirs == pytest.approx(nll / n_tokens, abs=1e-4)
    assert nll / n_tokens > 1  # of a model with random weights, not 0
