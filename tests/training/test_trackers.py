"""Trackers show what a trace says, and change nothing of it."""

import importlib.util
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pandas as pd
import pytest

from helpers.commands import GRAMMAR, MODELS, ROOT, finetune
from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.models import read_models
from palimpsest.sections import KINDS
from palimpsest.training import trackers
from palimpsest.training.fleet import FleetEngine
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Run
from palimpsest.training.trackers import Trackers, named

HEADER, CHECKSUM = 12, 4  # bytes of a record before and after its data
SEEDS = (0, 1)
MODEL = "llama-3.2-1b-twin"


def needs(package: str):
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package}: see requirements-trackers.txt")


@pytest.fixture(scope="module")
def datasets(tmp_path_factory) -> list[Path]:
    """The datasets of two seeds; one process trains on both, one after another."""
    folder, grammar = tmp_path_factory.mktemp("data"), GrammarCorpus.from_file(GRAMMAR)
    paths = [folder / f"seed{seed}" / "strings.parquet" for seed in SEEDS]
    for seed, path in zip(SEEDS, paths, strict=True):
        made = build(Sampler("L2", grammar, seed), "base", 16, 8, predict_end=False)
        tables.write(path, made, KINDS["strings"])
    return paths


def trained(
    folder: Path, datasets: list[Path], names: str, engine: str = "deepspeed"
) -> subprocess.CompletedProcess:
    """Train on all datasets with some trackers."""
    command = finetune(
        engine=engine,
        dataset=datasets,
        trace=[folder / f"seed{seed}/trace.parquet" for seed in SEEDS],
        manifest=[folder / f"seed{seed}/manifest.json" for seed in SEEDS],
        state=folder / "results/.state",
        trackers=names,
    )
    environment = {name: value for name, value in os.environ.items() if name != "WANDB_MODE"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def traces_in(folder: Path) -> pd.DataFrame:
    """The traces of both runs."""
    paths = (folder / f"seed{seed}/trace.parquet" for seed in SEEDS)
    return tables.read_all(paths, KINDS["trace"])


@pytest.fixture(scope="module", params=["deepspeed", "fleet"])
def engine(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def plain(datasets, engine, tmp_path_factory) -> pd.DataFrame:
    """The traces of runs without trackers."""
    folder = tmp_path_factory.mktemp("plain")
    trained(folder, datasets, "none", engine)
    assert not (folder / "results/trackers").exists()
    return traces_in(folder)


def scalars(folder: Path) -> pd.DataFrame:
    """The values in TensorBoard's files of a folder: columns `step`, `tag` and `value`."""
    from tensorboardX.proto.event_pb2 import Event

    rows = []
    for path in folder.glob("events.out.tfevents.*"):
        data = path.read_bytes()
        while data:
            size = int.from_bytes(data[:8], "little")
            event = Event.FromString(data[HEADER : HEADER + size])
            rows += [(event.step, one.tag, one.simple_value) for one in event.summary.value]
            data = data[HEADER + size + CHECKSUM :]
    return pd.DataFrame(rows, columns=["step", "tag", "value"])


@pytest.mark.slow
@needs("tensorboardX")
def test_tensorboard_shows_the_losses_of_the_traces(datasets, plain, engine, tmp_path):
    """Every run has its own losses and rates; the traces are the same to the last bit."""
    trained(tmp_path, datasets, "tensorboard", engine)
    pd.testing.assert_frame_equal(traces_in(tmp_path), plain)
    for seed, dataset in zip(SEEDS, datasets, strict=True):
        run = tmp_path / f"results/trackers/default/{MODEL}/L2/n16-seed{seed}/base/palimpsest"
        found = scalars(run)
        assert not found.duplicated(["step", "tag"]).any()
        shown = found.pivot_table(index="step", columns="tag", values="value")
        assert shown.index.tolist() == [0, 1, 2]
        strings = tables.read(dataset, KINDS["strings"]).set_index("string_id")
        for tag, counts in (("train_loss", "count"), ("test_loss", "test_count")):
            for epoch, rows in plain[plain["seed"] == seed].groupby("epoch"):
                of_epoch = rows.set_index("string_id")
                n = strings.loc[of_epoch.index, counts]
                loss = (n * of_epoch["nll"]).sum() / (n * of_epoch["n_tokens"]).sum()
                assert shown.loc[epoch, tag] == pytest.approx(loss, rel=1e-6)
        assert shown.loc[0, "learning_rate"] == 0
        assert shown.loc[1, "learning_rate"] > shown.loc[2, "learning_rate"] > 0


@pytest.mark.slow
@needs("wandb")
def test_weights_and_biases_stays_offline(datasets, plain, engine, tmp_path):
    trained(tmp_path, datasets, "wandb", engine)
    pd.testing.assert_frame_equal(traces_in(tmp_path), plain)
    runs = list((tmp_path / "results/trackers/default/wandb").glob("offline-run-*"))
    assert len(runs) == len(SEEDS)
    assert all(list(run.glob("*.wandb")) for run in runs)


def test_a_missing_package_is_one_line_with_the_remedy(monkeypatch):
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"tensorboardX.*pip install -r requirements-trackers.txt"):
        Trackers(["tensorboard"])
    assert (ROOT / "requirements-trackers.txt").is_file()


def test_wandb_is_offline_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: name)
    for given, found in ((None, "offline"), ("online", "online")):
        monkeypatch.delenv("WANDB_MODE", raising=False)
        if given:
            monkeypatch.setenv("WANDB_MODE", given)
        Trackers(["wandb"])
        assert os.environ["WANDB_MODE"] == found


