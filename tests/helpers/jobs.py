"""A job of Snakemake that runs `make.py`, without Snakemake."""

import runpy
from pathlib import Path
from types import SimpleNamespace

SCRIPT = Path(__file__).parents[2] / "workflow/scripts/make.py"


class Fields(SimpleNamespace):
    """Named values, as Snakemake gives them."""

    def __init__(self, given: dict):
        super().__init__(**given)

    def items(self):
        return vars(self).items()


def do_job(folder: Path, make: str, **given: dict) -> None:
    """Do the job of a rule that names a function; the log goes to the folder.

    `given` has values by name for `input`, `output`, `params`, `wildcards` and `resources`.
    """
    given.setdefault("params", {})
    given["params"] = {"make": make, "code": "0", **given["params"]}
    names = ("input", "output", "params", "wildcards", "resources")
    parts = {name: Fields(given.get(name, {})) for name in names}
    job = SimpleNamespace(**parts, threads=3, log=[folder / "log"])
    runpy.run_path(str(SCRIPT), {"snakemake": job}, "__main__")
