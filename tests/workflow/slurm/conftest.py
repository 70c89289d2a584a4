"""One SLURM cluster for all tests of this folder."""

from collections.abc import Iterator
from contextlib import ExitStack

import cluster as slurm
import pytest

from helpers.slurm_projects import SlurmProject


@pytest.fixture(scope="module")  # a benchmark in another process may wait for the cluster
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
