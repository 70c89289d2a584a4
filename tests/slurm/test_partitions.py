"""What a job requests, held against the partitions of a site, and the file that describes them."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from helpers.experiments import message
from palimpsest.launch import asked_targets
from palimpsest.slurm.executor_slurm_456 import words_to_check
from palimpsest.slurm.partitions import (
    LIMITS,
    PLACEHOLDERS,
    Request,
    check_against_slurm,
    note_on_placeholders,
    read_partitions,
    shortage,
)

ROOT = Path(__file__).parents[2]
SITE = {
    "cpu": {"max_runtime": "1d", "max_mem_mb": 64000, "max_threads": 4},
    "gpu": {"max_runtime": "2d", "max_mem_mb": 32000, "max_threads": 8, "max_gpu": 2},
}


def partitions(folder: Path, described=SITE):
    """The partitions of a file that describes them so."""
    file = folder / "partitions.yaml"
    file.write_text(yaml.safe_dump({"partitions": described}))
    return read_partitions(str(file))


def request(threads: int = 1, **resources) -> Request:
    return Request("train", resources, threads)


def test_of_equal_partitions_the_one_that_has_gpus_is_named(tmp_path):
    site = partitions(tmp_path, {"cpu": {"max_mem_mb": 9}, "gpu": {"max_mem_mb": 9, "max_gpu": 1}})
    assert "(gpu)" in str(shortage(request(mem_mb=10, gpu=1), site))
    assert "(cpu)" in str(shortage(request(mem_mb=10), site))


@pytest.mark.parametrize(
    ("wants", "refused"),
    [
        (request(runtime=1440, mem_mb=64000, threads=4), None),
        (request(runtime=2880), None),  # a job without a GPU may go to the partition with GPUs
        (request(runtime=2881), "2,881 minutes, at most 2,880 (gpu)"),
        (request(mem_mb=64001), "64,001 MB of memory, at most 64,000 (cpu)"),
        (request(threads=9), "9 cores, at most 8 (gpu)"),
        (request(gpu=3), "3 GPUs, at most 2 (gpu)"),
        (request(gres="gpu:a100:3"), "3 GPUs, at most 2 (gpu)"),
        (request(runtime=2000, mem_mb=64000), "no partition has all of what it requests"),
        (request(gpu=1, mem_mb=64000), "no partition has all of what it requests"),
        (request(slurm_partition="cpu", runtime=2880), "2,880 minutes, at most 1,440 (cpu)"),
        (request(slurm_partition="elsewhere", runtime=2880), None),
    ],
)
def test_a_request_fits_or_its_shortage_is_named(tmp_path, wants, refused):
    found = shortage(wants, partitions(tmp_path))
    assert (refused is None) == (found is None)
    if refused:
        assert refused in str(found)


@given(
    wants=st.fixed_dictionaries({name: st.integers(1, 9) for name in ("runtime", "mem_mb", "gpu")}),
    threads=st.integers(1, 9),
    limits=st.lists(
        st.fixed_dictionaries({name: st.integers(1, 9) for name in LIMITS.values()}),
        min_size=1,
        max_size=3,
    ),
)
def test_a_request_fits_if_and_only_if_a_partition_has_all_of_it(
    tmp_path_factory, wants, threads, limits
):
    described = {f"p{number}": each for number, each in enumerate(limits)}
    site = partitions(tmp_path_factory.mktemp("site"), described)
    fits = any(
        threads <= each["max_threads"] and all(n <= each[LIMITS[k]] for k, n in wants.items())
        for each in limits
    )
    assert (shortage(request(threads=threads, **wants), site) is None) == fits


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (
            "partitions: {cpu: {max_runtimes: 1d}}",
            "cpu: unknown key 'max_runtimes' .did",
        ),
        ("partitions: {cpu: {max_runtime: soon}}", "partitions/cpu/max_runtime: 'soon' must be"),
        ("partitions: {cpu: {max_runtime: -5}}", "partitions/cpu/max_runtime: -5 must be"),
        ("partitions: {cpu: {max_runtime: null}}", "partitions/cpu/max_runtime: null must be"),
        ("partitions: {cpu: {max_runtime: true}}", "partitions/cpu/max_runtime: true must be"),
        ("partitions: {cpu: {max_mem_mb: 64G}}", "partitions/cpu/max_mem_mb: is '64G' and must be"),
        ("partitions: {cpu: {max_gpu: -1}}", "partitions/cpu/max_gpu: is -1 and must be"),
        ("partitions: {cpu: null}", "partitions/cpu: null must be a block of limits"),
        ("partitions: {cpu: 1d}", "partitions/cpu: '1d' must be a block of limits"),
        ("partitions: {1: {max_gpu: 1}}", "partitions: the key 1 is read as a number"),
        ("partitions: {' ': {max_gpu: 1}}", "a partition's name must have letters"),
        ("partitions: []", "partitions: .. must be a block"),
        ("partition: {cpu: {}}", "partitions: null must be a block"),
        ("partitions: {cpu: {max_gpu: 1}", "partitions.yaml:2: "),
        ("partitions: {cpu: {max_gpu: 1, max_gpu: 2}}", "the key 'max_gpu' is there a second time"),
    ],
)
def test_a_wrong_file_of_partitions_is_refused_in_one_line(tmp_path, content, named):
    file = tmp_path / "partitions.yaml"
    file.write_text(content + "\n")
    line = message(lambda: read_partitions(str(file)))
    assert "partitions.yaml:" in line
    assert re.search(named, line), line


def test_the_shipped_file_describes_two_partitions():
    names = [p.name for p in read_partitions(str(ROOT / "config/profiles/slurm/partitions.yaml"))]
    assert names == ["cpu", "gpu"]


def scontrol(folder: Path, monkeypatch, *lines: str) -> None:
    """A program `scontrol` that prints these lines."""
    program = folder / "scontrol"
    program.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_the_file_is_held_against_slurm(tmp_path, monkeypatch):
    """A partition that SLURM does not have, or allows less time, is refused by name."""
    site = partitions(tmp_path)
    scontrol(
        tmp_path,
        monkeypatch,
        "PartitionName=cpu",
        "   MaxTime=1-00:00:00 TotalNodes=2",
        "PartitionName=gpu",
        "   MaxTime=UNLIMITED TotalNodes=2",
    )
    assert check_against_slurm("partitions.yaml", site)
    scontrol(tmp_path, monkeypatch, "PartitionName=cpu", "   MaxTime=12:00:00 TotalNodes=2")
    line = message(lambda: check_against_slurm("partitions.yaml", site))
    assert line.startswith("partitions.yaml: partitions/cpu/max_runtime: 1,440 minutes are more")
    assert "at most 720" in line
    scontrol(tmp_path, monkeypatch, "PartitionName=gpus", "PartitionName=cpu")
    line = message(lambda: check_against_slurm("partitions.yaml", site))
    assert "partitions/gpu: SLURM has no such partition (did you mean 'gpus'?); it has:" in line


def test_without_slurm_the_file_is_believed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not check_against_slurm("partitions.yaml", partitions(tmp_path))


def test_the_partitions_that_come_with_the_profile_are_noted(tmp_path):
    shipped = str(ROOT / "config/profiles/slurm/partitions.yaml")
    note = note_on_placeholders(shipped, read_partitions(shipped))
    assert note.startswith(f"{shipped}: has the partitions that come with the profile")
    for changed in (
        SITE,  # its GPU nodes have half of the memory
        {name: {**limits, "max_runtime": "3d"} for name, limits in PLACEHOLDERS.items()},
        {"cpu": PLACEHOLDERS["cpu"]},
        {**PLACEHOLDERS, "more": {"max_runtime": 10}},
    ):
        assert note_on_placeholders("mine.yaml", partitions(tmp_path, changed)) is None


@pytest.mark.parametrize(
    ("command", "checked"),
    [
        ("plan -j 9 --workflow-profile p", "all -j 9 --workflow-profile p"),
        ("results/plan.parquet", "all"),
        ("plan density --until plan -j 9", "density -j 9"),
        ("plan density a/b.parquet", "density a/b.parquet"),
    ],
)
def test_what_a_plan_is_of_is_checked(command, checked):
    words = command.split()
    assert words_to_check(words, asked_targets(words)) == checked.split()
