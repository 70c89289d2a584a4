# What the plan tells.
import time
from palimpsest.planning.summary import summary


def plan_rows(wildcards):
    """What every run needs."""
    return experiment.plan


def plan_summary(wildcards):
    """What all runs need together, in words."""
    return summary(experiment.plan, planner.hardware)


def moment(wildcards):
    """When the plan is asked for, which makes it another one each time."""
    return time.time()
