# Inputs, parameters and resources of the rules of unlearning.
import json

from palimpsest.unlearning import kinds as forgotten
from palimpsest.unlearning.run.jobs import REMAINING, SCORED, Forgetter, jobs_of
from palimpsest.unlearning.tuning.jobs import search_of
from palimpsest.datasets.sampling import INDEPENDENT
from palimpsest.unlearning.interventions import DRAWN, ORIGINAL, RETAIN

UNLEARN = os.path.relpath(os.path.join(PROJECT, "workflow/scripts/unlearn.py"))
EXPORT = os.path.relpath(os.path.join(PROJECT, "workflow/scripts/export_unlearned.py"))
SEARCH = os.path.relpath(os.path.join(PROJECT, "workflow/scripts/search_settings.py"))

unlearning_jobs = jobs_of(settings) if settings.block("unlearning") else None
search_jobs = search_of(settings) if unlearning_jobs else None
ORIGINAL_DATASET = fill(paths.DATASET, variant=ORIGINAL)

# The command that unlearns
MAKE_FORGET = (
    f"{OF_THE_MODEL}"
    " --weights {input.weights} --work {params.work:q} --afterwards {params.afterwards:q}"
    " --predictions {output.unlearned} --unlearned-models {output.models}"
    f" --stages {{output.stages}} --manifests {{output.manifests}}{HOW_TO_TRAIN}"
)
# The command that unlearns one model and keeps it
EXPORT_UNLEARNED = (
    f"{OF_THE_MODEL}"
    " --weights {input.weights} --wanted {params.wanted:q} --cutoff {params.cutoff}"
    f" --folder {{output.folder}}{HOW_TO_TRAIN}"
)
# The command that tries settings of methods
SEARCH_SETTINGS = (
    f"{OF_THE_MODEL}"
    " --weights {input.weights} --points {params.points:q} --n {params.n}"
    " --cutoff {params.cutoff} --searched {output.searched} --manifests {output.manifests}"
    f"{HOW_TO_TRAIN}"
)


def unlearning_values(*keys):
    """Some keys of the block `unlearning`, as parameters; a change of other keys reruns nothing."""
    return {key: lookup(f"unlearning/{key}", within=config, default=None) for key in keys}


# The figure of the search, which is of no language
TUNING_FIGURES = {
    format: f"results/figures/unlearning_tuning.{format}" for format in paths.FIGURE_FORMATS
}

# The recipe of the models that forget, with which the steps of a method are compared
RECIPE_TO_FORGET = settings.recipe(unlearning_jobs.block["recipe"] if unlearning_jobs else DEFAULT)
# The values that affect an evaluation.
SETUPS = unlearning_values("setups", "n", "repetitions", "pool")
SCORING = {
    **unlearning_values("confidence", "thresholds", "delta", "bin_width", "cutoff"),
    "epochs": RECIPE_TO_FORGET["epochs"],
    "batch_size": RECIPE_TO_FORGET["batch_size"],
}


def forgetter(wildcards):
    """The model, language, size, seed and recipe in the wildcards."""
    named = wildcards.model, wildcards.language, int(wildcards.size), int(wildcards.seed)
    return Forgetter(*named, wildcards.recipe)


def part_of(wildcards):
    """The first and the last of the unlearnings that a job does with every method."""
    return int(wildcards.first), int(wildcards.last)


def unlearned_files(name):
    """The outputs of a job that unlearns: one file for every method."""
    methods = unlearning_jobs.methods if unlearning_jobs else ["none"]
    return update(
        expand(f"{forgotten.UNLEARNED_FOLDER}/{name}", method=methods, allow_missing=True)
    )


def trained_on_variant(variant, pattern):
    """An input function: one file from each job that trains on a variant."""

    def files(wildcards):
        return unlearning_jobs.trained(forgetter(wildcards), variant, pattern)

    return files


def innocent_traces(wildcards):
    """The traces of innocent models; [] if none are asked for."""
    return unlearning_jobs.innocent_trained(forgetter(wildcards), paths.REPLICATES_TRACE)


def unlearned(name):
    """An input function: one file of every method from each job that unlearns."""

    def files(wildcards):
        return unlearning_jobs.unlearned(forgetter(wildcards), unlearning_jobs.methods, name)

    return files


def weights_to_unlearn(wildcards):
    """The files with the weights that a job needs: its starts, original and retrained models."""
    return unlearning_jobs.weights(forgetter(wildcards), *part_of(wildcards))


def forget_file(wildcards):
    """The file with the strings to forget; [] if these strings are drawn at random."""
    path = config["unlearning"]["forget"]
    return [] if path == DRAWN else path


