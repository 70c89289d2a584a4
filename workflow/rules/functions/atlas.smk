# Names of the atlas's files.
from palimpsest.atlas import kinds as mapped
from palimpsest.atlas import section as atlas_section
from palimpsest.atlas.interventions import FORETOLD
from palimpsest.atlas.section import EARLIER, LATER
from palimpsest.regimes import REMOVALS, REMOVALS_AGAIN
from palimpsest.requests import paths_of

atlas_block = settings.block("atlas")
ATTRIBUTE = query_command(*(kind.name for kind in mapped.OF_GRADIENTS), weights="checkpoints")

PASS_ONCE_MORE = query_command("last_pass")
PASS_WITHOUT_EACH = query_command("removed_tokens")


def of_all_cells(kind):
    """A table of every cell of the atlas."""
    cells = atlas_section.cells(settings) if atlas_block else ()
    return [path for runs in cells for path in runs.paths(kind.path)[:1]]


def datasets_of_cells():
    """The dataset of every run of the atlas; models of one language and size share it."""
    cells = atlas_section.cells(settings) if atlas_block else ()
    return list(dict.fromkeys(path for runs in cells for path in runs.datasets))


def families_of_models(wildcards):
    """The family of each model of the atlas."""
    return {name: resolve(name, settings.models)[0].family for name in atlas_block["models"]}


def of_seeds(kinds, key):
    """An input function: tables of all seeds; none of them if the configuration's key asks for none."""

    def tables(wildcards):
        asked = kinds if atlas_block and atlas_block[key] else ()
        return {kind.name: expand(kind.path, seed=settings.seeds, **wildcards) for kind in asked}

    return tables


by_gradients = of_seeds(mapped.OF_GRADIENTS, "gradients")
by_last_pass = of_seeds((mapped.LAST_PASS,), "last_pass")


def weights_of_seeds(wildcards):
    """The last weights of a run, then those of the same cell's other seeds."""
    names = {**wildcards, "variant": "base"}
    return [fill(paths.WEIGHTS, **{**names, "seed": seed}) for seed in passing(wildcards)]


def seeds_of_weights(wildcards):
    return atlas_section.of_last_pass(passing(wildcards))


def passing(wildcards):
    return atlas_section.own_first(settings.seeds, int(wildcards.seed))


# Foretelling


def foretelling_runs(which):
    """The earlier or the later runs of foretelling."""
    return atlas_section.runs_of(settings, which) if atlas_block else []


def of_later_seeds(pattern):
    """The pattern once for every seed of the later runs; other wildcards are not filled in."""
    seeds = [seed for runs in foretelling_runs(LATER)[:1] for seed in runs.seeds]
    return expand(pattern, seed=seeds or settings.seeds, allow_missing=True)


def promises_on(wildcards):
    """What is promised of all models on a dataset of later runs."""
    return [
        fill(mapped.PROMISE.path, **{**runs.names, "seed": wildcards.seed})
        for runs in foretelling_runs(LATER)
        if (runs.corpus, str(runs.size)) == (wildcards.language, wildcards.size)
    ]


def recipes_of_foretelling(wildcards):
    """What is known of each training before it: the values of the recipe that set its schedule."""
    keys = ("epochs", "batch_size", "warmup_ratio", "schedule", "evaluate_every")
    adapting = ("adapter", "adapter_rate")
    found = {}
    for runs in [*foretelling_runs(EARLIER), *foretelling_runs(LATER)]:
        values = settings.training(runs.model, runs.recipe)
        chosen = {key: values[key] for key in (*keys, *adapting) if key in values}
        rate = table_learning_rate(runs.model, settings.models)
        found[runs.model] = {"learning_rate": rate, **chosen}
    return found


def parameters_of_foretelling(wildcards):
    """An estimate of the parameters of each model on each language."""
    found = {}
    for runs in [*foretelling_runs(EARLIER), *foretelling_runs(LATER)]:
        of_model = found.setdefault(runs.model, {})
        of_model[runs.corpus] = planner.shape(runs.model, runs.corpus).parameters
    return found
