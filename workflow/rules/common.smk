# Helpers that the rules of every section use.
from palimpsest import paths
from palimpsest.paths import fill
from palimpsest.fingerprint import of_code, own_code
from palimpsest.models.table import resolve
from palimpsest.planning import duration, memory
from palimpsest.pretrained.catalogue import FILES, made_in
from palimpsest.requests import DEFAULT
from palimpsest.sections import FIGURES

# For the rules of extensions, which are in other folders
MAKE = os.path.join(PROJECT, "workflow/scripts/make.py")
ANALYSIS = os.path.join(PROJECT, "envs/analysis.yaml")
settings = experiment.settings
planner = experiment.planner
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
# n64 and n064 would be two files of one run.
WHOLE = r"0|[1-9]\d*"


wildcard_constraints:
    model=NAME,
    language=NAME,
    recipe=NAME,
    variant=NAME,
    size=WHOLE,
    seed=WHOLE,
    first=WHOLE,
    last=WHOLE,
    figure="|".join(FIGURES),


def with_seeds(pattern):
    """The pattern once for every seed; other wildcards are not filled in."""
    return expand(pattern, seed=settings.seeds, allow_missing=True)


def with_variants(pattern, variants):
    """The pattern once for every variant; other wildcards are not filled in."""
    return expand(pattern, variant=variants, allow_missing=True)


def of_language(files):
    """The input function of a rule: `files` of the settings and the language."""
    return lambda wildcards: files(settings, wildcards.language)


def made_by(function, *others):
    """The parameters with which `make.py` calls a function, such as "palimpsest.results:report".

    They have a hash of all code that the function uses, and of the code at other locations.
    """
    return {"make": function, "code": of_code("make.py", function, *others)}


def values_of(block, *keys):
    """Some keys of a block, as parameters; a change of its other keys reruns nothing."""
    return {key: lookup(f"{block}/{key}", within=config, default=None) for key in keys}


def of_experiment(name):
    """A parameter that is worked out when its job is planned: an attribute of the experiment."""
    return lambda wildcards: getattr(experiment, name)


def named_by_user(known, name, key):
    """What a block of the configuration has by a name; one line and the end for another name."""
    if name not in known:
        sys.exit(
            f"error: {key}: has no {name!r}; it has: {', '.join(known) or 'none'}; name it there, "
            "or give the --configfile that does"
        )
    return known[name]


def delivered(section):
    """The files of a section, with its figures; [] if the configuration has no block for it."""
    return [*experiment.outputs.get(section, []), *experiment.figure_files(section)]


# Inputs of training


def corpus(wildcards):
    """The file of a corpus; in paths, the wildcard of a corpus is `language`."""
    return settings.corpus_file(wildcards.language)


def pretrained_files(wildcards):
    """The files of a full model that is made from a package; [] for any other model."""
    row, scale = resolve(wildcards.model, settings.models)
    model = made_in(row.id) if scale == "full" else None
    return [f"{model.folder}/{name}" for name in FILES] if model else []


# Resources of jobs


def training_gpus(wildcards):
    """GPUs of a job that trains a model."""
    return planner.gpus(wildcards.model, wildcards.recipe)


def cores_without_gpus():
    """The cores of a machine without GPUs; None if a GPU does the work, or another machine may."""
    return workflow.cores if workflow.global_resources.get("gpu") == 0 else None


def training_threads(wildcards):
    """CPU threads of a job that trains a model; without GPUs, a large model gets all cores."""
    return planner.threads(wildcards.model, wildcards.recipe, cores_without_gpus())


def asking_threads(wildcards):
    """CPU threads of a job that asks a model; without GPUs, all cores."""
    return cores_without_gpus() or 1


def training_memory(wildcards, attempt):
    """Main memory of a job that trains a model, in megabytes, more at every attempt."""
    named = wildcards.model, wildcards.language, wildcards.recipe
    return megabytes(planner.main_memory(*named), attempt)


def training_minutes(wildcards, attempt):
    """Minutes of a job that trains one run, more at every attempt."""
    named = wildcards.model, wildcards.language, int(wildcards.size), wildcards.recipe
    return minutes(planner.duration(*named).seconds, attempt)


def megabytes(expected, attempt):
    """Megabytes to request for the expected bytes; more at every attempt, within the machine."""
    return memory.asked_for(expected, attempt, planner.most_memory)


def minutes(seconds, attempt):
    """Minutes to request for the expected seconds; more at every attempt, up to the longest job."""
    return duration.asked_for(seconds, attempt, planner.most_seconds)
