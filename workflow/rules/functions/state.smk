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
        for runs in [*experiment.requests, *experiment.replicates_on_demand]
        for dataset in runs.datasets
    ]


def sections_with_state(wildcards):
    """The sections that list their own jobs; the state of another section's job is never stale."""
    return experiment.sections_with_state


def unfinished_jobs(wildcards):
    """Every job of the sections' own, with all values that decide the key of its state."""
    return [vars(job) for job in experiment.unfinished]


def leftover_files(wildcards):
    """Figures and tables of other configurations."""
    return experiment.leftovers


def other_runs(wildcards):
    """The manifests of runs that only other configurations ask for."""
    return experiment.other_runs


def files_of_recipes(wildcards):
    """Every file of the configuration that is in a folder of its recipe."""
    single = [*TRAINED.values(), *KEPT.values(), paths.MODEL_FOLDER]
    return [
        *trained_files(experiment.single_runs, single),
        *trained_files(
            [*experiment.replicates, *experiment.replicates_on_demand], REPLICATES.values()
        ),
        *(path for files in experiment.outputs.values() for path in files),
    ]
