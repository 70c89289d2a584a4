from palimpsest.unlearning.methods.table import METHOD_OR_POINT
from palimpsest.variants import DRAWN, ORIGINAL, RETAIN

UNLEARN = os.path.relpath(os.path.join(workflow.basedir, "workflow/scripts/unlearn.py"))
PROBLEM = "results/unlearning/{model}/{language}/n{size}-seed{seed}"
DRAWS = f"{PROBLEM}/{{variant}}/draws-{{first}}-{{last}}/{{name}}"
UNLEARNED = f"{PROBLEM}/unlearned/{{method}}/runs-{{first}}-{{last}}/{{name}}"
EVALUATED = f"{PROBLEM}/{{table}}.parquet"
SCORED_TABLES = ["epsilons", "scores", "summary", "effects", "hardness", "agreement"]

# The figures and the kinds of tables that they are drawn from
UNLEARNING_FIGURES = {
    "unlearning_scores": ["unlearning_summary", "unlearning_scores"],
    "unlearning_memorisation": ["unlearning_memorisation"],
    "unlearning_tradeoff": ["unlearning_scores"],
    "unlearning_epsilons": ["epsilons", "unlearning_scores"],
    "unlearning_hardness": ["unlearning_hardness"],
    "unlearning_agreement": ["unlearning_agreement"],
    "unlearning_metrics": ["unlearning_metrics", "unlearning_summary"],
    "unlearning_effects": ["unlearning_effects"],
}

# The command that makes models forget
MAKE_FORGET = (
    "python {params.script:q} --model {wildcards.model} --models {params.models:q}"
    " --engine {params.engine} --language {input.grammar:q} --dataset {input.dataset}"
    " --method {wildcards.method} --phases {params.phases:q} --weights {input.weights}"
    " --variant {params.variant} --starts {params.starts} --origins {params.origins}"
    " --draws {params.draws} --relearn-models {params.relearn_models}"
    " --relearn-epochs {params.relearn_epochs} --predictions {output.unlearned}"
    " --unlearned-models {output.models} --manifest {output.manifest}"
    f"{HOW_TO_TRAIN}"
)

unlearning = study.unlearning
unlearning_methods = unlearning.methods if unlearning else []
unlearning_points = unlearning.points if unlearning else []
# What an evaluation is decided by, value by value: a key that is not here reruns nothing.
SETUPS = {
    key: lookup(f"unlearning/{key}", within=config, default=None)
    for key in ("setups", "n", "repetitions", "pool", "seed")
}
SCORING = {
    key: lookup(f"unlearning/{key}", within=config, default=None)
    for key in ("confidence", "thresholds", "delta", "bin_width", "cutoff")
}
SCORING |= {
    "epochs": lookup("unlearning/training/epochs", within=config, default=None),
    "batch_size": lookup("training/batch_size", within=config),
}


wildcard_constraints:
    first=r"\d+",
    last=r"\d+",
    method=METHOD_OR_POINT,


# Files of models


def of_problems(pattern, **more):
    """The pattern for every model and language that unlearns; none if nothing does."""
    problems = unlearning.problems if unlearning else []
    return [path for problem in problems for path in expand(pattern, **vars(problem), **more)]


def draws_of(wildcards, variant, name, parts=None):
    """A file of the jobs that train on a variant, of all or of some parts of the draws."""
    parts = unlearning.draws(wildcards.model, variant) if parts is None else parts
    named = {key: wildcards[key] for key in ("model", "language", "size", "seed")}
    return [
        path
        for first, last in parts
        for path in expand(DRAWS, **named, variant=variant, first=first, last=last, name=name)
    ]


def draws_with(wildcards, variant, draws):
    """The weights of some draws of a variant."""
    parts = unlearning.draws_with(wildcards.model, variant, draws)
    return draws_of(wildcards, variant, "weights.safetensors", parts)


def part_of(wildcards):
    """The method of a job that unlearns, and its first and last place among the method's runs."""
    return wildcards.method, int(wildcards.first), int(wildcards.last)


def weights_to_unlearn(wildcards):
    """The weights that a job starts from, and those that it compares with."""
    given = part_of(wildcards)
    variant, starts = unlearning.starts(*given)
    origins = unlearning.origins(*given)
    return list(
        dict.fromkeys(
            [
                *draws_with(wildcards, variant, starts),
                *draws_with(wildcards, ORIGINAL, origins),
                *draws_with(wildcards, RETAIN, origins),
            ]
        )
    )


def unlearned_by(methods, name):
    """An input function: a file of all the jobs that apply some methods."""

    def paths(wildcards):
        named = {key: wildcards[key] for key in ("model", "language", "size", "seed")}
        return [
            path
            for method in methods
            for first, last in unlearning.parts(wildcards.model, method)
            for path in expand(UNLEARNED, **named, method=method, first=first, last=last, name=name)
        ]

    return paths


def trained_on_variant(variant, name):
    """An input function: a file of all the jobs that train on a variant."""

    def paths(wildcards):
        return draws_of(wildcards, variant, name)

    return paths


