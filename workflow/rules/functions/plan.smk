# Content of the plan.
import time
from palimpsest.planning.summary import additions, summary


def plan_summary(wildcards):
    """A text with the runs that each section and study adds, and the totals of all runs."""
    whole = summary(experiment.plan, planner.hardware, experiment.derived)
    parts = additions(experiment.added), whole
    return "\n\n".join(filter(None, parts))


def moment(wildcards):
    """The current time: a parameter that always changes, so that the plan is made every time."""
    return time.time()
