"""Losses of records under a checkpoint on a GPU, by the command of their rule."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from helpers.commands import SCRIPTS
from helpers.tiny_language_models import TEXTS, write
from palimpsest import tables
from palimpsest.corpora.kinds import CORPUS
from palimpsest.corpora.records import corpus_table
from palimpsest.records.kinds import MEASURED

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


def test_losses_of_records_on_a_gpu_are_those_of_the_cpu(tmp_path):
    model = write(tmp_path / "model")
    (tmp_path / "records.json").write_text(json.dumps(TEXTS))
    tables.write(tmp_path / "corpus.parquet", corpus_table(tmp_path / "records.json", {}), CORPUS)
    found = []
    for gpus in (1, 0):
        table = tmp_path / f"{gpus}.parquet"
        words = [
            *("--language", "mine", "--name", f"tiny{gpus}"),
            *("--corpus", tmp_path / "corpus.parquet"),
            *("--table", table, "--model", model, "--state", tmp_path / "state", "--gpus", gpus),
        ]
        command = [sys.executable, SCRIPTS / "measure_records.py", *words]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(tables.read(table, MEASURED)["loss"].to_numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)
