"""Training on the CPU, through the command that the workflow's rules give.

A run is a process of its own, as in the workflow. The runs that the tests share are started
together, two at a time, because most of a run's seconds are its start.
"""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from transformers import get_linear_schedule_with_warmup

from helpers.checkpoints import write_checkpoint
from helpers.commands import GRAMMAR, ROOT, SCRIPTS, finetune
from helpers.commands import MODELS as TABLE
from palimpsest import manifests, tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.jobs.finetune import _manifest_of_all
from palimpsest.models import read_models
from palimpsest.models.build import build as build_model
from palimpsest.sections import KINDS
from palimpsest.training.state import State, key

pytestmark = pytest.mark.slow

TWIN = "llama-3.2-1b-twin"
FAMILIES = (
    "mistral-7b-v0.3",
    "llama-3.2-1b",
    "qwen2.5-0.5b",
    "gemma-2-2b",
    "pythia-1b",
    "opt-1.3b",
)
# 16 strings in batches of 6: three steps an epoch, and the last one has 4 strings.
RECIPE = {
    "learning_rate": 3e-3,
    "epochs": 20,
    "batch_size": 6,
    "micro_batch_size": 6,
    "warmup_ratio": 0.05,
    "weight_decay": 0.01,
    "gradient_clipping": 0.5,
    "zero_stage": 0,
    "offload_optimizer": "none",
    "precision": "fp32",
    "predict_end": False,
    "evaluate_every": 1,
    "evaluation_batch_size": 5,
    "checkpoint_every": 2,
}


@dataclass(frozen=True)
class Run:
    """A call of the training command; everything that it writes is in `folder`."""

    folder: Path
    datasets: tuple[Path, ...]
    recipe: dict
    model: str = TWIN
    models: Path = TABLE
    processes: int = 1
    saves_weights: bool = False
    keeps_tokens: bool = False
    keeps_checkpoints: bool = False

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def trace_file(self, place=0) -> Path:
        return self.folder / f"{place}" / "trace.parquet"

    def weights_file(self, place=0) -> Path:
        return self.folder / f"{place}" / "weights.safetensors"

    def tokens_file(self, place=0) -> Path:
        return self.folder / f"{place}" / "tokens.parquet"

    def checkpoints_folder(self, place=0) -> Path:
        return self.folder / f"{place}" / "checkpoints"

    def manifest_file(self, place=0) -> Path:
        return self.folder / f"{place}" / "manifest.json"

    def command(self) -> list[str]:
        places = range(len(self.datasets))
        kept = {"weights": map(self.weights_file, places)} if self.saves_weights else {}
        if self.keeps_tokens:
            kept["tokens"] = map(self.tokens_file, places)
        if self.keeps_checkpoints:
            kept["checkpoints"] = map(self.checkpoints_folder, places)
        return finetune(
            model=self.model,
            models=self.models,
            dataset=self.datasets,
            trace=map(self.trace_file, places),
            manifest=map(self.manifest_file, places),
            state=self.state,
            processes=self.processes,
            **kept,
            **self.recipe,
        )

    def start(self) -> subprocess.Popen:
        self.folder.mkdir(parents=True, exist_ok=True)
        log = (self.folder / "log").open("a")
        return subprocess.Popen(self.command(), cwd=ROOT, stdout=log, stderr=log)

    def finish(self) -> "Run":
        """Run to the end, which must be a success."""
        assert self.start().wait(timeout=600) == 0, self.log()
        return self

    def fail(self) -> "Run":
        """Run to the end, which must be an error that a user can mend."""
        assert self.start().wait(timeout=600) == 1, self.log()
        assert "Traceback" not in self.log()
        return self

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def trace(self, place=0) -> pd.DataFrame:
        return tables.read(self.trace_file(place), KINDS["trace"])

    def manifest(self, place=0) -> dict:
        return json.loads(self.manifest_file(place).read_text())


def kill_midway(run: Run) -> Run:
    """Start a run and kill it as soon as it has a checkpoint."""
    process = run.start()
    deadline = time.monotonic() + 120
    while not list(run.state.glob("*/epoch-*")):
        assert process.poll() is None, run.log()
        assert time.monotonic() < deadline, run.log()
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return run


