"""One SLURM cluster for all tests of this folder."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import cluster as slurm
import pytest
from slurm_projects import SlurmProject


def pytest_collection_modifyitems(items):
    """Keep these tests on one worker of their own, where they share the cluster."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("slurm"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """The cluster, running. Without SLURM, root, or a machine to itself, tests are skipped."""
    with ExitStack() as stack:
        try:
            stack.enter_context(slurm.lent())
        except slurm.UnusableError as reason:
            pytest.skip(str(reason))
        yield
        for running in SlurmProject.started:
            running.kill()
