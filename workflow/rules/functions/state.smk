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


# The values of a recipe that decide a trace on any machine
OF_TRACES = (
    "epochs",
    "batch_size",
    "warmup_ratio",
    "weight_decay",
    "gradient_clipping",
    "evaluate_every",
)


def folders_of_recipes(wildcards):
    """Every folder with a manifest, its recipe, and the values that the manifest must have."""
    trained = [
        {"path": path, "recipe": one.recipe, "values": values_of_trace(one.recipe, one.one_pass)}
        for one in requested()
        for path in one.paths(paths.RUN if one.replicates is None else paths.REPLICATES)
    ]
    manifests = [path for files in experiment.outputs.values() for path in files]
    made = [
        {"path": os.path.dirname(path), "recipe": name, "values": values_of_trace(name)}
        for path in manifests
        if os.path.basename(path) == "manifest.json"
        for name in path.split("/")
        if name in config["recipes"]
    ]
    return [*trained, *made]


def values_of_trace(recipe, one_pass=None):
    """The values of a recipe that decide a trace; a stream has an epoch for each macro-batch."""
    values = {key: settings.recipe(recipe)[key] for key in OF_TRACES}
    if one_pass is not None:
        values |= {"epochs": one_pass.cohorts, "evaluate_every": one_pass.every}
    return values
