"""Unlearning with adapters: steps train an adapter, everything else sees whole weights."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from helpers import adapter_unlearning as program
from helpers.adapter_unlearning import LEARNED
from helpers.checkpoints import write_checkpoint
from helpers.commands import ROOT, SCRIPTS, finetune, query
from helpers.experiments import DEFAULT, experiment
from helpers.forks import python
from helpers.unlearning_engine import METHODS, write_dataset
from palimpsest import tables
from palimpsest.sections import KINDS
from palimpsest.unlearning.methods import read_methods
from palimpsest.unlearning.run.jobs import UNLEARN
from palimpsest.unlearning.tuning.jobs import search_of

CASES = ["0-fp32", "2-bf16"]
RULED_OUT = {"kookmin", "sun", "salun", "l1-sparse", "rmu", "kookmin-seif"}
METHOD = "seif-finetune"  # noise on the frozen weights, and steps of the adapter, twice


def call(*words: str) -> None:
    """Run a program, which must succeed and sees no GPU."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(SCRIPTS), str(ROOT / "tests")]),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr


class House:
    """What the program found, by case, and the jobs of a full model; two at a time."""

    def __init__(self, folder):
        self.folder = folder
        write_dataset(folder)
        pool = ThreadPoolExecutor(2)
        self.jobs = {"full": pool.submit(self.full_model)}
        self.jobs |= {case: pool.submit(self.arrays, case) for case in CASES}
        pool.shutdown(wait=False)

    def __getitem__(self, key):
        return self.jobs[key].result()

    def arrays(self, case):
        path = self.folder / f"{case}.npz"
        dataset = self.folder / "original/strings.parquet"
        call(python(), program.__file__, str(dataset), str(path), *case.split("-"))
        return dict(np.load(path))

    def full_model(self):
        """A checkpoint in a folder; adapters are trained on both variants and for unlearning."""
        common = {
            "model": "mine",
            "models": write_checkpoint(self.folder, "pythia-1b"),
            "state": self.folder / "state",
            "epochs": 30,
            "batch_size": 6,
            "micro_batch_size": 6,
            "evaluate_every": 10,
            "adapter": "lora",
            "adapter_rank": 4,
        }
        variants = ("original", "retain")
        runs = [self.folder / variant / "runs" for variant in variants]
        weights = [folder / "weights.safetensors" for folder in runs]
        call(
            *finetune(
                dataset=[self.folder / variant / "strings.parquet" for variant in variants],
                trace=[folder / "trace.parquet" for folder in runs],
                manifest=[folder / "manifest.json" for folder in runs],
                weights=weights,
                replicates=(0, 0),
                **common,
            )
        )
        phases = {"none": [], METHOD: read_methods(METHODS)[METHOD].written}
        models = {
            "origins": [0],
            "unlearning_replicates": [0],
            "ends": {"none": [0], "retrain": []},
            "retrained_offset": 1,
        }
        afterwards = {
            "cutoff": 0.2,
            "curve": {"models": 1, "points": 2},
            "relearn": {"models": 1, "steps": 2},
        }
        names = ("unlearned.parquet", "models.parquet", "stages.parquet", "manifest.json")
        *made, manifest = ([self.folder / m / "runs" / name for m in phases] for name in names)
        call(
            *query(
                UNLEARN,
                *made,
                values={"phases": phases, "models": models, "afterwards": afterwards},
                dataset=self.folder / "original/strings.parquet",
                weights=weights,
                manifest=manifest,
                **common,
            )
        )
        return self.folder

    def read(self, method, file, kind):
        return tables.read(self["full"] / method / "runs" / file, KINDS[kind])


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    return House(tmp_path_factory.mktemp("adapted"))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_an_opened_model_has_the_given_weights(house, case):
    """To the last bit, because one of the adapter's matrices is 0; the other is drawn."""
    found = house[case]
    assert found["opened"] == 0
    assert found["adapters"] == [16]  # two matrices beside each of eight
    assert found["drawn_again"] == 0
    assert found["drawn_for_another"] > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", LEARNED)
