# Inputs, outputs and resources of training.
import json
from collections import Counter

from palimpsest import training_rules
from palimpsest.models.table import learning_rate as table_learning_rate
from palimpsest.regimes import MANY_MODELS, LeaveOneOut
from palimpsest.requests import CHECKPOINTS, FOLDER, TOKENS, WEIGHTS, Runs

FINETUNE = os.path.relpath(os.path.join(PROJECT, "workflow/scripts/finetune.py"))
# A resource like `checkpoint_every`: it affects no result, so a change must rerun nothing.
TRACKERS = ",".join(config["trackers"]) or "none"

# No rule of a single run makes the files of these.
OF_MANY_MODELS = "|".join(MANY_MODELS)
TRAINED = {"trace": paths.TRACE, "manifest": paths.MANIFEST}
# Files that only some runs keep
KEPT = {WEIGHTS: paths.WEIGHTS, TOKENS: paths.TOKENS, CHECKPOINTS: paths.CHECKPOINTS}
# Those that the rule of a single run makes
KEPT_ALONE = {WEIGHTS: paths.WEIGHTS} if config["save_weights"] else {}

REPLICATES = {
    "trace": paths.REPLICATES_TRACE,
    "manifest": paths.REPLICATES_MANIFEST,
    "weights": paths.REPLICATES_WEIGHTS,
}


def learning_rate(wildcards):
    """Peak learning rate of a model (or of its twin), from the table of models."""
    return table_learning_rate(wildcards.model, settings.models)


def engine(wildcards):
    return settings.engine(wildcards.model)


def model_row(wildcards):
    """The values in a model's row of the table of models that affect its traces."""
    row, scale = resolve(wildcards.model, settings.models)
    return str(row.decisive(scale))


def training_values(wildcards):
    """The values of a recipe for a model."""
    with refusing():
        return settings.training(wildcards.model, wildcards.recipe)


def values_of_recipe(wildcards):
    """The values of a recipe for a model, as flags."""
    return as_flags(training_values(wildcards))


def checkpoint_every(wildcards):
    return training_values(wildcards)["checkpoint_every"]


def as_flags(training):
    """The values of a recipe as flags, without `checkpoint_every`: it affects no result."""
    keys = sorted(training.keys() - {"checkpoint_every"})
    return " ".join(f"--{key.replace('_', '-')} {training[key]}" for key in keys)


# All values that affect a trace, except its data. A change of any other key reruns no training.
RECIPE = dict(
    values=values_of_recipe,
    predict_end=lookup("datasets/predict_end", within=config),
    models=lookup("models_table", within=config),
    row=model_row,
    engine=engine,
    learning_rate=learning_rate,
)

# Flags of every command that trains or unlearns: first the model, then (below) the recipe and the
# machine. A warning about a key of a recipe is printed on the screen; if the command fails, its
# error line is.
OF_THE_MODEL = (
    "python {params.script:q} --recipe {wildcards.recipe} --model {wildcards.model}"
    " --models {params.models:q}"
    " --engine {params.engine} --corpus {input.corpus:q} --dataset {input.dataset}"
)


def to_log(warnings):
    """The end of a command: a log, of which some warnings or else the error are shown."""
    return (
        f" > {{log}} 2>&1 && {{{{ grep '^{warnings}' {{log}} >&2 || true; }}}}"
        " || {{ grep '^error:' {log} >&2 || tail -n 1 {log} >&2; exit 1; }}"
    )


# The end of a command that asks models: where its state is, what it may use, and its log
ON_THIS_MACHINE = (
    f" --state {paths.STATE} --threads {{threads}} --gpus {{resources.gpu}}{to_log('WARNING: ')}"
)
HOW_TO_TRAIN = (
    " --learning-rate {params.learning_rate} --predict-end {params.predict_end}"
    f" --state {paths.STATE}"
    " --threads {threads} --memory-mb {resources.mem_mb} --gpus {resources.gpu}"
    " {params.values} --checkpoint-every {resources.checkpoint_every}"
    f"{to_log('WARNING: recipes: ')}"
)


def train_command(weights, more=""):
    """The command that trains; it also delivers the weights if `weights` is true."""
    delivery = " --trace {output.trace} --manifest {output.manifest}"
    if weights:
        delivery += " --weights {output.weights}"
    delivery += " --trackers {resources.trackers}"
    return f"{OF_THE_MODEL}{delivery}{more}{HOW_TO_TRAIN}"


REPLICATED = " --regimes replicates --replicates {wildcards.first} {wildcards.last}"
QUERY = os.path.relpath(os.path.join(PROJECT, "workflow/scripts/query.py"))


def query_command(*tables, weights="weights", manifest="{output.manifest}"):
    """The command that queries trained models; `tables` name its outputs, in the query's order."""
    written = "".join(f" --tables {{output.{name}}}" for name in tables)
    return (
        f"{OF_THE_MODEL} --query {{params.query}} --values {{params.query_values:q}}"
        f" --weights {{input.{weights}}}{written} --manifest {manifest}{HOW_TO_TRAIN}"
    )