# What every evaluation reads beside the unlearned models
EVALUATED_FROM = dict(
    dataset=DATASET.replace("{variant}", ORIGINAL),
    originals=trained_on_variant(ORIGINAL, "trace.parquet"),
    retrained=trained_on_variant(RETAIN, "trace.parquet"),
    manifests=trained_on_variant(RETAIN, "manifest.json"),
)


# What the named targets make


def unlearning_figures():
    """The figures of the unlearning and their pictures, one of each per language."""
    languages = config["unlearning"]["languages"] if unlearning else []
    return [path for name in UNLEARNING_FIGURES for path in figures(name, languages)]


def forgetting_datasets():
    """The datasets with and without what is to be forgotten."""
    return of_problems(DATASET, variant=[ORIGINAL, RETAIN])


def trained_draws():
    """What the trainings leave of all original and retrained models."""
    return [
        path
        for problem in (unlearning.problems if unlearning else [])
        for variant in (ORIGINAL, RETAIN)
        for first, last in unlearning.draws(problem.model, variant)
        for path in expand(
            DRAWS,
            **vars(problem),
            variant=variant,
            first=first,
            last=last,
            name=["trace.parquet", "manifest.json", "weights.safetensors"],
        )
    ]


def unlearned_files():
    """What is left of all unlearned models; the tables made of them do not bring back a lost one."""
    return [
        path
        for problem in (unlearning.problems if unlearning else [])
        for method in [*unlearning_methods, *unlearning_points]
        for first, last in unlearning.parts(problem.model, method)
        for path in expand(
            UNLEARNED,
            **vars(problem),
            method=method,
            first=first,
            last=last,
            name=["unlearned.parquet", "models.parquet", "manifest.json"],
        )
    ]


def unlearning_tables():
    """Every table of the unlearning."""
    tuned = ["tuning"] if unlearning_points else []
    return of_problems(EVALUATED, table=[*SCORED_TABLES, "metrics", "memorisation", *tuned])


def evaluated(table):
    """A table of every model and language that unlearns."""
    return of_problems(EVALUATED, table=table)


def drawn_from_unlearning(wildcards):
    """The tables of a figure, of all models that unlearn its language, by their kinds."""
    problems = [p for p in unlearning.problems if p.language == wildcards.language]
    kinds = UNLEARNING_FIGURES[wildcards.figure]
    names = ["table", *kinds[1:]]  # the first is the figure's own
    return {
        name: [
            EVALUATED.format(**vars(p), table=kind.removeprefix("unlearning_")) for p in problems
        ]
        for name, kind in zip(names, kinds)
    }


def wanted_draws():
    """Every training of the unlearning, with all that names its state."""
    return [
        {
            "model": problem.model,
            "dataset": DATASET.format(**vars(problem), variant=variant),
            "language": study.grammar_file(problem.language),
            "learning_rate": table_learning_rate(problem.model, study.models),
            "engine": study.engine(problem.model),
            "training": unlearning.training(problem.model),
            "predict_end": config["datasets"]["predict_end"],
            "leave_one_out": False,
            "draws": unlearning.n_trained(variant),
        }
        for problem in (unlearning.problems if unlearning else [])
        for variant in (ORIGINAL, RETAIN)
    ]


# Parameters


def forget_file(wildcards):
    """The file that names what is to be forgotten, if one does."""
    path = config["unlearning"]["forget"]
    return [] if path == DRAWN else path


def draws_recipe(wildcards):
    """The section `training` as it holds for the models of the unlearning, as flags."""
    return as_flags(unlearning.training(wildcards.model))


def phases(wildcards):
    """What a method does, as JSON."""
    return unlearning.phases(wildcards.method)


def origins(wildcards):
    """The original models that a job's unlearned ones are of."""
    return in_words(unlearning.origins(*part_of(wildcards)))


def unlearning_draws(wildcards):
    """Which unlearning of its origin each of a job's models is."""
    runs = unlearning.runs(wildcards.method)
    return in_words(draw for _, draw in runs[int(wildcards.first) : int(wildcards.last) + 1])


def variant_to_start_from(wildcards):
    """The variant on which the models that a job starts from were trained."""
    return unlearning.starts(*part_of(wildcards))[0]


def starts(wildcards):
    """The draws of the models that a job starts from."""
    return in_words(unlearning.starts(*part_of(wildcards))[1])


def in_words(numbers):
    """Numbers as one text: of thousands in a list, Snakemake looks at each."""
    return " ".join(map(str, numbers))


def draws_minutes(wildcards, attempt):
    """Minutes of a job that trains, or makes forget, some models, more at every attempt."""
    n_runs = int(wildcards.last) - int(wildcards.first) + 1
    seconds = study.planner.draws_seconds(
        wildcards.model, wildcards.language, int(wildcards.size), n_runs
    )
    return duration.asked_for(seconds, attempt, study.planner.most_seconds)


def evaluation_memory(wildcards, attempt):
    """Main memory of an evaluation, in megabytes, more at every attempt."""
    expected = study.planner.evaluation_memory(int(wildcards.size))
    return memory.asked_for(expected, attempt, study.planner.most_memory)


def grid_points(wildcards):
    """The method and the settings of every point of the grids that are searched."""
    return unlearning.settings_of_points()
