# Inputs, parameters and resources of the rules of unlearning.
from palimpsest.unlearning import kinds as forgotten
from palimpsest.unlearning.jobs import SCORED, Forgetter, jobs_of
from palimpsest.unlearning.methods.table import METHOD_OR_POINT
from palimpsest.datasets.sampling import INDEPENDENT
from palimpsest.variants import DRAWN, ORIGINAL, RETAIN

UNLEARN = os.path.relpath(os.path.join(PROJECT, "workflow/scripts/unlearn.py"))

unlearning_jobs = jobs_of(settings) if settings.block("unlearning") else None
ORIGINAL_DATASET = fill(paths.DATASET, variant=ORIGINAL)

# The command that unlearns
MAKE_FORGET = (
    OF_THE_MODEL
    + " --method {wildcards.method} --phases {params.phases:q} --weights {input.weights}"
    " --variant {params.variant} --starts {params.starts} --origins {params.origins}"
    " --draws {params.draws} --relearn-models {params.relearn_models}"
    " --relearn-epochs {params.relearn_epochs} --predictions {output.unlearned}"
    " --unlearned-models {output.models} --manifest {output.manifest}"
    f"{HOW_TO_TRAIN}"
)


def unlearning_values(*keys):
    """Some keys of the block `unlearning`, as parameters; a change of other keys reruns nothing."""
    return {key: lookup(f"unlearning/{key}", within=config, default=None) for key in keys}


# The values that affect an evaluation.
SETUPS = unlearning_values("setups", "n", "repetitions", "pool", "seed")
SCORING = {
    **unlearning_values("confidence", "thresholds", "delta", "bin_width", "cutoff"),
    "epochs": lookup("unlearning/training/epochs", within=config, default=None),
    "batch_size": lookup("training/batch_size", within=config),
}


def forgetter(wildcards):
    """The model, language, size and seed in the wildcards."""
    named = wildcards.model, wildcards.language, int(wildcards.size), int(wildcards.seed)
    return Forgetter(*named)


def part_of(wildcards):
    """The method of a job, and the first and last of the method's unlearnings that the job does."""
    return wildcards.method, int(wildcards.first), int(wildcards.last)


def trained_on_variant(variant, pattern):
    """An input function: one file from each job that trains on a variant."""

    def files(wildcards):
        return unlearning_jobs.trained(forgetter(wildcards), variant, pattern)

    return files


def unlearned_by(which, name):
    """An input function: one file from each job that unlearns.

    `which` is "methods" for the methods, or "points" for the points of their grids.
    """

    def files(wildcards):
        methods = getattr(unlearning_jobs, which)
        return unlearning_jobs.unlearned(forgetter(wildcards), methods, name)

    return files


def weights_to_unlearn(wildcards):
    """The files with the weights that a job needs: its starts, original and retrained models."""
    return unlearning_jobs.weights(forgetter(wildcards), *part_of(wildcards))


def forget_file(wildcards):
    """The file with the strings to forget; [] if these strings are drawn at random."""
    path = config["unlearning"]["forget"]
    return [] if path == DRAWN else path


def unlearning_recipe(wildcards):
    """The values of the block `training` for the models of the unlearning, as flags."""
    return as_flags(unlearning_jobs.training(wildcards.model))


def phases(wildcards):
    """The phases of a method, as JSON."""
    return unlearning_jobs.phases(wildcards.method)


def origins(wildcards):
    """For each unlearned model of a job: the replicate of its original model."""
    return as_text(unlearning_jobs.origins(*part_of(wildcards)))


def unlearning_numbers(wildcards):
    """For each unlearned model of a job: its number among the unlearnings of its original model."""
    return as_text(unlearning_jobs.numbers(*part_of(wildcards)))


def variant_to_start_from(wildcards):
    """The variant of the models that a job starts from."""
    return unlearning_jobs.starts(*part_of(wildcards))[0]


def starts(wildcards):
    """The replicates of the models that a job starts from."""
    return as_text(unlearning_jobs.starts(*part_of(wildcards))[1])


def as_text(numbers):
    """Numbers as one text, because Snakemake is slow with a list of thousands of items."""
    return " ".join(map(str, numbers))


def unlearning_minutes(wildcards, attempt):
    """Minutes of a job that unlearns some models, more at every attempt."""
    n_runs = int(wildcards.last) - int(wildcards.first) + 1
    training = config["unlearning"]["training"]
    named = wildcards.model, wildcards.language, int(wildcards.size)
    return minutes(planner.job_seconds(*named, n_runs, training), attempt)


def evaluation_memory(wildcards, attempt):
    """Main memory of an evaluation, in megabytes, more at every attempt."""
    n_predictions = unlearning_jobs.n_predictions(int(wildcards.size))
    return megabytes(memory.evaluation_memory(n_predictions), attempt)


def grid_points(wildcards):
    """The method and the settings of every point in the grids of the methods in `tuning`."""
    return unlearning_jobs.settings_of_points()


# Inputs of every evaluation, in addition to the unlearned models
EVALUATED_FROM = dict(
    dataset=ORIGINAL_DATASET,
    originals=trained_on_variant(ORIGINAL, paths.REPLICATES_TRACE),
    retrained=trained_on_variant(RETAIN, paths.REPLICATES_TRACE),
    manifests=trained_on_variant(RETAIN, paths.REPLICATES_MANIFEST),
)
