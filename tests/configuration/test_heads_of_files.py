"""Files of a user's own are refused where the configuration is read, by their heads alone."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from safetensors.numpy import save_file

from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest.information.activation_files import read_arrays

TEXT = {"window": 5, "stride": 5}


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


def lines(*rows) -> str:
    return "\n".join(map(json.dumps, rows))


def panel(folder: Path, **columns):
    (folder / "a.csv").write_text("unit,time,cohort,score\na,1,,2.5\n")
    return {"profiles": {"panels": {"mine": {"file": str(folder / "a.csv"), **columns}}}}


def activations(folder: Path, name: str, write, **other):
    file = folder / f"activations{name}"
    write(file)
    mine = {"mine": str(file)} | {key: str(folder / value) for key, value in other.items()}
    return {"information": {"activations": mine}}


def losses(folder: Path, **columns):
    (folder / "a.csv").write_text("id,checkpoint,nll,loss_without\na,1,2.5,3\n")
    return {"records": {"losses": {"mine": {"file": str(folder / "a.csv"), **columns}}}}


def texts(folder: Path, *rows, **values):
    (folder / "a.jsonl").write_text(lines(*rows))
    (folder / "b.txt").write_text("some words\n")
    mine = {"corpus": str(folder / "a.jsonl"), "queries": str(folder / "b.txt"), **TEXT, **values}
    return {"density": {"texts": {"mine": mine}}}


def neighbours(folder: Path):
    (folder / "near.csv").write_text("query,neighbor,distance\na,b,1\n")
    return texts(folder, {"text": "a b c"}, found_neighbours=str(folder / "near.csv"))


def records(folder: Path, *rows, **columns):
    (folder / "a.jsonl").write_text(lines(*rows))
    return {"corpora": {"mine": {"file": str(folder / "a.jsonl"), **columns}}}


def of_checkpoints(folder: Path, **files):
    names = [str(folder / f"step{step}") for step in (1, 2)]
    for name in names:
        Path(name).mkdir()
    asked = {"checkpoints": names} | {key: str(folder / file) for key, file in files.items()}
    return {"profiles": {"panels": {"mine": asked}}}


def checkpoints(folder: Path):
    (folder / "a.csv").write_text("unit,text\na,b\n")
    return of_checkpoints(folder, texts="a.csv")


def tokens(folder: Path):
    np.save(folder / "tokens.npy", np.zeros((4, 3)))
    np.save(folder / "steps.npy", np.zeros(4))
    return of_checkpoints(folder, tokens="tokens.npy", steps="steps.npy")


def npz(**arrays):
    return lambda file: np.savez(file, **arrays)


UNEQUAL = {"first": np.zeros((5, 2)), "second": np.zeros((4, 2))}
OF_LISTS = pd.DataFrame({"layer": [[1.0, 2.0]] * 3, "name": ["a", "b", "c"]})

WRONG = {
    "a panel without its outcome": (
        panel,
        "profiles/panels/mine: {0}/a.csv:1: has no column 'outcome' (did you mean 'score'?); it "
        "has: unit, time, cohort, score; a panel has the columns unit, time, cohort, outcome, or "
        "name yours in the configuration: {{file: mine.csv, unit: document, time: step}}",
    ),
    "a panel without another outcome": (
        lambda folder: panel(folder, outcome="score", other_outcomes=["rank"]),
        "profiles/panels/mine: {0}/a.csv:1: has no column 'rank' for 'outcome'",
    ),
    "a panel of checkpoints without steps": (
        checkpoints,
        "profiles/panels/mine/texts: {0}/a.csv:1: has no column 'step'; it has: unit, text; a "
        "table of strings has the columns unit, text, step",
    ),
    "tokens that are no whole numbers": (
        tokens,
        "profiles/panels/mine/tokens: {0}/tokens.npy: is an array of float64 with the shape "
        "(4, 3), and must be one of whole numbers",
    ),
    "losses without a loss": (
        losses,
        "records/losses/mine: {0}/a.csv:1: has no column 'loss'; it has: id, checkpoint, nll, "
        "loss_without; a table of losses has the columns id, checkpoint, loss, loss_without, or "
        "name yours in the configuration: {{id: key, checkpoint: step, loss: nll}}",
    ),
    "arrays of unequal lengths": (
        lambda folder: activations(folder, ".npz", npz(**UNEQUAL)),
        "information/activations/mine: {0}/activations.npz: array 'second' has 4 samples, and "
        "{0}/activations.npz: array 'first' has 5; all arrays of a file need the same samples",
    ),
    "arrays of unequal lengths in safetensors": (
        lambda folder: activations(folder, ".safetensors", lambda file: save_file(UNEQUAL, file)),
        "information/activations/mine: {0}/activations.safetensors: array 'second' has 4 samples",
    ),
    "an array of another shape": (
        lambda folder: activations(folder, ".npz", npz(layer=np.zeros(5))),
        "information/activations/mine: {0}/activations.npz: array 'layer' is float64[5] and must "
        "be float[samples, neurons]",
    ),
    "no arrays": (
        lambda folder: activations(folder, ".npz", npz()),
        "information/activations/mine: {0}/activations.npz: holds no arrays; save one "
        "float[samples, neurons] for each layer",
    ),
    "a broken file": (
        lambda folder: activations(folder, ".npz", lambda file: file.write_bytes(b"PK")),
        "information/activations/mine: {0}/activations.npz: is not a complete .npz file of arrays "
        "of numbers; save it with numpy.savez",
    ),
    "a table without lists": (
        lambda folder: activations(folder, ".parquet", OF_LISTS[["name"]].to_parquet),
        "information/activations/mine: {0}/activations.parquet: holds no arrays; save one",
    ),
    "models with other samples": (
        lambda folder: activations(
            folder,
            ".npz",
            lambda file: [npz(a=np.ones((5, 2)))(file), OF_LISTS.to_parquet(folder / "b.parquet")],
            other="b.parquet",
        ),
        "information/activations: {0}/b.parquet: has 3 samples, and {0}/activations.npz has 5; "
        "measures depend on their number, so models of a group need the same samples: save these, "
        "or name another group",
    ),
    "texts under another field": (
        lambda folder: texts(folder, {"body": "a b"}),
        "density/texts/mine/corpus: {0}/a.jsonl:1: has no column 'text'; it has: body; a text has "
        "the columns text, or name yours in the configuration: field: body",
    ),
    "a text that is missing": (
        lambda folder: texts(folder, {"text": "a b"}, {"body": "a b"}),
        "density/texts/mine/corpus: {0}/a.jsonl:2: 'text' is null or missing; must be a text: mend "
        "or delete the row",
    ),
    "neighbours under another name": (
        neighbours,
        "density/texts/mine/found_neighbours: {0}/near.csv:1: has no column 'neighbour' (did you "
        "mean 'neighbor'?); it has: query, neighbor, distance",
    ),
    "records under another field": (
        lambda folder: records(folder, {"body": "a b"}),
        "corpora/mine: {0}/a.jsonl:1: has no column 'text'; it has: body; a table of records has "
        "the columns text, or name yours in the configuration: {{text: body, id: key}}",
    ),
    "questions without choices": (
        lambda folder: records(folder, {"question": "a?", "answer": 1}, form="questions"),
        "corpora/mine: {0}/a.jsonl:1: has no column 'choices'",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_file_is_refused_before_any_job(wrong, tmp_path):
    """The message names the user's file of the configuration, the key and the file."""
    asked, said = WRONG[wrong]
    config = tmp_path / "mine.yaml"
    config.write_text(yaml.safe_dump(asked(tmp_path)))
    found = message(lambda: experiment(DEFAULT, config))
    assert found.startswith(f"{config}: {said.format(tmp_path)}"), found
    assert "\n" not in found


