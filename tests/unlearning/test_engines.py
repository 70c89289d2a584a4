"""Both engines of unlearning give the same models."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from helpers import unlearning_engine
from helpers.checkpoints import write_checkpoint
from helpers.commands import SCRIPTS, finetune, query
from helpers.forks import python
from helpers.unlearning_engine import METHODS, run_of, write_dataset
from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.jobs.deepspeed_models import DeepSpeedHolder
from palimpsest.models.trained import OPTIMIZERS
from palimpsest.sections import KINDS
from palimpsest.training.precision import processor_has_bf16
from palimpsest.unlearning.methods import read_methods
from palimpsest.unlearning.run.jobs import UNLEARN

pytestmark = pytest.mark.slow

# Together: training, ascent, gradients without a step, noise, fresh weights, frozen weights, hidden
# states, the original model's outputs, edits after each step.
RUN = ["finetune", "gradient-ascent", "kookmin", "seif", "sun", "npo", "rmu", "l1-sparse"]
RUN += unlearning_engine.OWN  # moments that are put aside, of both optimisers
# Together: gradients, edits, steps, and both optimisers. The other methods differ in their losses,
# which no stage sees.
OF_STAGES = ["kookmin", "sun", "sgd-adamw"]
FLEET = (0, "fp32", "none")
WITH_ALL_METHODS = (2, "fp32", "none")  # the default stage
# fp32 tells the stages apart; bf16 is tried with the default stage.
DEEPSPEED = [(stage, "fp32", "none") for stage in (0, 1, 2)]
if processor_has_bf16():
    DEEPSPEED.append((2, "bf16", "none"))
if shutil.which("g++"):  # which DeepSpeed builds its optimiser with
    DEEPSPEED.append((2, "fp32", "cpu"))
RECIPE = {
    "epochs": 30,
    "batch_size": 6,
    "micro_batch_size": 6,
    "zero_stage": 2,
    "evaluate_every": 10,
}


def methods_of(case: tuple) -> list[str]:
    """The methods that are applied in a case."""
    return RUN if case in (FLEET, WITH_ALL_METHODS) else OF_STAGES


def call(*words: str) -> None:
    """Run a program, which must succeed and sees no GPU."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(SCRIPTS),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr


class House:
    """The models of both engines and the jobs of a full model, started together, two at a time."""

    def __init__(self, folder: Path):
        self.folder = folder
        write_dataset(folder)
        self.dataset = folder / "original/strings.parquet"
        pool = ThreadPoolExecutor(2)
        self.jobs = {"full": pool.submit(self.full_model)}
        for engine, cases in (("fleet", [FLEET]), ("deepspeed", DEEPSPEED)):
            for case in cases:
                self.jobs[engine, *case] = pool.submit(self.arrays, engine, *case)
        pool.shutdown(wait=False)

    def __getitem__(self, key):
        return self.jobs[key].result()

    def arrays(self, engine, *case) -> dict[str, np.ndarray]:
        path = self.folder / f"{'-'.join(map(str, [engine, *case]))}.npz"
        words = [python(), unlearning_engine.__file__, self.dataset, path, engine, *case]
        call(*map(str, words), *methods_of(case))
        return dict(np.load(path))

    def full_model(self) -> Path:
        """A checkpoint in a folder, trained on both variants and unlearned twice."""
        models = write_checkpoint(self.folder, "pythia-1b")
        self.model = {"model": "mine", "models": models, "state": self.folder / "state", **RECIPE}
        runs = {variant: self.folder / variant / "runs" for variant in ("original", "retain")}
        self.weights = [folder / "weights.safetensors" for folder in runs.values()]
        words = finetune(
            dataset=[self.folder / variant / "strings.parquet" for variant in runs],
            trace=[folder / "trace.parquet" for folder in runs.values()],
            manifest=[folder / "manifest.json" for folder in runs.values()],
            weights=self.weights,
            replicates=(0, 0),
            **self.model,
        )
        call(*words)
        for name, processes in (("alone", 1), ("shared", 2)):
            self.unlearn(self.folder / "unlearned" / name, processes)
        return self.folder

    def unlearn(self, folder, processes) -> None:
        """Apply a method and the end `none` in one job, to one original model."""
        phases = {"none": [], "kookmin": read_methods(METHODS)["kookmin"].written}
        ends = {"none": [0], "retrain": []}
        models = {
            "origins": [0, 0],
            "unlearning_replicates": [0, 1],
            "ends": ends,
            "retrained_offset": 1,
        }
        afterwards = {
            "cutoff": 0.2,
            "curve": {"models": 1, "points": 2},
            "relearn": {"models": 1, "steps": 2},
        }

        def files(name):
            return [folder / method / "runs" / name for method in phases]

        words = query(
            UNLEARN,
            files("unlearned.parquet"),
            files("models.parquet"),
            files("stages.parquet"),
            values={"phases": phases, "models": models, "afterwards": afterwards},
            dataset=self.dataset,
            weights=self.weights,
            processes=processes,
            manifest=files("manifest.json"),
            **self.model,
        )
        call(*words)

    def unlearned(self, name, method="kookmin"):
        """The tables of a job: what the models predict, what is said of them, and the stages."""
        folder = self["full"] / "unlearned" / name / method / "runs"
        kinds = ("unlearned", "unlearned_models", "unlearning_stages")
        files = ("unlearned.parquet", "models.parquet", "stages.parquet")
        return [tables.read(folder / f, KINDS[k]) for f, k in zip(files, kinds, strict=True)]


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    return House(tmp_path_factory.mktemp("engines"))


