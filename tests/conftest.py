"""The markers of whole folders; other files and tests set their own markers."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import hypothesis
import pytest

from palimpsest.errors import UserError
from palimpsest.pretrained.catalogue import CATALOGUE
from palimpsest.pretrained.embedders import EMBEDDERS
from palimpsest.pretrained.packages import find, find_folder

# Several processes run tests at the same time; each uses only the threads that the code asks for.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# Threads that wait for others sleep. By default they try again and again for a while, and where
# more threads run than there are cores, that takes most of the processor's time.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Garbage collection takes a sixth of the time of tests that run in this process.
gc.set_threshold(50_000, 10, 10)

# The duration of an example only shows how busy the machine is.
hypothesis.settings.register_profile("tests", deadline=None)
hypothesis.settings.load_profile("tests")

TESTS = Path(__file__).parent
# Folders whose tests all have a marker; a report is made of figures.
MARKED = {"figures": "figures", "report": "figures", "workflow": "workflow", "gpu": "gpu"}
MARKED |= dict.fromkeys(("benchmarks", "workflow/conda", "workflow/slurm"), "costly")
# The markers of what takes long, the longest first
LONG = ("workflow", "slow")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of these folders, and begin with those that take long.

    Benchmarks are the last of these: one of them needs the cluster that tests use at first.
    """
    for item in items:
        for folder in item.path.relative_to(TESTS).parents:
            if marker := MARKED.get(folder.as_posix()):
                item.add_marker(marker)
    items.sort(
        key=lambda item: [
            *(not item.get_closest_marker(name) for name in LONG),
            "benchmarks" in item.path.parts,
        ]
    )


def pytest_collection_finish() -> None:
    """Exclude what stays to the end from garbage collection: modules, and the tests themselves."""
    gc.freeze()


@pytest.fixture(autouse=True)
def restored_environment() -> Iterator[None]:
    """Take back what a test, or the workflow in this process, writes into the environment."""
    with patch.dict(os.environ):
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests of pretrained models where these are not installed; not where all must run."""
    if item.get_closest_marker("pretrained"):
        try:
            for model in CATALOGUE.values():
                find(model)
            for embedder in EMBEDDERS.values():
                find_folder(embedder)
        except UserError as error:
            (pytest.fail if "PALIMPSEST_CI" in os.environ else pytest.skip)(str(error))
