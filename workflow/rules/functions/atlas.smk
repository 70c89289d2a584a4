# Names of the atlas's files.
from palimpsest.atlas import kinds as mapped
from palimpsest.atlas import section as atlas_section
from palimpsest.regimes import REMOVALS, REMOVALS_AGAIN

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


def by_gradients(wildcards):
    """The tables of all seeds that gradients give; none of them if the configuration has none."""
    kinds = mapped.OF_GRADIENTS if atlas_block and atlas_block["gradients"] else ()
    return {kind.name: expand(kind.path, seed=settings.seeds, **wildcards) for kind in kinds}


def by_last_pass(wildcards):
    """The last passes of all seeds; none if the configuration has none."""
    kinds = (mapped.LAST_PASS,) if atlas_block and atlas_block["last_pass"] else ()
    return {kind.name: expand(kind.path, seed=settings.seeds, **wildcards) for kind in kinds}


def weights_of_seeds(wildcards):
    """The last weights of a run, then those of the same cell's other seeds."""
    names = {**wildcards, "variant": "base"}
    return [fill(paths.WEIGHTS, **{**names, "seed": seed}) for seed in passing(wildcards)]


def seeds_of_weights(wildcards):
    return {"model_seeds": passing(wildcards)}


def passing(wildcards):
    return atlas_section.own_first(settings.seeds, int(wildcards.seed))