RIGHT = {
    "a panel": lambda folder: panel(folder, outcome="score", other_outcomes=["time"]),
    "losses": lambda folder: losses(folder, loss="nll"),
    "activations": lambda folder: activations(
        folder, ".npz", npz(a=np.ones((5, 2)), b=np.ones((5, 9)))
    ),
    "lists": lambda folder: activations(folder, ".parquet", OF_LISTS.to_parquet),
    "texts": lambda folder: texts(folder, {"body": "a b"}, field="body"),
    "records": lambda folder: records(folder, {"body": "a b"}, text="body"),
}


@pytest.mark.parametrize("right", RIGHT)
def test_a_file_with_what_is_needed_is_taken(right, tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text(yaml.safe_dump(RIGHT[right](tmp_path)))
    assert experiment(DEFAULT, config)


def test_arrays_are_not_read(tmp_path):
    """The head of a file is enough: here, the numbers themselves are damaged."""
    file = tmp_path / "activations.npz"
    np.savez(file, layer=np.ones((50, 20)))
    whole = bytearray(file.read_bytes())
    whole[2000] ^= 1
    file.write_bytes(whole)
    assert "is not a complete .npz file" in message(lambda: read_arrays(file))
    config = tmp_path / "mine.yaml"
    config.write_text(yaml.safe_dump({"information": {"activations": {"mine": str(file)}}}))
    assert experiment(DEFAULT, config)


def test_no_column_is_proposed_that_holds_something_else(tmp_path):
    """`loss` is near `loss_without`, which has its own meaning."""
    found = message(lambda: experiment(DEFAULT, command_line=losses(tmp_path)))
    assert "did you mean" not in found
    named = losses(tmp_path, loss_without="nll")
    assert "(did you mean 'loss_without'?)" in message(
        lambda: experiment(DEFAULT, command_line=named)
    )