def test_steps_train_the_adapter_only(house, case, method):
    """Of both optimisers; only edits change frozen weights, and merged weights predict the same."""
    found = house[case]
    matrices = {
        f"gpt_neox.layers.{layer}.{name}.weight"
        for layer in (0, 1)
        for name in (
            "attention.query_key_value",
            "attention.dense",
            "mlp.dense_h_to_4h",
            "mlp.dense_4h_to_h",
        )
    }
    assert set(found[f"{method}/moved"]) == matrices
    assert set(found[f"{method}/thawed"]) == (matrices if "seif" in method else set())
    forgotten = np.abs(found[f"{method}/nll"] - found["nll"]) / found["n_tokens"]
    apart = np.abs(found[f"{method}/nll"] - found[f"{method}/merged"]) / found["n_tokens"]
    assert forgotten.max() > 0.01
    assert apart.max() < (1e-6 if "fp32" in case else 2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_method_does_the_same_to_a_model_again(house, case):
    """Its models are opened a second time, to be followed."""
    assert (house[case]["again"] == house[case]["finetune/nll"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_an_edit_takes_the_place_of_frozen_weights(house, case):
    """The model then predicts with the edited weights, and the next step goes on from them."""
    found = house[case]
    assert found["edit/error"] <= (0 if "fp32" in case else 2e-3)
    assert found["edit/logits"] < (1e-6 if "fp32" in case else 0.02)
    assert found["edit/step"] > 1e-4


@pytest.mark.slow
def test_gradients_of_all_weights_are_refused(house):
    """A configuration is refused before that; this is for code of a user's own."""
    said = str(house["0-fp32"]["said"])
    assert said.startswith("pythia-1b-twin: gradients of all weights were asked for, and only")


@pytest.mark.slow
def test_a_full_model_unlearns_with_adapters(house):
    """It starts from merged weights, which predict as the trained adapters did."""
    strings = tables.read(house.folder / "original/strings.parquet", KINDS["strings"])
    trace = house.read("original", "trace.parquet", "trace")
    trained = trace[trace["epoch"] == trace["epoch"].max()]
    untouched = house.read("none", "unlearned.parquet", "unlearned")
    np.testing.assert_allclose(untouched["nll"], trained["nll"], rtol=1e-5)
    unlearned = house.read(METHOD, "unlearned.parquet", "unlearned")
    models = house.read(METHOD, "models.parquet", "unlearned_models")
    assert (models["distance_to_original"] > 0.1).all()
    assert (models["distance_to_retrained"] > 0).all()
    # The method is followed on the same model once more, and ends where it did before.
    stages = house.read(METHOD, "stages.parquet", "unlearning_stages")
    assert stages["stage"].unique().tolist() == ["unlearning", "4-bit", "relearning"]
    last = stages.loc[stages["stage"] == "unlearning", "forget_loss"].iloc[-1]
    copies = strings["count"].where(strings["split"] == "forget", 0).to_numpy()
    ended = (unlearned["nll"] * copies).sum() / (unlearned["n_tokens"] * copies).sum()
    assert last == pytest.approx(ended, rel=1e-5)
    manifest = json.loads((house["full"] / METHOD / "runs/manifest.json").read_text())
    assert manifest["configuration"]["recipe"]["adapter_rank"] == 4
    manifest = json.loads((house["full"] / "original/runs/manifest.json").read_text())
    assert 0 < manifest["trained_parameters"] < manifest["parameters"] / 2
    assert manifest["configuration"]["recipe"]["adapter"] == "lora"


# What adapters rule out


def test_methods_that_work_on_every_weight_are_known():
    """Their phases read or move all weights while they train."""
    table = read_methods(METHODS)
    assert {name for name, method in table.items() if method.ruled_out_by_adapters} == RULED_OUT
    assert table["kookmin"].ruled_out_by_adapters == (
        "phase 1, select-gradient, reads the gradient of every weight"
    )


def test_the_search_leaves_such_methods_out(monkeypatch):
    """If adapters of a model are trained; the other methods are tried with the same points."""
    monkeypatch.chdir(ROOT)
    over = {"unlearning": {"models": ["opt-1.3b"], "methods": ["finetune", "npo"]}}
    plain = search_of(experiment(DEFAULT, command_line=over).settings).methods
    over["training_by_model"] = {"opt-1.3b": {"adapter": "lora"}}
    tried = search_of(experiment(DEFAULT, command_line=over).settings).methods
    with_grid = {name for name in RULED_OUT if read_methods(METHODS)[name].grid}
    assert plain.keys() - tried.keys() == with_grid
    assert list(tried["scrub"]) == list(plain["scrub"])
