"""What models say of records on a GPU, by the command of the audit's rule. Skipped without CUDA."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from helpers.commands import SCRIPTS
from helpers.tiny_language_models import TEXTS, write
from palimpsest import tables
from palimpsest.audit.kinds import CONTINUATIONS, PASSES
from palimpsest.audit.membership import ATTACKS
from palimpsest.corpora.kinds import CORPUS
from palimpsest.corpora.records import corpus_table

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")

RECORDS = [text for text in TEXTS if len(text) > 20]


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> dict[int, tuple[pd.DataFrame, pd.DataFrame]]:
    """Passes and continuations of a target and a reference, with a GPU (1) and without (0)."""
    folder = tmp_path_factory.mktemp("audit")
    models = [write(folder / str(seed), seed=seed) for seed in (0, 1)]
    records = [{"text": text, "trained": n % 2 == 0} for n, text in enumerate(RECORDS)]
    (folder / "records.json").write_text(json.dumps(records))
    corpus = corpus_table(folder / "records.json", {"trained": "trained"})
    tables.write(folder / "corpus.parquet", corpus, CORPUS)
    return {gpus: tables_of(folder, models, gpus) for gpus in (1, 0)}


def tables_of(folder: Path, models: list[str], gpus: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    made = [folder / f"{kind}{gpus}.parquet" for kind in ("passes", "continuations")]
    words = [
        *("--language", "mine", "--name", f"tiny{gpus}", "--corpus", folder / "corpus.parquet"),
        *("--passes", made[0], "--continuations", made[1], "--attacks", *ATTACKS),
        *("--model", models[0], "--reference", "other", models[1], "--gpus", gpus),
        *("--prompt", 8, "--continuation", 8, "--neighbours", 2, "--prefixes", 1),
        *("--state", folder / f"state{gpus}", "--evaluation-batch-size", 3),
    ]
    command = [sys.executable, SCRIPTS / "audit_target.py", *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return tables.read(made[0], PASSES), tables.read(made[1], CONTINUATIONS)


def test_passes_on_a_gpu_are_those_of_the_cpu(asked):
    on_gpu, on_cpu = (asked[gpus][0] for gpus in (1, 0))
    assert set(on_cpu["version"]) == {"text", "lowercase", "neighbours", "prefixed"}
    for name in ("role", "version", "place", "id"):
        assert on_gpu[name].tolist() == on_cpu[name].tolist()
    for name in ("log_probs", "means", "deviations", "ends"):
        ours, theirs = (np.concatenate(found[name].tolist()) for found in (on_gpu, on_cpu))
        np.testing.assert_allclose(ours, theirs, atol=1e-4, rtol=1e-4, err_msg=name)
    ranks, others = (np.concatenate(found["ranks"].tolist()) for found in (on_gpu, on_cpu))
    assert (np.abs(ranks - others) <= 1).all()  # two tokens of nearly one probability may swap
    assert (ranks == others).mean() > 0.99


def test_continuations_on_a_gpu_are_those_of_the_cpu(asked):
    on_gpu, on_cpu = (asked[gpus][1] for gpus in (1, 0))
    assert len(on_cpu)
    for name in ("role", "id", "continuation", "generated", "n_right", "n_generated"):
        assert on_gpu[name].tolist() == on_cpu[name].tolist()
    np.testing.assert_allclose(on_gpu["nll"], on_cpu["nll"], rtol=1e-4)
