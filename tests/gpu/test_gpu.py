"""Training on a GPU: precision, offloading, agreement with the CPU. Skipped without CUDA."""

import json
import os
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
import torch

from helpers.commands import GRAMMAR, finetune
from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.sections import KINDS

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

RECIPE = {
    "epochs": 6,
    "batch_size": 6,
    "micro_batch_size": 6,
    "zero_stage": 2,
    "precision": "auto",
    "checkpoint_every": 2,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A function that trains a twin as the workflow does: its trace and its manifest."""
    folder = tmp_path_factory.mktemp("gpu")
    strings = build(Sampler("L2", GrammarCorpus.from_file(GRAMMAR), 0), "base", 16, 8, False)
    tables.write(folder / "strings.parquet", strings, KINDS["strings"])
    many = build(Sampler("L2", GrammarCorpus.from_file(GRAMMAR), 0), "base", 2048, 8, False)
    tables.write(folder / "many.parquet", many, KINDS["strings"])

    def train(
        name, on_gpu=True, engine="deepspeed", dataset="strings", **recipe
    ) -> tuple[pd.DataFrame, dict]:
        words = finetune(
            dataset=folder / f"{dataset}.parquet",
            trace=folder / f"{name}.parquet",
            manifest=folder / f"{name}.json",
            engine=engine,
            state=folder / f"state-{name}",
            gpus=int(on_gpu),
            **{**RECIPE, **recipe},
        )
        environment = {**os.environ, **({} if on_gpu else {"CUDA_VISIBLE_DEVICES": ""})}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stderr
        manifest = json.loads((folder / f"{name}.json").read_text())
        return tables.read(folder / f"{name}.parquet", KINDS["trace"]), manifest

    return train


def difference(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.Series:
    """Largest difference of a string's loss at each epoch, nats per token."""
    assert ours["string_id"].tolist() == theirs["string_id"].tolist()
    loss = (ours["nll"] - theirs["nll"]).abs() / ours["n_tokens"]
    return loss.groupby(ours["epoch"]).max()


def test_fp32_on_a_gpu_is_close_to_the_cpu(trained):
    """Same initial weights, same order: the untrained loss agrees to rounding, and so on."""
    on_gpu, manifest = trained("gpu-fp32", precision="fp32")
    on_cpu, other = trained("cpu-fp32", on_gpu=False, precision="fp32")
    assert manifest["precision"] == other["precision"] == "float32"
    assert manifest["hardware"]["gpus"]
    assert not other["hardware"]["gpus"]
    between = difference(on_gpu, on_cpu)
    assert between[0] < 1e-5
    assert between.max() < 1e-2


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_every_zero_stage_trains_alike_on_a_gpu(trained, stage):
    """ZeRO shards the state and changes no result."""
    ours, _ = trained(f"zero{stage}", precision="fp32", zero_stage=stage)
    plain, _ = trained("plain", precision="fp32", zero_stage=0)
    assert difference(ours, plain).max() < 1e-3


def test_auto_is_bf16_where_the_gpu_has_it(trained):
    """`auto` trains in bf16 on such a GPU; the model still learns, with losses near fp32's."""
    trace, manifest = trained("auto")
    expected = "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    assert manifest["precision"] == expected
    assert np.isfinite(trace["nll"]).all()
    full, _ = trained("full", precision="fp32")
    between = difference(trace, full)
    assert between[0] < 0.05
    loss = trace.groupby("epoch")["nll"].sum()
    assert loss.iloc[-1] < 0.95 * loss.iloc[0]
    assert manifest["configuration"]["recipe"]["precision"] == "auto"


@pytest.mark.skipif(not shutil.which("g++"), reason="DeepSpeed builds its CPU optimiser with g++")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_optimiser_can_be_kept_in_main_memory(trained, precision):
    """ZeRO 2 with offloading trains like ZeRO 2 without."""
    offloaded, manifest = trained(
        f"offload-{precision}", precision=precision, offload_optimizer="cpu"
    )
    kept, _ = trained(f"kept-{precision}", precision=precision)
    assert manifest["configuration"]["recipe"]["offload_optimizer"] == "cpu"
    between = difference(offloaded, kept)
    assert between[0] < 1e-6
    assert between.max() < (1e-2 if precision == "fp32" else 0.2)


def test_peak_memory_is_recorded(trained):
    """The manifest says what a run needed of the GPU: more than its weights and their gradients."""
    _, manifest = trained("memory", precision="fp32")
    least = 4 * 2 * manifest["parameters"]
    assert (
        least < manifest["peak_gpu_memory_bytes"] < torch.cuda.get_device_properties(0).total_memory
    )


def test_the_same_command_gives_the_same_trace_on_a_gpu(trained):
    """Equal up to rounding, because a GPU may add numbers in another order."""
    one, _ = trained("one", precision="fp32")
    other, _ = trained("other", precision="fp32")
    assert difference(one, other).max() < 1e-3


def test_a_fleet_on_a_gpu_is_close_to_deepspeed_and_to_the_cpu(trained):
    """The stacked operations in plain PyTorch against the whole model, and against the kernels."""
    fleet, manifest = trained("fleet", engine="fleet", precision="fp32")
    assert manifest["engine"] == "fleet"
    assert manifest["hardware"]["gpus"]
    assert manifest["peak_gpu_memory_bytes"] > 0
    alone, _ = trained("fleet-alone", precision="fp32")
    on_cpu, _ = trained("fleet-cpu", on_gpu=False, engine="fleet", precision="fp32")
    for other in (alone, on_cpu):
        between = difference(fleet, other)
        assert between[0] < 1e-5
        assert between.max() < 1e-2


def test_memory_that_runs_out(trained, monkeypatch):
    """With half a gigabyte of free memory, the job tries again with less, with the same result."""
    large = {"batch_size": 2048, "micro_batch_size": 2048, "epochs": 2, "precision": "fp32"}
    whole, manifest = trained("whole", dataset="many", **large)
    assert (manifest["micro_batch_size"], manifest["out_of_memory"]) == (2048, 0)
    share = 5e8 / torch.cuda.get_device_properties(0).total_memory
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", f"per_process_memory_fraction:{share:.6f}")
    parts, manifest = trained("parts", dataset="many", **large)
    assert manifest["micro_batch_size"] < 2048
    assert manifest["micro_batch_size"] * manifest["accumulation_steps"] == 2048
    assert manifest["out_of_memory"] >= 1
    assert difference(whole, parts).max() < 1e-3


def test_a_job_sees_the_devices_that_it_leased(trained):
    """One of the machine's GPUs by its unique identifier, or none."""
    _, manifest = trained("leased", precision="fp32")
    assert manifest["visible_devices"].startswith(("GPU-", "MIG-"))
    assert len(manifest["hardware"]["gpus"]) == 1
    _, manifest = trained("not-leased", on_gpu=False, precision="fp32")
    assert manifest["visible_devices"] == ""
    assert manifest["hardware"]["gpus"] == []
