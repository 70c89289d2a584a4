import os
import re
import sys
import time
from glob import glob

from snakemake.persistence import PersistenceBase
from snakemake.utils import update_config

from palimpsest import devices
from palimpsest.configuration import Study, as_yaml
from palimpsest.errors import UserError
from palimpsest.fingerprint import of_code
from palimpsest.folder import WorkingFolder, leave_failed_updates, put_damaged_aside
from palimpsest.launch import prefer_this_python
from palimpsest.models.table import learning_rate as table_learning_rate
from palimpsest.models.table import resolve
from palimpsest.planning import duration, memory
from palimpsest.planning.summary import summary
from palimpsest.variants import LEAVE_ONE_OUT

prefer_this_python()

FINETUNE = os.path.relpath(os.path.join(workflow.basedir, "workflow/scripts/finetune.py"))
STATE = "results/.state"
LANGUAGE = "results/languages/{language}/{name}"
DATASET = "results/datasets/{language}/n{size}-seed{seed}/{variant}/strings.parquet"
TRACE = "results/runs/{model}/{language}/n{size}-seed{seed}/{variant}/trace.parquet"
MANIFEST = "results/runs/{model}/{language}/n{size}-seed{seed}/{variant}/manifest.json"
WEIGHTS = "results/runs/{model}/{language}/n{size}-seed{seed}/{variant}/weights.safetensors"
MEASURED = "results/memorisation/{model}/{language}/n{size}/{variant}/{table}.parquet"
MEASURED_TABLES = ["starts", "scores", "dataset", "learning", "averages"]
RETRAINED = "results/memorisation/{model}/{language}/n{size}/{table}.parquet"
STUDY = "results/studies/{study}/{language}.parquet"
FIGURE = "results/figures/{figure}-{language}.{format}"


def config_files():
    """What the configuration was read from, the file that wins last."""
    given = list(workflow.overwrite_configfiles or [])
    default = [path for path in workflow.configfiles if path not in given]
    return [os.path.relpath(path) for path in [*default, *given]]


# Snakemake leaves the numbers inside of `--config 'training={epochs: 3}'` as text.
command_line = as_yaml(workflow.config_settings.config)
update_config(config, command_line)

try:
    study = Study(
        config,
        files=config_files(),
        schema=os.path.join(workflow.basedir, "config/schemas/config.schema.yaml"),
        command_line=command_line,
    )
except UserError as error:
    sys.exit(f"error: {error}")

working_folder = WorkingFolder()
leave_failed_updates(PersistenceBase)


def taking_the_folder(execute):
    """Snakemake's own way to start working, which first takes the folder."""

    def take_and_execute(*arguments, **named):
        try:
            if workflow.output_settings.dryrun:
                working_folder.look()
            else:
                working_folder.take()
                put_damaged_aside(glob("results/**/*.parquet", recursive=True))
        except UserError as error:
            sys.exit(f"error: {error}")
        return execute(*arguments, **named)

    return take_and_execute


# What only lists something, and a job, which reads this file too, leave the folder as it is.
if workflow.is_main_process:
    workflow.execute = taking_the_folder(workflow.execute)

# On one machine no more jobs start than its GPUs can take; without any, none asks for one. A
# cluster counts its own.
if workflow.is_main_process and workflow.resource_settings.nodes is None:
    if "gpu" not in workflow.global_resources:
        workflow.register_resource("gpu", len(devices.visible()))

# A study has the figure of its name; this one has two.
FIGURES_OF = {"disagreement": ["disagreement", "disagreement_scores"]}

# How a command trains and, when it fails, what it says on the screen.
HOW_TO_TRAIN = (
    " --learning-rate {params.learning_rate} --predict-end {params.predict_end}"
    f" --state {STATE}"
    " --threads {threads} --memory-mb {resources.mem_mb} --gpus {resources.gpu}"
    " {params.recipe} --checkpoint-every {resources.checkpoint_every}"
    " > {log} 2>&1 || {{ grep '^error:' {log} >&2 || tail -n 1 {log} >&2; exit 1; }}"
)
TRAINED = {"trace": TRACE, "manifest": MANIFEST}
if config["save_weights"]:
    TRAINED["weights"] = WEIGHTS


wildcard_constraints:
    model=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    language=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    size=r"\d+",
    seed=r"\d+",
    variant=r"base|dedup|dedup-matched|with-s\d+|without-s\d+|leave-one-out|original|retain",
    figure=r"(?!language-|unlearning_)[a-z_]+",


# Many files at once


def with_seeds(pattern):
    """The pattern once for every seed, its other wildcards left as they are."""
    return expand(pattern, seed=study.seeds, allow_missing=True)


