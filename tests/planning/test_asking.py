"""What the plan says of models that are asked and not trained."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from helpers.experiments import DEFAULT, ROOT, experiment
from palimpsest.corpora.records_corpus import BYTES_OF_TOKEN
from palimpsest.models import read_models
from palimpsest.planning.asking import lines, parameters_of, seconds
from palimpsest.planning.shapes import Hardware
from palimpsest.section import Asked

NULL = dict.fromkeys(["memorisation", "unlearning", "profiles", "density", "information", "audit"])


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def hardware():
    return Hardware.of(experiment(DEFAULT).config["hardware"])


@pytest.fixture
def folder(tmp_path):
    """A model of 32 weights in two files."""
    (made := tmp_path / "model").mkdir()
    save_file({"a": np.zeros((3, 4), np.float32)}, made / "model-1.safetensors")
    save_file({"b": np.zeros(20, np.float16)}, made / "model-2.safetensors", {"format": "pt"})
    return made


def asked_by(section, **block):
    return experiment(DEFAULT, command_line={**NULL, **block}).asked[section]


def test_the_size_of_a_model_is_that_of_its_row_or_of_its_files(folder):
    models = read_models("config/models.tsv")
    row = models["opt-1.3b"]
    assert parameters_of("opt-1.3b", models) == row.parameters
    assert parameters_of(f"{row.id}@step5", models) == row.parameters
    assert parameters_of(str(folder), models) == 32
    assert parameters_of("some/thing", models) is None
    for path in folder.iterdir():
        path.write_bytes(b"broken")
    assert parameters_of(str(folder), models) is None


def test_an_adapter_alone_does_not_say_how_large_its_model_is(tmp_path):
    save_file({"a": np.zeros(3, np.float32)}, tmp_path / "adapter_model.safetensors")
    assert parameters_of(str(tmp_path), {}) is None


def test_the_time_is_that_of_forward_passes(hardware):
    """Each takes 2 operations per parameter and token, at the share of the peak that is reached."""
    one, n = Asked("a", 1e6, "file"), 10**9
    by_hand = 30 + 2 * n / 1e9 + 2 * n * 1e6 / (hardware.gpu_teraflops * 1e12 * 0.3)
    assert hardware.utilisation == 0.3
    assert seconds(one, n, hardware) == pytest.approx(by_hand)
    longer = seconds(Asked("a", 1e6, "file", passes=3), n, hardware)
    assert longer - by_hand == pytest.approx(2 * (by_hand - 32))


def test_what_is_not_known_is_said_and_not_guessed(hardware, folder, tmp_path):
    """What is finished costs nothing more."""
    (tmp_path / "made").touch()
    file = str(tmp_path / "file")
    models = {
        "records": [
            Asked(str(folder), 1000.0, file),
            Asked("some/thing", 1000.0, file),
            Asked("another", 1000.0, str(tmp_path / "made")),
        ],
        "density": [Asked(str(folder), None, file)],
    }
    assert lines(models, {}, hardware) == [
        ("records", "3", "2", "2,000", "1 min, 1 not known"),
        ("density", "1", "1", "not known", "not known"),
    ]


def test_checkpoints_are_asked_about_all_records():
    corpora = {"mine": "config/records/people.jsonl"}
    checkpoint = {"corpus": "mine", "model": "opt-1.3b", "reference": "opt-2.7b"}
    found = asked_by("records", corpora=corpora, records={"checkpoints": {"a": checkpoint}})
    lines_of_file = (ROOT / corpora["mine"]).read_text().splitlines()
    texts = [json.loads(line)["text"] for line in lines_of_file]
    assert [one.model for one in found] == ["facebook/opt-1.3b", "facebook/opt-2.7b"]
    n_bytes = sum(len(text.encode()) for text in texts)
    assert [one.tokens for one in found] == pytest.approx([n_bytes / BYTES_OF_TOKEN] * 2, rel=0.05)


def test_each_checkpoint_of_a_panel_is_asked_about_the_drawn_strings(tmp_path):
    """Two batches of three strings between two checkpoints, and five for validation."""
    np.save(tmp_path / "tokens.npy", np.ones((100, 8), int))
    np.save(tmp_path / "steps.npy", np.arange(100) // 10)
    panel = {
        "model": "opt-1.3b",
        "checkpoints": ["step0", "step4", "step8"],
        "tokens": str(tmp_path / "tokens.npy"),
        "steps": str(tmp_path / "steps.npy"),
    }
    draws = {"batches": 2, "instances": 3, "validation": 5}

    def found(**more):
        block = {"models": [], "exact": None, "panels": {"mine": {**panel, **more}}}
        return asked_by("profiles", profiles=block)

    assert [one.model for one in found()] == [f"facebook/opt-1.3b@step{n}" for n in (0, 4, 8)]
    assert {one.tokens for one in found()} == {800}
    assert {one.tokens for one in found(**draws)} == {8 * (2 * 2 * 3 + 5)}


def test_models_of_own_texts_are_asked_about_texts_that_no_job_has_read():
    text = {
        "corpus": "config/texts/example-corpus.jsonl",
        "queries": "config/texts/example-queries.jsonl",
        "model": "opt-1.3b",
    }
    block = {"leakage": None, "support": None, "texts": {"mine": text}}
    assert [(one.model, one.tokens) for one in asked_by("density", density=block)] == [
        ("facebook/opt-1.3b", None)
    ]
    block["texts"]["mine"] = {**text, "embedding": "all-minilm-l6-v2", "model": None}
    (found,) = asked_by("density", density=block)
    assert found.model.endswith("all-minilm-l6-v2")


def test_encoders_are_fine_tuned_for_each_seed_and_variant():
    study = {
        "model": "all-minilm-l6-v2",
        "language": "biographies",
        "label": "WORK",
        "words": {"nurse": "green", "surgeon": "purple", "teacher": "orange", "engineer": "yellow"},
        "size": 10,
        "tests": 60,
        "epochs": 2,
    }
    block = {"models": [], "encoders": {"mine": study}, "betas": [0.5]}
    block |= {"alphas": [0, 1], "neighbours": 3, "seeds": [0, 1]}
    made = experiment(DEFAULT, command_line={**NULL, "information": block}, targets=["plan"])
    assert not made.refused, made.refused
    found = made.asked["information"]
    assert len(set(found)) == 2 * 4  # two alphas, one beta, and no words
    length = made.settings.corpus("biographies").expected_length()
    # 10 texts are read in two epochs, forwards and backwards, and 60 once.
    assert [one.tokens for one in found] == pytest.approx([length * (2 * 10 * 3 + 60)] * 8)
