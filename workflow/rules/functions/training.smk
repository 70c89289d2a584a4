# What training takes, leaves and asks for.
import re
from collections import Counter
from palimpsest.variants import LEAVE_ONE_OUT

FINETUNE = os.path.relpath(os.path.join(workflow.basedir, "workflow/scripts/finetune.py"))
CHECKPOINT_EVERY = config["training"]["checkpoint_every"]

TRAINED = {"trace": paths.TRACE, "manifest": paths.MANIFEST}

if config["save_weights"]:
    TRAINED["weights"] = paths.WEIGHTS

REPLICATES = {
    "trace": paths.REPLICATES_TRACE,
    "manifest": paths.REPLICATES_MANIFEST,
    "weights": paths.REPLICATES_WEIGHTS,
}

# All that decides a trace beside its data, value by value: a key that is not here reruns nothing.
RECIPE = dict(
    recipe=recipe,
    predict_end=lookup("datasets/predict_end", within=config),
    models=lookup("models_table", within=config),
    row=model_row,
    engine=engine,
    learning_rate=learning_rate,
)

# What every command that trains or unlearns is told of the model, and of the machine. When it
# fails, it says why on the screen.
OF_THE_MODEL = (
    "python {params.script:q} --model {wildcards.model} --models {params.models:q}"
    " --engine {params.engine} --language {input.grammar:q} --dataset {input.dataset}"
)

HOW_TO_TRAIN = (
    " --learning-rate {params.learning_rate} --predict-end {params.predict_end}"
    f" --state {paths.STATE}"
    " --threads {threads} --memory-mb {resources.mem_mb} --gpus {resources.gpu}"
    " {params.recipe} --checkpoint-every {resources.checkpoint_every}"
    " > {log} 2>&1 || {{ grep '^error:' {log} >&2 || tail -n 1 {log} >&2; exit 1; }}"
)


def train_command(weights, more=""):
    """The command that trains, which leaves weights too if they are wanted."""
    delivery = " --trace {output.trace} --manifest {output.manifest}"
    if weights:
        delivery += " --weights {output.weights}"
    return f"{OF_THE_MODEL}{delivery}{more}{HOW_TO_TRAIN}"


TRAIN = train_command(weights=config["save_weights"])


def trained_files(requests, patterns):
    """What training leaves of all runs that are asked for."""
    return [path for pattern in patterns for runs in requests for path in runs.paths(pattern)]


def one_run(pattern):
    """The pattern itself: the only run of a job."""
    return pattern


def all_runs(variants):
    """A function that expands a pattern to all runs of a job that trains some variants."""

    def files(pattern):
        return [
            path
            for variant, seeds in variants
            for path in expand(pattern, variant=variant, seed=seeds, allow_missing=True)
        ]

    return files


def trained(files):
    """What training leaves; `files` expands a pattern to the runs of a job."""
    return {name: update(files(pattern)) for name, pattern in TRAINED.items()}


def trained_on(variants):
    """The datasets of a job's runs; a leave-one-out run reads base and leaves a string out."""
    read = [("base" if name == LEAVE_ONE_OUT else name, seeds) for name, seeds in variants]
    return all_runs(read)(paths.DATASET)


def any_of(runs):
    """The model in the paths of some runs, of any variant, as a regular expression."""
    return "|".join(
        rf"{re.escape(one.model)}(?=/{re.escape(one.corpus)}/n{one.size}\b)" for one in runs
    )


def none_of(runs):
    """A twin, but not in the paths of some runs and their variants, as a regular expression."""
    taken = "|".join(
        rf"{re.escape(one.model)}/{re.escape(one.corpus)}/n{one.size}-seed\d+/{one.variant}/"
        for one in runs
    )
    not_taken = f"(?!{taken})" if taken else ""
    return f"{not_taken}{NAME}-twin"


def twin_rules(jobs):
    """The name of a rule for each choice of variants, which it trains; equal ones are numbered."""
    names, seen = {}, Counter()
    for variants in jobs:
        kinds = [re.sub(r"(with|without)-s\d+", "targets", variant) for variant, _ in variants]
        name = re.sub(r"\W", "_", f"train_twins_on_{'_and_'.join(dict.fromkeys(kinds))}")
        seen[name] += 1
        names[f"{name}__{seen[name]}" if seen[name] > 1 else name] = variants
    return names


def twin_minutes(variants):
    """A resource function: minutes of a job that trains all runs of some variants."""

    def asked(wildcards, attempt):
        size = int(wildcards.size)
        n_runs = sum(
            len(seeds) * (size if variant == LEAVE_ONE_OUT else 1) for variant, seeds in variants
        )
        took = planner.job_seconds(wildcards.model, wildcards.language, size, n_runs)
        return minutes(took, attempt)

    return asked


def one_variant_minutes(wildcards, attempt):
    """Minutes of a job that trains all seeds of the variant in its paths."""
    return twin_minutes([(wildcards.variant, settings.seeds)])(wildcards, attempt)


def replicates_training(wildcards):
    """The keys of `training` that the replicates of a dataset override."""
    named = wildcards.model, wildcards.language, int(wildcards.size), wildcards.variant
    found = [runs for runs in experiment.replicates if runs.key[:4] == named]
    return found[0].training if found else {}


def replicates_recipe(wildcards):
    """The block `training` as it holds for the replicates of a dataset, as flags."""
    return as_flags({**settings.training(wildcards.model), **replicates_training(wildcards)})


def replicates_minutes(wildcards, attempt):
    """Minutes of a job that trains some replicates."""
    n_runs = int(wildcards.last) - int(wildcards.first) + 1
    named = wildcards.model, wildcards.language, int(wildcards.size)
    return minutes(planner.job_seconds(*named, n_runs, replicates_training(wildcards)), attempt)