def with_exact_seeds(pattern, variant):
    """The pattern of a variant once for every seed whose training strings are left out."""
    seeds = study.seeds_of(LEAVE_ONE_OUT)
    return expand(pattern, variant=variant, seed=seeds, allow_missing=True)


def with_variants(pattern, variants):
    """The pattern once for every variant, its other wildcards left as they are."""
    return expand(pattern, variant=variants, allow_missing=True)


def with_targets(pattern, kinds=("with", "without")):
    """The pattern with and without every target, its other wildcards left as they are."""
    return with_variants(pattern, [f"{kind}-{role}" for role in study.roles for kind in kinds])


def of_groups(pattern, groups, **more):
    """The pattern for every group of runs and, where it names one, every seed of its variant."""
    paths = [
        path
        for group in groups
        for path in expand(pattern, **vars(group), seed=study.seeds_of(group.variant), **more)
    ]
    return list(dict.fromkeys(paths))


def on_all_languages(groups):
    """Groups of runs on every language, `groups` giving those on one."""
    return [group for language in study.all_languages for group in groups(language)]


def with_targets_measured(table):
    """Tables of retraining with and without targets, of all models and languages."""
    return of_groups(RETRAINED, on_all_languages(study.target_groups), table=table)


def with_strings_left_out(table):
    """Tables of retraining without each training string, of all models and languages."""
    return of_groups(RETRAINED, on_all_languages(study.left_out_groups), table=table)


def one_run(pattern):
    """The pattern itself: the only run of a job."""
    return pattern


def of_twins(variants):
    """A function that expands a pattern to all runs of a job that trains some variants."""

    def files(pattern, named={}):
        return [
            path
            for variant in variants
            for path in expand(
                pattern,
                variant=named.get(variant, variant),
                seed=study.seeds_of(variant),
                allow_missing=True,
            )
        ]

    return files


def trained(files):
    """What training leaves; `files` expands a pattern to the runs of a job."""
    return {name: update(files(pattern)) for name, pattern in TRAINED.items()}


def trained_on(variants):
    """The datasets of a job's runs; the job itself leaves one string of base after another out."""
    return of_twins(variants)(DATASET, {LEAVE_ONE_OUT: "base"})


def any_of(groups):
    """The model in the paths of some groups, of any variant, as a regular expression."""
    return "|".join(
        rf"{re.escape(group.model)}(?=/{re.escape(group.language)}/n{group.size}\b)"
        for group in groups
    )


def none_of(groups):
    """A twin, but not in the paths of some groups and their variants, as a regular expression."""
    taken = "|".join(
        rf"{re.escape(group.model)}/{re.escape(group.language)}/n{group.size}-seed\d+/"
        rf"{group.variant}/"
        for group in groups
    )
    not_taken = f"(?!{taken})" if taken else ""
    return rf"{not_taken}[A-Za-z0-9][A-Za-z0-9._-]*-twin"


def kinds_of(variants):
    """The kinds of some variants, for the name of the rule that trains them."""
    kinds = [re.sub(r"(with|without)-s\d+", "targets", variant) for variant in variants]
    return "_and_".join(dict.fromkeys(kinds)).replace("-", "_")


# What the named targets make


def trained_files():
    """What training leaves of every run: traces, manifests and, if they are wanted, weights."""
    return [
        path for pattern in TRAINED.values() for path in of_groups(pattern, study.trained_groups)
    ]


def memorisation_tables():
    """Every table of memorisation, of the measured groups and of exact retraining."""
    return [
        *of_groups(MEASURED, study.measured_groups, table=MEASURED_TABLES),
        *with_targets_measured(["exact", "agreement"]),
        *with_strings_left_out(["leave_one_out", "approximation"]),
    ]


def study_tables(name):
    """A study's tables, one per language; none if the configuration leaves the study out."""
    return expand(STUDY, study=name, language=study.study_languages(name))


def study_figures(name):
    """A study's figures and their pictures, one per language."""
    return figures(FIGURES_OF.get(name, name), study.study_languages(name))


def figures(name, languages):
    """A figure of every language, as vector graphics and as a picture."""
    return expand(FIGURE, figure=name, language=languages, format=["svg", "png"])


def of_studies(files):
    """The files of all studies, `files` giving those of one."""
    return [path for name in study.studies() for path in files(name)]


def all_figures():
    """The figures of the languages and of the studies."""
    return [*figures("language", study.all_languages), *of_studies(study_figures)]


# Inputs and parameters of rules


def grammar(wildcards):
    """The grammar file of a language."""
    return study.grammar_file(wildcards.language)


def counterpart(wildcards):
    """The grammar file of the language's high-entropy counterpart."""
    return study.grammar_file(study.counterpart(wildcards.language))


def learning_rate(wildcards):
    """Peak learning rate of a model at its scale, from the table of models."""
    return table_learning_rate(wildcards.model, study.models)