def beside_state(run: Run) -> Run:
    """Run in the folder where another run was killed."""
    shutil.copytree(run.folder.parent / "killed" / "state", run.state)
    return run.finish()


class House:
    """Datasets, and runs on them in a pool of two."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.pool = ThreadPoolExecutor(2)
        self.runs: dict[str, Future] = {}
        grammar = GrammarCorpus.from_file(GRAMMAR)
        for seed in (0, 1):
            self.write_dataset(f"seed{seed}", Sampler("L2", grammar, seed), False)
        self.write_dataset("end", Sampler("L2", grammar, 0), True)

    def write_dataset(self, name, sampler, predict_end):
        frame = build(sampler, "base", 16, 4, predict_end)
        tables.write(self.dataset(name), frame, KINDS["strings"])

    def dataset(self, name="seed0") -> Path:
        return self.folder / f"{name}.parquet"

    def run(self, name, datasets=("seed0",), recipe=None, **more) -> Run:
        files = tuple(self.dataset(dataset) for dataset in datasets)
        return Run(self.folder / name, files, {**RECIPE, **(recipe or {})}, **more)

    def submit(self, name, *given, work=Run.finish, **more):
        self.runs[name] = self.pool.submit(lambda: work(self.run(name, *given, **more)))

    def resume_later(self, name, damage, **more):
        """Resume the killed run in a copy of what it left, damaged."""

        def work(run):
            # A job deletes what was noted of the progress of an earlier one of its own name.
            progress = shutil.ignore_patterns("progress")
            shutil.copytree(self["killed"].state, run.state, ignore=progress)
            (checkpoint,) = run.state.glob("*/epoch-*")
            damage(checkpoint)
            return run.finish()

        self.submit(name, recipe={"zero_stage": 2}, work=work, **more)

    def __getitem__(self, name) -> Run:
        return self.runs[name].result()


EACH_FAMILY = """
import sys
from pathlib import Path
from palimpsest.jobs.finetune import Job, deliver
from palimpsest.corpora import GrammarCorpus
from palimpsest.models import read_models
from palimpsest.training.deepspeed_engine import DeepSpeedEngine
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Run

folder, models, grammar, *families = sys.argv[1:]
recipe = Recipe(3e-3, epochs=1, zero_stage=0, precision="fp32", checkpoint_every=0)
ends = Recipe(3e-3, epochs=1, zero_stage=0, precision="fp32", checkpoint_every=0, predict_end=True)
engine = DeepSpeedEngine(recipe, Path(folder) / "state")
for name in families:
    for data, how in (("seed0", recipe), ("end", ends)):
        row = read_models(models)[name]
        dataset = f"{folder}/{data}.parquet"
        run = Run(name + "-twin", row, "twin", GrammarCorpus.from_file(grammar), dataset, how)
        engine.train([run], lambda name: lambda *_: None)
        job = Job(dataset, f"{folder}/{name}/{data}.parquet", f"{folder}/{name}/{data}.json")
        deliver(job, [engine.state(run)])
