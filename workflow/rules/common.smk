import os
import sys

# The library is beside the scripts, where they find it in any environment.
sys.path.insert(0, os.path.join(workflow.basedir, "workflow", "scripts"))

# Shell commands use the Python that runs Snakemake, unless a rule's environment brings its own.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]

from palimpsest.configuration import Study
from palimpsest.errors import UserError
from palimpsest.models.table import learning_rate as table_learning_rate

DATASET = "results/datasets/{language}/n{size}-seed{seed}/{variant}/strings.parquet"
RUN = "results/runs/{model}/{language}/n{size}-seed{seed}/{variant}"
GROUP = "results/memorisation/{model}/{language}/n{size}"
MEASURED = ("starts", "scores", "dataset", "learning")
EXACT = ("exact", "agreement")


def config_files():
    """What the configuration was read from, the file that wins last."""
    given = list(workflow.overwrite_configfiles or [])
    default = [path for path in workflow.configfiles if path not in given]
    return [os.path.relpath(path) for path in [*default, *given]]


try:
    study = Study(
        config,
        files=config_files(),
        schema=os.path.join(workflow.basedir, "config/schemas/config.schema.yaml"),
    )
except UserError as error:
    sys.exit(f"error: {error}")


wildcard_constraints:
    model=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    language=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    size=r"\d+",
    seed=r"\d+",
    variant=r"base|dedup|dedup-matched|with-s\d+|without-s\d+",
    study="|".join(study.studies()) or "none",


def with_seeds(pattern):
    """The pattern once for every seed, its other wildcards left as they are."""
    return expand(pattern, seed=study.seeds, allow_missing=True)


def of_targets(pattern, kinds=("with", "without")):
    """The pattern with and without every target, for every seed."""
    variants = [f"{kind}-{role}" for role in study.roles for kind in kinds]
    return with_seeds(expand(pattern, variant=variants, allow_missing=True))


def of_groups(pattern, groups, **more):
    """The pattern for every group of runs and every seed."""
    paths = [
        path
        for group in groups
        for path in expand(pattern, **vars(group), seed=study.seeds, **more)
    ]
    return list(dict.fromkeys(paths))


def flags(section):
    """A section of the configuration as command-line flags."""
    return " ".join(f"--{key.replace('_', '-')} {value}" for key, value in section.items())


def grammar(wildcards):
    """The grammar file of a language."""
    return study.grammar_file(wildcards.language)


def learning_rate(wildcards):
    """Peak learning rate of a model at its scale, from the table of models."""
    return table_learning_rate(wildcards.model, study.models)
