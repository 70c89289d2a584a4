"""The command lines of the scripts that train and that query, as the workflow gives them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from helpers.forks import python
from palimpsest.regimes import LEAVE_ONE_OUT

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "workflow/scripts"
MODELS = ROOT / "config/models.tsv"
GRAMMAR = ROOT / "config/languages/L2.pcfg"
# A short training on the CPU; a test changes what it is about.
RECIPE = {
    "learning_rate": 3e-3,
    "epochs": 2,
    "batch_size": 8,
    "micro_batch_size": 8,
    "warmup_ratio": 0.05,
    "weight_decay": 0.0,
    "gradient_clipping": 1.0,
    "zero_stage": 0,
    "offload_optimizer": "none",
    "precision": "fp32",
    "predict_end": False,
    "evaluate_every": 1,
    "evaluation_batch_size": 64,
    "checkpoint_every": 0,
}
TWIN = {
    "model": "llama-3.2-1b-twin",
    "models": MODELS,
    "corpus": GRAMMAR,
    "engine": "deepspeed",
}


NO_VALUES = MappingProxyType({})


def printed_by(code: str) -> list[str]:
    """The words that a new Python prints, which finds the library."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def finetune(forked: bool = True, **flags) -> list[str]:
    """The command that trains: `batch_size=8` is the flag `--batch-size 8`.

    Without `regimes`, a trace in a folder leave-one-out is of this regime, and others are single.
    """
    if "trace" in flags and "regimes" not in flags:
        given = flags["trace"]
        traces = [given] if isinstance(given, str | Path) else list(given)
        folders = [Path(trace).parent.name for trace in traces]
        flags["trace"] = traces
        flags["regimes"] = [
            folder if folder.startswith(LEAVE_ONE_OUT) else "single" for folder in folders
        ]
    return command("finetune.py", forked, **{**TWIN, **RECIPE, **flags})


def query(place: str, *tables: Iterable, values: Mapping = NO_VALUES, **flags) -> list[str]:
    """The command that queries models, with flags as above; `tables` are the files of each kind."""
    flags = {**TWIN, **RECIPE, **flags, "query": place, "values": json.dumps(dict(values))}
    words = command("query.py", **flags)
    return words + [str(word) for files in tables for word in ("--tables", *files)]


def command(script: str, forked: bool = True, **flags) -> list[str]:
    """The command line of a script, in a fork or a new Python; a flag may have several values."""
    words = [python() if forked else sys.executable, SCRIPTS / script]
    for name, given in flags.items():
        several = isinstance(given, Iterable) and not isinstance(given, str)
        words += [f"--{name.replace('_', '-')}", *(given if several else [given])]
    return [str(word) for word in words]