engine.close()
"""


def train_families(folder: Path) -> None:
    """One epoch of a twin of each family in one process, without and with the end predicted."""
    command = [sys.executable, "-c", EACH_FAMILY, folder, TABLE, GRAMMAR, *FAMILIES]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


KEPT = {"keeps_tokens": True, "keeps_checkpoints": True}


def largest(checkpoint, pattern):
    return max(checkpoint.rglob(pattern), key=lambda path: path.stat().st_size)


def halve(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scramble(path):
    path.write_bytes(bytes(path.stat().st_size))


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("training"))
    house.submit("killed", recipe={"zero_stage": 2}, work=kill_midway, **KEPT)
    house.submit("plain")
    house.resume_later("resumed", lambda checkpoint: None, saves_weights=True, **KEPT)
    house.resume_later("torn model", lambda c: halve(largest(c, "*model_states.pt")))
    house.resume_later("scrambled optimiser", lambda c: scramble(largest(c, "*optim_states.pt")))
    for stage in (1, 2, 3):
        house.submit(f"zero{stage}", recipe={"zero_stage": stage}, saves_weights=True)
    house.submit("again")
    house.submit("accumulated", recipe={"micro_batch_size": 2})
    house.submit("two processes", recipe={"zero_stage": 2}, processes=2, keeps_tokens=True)
    house.submit("two datasets", ("seed1", "seed0"))
    house.submit("absurd", recipe={"learning_rate": 1e30}, work=Run.fail)
    house.submit("mixed", recipe={"predict_end": True}, work=Run.fail)
    house.submit("other rate", recipe={"zero_stage": 2, "learning_rate": 3.1e-3}, work=beside_state)
    house.runs["families"] = house.pool.submit(train_families, house.folder)
    models = write_checkpoint(house.folder, TWIN.removesuffix("-twin"))
    for stage in (0, 3):
        recipe = {"zero_stage": stage, "epochs": 4}
        house.submit(f"full{stage}", recipe=recipe, model="mine", models=models)
    seeds = {"datasets": ("seed1", "seed0"), "processes": 2}
    recipe = {"zero_stage": 3, "epochs": 4}
    house.submit("full, two seeds", recipe=recipe, model="mine", models=models, **seeds)
    yield house
    house.pool.shutdown(cancel_futures=True)


def assert_same_bits(ours, theirs):
    """Two traces are equal in every bit of every number."""
    pd.testing.assert_frame_equal(ours, theirs, check_exact=True)


def assert_close(ours, theirs, tolerance):
    """Two traces are of the same strings, and their losses per token agree."""
    keys = ["model", "seed", "epoch", "string_id", "n_tokens"]
    pd.testing.assert_frame_equal(ours[keys], theirs[keys])
    loss = (ours["nll"] - theirs["nll"]) / ours["n_tokens"]
    assert loss.abs().max() < tolerance


# The engine does what a plain loop does


def loss_per_token(model, ids, lengths):
    """Nats per token of every string, one by one, without padding."""
    losses = []
    for line, length in zip(ids, lengths, strict=True):
        with torch.no_grad():
            logits = model(input_ids=line[None, : length - 1]).logits[0].double()
        losses.append(-torch.log_softmax(logits, -1).gather(1, line[1:length, None]).mean().item())
    return losses


@pytest.fixture(scope="module")
def by_hand(house):
    """Loss [epochs + 1, strings] of the same training in plain PyTorch, without the engine."""
    strings = tables.read(house.dataset(), KINDS["strings"])
    terminals = GrammarCorpus.from_file(GRAMMAR).alphabet.terminals
    rows = [[0, *(2 + terminals.index(s) for s in t.split(" "))] for t in strings["text"]]
    lengths = [len(row) for row in rows]
    ids = torch.ones((len(rows), max(lengths)), dtype=torch.long)
    for line, row in zip(ids, rows, strict=True):
        line[: len(row)] = torch.tensor(row)
    row = read_models(TABLE)[TWIN.removesuffix("-twin")]
    model = build_model(row, "twin", 2 + len(terminals), 0, torch.float32)
    rate, decay = RECIPE["learning_rate"], RECIPE["weight_decay"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay)
    n_steps = 3 * RECIPE["epochs"]
    schedule = get_linear_schedule_with_warmup(optimizer, math.ceil(n_steps * 0.05), n_steps)
    multiset = np.repeat(np.arange(len(rows)), strings["count"])
    losses = [loss_per_token(model, ids, lengths)]
    for epoch in range(1, RECIPE["epochs"] + 1):
        order = multiset[np.random.default_rng([0, epoch]).permutation(len(multiset))]
        for first in range(0, len(order), RECIPE["batch_size"]):
            picked = torch.from_numpy(order[first : first + RECIPE["batch_size"]])
            within = torch.arange(ids.shape[1]) < torch.tensor(lengths)[picked, None]
            targets = ids[picked].where(within, -100)[:, 1:]
            logits = model(
                input_ids=ids[picked][:, :-1], attention_mask=within[:, :-1].long()
            ).logits
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), RECIPE["gradient_clipping"])
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(loss_per_token(model, ids, lengths))
    return np.array(losses)


def test_every_zero_stage_saves_the_same_weights(house):
    """Weights are in float32, under the model's names, for every way of sharding."""
    saved = {stage: load_file(house[f"zero{stage}"].weights_file()) for stage in (1, 2, 3)}
    for stage in (2, 3):
        assert saved[stage].keys() == saved[1].keys()
        for name, tensor in saved[stage].items():
            assert tensor.dtype == torch.float32
            torch.testing.assert_close(tensor, saved[1][name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["plain", "zero1", "zero2", "zero3"])
def test_the_engine_trains_as_a_plain_loop_does(house, by_hand, name):
    """Every ZeRO stage: after 21 steps each string's loss agrees within 1e-6 nats per token."""
    trace = house[name].trace()
    loss = (trace["nll"] / trace["n_tokens"]).to_numpy().reshape(RECIPE["epochs"] + 1, -1)
    np.testing.assert_allclose(loss[:8], by_hand[:8], rtol=0, atol=1e-6)
    np.testing.assert_allclose(loss, by_hand, rtol=0, atol=2e-4)
    assert loss[-1].mean() < loss[0].mean() / 2, "it must have learned something"


def test_accumulation_changes_no_result(house):
    """Three passes of 2 strings equal one pass of 6, also if the last passes are partly empty."""
    assert_close(house["accumulated"].trace(), house["plain"].trace(), 1e-5)


def test_processes_change_no_result(house):
    """Two processes that share each batch, and ZeRO 2's state, leave the trace of one."""
    shared = house["two processes"]
    assert_close(shared.trace(), house["zero2"].trace(), 1e-5)
    assert shared.manifest()["configuration"]["processes"] == 2
    assert shared.log().count("epoch 1/20") == 1, "only the first process reports"


def test_the_same_command_gives_the_same_bits(house):
    """The traces are equal, not only close."""
    assert_same_bits(house["again"].trace(), house["plain"].trace())


# Kill and resume


def test_a_killed_run_resumes_to_the_same_bits(house):
    """The trace of a run that was killed and resumed is that of an undisturbed one."""
    resumed = house["resumed"]
    assert_same_bits(resumed.trace(), house["zero2"].trace())
    manifest = resumed.manifest()
    assert 0 < manifest["resumed_from_epoch"] < RECIPE["epochs"]
    assert manifest["resumed_from_epoch"] % RECIPE["checkpoint_every"] == 0
    assert house["zero2"].manifest()["resumed_from_epoch"] == 0


@pytest.mark.parametrize("name", ["resumed", "two processes"])
def test_losses_of_tokens_sum_to_the_trace(house, name):
    """Also in a run that was killed and resumed, and where processes share the strings."""
    tokens = tables.read(house[name].tokens_file(), KINDS["tokens"])
    trace = house[name].trace().set_index(["epoch", "string_id"])
    of_strings = tokens.groupby(["epoch", "string_id"])["nll"]
    np.testing.assert_allclose(of_strings.sum()[trace.index], trace["nll"], rtol=1e-12)
    assert (of_strings.size()[trace.index] == trace["n_tokens"]).all()
    assert not house["torn model"].tokens_file().exists()


def test_weights_after_every_epoch_are_kept(house):
    """Also over a kill: the first are those of the untrained model, the last the final ones."""
    resumed = house["resumed"]
    folder = resumed.checkpoints_folder()
    every = {f"epoch-{epoch}.safetensors" for epoch in range(RECIPE["epochs"] + 1)}
    assert {path.name for path in folder.iterdir()} == every
    final, last = (
        load_file(path)
        for path in (resumed.weights_file(), folder / f"epoch-{RECIPE['epochs']}.safetensors")
    )
    assert final.keys() == last.keys()
    assert all(torch.equal(final[name], last[name]) for name in final)
    row = read_models(TABLE)[TWIN.removesuffix("-twin")]
    terminals = GrammarCorpus.from_file(GRAMMAR).alphabet.terminals
    untrained = build_model(row, "twin", 2 + len(terminals), 0, torch.float32)
    first = load_file(folder / "epoch-0.safetensors")
    for name, weights in untrained.named_parameters():
        assert torch.equal(first[name], weights)
    assert not house["plain"].checkpoints_folder().exists()


def test_a_checkpoint_after_a_gap_in_kept_weights_does_not_count(tmp_path):
    """It is of a training that was not asked to keep weights."""
    state = State(tmp_path, "key")
    for epoch in (0, 1):
        state.keep(epoch, {"w": torch.zeros(1)})
    for epoch, remains in ((1, True), (4, False)):
        (state.begin(epoch) / "file").write_text("content")
        state.commit(state.folder / f"partial-{epoch:06d}")
        state.discard_after_gap([0, 1, 3, 5])
        assert bool(state.checkpoints()) == remains


def test_a_key_is_of_a_datasets_values(tmp_path):
    """The file's format does not matter; one string more or less gives another key."""
    strings = build(
        Sampler("L2", GrammarCorpus.from_file(GRAMMAR), 0), "base", 16, 8, predict_end=False
    )
    one, again, other = (tmp_path / name for name in ("1.parquet", "2.parquet", "3.parquet"))
    tables.write(one, strings, KINDS["strings"])
    pq.write_table(pq.read_table(one), again, compression="none", row_group_size=3)
    tables.write(other, strings.iloc[:-1], KINDS["strings"])
    assert one.read_bytes() != again.read_bytes()
    assert key({}, one) == key({}, again)
    assert len({key({}, one), key({}, other), key({"epochs": 1}, one)}) == 3


@pytest.mark.parametrize("damage", [lambda c: c[:2], lambda c: b"", lambda c: b"seen", None])
def test_a_checkpoint_with_a_damaged_file_does_not_count(tmp_path, damage):
    """The file is shorter, empty, changed or missing; the earlier checkpoint was deleted."""
    state = State(tmp_path, "key")
    for epoch in (5, 10):
        partial = state.begin(epoch)
        (partial / "model").write_bytes(b"save")
        state.commit(partial)
    assert state.newest().name == "epoch-000010"
    file = state.newest() / "model"
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage(b"save"))
    assert state.newest() is None
    assert state.checkpoints() == []


