"""The kind of table of the plan."""

from palimpsest import paths
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind

columns = SHARED.extended("""
recipe str: name of the recipe, a key of `recipes` in the configuration
engine str: fleet or deepspeed
trainings int: number of trainings in the row; for leave-one-out an upper bound
gpus int: GPUs that a job requests
gpu_memory_gb float?: memory on each GPU, GB (10^9 bytes); null for twins, which fit anywhere
main_memory_gb float: main memory of a job, GB, without margin
hours float: hours of all trainings in the row, without margin
training_hours float: part of these hours: training
measuring_hours float: part of these hours: measuring the strings
checkpoint_hours float: part of these hours: writing checkpoints
gpu_hours float: hours times GPUs
basis str: source of the hours: measured (from finished runs of the model; checkpoints then count as
    measuring) or assumed
disk_gb float: disk space of the traces and, if wanted, the weights, GB
state_gb float: disk space of the checkpoints of one run in progress, GB
done bool: whether all traces and manifests exist
""")
PLAN = Kind(
    "plan",
    "One row per run, or per seed for all trainings of leave-one-out or of replicates: what they "
    "are expected to need (docs/plan.md).",
    paths.PLAN,
    columns(
        """
        recipe model language size seed variant engine trainings parameters gpus gpu_memory_gb
        main_memory_gb hours training_hours measuring_hours checkpoint_hours gpu_hours basis disk_gb
        state_gb done
        """,
        parameters="int: parameters of the model or twin; for a twin, an estimate",
    ),
)

KINDS = (PLAN,)
