"""The kind of table of the plan."""

from palimpsest import paths
from palimpsest.tables.columns import GROUP_SEED
from palimpsest.tables.kinds import Column, Kind

PLAN = Kind(
    "plan",
    "One row per run, or per seed for all trainings of leave-one-out or of replicates: what they "
    "are expected to need (docs/plan.md).",
    paths.PLAN,
    (
        *GROUP_SEED,
        Column("engine", str, "fleet or deepspeed"),
        Column(
            "trainings", int, "number of trainings in the row; for leave-one-out an upper bound"
        ),
        Column("parameters", int, "parameters of the model or twin; for a twin, an estimate"),
        Column("gpus", int, "GPUs that a job requests"),
        Column(
            "gpu_memory_gb",
            float,
            "memory on each GPU, GB (10^9 bytes); null for twins, which fit anywhere",
            True,
        ),
        Column("main_memory_gb", float, "main memory of a job, GB, without margin"),
        Column("hours", float, "hours of all trainings in the row, without margin"),
        Column("training_hours", float, "part of these hours: training"),
        Column("measuring_hours", float, "part of these hours: measuring the strings"),
        Column("checkpoint_hours", float, "part of these hours: writing checkpoints"),
        Column("gpu_hours", float, "hours times GPUs"),
        Column(
            "basis",
            str,
            "source of the hours: measured (from finished runs of the model; checkpoints then "
            "count as measuring) or assumed",
        ),
        Column("disk_gb", float, "disk space of the traces and, if wanted, the weights, GB"),
        Column("state_gb", float, "disk space of the checkpoints of one run in progress, GB"),
        Column("done", bool, "whether all traces and manifests exist"),
    ),
)

KINDS = (PLAN,)
