"""Sets of checkpoints in the configuration: names, files, and mistakes, before any job."""

import json
import re
import shutil

import pytest
import yaml

from helpers.experiments import DEFAULT, ROOT, experiment, message
from helpers.tiny_language_models import write
from palimpsest.audit.checkpoints.sets import checkpoints, sets, short_names
from palimpsest.audit.checkpoints.weights import same_weights

MINIMAL = ROOT / "config/minimal/checkpoints.yaml"
FOLDERS = ("full", "retain", "npo")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """What a user has: folders that another program saved, and records."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "config").symlink_to(ROOT / "config")
    for seed, name in enumerate(FOLDERS):
        write(folder / name, seed=seed)
    rows = [
        {"question": "Who?", "answer": f"Ann {place}", "split": split}
        for place, split in enumerate(("forget", "retain", "holdout"))
    ]
    (folder / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(autouse=True)
def _in_the_project(project, monkeypatch):
    """Paths of a configuration are relative to where Snakemake runs."""
    monkeypatch.chdir(project)


def asked(**changes):
    """The minimal configuration, with some keys of its set changed."""
    config = yaml.safe_load(MINIMAL.read_text())
    one = {**config["audit"]["checkpoints"]["forget"], **changes}
    return {"audit": {"checkpoints": {"forget": one}}}


def said(**changes):
    return message(lambda: experiment(DEFAULT, MINIMAL, command_line=asked(**changes)))


def test_the_minimal_file_asks_for_a_set_and_trains_nothing():
    assert len(MINIMAL.read_text().splitlines()) < 15
    found = experiment(DEFAULT, MINIMAL)
    assert (found.requests, found.notes, found.refused) == ([], [], {})
    names = {path.removeprefix("results/audit/mine/") for path in found.outputs["audit"]}
    assert {f"checkpoints/{name}/scores.parquet" for name in FOLDERS} < names
    assert {"forget/gaps.parquet", "forget/open_unlearning.json"} < names


def test_the_plan_counts_models_that_are_asked():
    """Nothing is trained, and yet asking the models takes minutes."""
    plan = experiment(DEFAULT, MINIMAL, planned=["plan", "audit"]).plan_summary
    assert "trains nothing" in plan
    (line,) = [line for line in plan.splitlines() if line.startswith("audit")]
    assert re.fullmatch(r"audit +3 +3 +[\d,]+  2 min", line), "three jobs of half a minute"
    assert "without training" not in experiment(DEFAULT, planned=["plan", "audit"]).plan_summary


def test_the_example_of_the_page_is_allowed(tmp_path, monkeypatch):
    page = (ROOT / "docs/checkpoints.md").read_text()
    records, config = (
        re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)[0] for language in ("json", "yaml")
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").symlink_to(ROOT / "config")
    (tmp_path / "records.jsonl").write_text(records)
    (tmp_path / "mine.yaml").write_text(config)
    for seed, name in enumerate(("full", "retain", "npo-1", "npo-2")):
        write(tmp_path / name, seed=seed)
    found = experiment(DEFAULT, "mine.yaml")
    assert (found.requests, found.notes, found.refused) == ([], [], {})
    assert found.settings.corpus("mine").records.perturbed == [("Oslo.", "Rome."), ()]
    assert len(checkpoints(found.settings)) == 4


def test_a_checkpoint_of_two_sets_is_asked_once():
    config = asked()
    config["audit"]["checkpoints"]["again"] = {
        **config["audit"]["checkpoints"]["forget"],
        "original": ["./full"],
    }
    settings = experiment(DEFAULT, MINIMAL, command_line=config).settings
    assert [name for _, name in checkpoints(settings)] == list(FOLDERS)
    assert sets(settings)["again"].models["original"] == {"full": "full"}


def test_rounded_weights_make_other_checkpoints_of_the_same_folders():
    config = asked()
    config["audit"]["checkpoints"]["rounded"] = {
        **config["audit"]["checkpoints"]["forget"],
        "bits": 4,
    }
    found = checkpoints(experiment(DEFAULT, MINIMAL, command_line=config).settings)
    assert [name for _, name in found] == [*FOLDERS, *(f"{name}-4bit" for name in FOLDERS)]
    assert found["mine", "npo-4bit"].bits == 4


def test_names_are_as_many_parts_of_a_path_as_tell_it_from_others():
    paths = ["out/npo", "out/seed0/ga", "out/seed1/ga", "an/owner", "a b/ü"]
    names = ["npo", "seed0-ga", "seed1-ga", "owner", "model"]
    assert short_names(paths) == dict(zip(paths, names, strict=True))
    assert len(set(short_names(["a/b", "a-b", "x/a/b"]).values())) == 3


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"original": []},
            "forget/original: has no model; name the folder of a model before it unlearned",
        ),
        (
            {"retrained": []},
            "forget/retrained: has no model; name the folder of a model that was trained without",
        ),
        (
            {"unlearned": []},
            "forget/unlearned: has no model; name the folder of a model that unlearned",
        ),
        ({"unlearned": ["nowhere/"]}, "forget/unlearned[0]: no such folder: nowhere/"),
        (
            {"unlearned": ["full"]},
            "forget/unlearned[0]: full stands in audit/checkpoints/forget/or",
        ),
        ({"corpus": "other"}, "forget/corpus: 'other' is not in the block corpora, which has mine"),
        ({"template": "no places"}, "must be a text that has {prompt}, and ends with {answer}"),
        ({"template": "{prompt}{answer}", "chat": {}}, "at most one of template and chat"),
        ({"answer_tokens": 0}, "answer_tokens"),
    ],
)
def test_a_mistake_in_a_set_is_one_line(changes, expected):
    assert expected in said(**changes)


def test_records_without_a_forget_set_are_refused(project):
    rows = [{"question": "Who?", "answer": "Ann", "split": "retain"}, {"answer": "x"}]
    for place, name in enumerate(("retained", "plain")):
        (project / f"{name}.jsonl").write_text(json.dumps(rows[place]) + "\n")
        over = {"corpora": {"mine": {"file": f"{name}.jsonl", "text": "answer"}}}
        found = message(lambda over=over: experiment(DEFAULT, command_line={**asked(), **over}))
        assert "no record of mine is in the split forget" in found


def test_one_checkpoint_is_asked_in_one_way():
    config = asked()
    config["audit"]["checkpoints"]["chat"] = {
        **config["audit"]["checkpoints"]["forget"],
        "chat": {},
    }
    found = message(lambda: experiment(DEFAULT, MINIMAL, command_line=config))
    assert "audit/checkpoints/chat: asks full otherwise than forget does" in found


def test_equal_weights_under_two_names_are_refused(project):
    """As in published checkpoints, of which some are the same file."""
    shutil.copytree(project / "full", project / "copy", dirs_exist_ok=True)
    assert "copy has the same weights as full, byte for byte" in said(unlearned=["copy/"])
    file = sorted((project / "copy").glob("*.safetensors"))[-1]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1  # the last byte, which is at none of the places that are looked at first
    file.write_bytes(content)
    assert not same_weights(project / "copy", project / "full")
    assert same_weights(project / "full", project / "full")
    assert not same_weights(project / "full", project / "nowhere")