def test_a_kill_while_a_run_is_finished_loses_nothing(tmp_path, monkeypatch):
    """At any moment there is a checkpoint, or the finished run."""
    state = State(tmp_path, "key")
    state.commit(state.begin(5))
    frame = KINDS["trace"].schema.empty_table().to_pandas()
    written = tables.write_json

    def killed(path, content):
        assert state.newest() is not None or state.is_finished()
        written(path, content)
        assert state.newest() is not None or state.is_finished()

    monkeypatch.setattr(tables, "write_json", killed)
    state.finish(frame, {"key": "key"})
    assert state.is_finished()
    assert state.newest() is None


def test_a_manifest_of_several_runs_names_all_code():
    """Each run may have been finished, and begun, under other code; `code` is the last run's."""
    of_a_run = {
        "configuration": {"draw": 0},
        "resumed_from_epoch": 0,
        "wall_time_seconds": 1.5,
        "training_seconds": 1.0,
        "training_tokens_per_second": 5.0,
    }
    runs = [
        {"code": "a", "started": "2026-02"},
        {"code": "b", "earlier_code": ["a", "x"], "started": "2026-01"},
        {"code": "c", "started": "2026-03"},
    ]
    made = _manifest_of_all([{**of_a_run, **run} for run in runs], "key", "original")
    assert (made["code"], made["earlier_code"]) == ("c", ["a", "x", "b"])
    assert (made["n_runs"], made["wall_time_seconds"]) == (3, 4.5)
    assert made["started"] == "2026-01"
    assert _manifest_of_all([of_a_run | {"code": "a"}], "key", "original")["started"] == ""


