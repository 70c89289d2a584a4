"""The parts of a causal language model, found by the names of its parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable

from palimpsest.lazy_import import lazy_import

torch = lazy_import("torch")

BLOCK = re.compile(r"\.(?:layers|h|blocks)\.(\d+)\.")


def embeddings_and_head(model) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the weights of the embeddings (tokens and positions), and of the output head."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    tables = [module.weight for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    return (
        frozenset(names[id(table)] for table in tables),
        frozenset({names[id(model.get_output_embeddings().weight)]}),
    )


def layers(names: Iterable[str]) -> list[str]:
    """Names of the layers, in order: `embedding`, `0`, `1`, ..., `head`."""
    blocks = {int(match[1]) for match in map(BLOCK.search, names) if match}
    return ["embedding", *map(str, sorted(blocks)), "head"]
