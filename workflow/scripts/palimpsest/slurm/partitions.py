"""The partitions of a site, and which of them can take what a job requests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from palimpsest.allowed import Number, checked_number
from palimpsest.configuration.messages import shown
from palimpsest.configuration.yaml_files import check_file, read_file
from palimpsest.errors import UserError, nearest

# For each resource of a job, the limit of a partition.
LIMITS = {
    "runtime": "max_runtime",
    "mem_mb": "max_mem_mb",
    "threads": "max_threads",
    "gpu": "max_gpu",
}
UNITS = {"runtime": "minutes", "mem_mb": "MB of memory", "threads": "cores", "gpu": "GPUs"}
# The partitions of the profile as it comes with the project
PLACEHOLDERS = {
    "cpu": {"max_runtime": 1440, "max_mem_mb": 64000, "max_threads": 4},
    "gpu": {"max_runtime": 2880, "max_mem_mb": 64000, "max_threads": 4, "max_gpu": 2},
}
CLUSTERS = ("slurm_cluster", "cluster", "clusters")
# Limits that are no numbers
OTHERS = ("available_gpu_models", "supports_mpi", "available_constraints")


@dataclass(frozen=True)
class Request:
    """What a submission requests at one attempt, with the names that the plugin reads."""

    name: str
    resources: Mapping[str, Any]
    threads: int

    def of(self, resource: str) -> float:
        from snakemake_executor_plugin_slurm.partitions import parse_gpu_requirements

        if resource == "threads":
            return self.threads
        if resource == "gpu":  # as `gpu` or within `gres`
            return parse_gpu_requirements(self)[0]
        return self.resources.get(resource) or 0


@dataclass(frozen=True)
class Shortage:
    """A resource: a request wants more of it than any partition has.

    `partition` has the most. Without a resource, no single partition has all that is requested.
    """

    resource: str | None = None
    requested: float = 0
    most: float = 0
    partition: str = ""

    def __str__(self) -> str:
        if self.resource is None:
            return "no partition has all of what it requests at the same time"
        unit = UNITS[self.resource]
        return f"{self.requested:,.0f} {unit}, at most {self.most:,.0f} ({self.partition})"


def read_partitions(path: str) -> Sequence:
    """The plugin's partitions of a file; `UserError` that names the key if a limit is wrong."""
    from snakemake_executor_plugin_slurm.partitions import read_partition_file

    check_file(path)
    partitions = read_file(path).get("partitions")
    if not isinstance(partitions, dict) or not partitions:
        raise UserError(
            f"{path}: partitions: {shown(partitions)} must be a block with a partition's name and "
            "its limits, such as: cpu: {max_runtime: 1d}"
        )
    for name, limits in partitions.items():
        _check_limits(f"{path}: partitions/{name}", name, limits)
    return read_partition_file(path)


def _check_limits(where: str, name: str, limits: Any) -> None:
    from snakemake_executor_plugin_slurm.partitions import PartitionLimits

    known = [*(field.name for field in fields(PartitionLimits)), *CLUSTERS]
    if not name.strip():
        raise UserError(f"{where}: a partition's name must have letters; give it one")
    if not isinstance(limits, dict):
        raise UserError(f"{where}: {shown(limits)} must be a block of limits: {', '.join(known)}")
    for key, value in limits.items():
        if key not in known:
            hint = nearest(key, known)
            raise UserError(f"{where}: unknown key {key!r}{hint}; known: {', '.join(known)}")
        if key == "max_runtime":
            _check_time(f"{where}/{key}", value)
        elif key not in (*OTHERS, *CLUSTERS):
            checked_number(f"{where}/{key}", value, Number(least=0))


def _check_time(where: str, value: Any) -> None:
    from snakemake_executor_plugin_slurm.utils import parse_time_to_minutes
    from snakemake_interface_common.exceptions import WorkflowError

    try:
        minutes = parse_time_to_minutes(value)
    except (WorkflowError, ValueError, TypeError, AttributeError):
        minutes = 0
    if isinstance(value, bool) or minutes <= 0:
        raise UserError(f"{where}: {shown(value)} must be minutes, or a time such as 12h or 2d")


def shortage(request: Request, partitions: Iterable) -> Shortage | None:
    """Why no partition takes a request; None if one does, or if the request names its own.

    The plugin itself decides, as it does when it submits the job.
    """
    named = request.resources.get("slurm_partition")
    open_to_it = [p for p in partitions if not named or p.name == named]
    if not open_to_it or any(p.score_job_fit(request) is not None for p in open_to_it):
        return None
    gpus = request.of("gpu")
    for resource, limit in LIMITS.items():
        best = max(
            open_to_it,
            key=lambda one: (getattr(one.limits, limit), one.limits.max_gpu >= gpus),
        )
        most = getattr(best.limits, limit)
        if request.of(resource) > most:
            return Shortage(resource, request.of(resource), most, best.name)
    return Shortage()


def note_on_placeholders(path: str, partitions: Sequence) -> str | None:
    """What to say if the partitions are those that come with the profile; None for any others."""
    described = {
        partition.name: {limit: getattr(partition.limits, limit) for limit in limits}
        for partition in partitions
        if (limits := PLACEHOLDERS.get(partition.name))
    }
    if described != PLACEHOLDERS or len(partitions) != len(PLACEHOLDERS):
        return None
    return (
        f"{path}: has the partitions that come with the profile, and SLURM is not here to confirm "
        "them; describe those of your site before you rely on what fits (docs/slurm.md)"
    )


def check_against_slurm(path: str, partitions: Iterable) -> bool:
    """Raise `UserError` if a partition does not exist, or if SLURM gives it less time.

    Returns whether SLURM answered; otherwise nothing is checked.
    """
    from snakemake_executor_plugin_slurm.partitions import (
        PartitionLimits,
        generate_partitions_from_slurm_query,
    )
    from snakemake_interface_common.exceptions import WorkflowError

    try:
        real = generate_partitions_from_slurm_query(None)["partitions"]
    except WorkflowError:  # no SLURM on this machine, or no answer
        return False
    for partition in partitions:
        if partition.partition_cluster is not None or not real:
            continue
        where = f"{path}: partitions/{partition.name}"
        if partition.name not in real:
            hint = nearest(partition.name, real)
            raise UserError(
                f"{where}: SLURM has no such partition{hint}; it has: {', '.join(real)}"
            )
        allowed = PartitionLimits(**real[partition.name]).max_runtime
        if partition.limits.max_runtime > allowed:
            raise UserError(
                f"{where}/max_runtime: {partition.limits.max_runtime:,.0f} minutes are more than "
                f"SLURM allows there; write at most {allowed:,.0f}"
            )
    return bool(real)