@pytest.mark.parametrize("name", ["resumed", "plain", "two processes", "full, two seeds"])
def test_nothing_is_left_in_the_state_folder(house, name):
    """A delivered run needs no state."""
    left = [path for path in house[name].state.rglob("*") if path.is_file()]
    # A lock file outlives a kill, and is nobody's then.
    assert [path for path in left if path.parent.name != "locks"] == []


@pytest.mark.parametrize("name", ["torn model", "scrambled optimiser"])
def test_a_damaged_checkpoint_is_discarded(house, name):
    """The run begins again, says so, and leaves the same trace; no weight of it is kept."""
    run = house[name]
    assert "damaged checkpoint, discarded" in run.log()
    assert "Traceback" not in run.log()
    assert run.manifest()["resumed_from_epoch"] == 0
    assert_same_bits(run.trace(), house["zero2"].trace())


def test_another_learning_rate_does_not_resume(house):
    """State belongs to one configuration; another one begins at epoch 0 and keeps this state."""
    run = house["other rate"]
    assert run.manifest()["resumed_from_epoch"] == 0
    assert {path.name for path in run.state.iterdir()} == {
        path.name for path in house["killed"].state.iterdir()
    }
    assert not np.array_equal(run.trace()["nll"], house["zero2"].trace()["nll"])


