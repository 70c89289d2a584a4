"""Jobs that ask trained models: a third kind of job needs its own function and nothing else."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from helpers import toy_job
from helpers.commands import GRAMMAR, MODELS, RECIPE, SCRIPTS, command
from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.fingerprint import of_all_code
from palimpsest.jobs import inventory, model_queries
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.delivery import Files
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.jobs.model_queries import ModelQuery
from palimpsest.models import generate
from palimpsest.regimes import Replicates
from palimpsest.sections import KINDS
from palimpsest.tables.kinds import Column, Kind
from palimpsest.tables.trace import TRACE
from palimpsest.training.recipe import Recipe
from palimpsest.training.state import StateFolder
from palimpsest.unlearning.forgetting_data import build_forgetting

MODEL = "pythia-1b-twin"
REPLICATES = (0, 1, 2)
ENGINES = ("fleet", "deepspeed")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with a dataset and the trace, the weights and the manifest of three trainings."""
    folder = tmp_path_factory.mktemp("jobs")
    sampler = Sampler("L2", GrammarCorpus.from_file(GRAMMAR), 0)
    strings = build_forgetting(sampler, 12, 6, 4, False, "string", 0.25)["original"]
    dataset = folder / "original/strings.parquet"
    tables.write(dataset, strings, KINDS["strings"])
    files = [
        str(folder / name) for name in ("trace.parquet", "manifest.json", "weights.safetensors")
    ]
    job = Job(str(dataset), *files, regime=Replicates(range(3)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        assignment = Assignment(
            MODEL, str(MODELS), str(GRAMMAR), Recipe(**RECIPE), "fleet", str(folder / "state")
        )
        finetune(assignment, [job])
    return folder


# Runs the job with one model at a time, and kills the job after the first model.
KILLED_JOB = Path(toy_job.__file__).with_name("killed_toy_job.py")


def asked(
    trained: Path, folder: Path, engine: str, _script: str | Path = toy_job.__file__, **more
) -> subprocess.CompletedProcess:
    """Run the job in a process of its own."""
    words = command(
        _script,
        model=MODEL,
        models=MODELS,
        corpus=GRAMMAR,
        engine=engine,
        dataset=trained / "original/strings.parquet",
        weights=[trained / "weights.safetensors"],
        replicates=REPLICATES,
        state=folder / "state",
        table=folder / "sizes.parquet",
        manifest=folder / "manifest.json",
        **{**RECIPE, **more},
    )
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS), "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=500)


@pytest.fixture(scope="module")
def tables_of(trained, tmp_path_factory) -> dict[str, pd.DataFrame]:
    """The job's table under both engines."""
    found = {}
    for engine in ENGINES:
        folder = tmp_path_factory.mktemp(engine)
        done = asked(trained, folder, engine)
        assert done.returncode == 0, done.stderr
        found[engine] = tables.read(folder / "sizes.parquet", toy_job.SIZES)
        manifest = json.loads((folder / "manifest.json").read_text())
        assert (manifest["engine"], manifest["replicates"]) == (engine, list(REPLICATES))
        assert not [path for path in (folder / "state").rglob("*") if path.is_file()]
    return found


@pytest.mark.slow
def test_both_engines_answer_alike(tables_of):
    """Hidden states, losses and generated tokens."""
    fleet, deepspeed = (tables_of[engine] for engine in ENGINES)
    assert fleet["replicate"].unique().tolist() == list(REPLICATES)
    keys = ["model", "language", "size", "seed", "replicate", "string_id", "continuation"]
    pd.testing.assert_frame_equal(fleet[keys], deepspeed[keys])
    np.testing.assert_allclose(fleet["square"], deepspeed["square"], rtol=1e-4)
    np.testing.assert_allclose(fleet["nll"], deepspeed["nll"], rtol=1e-4)


@pytest.mark.slow
def test_the_models_are_the_trained_ones(trained, tables_of):
    """What they predict is what the training measured at its end."""
    trace = tables.read(trained / "trace.parquet", TRACE)
    last = trace[trace["epoch"] == trace["epoch"].max()]
    np.testing.assert_allclose(tables_of["fleet"]["nll"], last["nll"], rtol=1e-6)


@pytest.mark.slow
def test_a_delivered_job_does_nothing_and_a_broken_flag_is_one_line(trained, tmp_path):
    assert asked(trained, tmp_path, "fleet").returncode == 0
    before = (tmp_path / "sizes.parquet").stat().st_mtime_ns
    assert asked(trained, tmp_path, "fleet").returncode == 0
    assert (tmp_path / "sizes.parquet").stat().st_mtime_ns == before
    done = asked(trained, tmp_path, "deepspeed", zero_stage=3)
    assert done.returncode == 1
    assert done.stderr.startswith("error: recipes: zero_stage: with ZeRO 3 no process has a whole")


class Counting:
    """A model with four tokens. It predicts the next number; 0 follows 3."""

    def logits(self, ids_MBT):
        return torch.nn.functional.one_hot((ids_MBT + 1) % 4, 4).float()


def test_generation_is_greedy():
    prompts_MBT = torch.tensor([[[0, 1], [2, 3]]])
    assert generate(Counting(), prompts_MBT, 3).tolist() == [[[2, 3, 0], [0, 1, 2]]]
    assert generate(Counting(), prompts_MBT, 0).shape == (1, 2, 0)


def test_files_are_those_of_a_key_only_if_all_are_whole(trained, tmp_path):
    """After the files were disowned, none belongs to a key."""
    trace, manifest = (tmp_path / name for name in ("trace.parquet", "manifest.json"))
    trace.write_bytes((trained / "trace.parquet").read_bytes())
    manifest.write_bytes((trained / "manifest.json").read_bytes())
    key = json.loads(manifest.read_text())["key"]
    files = Files(str(manifest), ((str(trace), TRACE),))
    assert files.are_of(key)
    assert not files.are_of("another")
    missing = Files(str(manifest), ((str(trace), TRACE),), (str(tmp_path / "weights"),))
    assert not missing.are_of(key)
    trace.write_bytes(trace.read_bytes()[:-10])
    assert not files.are_of(key)
    trace.write_bytes((trained / "trace.parquet").read_bytes())
    files.disown()
    assert not files.are_of(key)
    assert trace.exists()


class Crowded:
    """A fleet's holder on a device that has memory for two models."""

    rank = 0

    def together(self, n: int) -> int:
        return n

    def wait(self) -> None:
        pass


def crowded_bench(together: int = 5) -> SimpleNamespace:
    """A bench with such a holder; only what asking in parts needs works."""
    run = SimpleNamespace(model=MODEL)
    return SimpleNamespace(
        parts=lambda numbers: np.array_split(numbers, -(-len(numbers) // together)),
        holder=Crowded(),
        run=run,
        is_measuring=False,
    )


NUMBERS = Kind(
    "numbers", "One row per model.", "numbers.parquet", (Column("model", "int", "which"),)
)


def query_of_numbers(folder: Path, engine: str = "fleet", n_models: int = 5) -> ModelQuery:
    """A query about models; only their numbers matter."""
    assignment = Assignment(MODEL, str(MODELS), str(GRAMMAR), Recipe(**RECIPE), engine, str(folder))
    files = Files(str(folder / "manifest.json"), ((str(folder / "numbers.parquet"), NUMBERS),))
    return ModelQuery("numbers", "toy", assignment, "", [], {}, n_models, files, make_tables=None)


@pytest.mark.parametrize(("engine", "room"), [("fleet", 2), ("fleet", 0), ("deepspeed", 2)])
def test_a_fleet_that_runs_out_of_memory_goes_on_in_halves(tmp_path, engine, room):
    """The tables have all models in order; if one model alone has no room, a line says so."""
    query = query_of_numbers(tmp_path, engine)
    held = []

    def make_tables(bench, weights, places):
        if len(places) > room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        held.append(len(places))
        return [pd.DataFrame({"model": places})]

    def all_parts():
        state = StateFolder(tmp_path, "0" * 20)
        return list(
            model_queries._parts(
                replace(query, make_tables=make_tables), crowded_bench(), state, None
            )
        )

    if engine == "deepspeed":
        with pytest.raises(torch.OutOfMemoryError):
            all_parts()
    elif room == 0:
        with pytest.raises(UserError, match="not have enough memory for even one model"):
            all_parts()
    else:
        tables_of_parts = [frame for (frame,) in all_parts()]
        assert pd.concat(tables_of_parts)["model"].tolist() == [0, 1, 2, 3, 4]
        assert held == [2, 1, 2]


@pytest.mark.parametrize(("first_together", "then_together"), [(2, 3), (3, 2), (2, 12), (5, 1)])
def test_a_killed_job_resumes_with_another_number_of_models_at_once(
    tmp_path, capsys, first_together, then_together
):
    """Finished parts are read from the state; each model is queried once, and the order is kept."""
    query, state = query_of_numbers(tmp_path, n_models=12), StateFolder(tmp_path, "0" * 20)
    asked_for = []

    def parts_of(together, killed_at=None):
        def make_tables(bench, weights, places):
            if killed_at in places:
                raise KeyboardInterrupt
            asked_for.extend(places)
            return [pd.DataFrame({"model": places})]

        bench = crowded_bench(together)
        return [
            frame
            for (frame,) in model_queries._parts(
                replace(query, make_tables=make_tables), bench, state, None
            )
        ]

    with pytest.raises(KeyboardInterrupt):
        parts_of(first_together, killed_at=7)
    # A kill between the tables of one part leaves a part that is not whole.
    (state.folder / "9-11-another.parquet").touch()
    assert asked_for
    assert "resumed" not in capsys.readouterr().err
    saved = len(asked_for)
    found = pd.concat(parts_of(then_together))
    assert f": resumed from model {saved} of 12\n" in capsys.readouterr().err
    assert found["model"].tolist() == asked_for == list(range(12))


@pytest.mark.slow
def test_a_killed_job_resumes_under_other_code(trained, tmp_path):
    """The state names its section and its code, and the manifest names the older code as well."""
    other = "c0de" * 3
    done = asked(trained, tmp_path, "fleet", _script=KILLED_JOB)
    assert (done.returncode, "killed by signal 9" in done.stderr) == (1, True)
    (folder,) = (path for path in (tmp_path / "state").iterdir() if inventory.is_state(path))
    assert [path.name for path in folder.glob("*.parquet")] == ["0-0-sizes.parquet"]
    about = json.loads((folder / "about.json").read_text())
    assert (about["section"], about["code"]) == ("toy", [of_all_code()])
    (folder / "about.json").write_text(json.dumps({**about, "code": [other]}))
    state = str(tmp_path / "state")
    assert inventory.stale(state, str(MODELS), [], sections=["unlearning"]) == []
    (entry,) = inventory.stale(state, str(MODELS), [], sections=["unlearning", "toy"])
    assert (entry.folder, entry.saved) == (folder, "1 tables saved")
    assert other not in "".join(inventory.listing([entry]))

    finished = (folder / "0-0-sizes.parquet").stat().st_mtime_ns
    assert asked(trained, tmp_path, "fleet").returncode == 0
    assert not folder.exists()
    assert (tmp_path / "sizes.parquet").stat().st_mtime_ns > finished
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["code"], manifest["earlier_code"]) == (of_all_code(), [other])
    undisturbed = tmp_path / "undisturbed"
    assert asked(trained, undisturbed, "fleet").returncode == 0
    resumed, expected = (
        tables.read(place / "sizes.parquet", toy_job.SIZES) for place in (tmp_path, undisturbed)
    )
    pd.testing.assert_frame_equal(resumed, expected)
