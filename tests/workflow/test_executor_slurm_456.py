"""With a profile for SLURM, what fits into no partition is refused before any job starts.

When the last test here fails, the plugin has mended #456. Then delete this file,
`palimpsest/slurm/executor_slurm_456.py`, and the call in `workflow/rules/start.smk`.
"""

import logging
import os

import pytest

from helpers.edits import both, edited
from helpers.forks import snakemake_in_a_fork
from helpers.projects import CONFIGFILES, refused
from palimpsest.slurm.partitions import Request

PROFILE = "config/profiles/slurm"
CONFIG, PARTITIONS = f"{PROFILE}/config.yaml", f"{PROFILE}/partitions.yaml"
OWN_ACCOUNT = edited(CONFIG, "slurm_account: lab", "slurm_account: hpc1")
DATASETS = [f"results/datasets/L2/n24-seed{seed}/base/strings.parquet" for seed in (0, 1)]
TRACE = "results/runs/base/default/opt-1.3b-twin/L2/n24-seed1/trace.parquet"
A_QUARTER = both(
    edited(PARTITIONS, "max_runtime: 1d", "max_runtime: 15"),
    edited(PARTITIONS, "max_runtime: 2d", "max_runtime: 12"),
)


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch, tmp_path_factory):
    """SLURM does not answer here, even if other tests run a cluster on this machine."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("sacctmgr", "scontrol", "sinfo", "squeue", "sshare"):
        program = folder / name
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def with_slurm(project, *arguments: str, configfiles=CONFIGFILES):
    """A command with the profile."""
    given = ["--workflow-profile", PROFILE, *arguments]
    more = ["--configfile", *configfiles] if configfiles else []
    return snakemake_in_a_fork(project.folder, [*given, *more])


@pytest.mark.parametrize("dry_run", [["--dry-run"], []])
def test_the_placeholder_is_refused(project, dry_run):
    """In a dry run, too; nothing is made."""
    line = refused(with_slurm(project, *DATASETS, *dry_run))
    assert f"{CONFIG}: default-resources/slurm_account: 'lab' is the placeholder" in line
    assert not (project.folder / "results").exists()


MISFITS = {
    "time of a group": (
        A_QUARTER,
        DATASETS,
        "no partition takes the group data_L2 of 2 jobs, which requests at attempt 2 of 4: "
        "20 minutes, at most 15 (cpu). Lower group-components/data_{language}",
    ),
    "memory": (
        both(*[edited(PARTITIONS, "max_mem_mb: 64000", f"max_mem_mb: {n}") for n in (4000, 5000)]),
        [TRACE],
        "which requests at attempt 2 of 4: 6,000 MB of memory, at most 5,000 (gpu). "
        "Lower hardware/main_memory_gb",
    ),
    "time": (
        edited(PARTITIONS, "max_runtime: 2d", "max_runtime: 2h"),
        [TRACE],
        "Lower what set-resources/train",  # a day without a GPU, or two hours with one
    ),
    "GPUs": (
        edited(PARTITIONS, "max_gpu: 2", "max_gpu: 0"),
        [TRACE],
        "which requests at attempt 1 of 4: 1 GPUs, at most 0 (cpu). Lower processes in the recipe",
    ),
    "cores": (
        edited(CONFIG, "set-resources:\n", "set-threads:\n  dataset: 5\n\nset-resources:\n"),
        DATASETS[:1],
        "a job of dataset (language L2, size 24, seed 0), which requests at attempt "
        "1 of 4: 5 cores, at most 4 (cpu). Lower processes in the recipe or set-threads/dataset",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_what_fits_into_no_partition_is_refused(project, case):
    """One line with file, submission, attempt, amount, what is allowed and a remedy."""
    change, targets, wrong = MISFITS[case]
    both(OWN_ACCOUNT, change)(project.folder)
    done = with_slurm(project, *targets, "--dry-run")
    line = refused(done)
    assert line.startswith(f"error: {PARTITIONS}: no partition takes ")
    assert wrong in line
    assert "Warning" not in done.stdout


def test_a_limit_of_the_configuration_makes_trainings_fit(project):
    """The remedy that the refusal names: no attempt requests more."""
    both(OWN_ACCOUNT, MISFITS["memory"][0])(project.folder)
    within = ["--config", "hardware={main_memory_gb: 5}"]
    done = with_slurm(project, TRACE, "--dry-run", *within)
    assert done.returncode == 0, done.stdout


def test_the_start_of_a_run_and_the_plan_are_refused_as_well(project):
    """The plan checks all jobs of the experiment, and nothing is made."""
    both(OWN_ACCOUNT, A_QUARTER)(project.folder)
    for target in (DATASETS, ["plan"]):
        line = refused(with_slurm(project, *target))
        assert "no partition takes " in line
        assert not (project.folder / "results").exists()


@pytest.mark.parametrize("configfiles", [(), CONFIGFILES], ids=["default", "tour"])
def test_the_shipped_profile_fits_what_is_shipped(project, configfiles):
    """Every group is valid, and ends within the day that the partition without GPUs allows."""
    one_day = edited(PARTITIONS, "max_runtime: 2d", "max_runtime: 1d")
    both(OWN_ACCOUNT, one_day)(project.folder)
    done = with_slurm(project, "--dry-run", "--quiet", "rules", configfiles=configfiles)
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_plugin_still_goes_on_without_a_partition():
    """A request that no partition takes is no error of the plugin: see the top of this file."""
    from snakemake_executor_plugin_slurm.partitions import (
        Partition,
        PartitionLimits,
        get_best_partition,
    )

    cpu = Partition("cpu", PartitionLimits(max_runtime="1h"))
    asked = Request("group", {"runtime": 61}, 1)
    assert get_best_partition([cpu], asked, logging.getLogger()) is None