def asking(query, values=None):
    """The parameters of a rule that queries trained models.

    `values` are the values of the query, or a function of the wildcards that gives them. A query
    of an extension is asked again if its code changes; one of the library is not.
    """

    def as_json(wildcards):
        return json.dumps((values(wildcards) if callable(values) else values) or {})

    asked = {"query": query, "query_values": as_json, "script": QUERY}
    return {**RECIPE, **asked, **own_code(query)}


TRAIN = train_command(weights=False)
TRAIN_ONE = train_command(weights=config["save_weights"])


def trained_files(requests, patterns):
    """The paths of some patterns for all requested runs."""
    return [path for pattern in patterns for runs in requests for path in runs.paths(pattern)]


def all_runs(job):
    """A function that expands a pattern to all runs of a job, for any model and language."""

    def files(pattern):
        return [
            path
            for runs in job
            for path in expand(pattern, variant=runs.variant, seed=runs.seeds, allow_missing=True)
        ]

    return files


def trained_together(job):
    """The outputs of a job that trains several runs."""
    outputs = {name: update(all_runs(job)(pattern)) for name, pattern in TRAINED.items()}
    kept = kept_files(job)
    if CHECKPOINTS in kept:
        kept[CHECKPOINTS] = [directory(folder) for folder in kept[CHECKPOINTS]]
    return {**outputs, **{name: update(files) for name, files in kept.items()}}


def trained_alone():
    """The outputs of a job that trains one run."""
    return {name: update(pattern) for name, pattern in {**TRAINED, **KEPT_ALONE}.items()}


def keeping(name, requests):
    """The requests whose runs keep a file, such as `tokens`."""
    return [runs for runs in requests if name in runs.keeps]


def kept_files(job):
    """The paths of the files that only some runs of a job keep, by name; models stay wildcards."""
    found = {name: all_runs(keeping(name, job))(pattern) for name, pattern in KEPT.items()}
    return {name: files for name, files in found.items() if files}


def trained_on(job):
    """The datasets that the runs of a job read."""
    return [
        path
        for runs in job
        for path in expand(
            paths.DATASET, variant=runs.intervention, seed=runs.seeds, allow_missing=True
        )
    ]


def named_apart(job):
    """A suffix for the log of a job: seeds and variant of a full model; for a twin mostly empty."""
    runs, *_ = job
    if settings.is_twin(runs.model):
        return f"-{runs.job}" if runs.job else ""
    return f"-seed{'-'.join(map(str, runs.seeds))}/{runs.variant}"


def minutes_of_all(job):
    """A resource function: the minutes of a job that trains all these runs."""

    def asked(wildcards, attempt):
        size = int(wildcards.size)
        n_runs = Counter()
        for runs in job:
            n_runs[runs.regime] += len(runs.seeds) * runs.regime.trainings(size)
        named = wildcards.model, wildcards.language, size
        took = planner.job_seconds(*named, n_runs, wildcards.recipe)
        return minutes(took, attempt)

    return asked


def values_of_all(job):
    """A parameter function: values of the recipe, the number of strings to leave out, kept files.

    The last two are named where there are any. They are in a parameter and not in the command,
    because the rules of all jobs share one command.
    """
    limits = {runs.regime.n for runs in job if isinstance(runs.regime, LeaveOneOut)} - {None}
    left_out = [f"--left-out {n}" for n in limits]
    regimes = [name for runs in job for name in [runs.regime.name] * len(runs.seeds)]
    kept = [word for name, files in kept_files(job).items() for word in (f"--{name}", *files)]

    # A function of `output` would not do: Snakemake ignores changes of such parameters.
    def flags(wildcards):
        files = [word.format(**wildcards) for word in kept]
        values = values_of_recipe(wildcards)
        return " ".join([values, "--regimes", *regimes, *left_out, *files])

    return flags


def runs_of(wildcards):
    """The request for a run. Another model, seed or size may be asked for than a section's.

    A run that is like no request is a single one.
    """
    size = int(wildcards.size)
    alike = [runs for runs in experiment.single_runs if runs.variant == wildcards.variant]
    same_size = [runs for runs in alike if runs.size == size]
    if same_size or alike and not measured_by_size(alike[0]):
        return (same_size or alike)[0]
    return Runs(wildcards.model, wildcards.language, size, wildcards.variant)


def measured_by_size(runs):
    """Whether the macro-batches between two measurements of a stream depend on its size."""
    return runs.one_pass is not None and 1 < runs.one_pass.every < runs.one_pass.cohorts


def values_of_one(wildcards):
    """The values of a recipe, and the regime of a run, as flags."""
    return f"{values_of_recipe(wildcards)} --regimes {runs_of(wildcards).regime.name}"


def dataset_of_one(wildcards):
    """The dataset that a run is trained on."""
    return paths.DATASET.format(**{**wildcards, "variant": runs_of(wildcards).intervention})


def replicates_minutes(wildcards, attempt):
    """Minutes of a job that trains the replicates from `first` to `last`."""
    n_runs = int(wildcards.last) - int(wildcards.first) + 1
    named = wildcards.model, wildcards.language, int(wildcards.size)
    return minutes(planner.job_seconds(*named, n_runs, wildcards.recipe), attempt)


TRAINING_RULES = training_rules.by_name(
    experiment.training_jobs, settings.is_twin, KEPT_ALONE.keys()
)
