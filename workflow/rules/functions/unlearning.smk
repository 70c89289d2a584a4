# Inputs, parameters and resources of the rules of unlearning.
from palimpsest.datasets.sampling import INDEPENDENT
from palimpsest.unlearning import kinds as forgotten
from palimpsest.unlearning.interventions import DRAWN, TRACED, ORIGINAL, RETAIN
from palimpsest.unlearning.judging.jobs import PROBE, judge_of
from palimpsest.unlearning.run.jobs import EXPORT, RESIDUAL, SCORED, UNLEARN, UnlearningRun, jobs_of
from palimpsest.unlearning.tuning.jobs import SEARCH, search_of, transfer_of

unlearning_block = settings.block("unlearning")
unlearning_jobs = jobs_of(settings) if unlearning_block else None
search_jobs = search_of(settings) if unlearning_block else None
transfer_jobs = transfer_of(settings) if unlearning_block else None
judge_jobs = judge_of(settings) if unlearning_block else None
ORIGINAL_DATASET = fill(paths.DATASET, variant=ORIGINAL)
# The figure of the search, which is of no language
TUNING_FIGURES = {
    format: f"results/figures/unlearning_tuning.{format}" for format in paths.FIGURE_FORMATS
}


def unlearning_values(*keys):
    """Some keys of the block `unlearning`, as parameters; a change of other keys reruns nothing."""
    return {key: lookup(f"unlearning/{key}", within=config) for key in keys}


def scoring_values():
    """The values by which forgetting is scored, those of `Rules`."""
    return unlearning_values("confidence", "thresholds", "delta", "bin_width", "cutoff")


def retraining_values():
    """The values of a recipe that say how many steps a retraining takes."""
    recipe = settings.recipe(unlearning_block["recipe"])
    return {key: recipe[key] for key in ("epochs", "batch_size")}


def unlearning_run(wildcards):
    """The model, language, size, seed and recipe in the wildcards."""
    named = wildcards.model, wildcards.language, int(wildcards.size), int(wildcards.seed)
    return UnlearningRun(*named, wildcards.recipe)


def part_of(wildcards):
    """The first and the last of the unlearnings that a job does with every method."""
    return int(wildcards.first), int(wildcards.last)


def forget_file(wildcards):
    """The file with the strings to forget; [] if these strings are drawn at random."""
    path = unlearning_block["forget"]
    return [] if path == DRAWN else path


# Jobs that unlearn


def by_method(pattern, methods):
    """The outputs of a job: one file of every method."""
    return update(expand(pattern, method=list(methods), allow_missing=True))


def weights_to_unlearn(wildcards):
    """The files with the weights that a job needs: its starts, original and retrained models."""
    return unlearning_jobs.weights(unlearning_run(wildcards), *part_of(wildcards))


def methods_and_models(wildcards):
    """What a job is asked."""
    return unlearning_jobs.values(*part_of(wildcards))


def weights_to_export(wildcards):
    """The file with the weights that one unlearned model starts from."""
    named = unlearning_run(wildcards), wildcards.method, int(wildcards.origin)
    try:
        return unlearning_jobs.weights_of_model(*named)
    except UserError as error:
        sys.exit(f"error: {error}")


def model_to_export(wildcards):
    """What the job of one unlearned model is asked."""
    return unlearning_jobs.values_of_model(wildcards.method, int(wildcards.origin))


def weights_to_search_with(wildcards):
    """The files with the weights of the original models of a problem of the search."""
    return search_jobs.weights(unlearning_run(wildcards))


def weights_to_transfer_with(wildcards):
    """The files with the weights of the original models of another problem."""
    return transfer_jobs.weights(unlearning_run(wildcards))


def weights_to_probe(wildcards):
    """The files with the weights of all models of a problem that judges metrics."""
    return judge_jobs.weights(unlearning_run(wildcards))


def of_all_problems(jobs, files):
    """An input function: the files of all problems of one model and language of some jobs."""

    def of_problems(wildcards):
        return files(jobs.of(wildcards.model, wildcards.language))

    return of_problems


def unlearning_minutes(wildcards, attempt):
    """Minutes of a job that unlearns some models with every method, more at every attempt."""
    return minutes_of(unlearning_jobs.n_unlearnings(*part_of(wildcards)), wildcards, attempt)


def export_minutes(wildcards, attempt):
    """Minutes of a job that unlearns one model and keeps it."""
    return minutes_of(1, wildcards, attempt)


def search_minutes(wildcards, attempt):
    """Minutes of a job that tries settings, more at every attempt."""
    return minutes_of(search_jobs.n_unlearnings, wildcards, attempt)


def probe_minutes(wildcards, attempt):
    """Minutes of a job that measures the models of a problem, more at every attempt."""
    return minutes_of(judge_jobs.n_unlearnings, wildcards, attempt)


def transfer_minutes(wildcards, attempt):
    """Minutes of a job that tries the points of light tuning, more at every attempt."""
    return minutes_of(transfer_jobs.n_unlearnings, wildcards, attempt)


def minutes_of(n_unlearnings, wildcards, attempt):
    """Minutes of some unlearnings; one takes at most about the cut-off's share of a training."""
    named = wildcards.model, wildcards.language, int(wildcards.size)
    n_runs = max(1, round(n_unlearnings * unlearning_block["cutoff"]))
    return minutes(planner.job_seconds(*named, n_runs, wildcards.recipe), attempt)


# Evaluations


def trained_on_variant(variant, pattern):
    """An input function: one file from each job that trains on a variant."""

    def files(wildcards):
        return unlearning_jobs.trained(unlearning_run(wildcards), variant, pattern)

    return files


def innocent_traces(wildcards):
    """The traces of innocent models; [] if none are asked for."""
    return unlearning_jobs.innocent_trained(unlearning_run(wildcards), paths.REPLICATES_TRACE)


def unlearned(pattern, which="methods"):
    """An input function: one file of every method from each job that unlearns.

    `which` is "methods", or "ablated" for those with erase and repair phases, and their parts.
    """

    def files(wildcards):
        methods = getattr(unlearning_jobs, which)
        return unlearning_jobs.unlearned(unlearning_run(wildcards), pattern, methods)

    return files


def names_of_parts():
    """The name of the repair phases alone of each method that has erase phases too."""
    return {name: part.name for name, part in unlearning_jobs.parts.items()}


def evaluation_memory(wildcards, attempt):
    """Main memory of an evaluation, in megabytes, more at every attempt."""
    n_predictions = unlearning_jobs.n_predictions(int(wildcards.size))
    return megabytes(memory.evaluation_memory(n_predictions), attempt)


# Inputs of every evaluation
EVALUATED = dict(
    dataset=ORIGINAL_DATASET,
    originals=trained_on_variant(ORIGINAL, paths.REPLICATES_TRACE),
    retrained=trained_on_variant(RETAIN, paths.REPLICATES_TRACE),
    unlearned=unlearned(forgotten.UNLEARNED.path),
    models=unlearned(forgotten.UNLEARNED_MODELS.path),
)