def difference(ours, theirs, name) -> float:
    """Largest difference of a string's loss, nats per token."""
    return (np.abs(ours[name] - theirs[name]) / ours["n_tokens"]).max()


@pytest.mark.parametrize("case", [case for case in DEEPSPEED if "fp32" in case])
def test_methods_leave_the_same_model_under_both_engines(house, case):
    """In float32, from the same weights; the change by each method is far larger."""
    fleet, ours = house["fleet", *FLEET], house["deepspeed", *case]
    assert difference(ours, fleet, "nll/start") < 1e-6
    for method in methods_of(case):
        assert difference(ours, fleet, f"nll/{method}") < 1e-4, method
        changed = np.abs(ours[f"nll/{method}"] - ours["nll/start"]) / ours["n_tokens"]
        assert changed.max() > 5e-4, method
        assert ours[f"steps/{method}"] == fleet[f"steps/{method}"] > 0


@pytest.mark.parametrize("case", [case for case in DEEPSPEED if "bf16" in case])
def test_bf16_is_near(house, case):
    """Within 0.1 nats per token, or a tenth of what the method changes, if that is more."""
    fleet, ours = house["fleet", *FLEET], house["deepspeed", *case]
    for method in methods_of(case):
        changed = np.abs(fleet[f"nll/{method}"] - fleet["nll/start"]) / fleet["n_tokens"]
        most = 0.1 * max(1.0, changed.max())
        assert 1e-6 < difference(ours, fleet, f"nll/{method}") < most, method


@pytest.mark.parametrize("case", DEEPSPEED)
def test_looking_is_right_and_changes_nothing(house, case):
    """Gradients without a step, the states of each layer, activations, initial weights."""
    fleet, ours = house["fleet", *FLEET], house["deepspeed", *case]
    assert (ours["nll/start"] == ours["nll/after"]).all()
    tolerance = {"fp32": 1e-5, "bf16": 0.2}[case[1]]
    kinds = "gradient/", "hidden/", "site/"
    names = [name for name in fleet if name.startswith(kinds) or name == "initial"]
    assert len(names) > 16
    for name in names:
        assert ours[name].shape == fleet[name].shape
        assert ours[name].dtype == np.float32
        apart = np.linalg.norm(ours[name] - fleet[name])
        assert apart <= tolerance * np.linalg.norm(fleet[name]) + 1e-6, name


@pytest.mark.parametrize("case", DEEPSPEED)
def test_edits_survive_the_next_step(house, case):
    """Edits are kept in the optimiser's weights, even if bf16 could not hold them."""
    ours = house["deepspeed", *case]
    assert ours["edit/size"] > 1e-4
    assert ours["edit/error"] == 0
    behind_the_edit, behind_the_step = ours["edit/losses"]
    assert behind_the_edit == behind_the_step
    unedited = house["fleet", *FLEET]["edit/losses"][0]
    assert behind_the_edit == pytest.approx(unedited, rel=0.02)