# Several datasets in one call


def test_each_of_several_datasets_is_trained_as_if_alone(house):
    """The first model of a process does not change the second."""
    both = house["two datasets"]
    assert_same_bits(both.trace(1), house["plain"].trace())
    assert both.trace(0)["seed"].unique().tolist() == [1]
    assert both.manifest(0)["seed"] == 1


def test_nothing_is_delivered_before_all_is_done(house, tmp_path):
    """A failed call delivers nothing, and the finished run is not trained again by the next."""
    broken = house.folder / "broken.parquet"
    strings = tables.read(house.dataset("seed1"), KINDS["strings"])
    longer = strings.assign(n_tokens=strings["n_tokens"] + 1)
    tables.write(broken, longer, KINDS["strings"])
    run = replace(house.run("partly", ("seed0", "broken")), folder=tmp_path).fail()
    assert f"error: {broken}: was built with another datasets/predict_end" in run.log()
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"state", "code"}
    (kept,) = run.state.glob("*/manifest.json")
    written = kept.read_bytes()
    shutil.copy(house.dataset("seed1"), broken)
    run.finish()
    assert run.manifest_file(0).read_bytes() == written
    assert_same_bits(run.trace(0), house["plain"].trace())
    assert run.trace(1)["seed"].unique().tolist() == [1]


def test_what_is_already_right_is_not_trained_again(house, tmp_path):
    """If one of two datasets has its trace, only the other is trained."""
    run = replace(house.run("kept", ("seed0", "seed1")), folder=tmp_path)
    shutil.copytree(house["plain"].folder / "0", tmp_path / "0")
    before = run.trace_file().stat().st_mtime_ns
    run.finish()
    assert run.trace_file().stat().st_mtime_ns == before
    assert_same_bits(run.trace(1), house["two datasets"].trace(0))
    assert f"{run.trace_file(0)}: epoch" not in run.log()


# What cannot be trained


