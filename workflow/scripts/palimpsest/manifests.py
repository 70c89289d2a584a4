"""Read manifests: the record of how each run of an experiment was made."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from palimpsest.commands import remake
from palimpsest.errors import UserError


def now() -> str:
    """The time by UTC, to microseconds: later times are later in the order of letters."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def read(path: str | Path) -> dict:
    """Read a manifest of one run, or of several runs; the key `n_runs` then holds their number."""
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a complete manifest ({error}); {remake(path)}") from None


def models(paths: list[str], families: dict[str, str]) -> pd.DataFrame:
    """The models of some runs: model, family and the number of parameters as trained.

    `families` maps the name of every model to its family. No manifest holds the family, because the
    family does not affect a run.
    """
    rows = {}
    for path in paths:
        manifest = read(path)
        rows[manifest["model"]] = {
            "model": manifest["model"],
            "family": families[manifest["model"]],
            "parameters": manifest["parameters"],
        }
    return pd.DataFrame(list(rows.values()))


def initial_weights(paths: Iterable[str]) -> list[dict]:
    """The models of some runs, one row each: how they began, and how large they are.

    A row has `model`, `scale` (`full` or `twin`), `parameters` as trained, `engine`, `precision`,
    `adapter_rank` (None if all weights were trained), and for a full model `source` and `revision`:
    where its pretrained weights come from.
    """
    rows = {}
    for path in paths:
        manifest = read(path)
        row = manifest["configuration"]["row"]
        rows[manifest["model"]] = {
            **{name: manifest[name] for name in ("model", "parameters", "engine", "precision")},
            "scale": manifest["configuration"]["scale"],
            "adapter_rank": manifest["configuration"]["recipe"].get("adapter_rank"),
            "source": row.get("id"),
            "revision": manifest.get("resolved_revision") or row.get("revision"),
        }
    return list(rows.values())


def totals(paths: list[str]) -> dict:
    """The number of runs, their total time, and the packages, hardware and code that made them.

    Empty if nothing was trained, as for a text of the user's own.
    """
    runs = [read(path) for path in paths]
    if not runs:
        return {}
    revisions = sorted({run["revision"] or "unknown" for run in runs})
    return {
        "n_runs": sum(run.get("n_runs", 1) for run in runs),
        "models": list(dict.fromkeys(run["model"] for run in runs)),
        "languages": list(dict.fromkeys(run["language"] for run in runs)),
        "sizes": sorted({run["size"] for run in runs}),
        "seeds": sorted({run["seed"] for run in runs}),
        "epochs": sorted({run["configuration"]["recipe"]["epochs"] for run in runs}),
        "wall_time_seconds": round(sum(run["wall_time_seconds"] for run in runs), 1),
        "packages": runs[0]["packages"],
        "hardware": runs[0]["hardware"],
        "revisions": revisions,
    }
