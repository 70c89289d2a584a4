"""Unlearning on a GPU: the engines agree with each other and the CPU. Skipped without CUDA."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.sampling import Sampler
from palimpsest.sections import KINDS
from palimpsest.unlearning.forgetting_data import build_forgetting

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests/helpers/unlearning_engine.py"
RUN = ["finetune", "gradient-ascent", "kookmin", "seif", "npo", "rmu"]


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """A function that returns the results of methods on a twin under an engine."""
    folder = tmp_path_factory.mktemp("unlearning")
    sampler = Sampler("L2", GrammarCorpus.from_file(ROOT / "config/languages/L2.pcfg"), 0)
    strings = build_forgetting(sampler, 24, 8, 6, False, "string", 0.25)["original"]
    tables.write(folder / "strings.parquet", strings, KINDS["strings"])

    def run(engine, stage=0, precision="fp32", on_gpu=True) -> dict[str, np.ndarray]:
        path = folder / f"{engine}-{stage}-{precision}-{on_gpu}.npz"
        if not path.exists():
            words = [sys.executable, PROGRAM, folder / "strings.parquet", path, engine, stage]
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow/scripts")}
            environment |= {} if on_gpu else {"CUDA_VISIBLE_DEVICES": ""}
            done = subprocess.run(
                list(map(str, [*words, precision, "none", *RUN])),
                env=environment,
                capture_output=True,
                text=True,
                timeout=500,
            )
            assert done.returncode == 0, done.stderr
        return dict(np.load(path))

    return run


def assert_close(ours, theirs, tolerance):
    """No string's loss per token differs by more, whatever the method."""
    for method in ["start", *RUN]:
        name = f"nll/{method}"
        apart = np.abs(ours[name] - theirs[name]) / ours["n_tokens"]
        assert apart.max() < tolerance, method


def test_the_fleet_on_a_gpu_is_close_to_the_cpu(left):
    assert_close(left("fleet"), left("fleet", on_gpu=False), 1e-2)


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_both_engines_agree_on_a_gpu(left, stage):
    ours = left("deepspeed", stage)
    assert_close(ours, left("fleet"), 1e-2)
    assert ours["edit/error"] == 0
    assert ours["frozen/others"] == 0 < ours["frozen/selected"]


def test_auto_precision_is_near_and_edits_are_exact(left):
    ours = left("deepspeed", 2, "auto")
    assert_close(ours, left("fleet"), 0.2)
    assert ours["edit/error"] == 0
    assert ours["frozen/others"] == 0