def methods_and_models(wildcards):
    """The phases of every method, and the models that a job applies it to, as JSON.

    One text, because Snakemake is slow with a list of thousands of items.
    """
    models = unlearning_jobs.models_of_job(*part_of(wildcards))
    return json.dumps({"phases": unlearning_jobs.phases(), "models": models})


def after_unlearning(wildcards):
    """The cut-off, and what is done with the unlearned models, as JSON."""
    return json.dumps(unlearning_jobs.afterwards)


def weights_to_export(wildcards):
    """The file with the weights that one unlearned model starts from."""
    start = unlearning_jobs.start_of(wildcards.method, int(wildcards.origin))
    found = unlearning_jobs.trained_among(
        forgetter(wildcards), start["variant"], paths.REPLICATES_WEIGHTS, [start["start"]]
    )
    if not found:
        sys.exit(f"error: unlearning/n: too small for a model {wildcards.origin}; raise n")
    return found


def model_to_export(wildcards):
    """The method, its phases and the model that it starts from, as JSON."""
    phases = unlearning_jobs.phases()
    if wildcards.method not in phases:
        known = ", ".join(phases)
        sys.exit(f"error: unlearning/methods: has no {wildcards.method!r}; it has: {known}")
    named = {"method": wildcards.method, "origin": int(wildcards.origin)}
    start = unlearning_jobs.start_of(wildcards.method, int(wildcards.origin))
    return json.dumps({**named, "phases": phases[wildcards.method], **start})


def export_minutes(wildcards, attempt):
    """Minutes of a job that unlearns one model and keeps it."""
    return minutes(unlearning_seconds(wildcards, 1), attempt)


def unlearning_minutes(wildcards, attempt):
    """Minutes of a job that unlearns some models with every method, more at every attempt."""
    first, last = part_of(wildcards)
    n_methods = len(unlearning_jobs.methods)
    return minutes(unlearning_seconds(wildcards, n_methods * (last - first + 1)), attempt)


def unlearning_seconds(wildcards, n_unlearnings):
    """Seconds of some unlearnings; one takes at most about the cut-off's share of a training."""
    named = wildcards.model, wildcards.language, int(wildcards.size)
    n_runs = max(1, round(n_unlearnings * config["unlearning"]["cutoff"]))
    return planner.job_seconds(*named, n_runs, wildcards.recipe)


def evaluation_memory(wildcards, attempt):
    """Main memory of an evaluation, in megabytes, more at every attempt."""
    n_predictions = unlearning_jobs.n_predictions(int(wildcards.size))
    return megabytes(memory.evaluation_memory(n_predictions), attempt)


# The search for the settings of methods


def searched_files(name):
    """The outputs of a job that tries settings: one file for every method with a grid."""
    methods = list(search_jobs.methods) if search_jobs else ["none"]
    return update(expand(f"{forgotten.SEARCH_FOLDER}/{name}", method=methods, allow_missing=True))


def weights_to_search_with(wildcards):
    """The files with the weights of the original models of a problem of the search."""
    return search_jobs.weights(forgetter(wildcards))


def points_to_search(wildcards):
    """For every method, the phases of each of its points that are tried, as JSON."""
    return json.dumps(search_jobs.phases())


def search_minutes(wildcards, attempt):
    """Minutes of a job that tries settings, more at every attempt."""
    n_points = sum(map(len, search_jobs.methods.values()))
    n_unlearnings = n_points * config["unlearning"]["search"]["n"]
    return minutes(unlearning_seconds(wildcards, n_unlearnings), attempt)


def every_searched_table(wildcards):
    """The table of every method and problem of the search."""
    return search_jobs.searched()


def datasets_of_search(wildcards):
    """The dataset of every problem of the search."""
    return [fill(ORIGINAL_DATASET, **vars(one)) for one in search_jobs.forgetters]


def traces_of_search(wildcards):
    """The traces of the retrained models of every problem of the search."""
    return [
        path
        for one in search_jobs.forgetters
        for path in search_jobs.trained(one, RETAIN, paths.REPLICATES_TRACE)
    ]


def settings_to_search(wildcards):
    """For every method and point of the search: the values that the point sets."""
    return json.dumps(
        {
            name: {point: unlearning_jobs.table[name].settings()[point] for point in points}
            for name, points in search_jobs.methods.items()
        }
    )


# Inputs of every evaluation, in addition to the unlearned models
EVALUATED_FROM = dict(
    dataset=ORIGINAL_DATASET,
    originals=trained_on_variant(ORIGINAL, paths.REPLICATES_TRACE),
    retrained=trained_on_variant(RETAIN, paths.REPLICATES_TRACE),
)
