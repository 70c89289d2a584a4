# Inputs and parameters of the rules of state and of leftovers.
from palimpsest import renamed_results


def requested():
    """Every request for runs, also those of targets that `all` leaves out."""
    return [*experiment.requests, *experiment.replicates_on_demand]


# The runs and jobs of the configuration; state of any other run or job is stale.
def wanted_runs(wildcards):
    """Every run of every target, with all values that decide the key of its state."""
    return [
        {
            "model": runs.model,
            "dataset": dataset,
            "corpus": settings.corpus_file(runs.corpus),
            "learning_rate": table_learning_rate(runs.model, settings.models),
            "engine": settings.engine(runs.model),
            "training": settings.training(runs.model, runs.recipe),
            "predict_end": config["datasets"]["predict_end"],
            "regime": runs.regime.name,
            "left_out": runs.regime.n if isinstance(runs.regime, LeaveOneOut) else None,
            "replicates": runs.replicates.stop if runs.replicates else 0,
        }
        for runs in requested()
        for dataset in runs.datasets
    ]


def unfinished_jobs(wildcards):
    """Every job of the sections' own, with all values that decide the key of its state."""
    return [vars(job) for job in experiment.unfinished]


def folders_of_recipes(wildcards):
    """Every folder with a manifest, its recipe, and the values that the manifest must have."""
    outputs = [path for files in experiment.outputs.values() for path in files]
    return list(renamed_results.folders_of_recipes(settings, requested(), outputs))
