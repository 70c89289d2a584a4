"""The kind of table of the plan."""

from palimpsest import paths
from palimpsest.tables.columns import GROUP_SEED
from palimpsest.tables.kinds import Column, Kind

PLAN = Kind(
    "plan",
    "One row per run; of leave-one-out, one per seed for all its trainings. What each is "
    "expected to need (docs/plan.md).",
    paths.PLAN,
    (
        *GROUP_SEED,
        Column("engine", str, "fleet or deepspeed"),
        Column("trainings", int, "trainings in the row: 1, or of leave-one-out at most"),
        Column("parameters", int, "of the model at its scale; of a twin, in closed form"),
        Column("gpus", int, "GPUs that its job asks for"),
        Column(
            "gpu_memory_gb",
            float,
            "memory on each GPU, GB (10^9 bytes); null for twins, which fit anywhere",
            True,
        ),
        Column("main_memory_gb", float, "main memory of its job, GB, without margin"),
        Column("hours", float, "how long it takes, without margin"),
        Column("training_hours", float, "of these, training"),
        Column("measuring_hours", float, "of these, measuring the strings"),
        Column("checkpoint_hours", float, "of these, writing checkpoints"),
        Column("gpu_hours", float, "hours times GPUs"),
        Column(
            "basis",
            str,
            "where the hours come from: measured (finished runs of the model; checkpoints "
            "count as measuring) or assumed",
        ),
        Column("disk_gb", float, "what it leaves: trace and, if wanted, weights, GB"),
        Column("state_gb", float, "checkpoints on disk while it is under way, GB"),
        Column("done", bool, "whether its trace and manifest are there"),
    ),
)

KINDS = (PLAN,)