def engine(wildcards):
    """The engine that trains a model."""
    return study.engine(wildcards.model)


def model_row(wildcards):
    """What the table of models says that decides a trace, of the model in question alone."""
    row, scale = resolve(wildcards.model, study.models)
    return str(row.decisive(scale))


def families(wildcards):
    """The family of every model that the study of model sizes reads."""
    groups = study.study_groups("model_size", wildcards.language)
    return {group.model: resolve(group.model, study.models)[0].family for group in groups}


def recipe(wildcards):
    """The section `training`, as it holds for a model, as flags, but for what decides no result."""
    return as_flags(study.training(wildcards.model))


def as_flags(section):
    """A section `training` as flags of a command, but for what decides no result."""
    keys = sorted(section.keys() - {"checkpoint_every"})
    return " ".join(f"--{key.replace('_', '-')} {section[key]}" for key in keys)


def train_command(weights, more=""):
    """The command that trains, which leaves weights too if they are wanted."""
    return (
        "python {params.script:q} --model {wildcards.model} --models {params.models:q}"
        " --engine {params.engine} --language {input.grammar:q} --dataset {input.dataset}"
        " --trace {output.trace} --manifest {output.manifest}"
        + (" --weights {output.weights}" if weights else "")
        + more
        + HOW_TO_TRAIN
    )


# What training asks for


def training_gpus(wildcards):
    """GPUs of a job that trains a model."""
    return study.planner.gpus(wildcards.model)


def training_threads(wildcards):
    """CPU threads of a job that trains a model."""
    return study.planner.threads(wildcards.model)


def training_memory(wildcards, attempt):
    """Main memory of a job that trains a model, in megabytes, more at every attempt."""
    expected = study.planner.main_memory(wildcards.model, wildcards.language)
    return memory.asked_for(expected, attempt, study.planner.most_memory)


def training_minutes(wildcards, attempt):
    """Minutes of a job that trains one run, more at every attempt."""
    key = wildcards.model, wildcards.language, int(wildcards.size)
    return duration.asked_for(
        study.planner.duration(*key).seconds, attempt, study.planner.most_seconds
    )


def twin_minutes(variants):
    """A resource function: minutes of a job that trains all runs of some variants."""

    def minutes(wildcards, attempt):
        key = wildcards.model, wildcards.language, int(wildcards.size)
        return duration.asked_for(
            study.planner.job_seconds(*key, variants), attempt, study.planner.most_seconds
        )

    return minutes


def one_variant_minutes(wildcards, attempt):
    """Minutes of a job that trains all runs of the variant in its paths."""
    return twin_minutes([wildcards.variant])(wildcards, attempt)


# The plan


def plan_rows(wildcards):
    """What every run needs."""
    return study.planner.rows


def plan_summary(wildcards):
    """What all runs need together, in words."""
    return summary(study.planner.rows, study.planner.hardware)


def moment(wildcards):
    """When the plan is asked for, which makes it another one each time."""
    return time.time()


def wanted_runs(wildcards):
    """Every run that is asked for, with all that names its state."""
    return [
        {
            "model": group.model,
            "dataset": dataset,
            "language": study.grammar_file(group.language),
            "learning_rate": table_learning_rate(group.model, study.models),
            "engine": study.engine(group.model),
            "training": study.training(group.model),
            "predict_end": config["datasets"]["predict_end"],
            "leave_one_out": group.variant == LEAVE_ONE_OUT,
        }
        for group in study.trained_groups
        for dataset in expand(
            DATASET,
            **{**vars(group), "variant": group.variant.replace(LEAVE_ONE_OUT, "base")},
            seed=study.seeds_of(group.variant),
        )
    ] + wanted_draws()


def read_by(name, pattern, **more):
    """An input function: the pattern for all the runs that a study reads on a language."""

    def paths(wildcards):
        return of_groups(pattern, study.study_groups(name, wildcards.language), **more)

    return paths


def measured(name, table):
    """An input function: a table of memorisation of all the runs that a study reads."""
    return read_by(name, MEASURED, table=table)


def target_tables(wildcards):
    """The tables of the targets on a language, of all models of the disagreement study."""
    return of_groups(RETRAINED, study.target_groups(wildcards.language), table="exact")


def left_out(table):
    """An input function: a table of retraining without each string, of the exact study's models."""

    def paths(wildcards):
        return of_groups(RETRAINED, study.left_out_groups(wildcards.language), table=table)

    return paths


def drawn_from(wildcards):
    """The table of a figure: its study's."""
    owners = [name for name, figures in FIGURES_OF.items() if wildcards.figure in figures]
    return expand(STUDY, study=owners or wildcards.figure, language=wildcards.language)