class Failing:
    """An accelerator whose trackers cannot write."""

    trackers = ()

    project_configuration = SimpleNamespace(logging_dir=None)

    def init_trackers(self, *given):
        """The run begins well."""

    def log(self, values, step):
        raise OSError("No space left on device")


def test_a_tracker_that_fails_does_not_end_a_training(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: name)
    followed = Trackers(["tensorboard"], tmp_path)
    keys = {"model": "m", "language": "L", "size": 1, "seed": 0, "variant": "base"}
    followed.begin(Failing(), keys, {})
    for epoch in (0, 1):
        followed.show(epoch, {"train_loss": 1.0})
    followed.end()
    assert [record.message for record in caplog.records] == [
        "trackers: No space left on device; the training goes on without them"
    ]


class Recording(Trackers):
    """Trackers that keep what they are given."""

    shown: ClassVar[list] = []

    def show_finished(self, keys, settings, curve):
        self.shown.append((keys, settings, curve))


def test_a_fleet_shows_each_run_as_its_trace_has_it(datasets, tmp_path):
    """Without any package of trackers; a run without one string is not shown."""
    row = read_models(MODELS)["llama-3.2-1b"]
    recipe = Recipe(learning_rate=3e-3, epochs=2, batch_size=8)
    corpus = GrammarCorpus.from_file(GRAMMAR)
    runs = [Run(MODEL, row, "twin", corpus, str(path), recipe) for path in datasets]
    left_out = tables.read(datasets[0], KINDS["strings"])["string_id"].iloc[0]
    runs.append(replace(runs[0], left_out=left_out))
    engine = FleetEngine(tmp_path / "state", 1, 2**33, trackers=Recording())
    Recording.shown.clear()
    engine.train(runs, lambda name: lambda *progress: None)
    assert sorted(keys["seed"] for keys, _, _ in Recording.shown) == [0, 1]
    for keys, settings, curve in Recording.shown:
        assert settings["epochs"] == 2
        strings = tables.read(datasets[keys["seed"]], KINDS["strings"]).set_index("string_id")
        trace = tables.read(engine.state(runs[keys["seed"]]).trace, KINDS["trace"])
        assert sorted(curve) == [0, 1, 2]
        for epoch, rows in trace.groupby("epoch"):
            of_epoch = rows.set_index("string_id")
            n = strings.loc[of_epoch.index, "count"]
            loss = (n * of_epoch["nll"]).sum() / (n * of_epoch["n_tokens"]).sum()
            assert curve[epoch]["train_loss"] == pytest.approx(loss, rel=1e-6)
        assert curve[0]["learning_rate"] == 0
        assert curve[1]["learning_rate"] > curve[2]["learning_rate"] > 0


def test_names_of_trackers_are_read():
    assert named("none") == ()
    assert named("tensorboard,wandb") == ("tensorboard", "wandb")
