# Names of the atlas's files.
from palimpsest.atlas import kinds as mapped
from palimpsest.atlas import section as atlas_section
from palimpsest.regimes import REMOVALS, REMOVALS_AGAIN

atlas_block = settings.block("atlas")
ATTRIBUTE = query_command(*(kind.name for kind in mapped.OF_GRADIENTS), weights="checkpoints")


def by_gradients(wildcards):
    """The tables of all seeds that gradients give; none of them if the configuration has none."""
    kinds = mapped.OF_GRADIENTS if atlas_block and atlas_block["gradients"] else ()
    return {kind.name: expand(kind.path, seed=settings.seeds, **wildcards) for kind in kinds}