@pytest.mark.parametrize("case", DEEPSPEED)
def test_weights_that_must_not_move_do_not(house, case):
    """After each step, updates of frozen weights are reverted, in full precision."""
    ours = house["deepspeed", *case]
    assert ours["frozen/selected"] > 1e-4
    assert ours["frozen/others"] == 0


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("case", DEEPSPEED)
def test_a_gradient_that_is_not_finite_is_never_passed_over(house, case, optimizer):
    """DeepSpeed would skip such a step without a message."""
    said = str(house["deepspeed", *case][f"nan/{optimizer}"])
    assert said == "nan" or "the gradient is no longer finite; lower the learning rate" in said


def test_zero_3_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"^recipes: zero_stage: .* set it to 2"):
        DeepSpeedHolder(run_of(str(tmp_path / "none"), 3, "fp32"), None)


# A full model, through the workflow's commands


def test_a_full_model_unlearns(house):
    """Its tables are whole, and the method did what it should: unlike doing nothing."""
    trace = tables.read(house["full"] / "original/runs/trace.parquet", KINDS["trace"])
    trained = trace[trace["epoch"] == trace["epoch"].max()]
    untouched, models, _ = house.unlearned("alone", "none")
    assert untouched["string_id"].tolist() == trained["string_id"].tolist()
    np.testing.assert_allclose(untouched["nll"], trained["nll"], rtol=1e-5)
    assert (models["steps"] == 0).all()
    assert (models["distance_to_original"] == 0).all()
    assert (models["distance_to_retrained"] > 0).all()
    assert models["relearn_steps"].tolist() == [0]
    unlearned, models, stages = house.unlearned("alone")
    assert (models["steps"] > 0).all()
    assert (models["distance_to_original"] > 0.1).all()
    assert models["relearn_steps"].notna().tolist() == [True, False]
    assert models["relearn_limit"].dropna().tolist() == [2]
    strings = tables.read(house.dataset, KINDS["strings"]).set_index("string_id")
    forgotten = strings.index[strings["split"] == "forget"]
    for replicate in (0, 1):
        of_replicate = unlearned[unlearned["unlearning_replicate"] == replicate]
        before, after = (
            frame.loc[frame["string_id"].isin(forgotten), "nll"].sum()
            for frame in (untouched, of_replicate)
        )
        assert after > before
    # The first model is unlearned a second time to be followed, and ends where it did before.
    curve = stages[stages["stage"] == "unlearning"]
    first = (
        unlearned[unlearned["unlearning_replicate"] == 0].set_index("string_id").loc[strings.index]
    )
    copies = strings["count"].where(strings["split"] == "forget", 0)
    ended = (first["nll"] * copies).sum() / (first["n_tokens"] * copies).sum()
    np.testing.assert_allclose(curve["forget_loss"].iloc[-1], ended, rtol=1e-5)
    assert curve["passes"].iloc[-1] == models["steps"].iloc[0]
    assert stages["stage"].unique().tolist() == ["unlearning", "4-bit", "relearning"]


def test_two_processes_unlearn_as_one_does(house):
    """The optimiser shared out between them, each with the same batches and random numbers."""
    ours, models, stages = house.unlearned("shared")
    alone, models_alone, stages_alone = house.unlearned("alone")
    keys = ["origin", "unlearning_replicate", "string_id", "n_tokens"]
    assert ours[keys].equals(alone[keys])
    assert (np.abs(ours["nll"] - alone["nll"]) / ours["n_tokens"]).max() < 1e-4
    assert models["steps"].tolist() == models_alone["steps"].tolist()
    for column in ("distance_to_original", "distance_to_retrained", "relearn_steps"):
        np.testing.assert_allclose(models[column], models_alone[column], rtol=1e-4)
    keys = ["stage", "phase", "passes"]
    assert stages[keys].equals(stages_alone[keys])
    np.testing.assert_allclose(stages["forget_loss"], stages_alone["forget_loss"], rtol=1e-4)
    assert not list((house["full"] / "state").rglob("*.parquet"))