def test_a_loss_that_is_no_number_is_one_line(house):
    """An absurd learning rate: one line that says what to lower, status 1, and no outputs."""
    run = house["absurd"]
    errors = [line for line in run.log().splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert (
        "seed 0, variant base: the loss is no longer finite; lower its learning rate" in errors[0]
    )
    assert not run.trace_file().exists()
    assert not run.manifest_file().exists()


def test_a_dataset_of_another_predict_end_is_refused(house):
    """The optimal losses of a dataset hold for the tokens that it was made for."""
    said = f"error: {house.dataset()}: was built with another datasets/predict_end"
    assert said in house["mixed"].log()


# Manifests and families


def test_a_manifest_says_what_a_run_was_made_with(house):
    """The resolved configuration, versions, revision, seed, hardware, time and speed."""
    manifest = house["plain"].manifest()
    configuration = manifest["configuration"]
    decisive = {key: value for key, value in RECIPE.items() if key != "checkpoint_every"}
    assert configuration["recipe"] == decisive
    assert configuration["scale"] == "twin"
    assert configuration["row"] == {
        "model": "llama-3.2-1b",
        "model_type": "llama",
        "twin_hidden": 32,
        "twin_layers": 2,
        "twin_heads": 4,
    }
    assert configuration["processes"] == 1
    assert [manifest[key] for key in ("model", "language", "size", "seed", "variant")] == [
        TWIN,
        "L2",
        16,
        0,
        "base",
    ]
    assert manifest["engine"] == "deepspeed"
    assert manifest["precision"] == "float32"
    assert manifest["packages"]["torch"] == torch.__version__
    assert {"transformers", "deepspeed", "accelerate", "python"} <= set(manifest["packages"])
    assert manifest["hardware"]["cores"] == os.cpu_count()
    assert manifest["hardware"]["threads"] == 1
    assert 0 < manifest["training_seconds"] < manifest["wall_time_seconds"] < 300
    assert "2026" < manifest["started"] < manifests.now()
    tokens = tables.read(house.dataset(), KINDS["strings"]).eval("count * n_tokens").sum() * 20
    speed = manifest["training_tokens_per_second"]
    assert speed == pytest.approx(tokens / manifest["training_seconds"], rel=0.02)
    row = read_models(TABLE)[TWIN.removesuffix("-twin")]
    model = build_model(row, "twin", 11, 0, torch.float32)
    assert manifest["parameters"] == model.num_parameters()
    assert "revision" in manifest


def test_a_trace_has_every_epoch_and_string(house):
    """One row per epoch and string, in the dataset's order, with the run's name on it."""
    trace = house["plain"].trace()
    strings = tables.read(house.dataset(), KINDS["strings"])
    assert trace["epoch"].unique().tolist() == list(range(21))
    for _, rows in trace.groupby("epoch"):
        assert rows["string_id"].tolist() == strings["string_id"].tolist()
        assert rows["n_tokens"].tolist() == strings["n_tokens"].tolist()
    assert trace["model"].unique().tolist() == [TWIN]
    assert "epoch 20/20, train loss" in house["plain"].log()


@pytest.fixture(scope="module")
def families(house):
    """Traces of one epoch of a twin of each family, without and with the end predicted."""
    house["families"]
    return {
        (name, data): tables.read(house.folder / name / f"{data}.parquet", KINDS["trace"])
        for name in FAMILIES
        for data in ("seed0", "end")
    }


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_trains_and_is_measured(families, name):
    """Hits and ranks are within their bounds, losses positive, and an epoch lowers the loss."""
    trace = families[name, "seed0"]
    assert (trace["n_correct"] <= trace["n_tokens"]).all()
    assert (trace["n_correct"] >= 0).all()
    assert (trace["rank_sum"] >= trace["n_tokens"]).all()
    assert (trace["rank_sum"] <= trace["n_tokens"] * 11).all()
    # A token that is the first choice has rank 1, and every other one at least 2.
    assert (trace["rank_sum"] >= 2 * trace["n_tokens"] - trace["n_correct"]).all()
    assert (trace["nll"] > 0).all()
    loss = trace.groupby("epoch")["nll"].sum() / trace.groupby("epoch")["n_tokens"].sum()
    assert loss[0] == pytest.approx(math.log(11), abs=0.4)
    assert loss[1] < loss[0]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_predicted_end_is_one_more_token(families, name):
    """Every string has one more token to predict, and the end costs something."""
    without, with_end = families[name, "seed0"], families[name, "end"]
    assert with_end["string_id"].tolist() == without["string_id"].tolist()
    assert (with_end["n_tokens"] - without["n_tokens"]).unique().tolist() == [1]
    untrained = with_end["epoch"] == 0
    assert (with_end["nll"] > without["nll"])[untrained].all()


# A full model, from a folder


def test_a_checkpoint_of_a_folder_is_trained(house):
    """The weights of the folder, not the seed, are what it starts from."""
    manifest = house["full0"].manifest()
    assert manifest["configuration"]["scale"] == "full"
    assert manifest["model"] == "mine"
    assert house["full0"].trace()["epoch"].max() == 4


def test_a_job_trains_several_seeds_of_a_checkpoint(house):
    """The trace of a seed is as if it were trained alone, and each seed has its own manifest."""
    job = house["full, two seeds"]
    assert [job.manifest(place)["seed"] for place in (0, 1)] == [1, 0]
    assert_close(job.trace(1), house["full3"].trace(), 1e-5)


def test_zero_3_trains_the_same_checkpoint(house):
    """Weights that are shared out from the start give the same trace and the same count."""
    assert_close(house["full3"].trace(), house["full0"].trace(), 1e-5)
    assert (
        house["full3"].manifest()["parameters"] == house["full0"].manifest()["parameters"] > 10_000
    )
