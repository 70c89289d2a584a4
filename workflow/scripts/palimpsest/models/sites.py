"""Sites: the places in a model's blocks whose activations can be read.

The code of the model runs unchanged, and hooks copy the activations. So every class of transformers
whose blocks have the usual parts has the sites, and twins have them as full models do.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from palimpsest.errors import UserError
from palimpsest.lazy_import import lazy_import

torch = lazy_import("torch")

# The neurons of the feed-forward layer after the non-linearity (times the other half of a gated
# layer); what attention adds to the residual stream; and the residual stream after the block.
PLACES = MLP, ATTENTION, RESIDUAL = ("mlp", "attention", "residual")

OF_BLOCK = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)$")
# The last linear layers of a feed-forward layer and of attention, in the classes of transformers
LAST_OF_MLP = re.compile(r"(?:^|\.)(?:down_proj|fc2|dense_4h_to_h|mlp\.c_proj)$")
LAST_OF_ATTENTION = re.compile(
    r"(?:^|\.)(?:o_proj|self_attn\.out_proj|attention\.dense|attn\.c_proj)$"
)


class Site(NamedTuple):
    """A place in a block. `layer` is the number of the block, from 0."""

    layer: int
    place: str

    def __str__(self) -> str:
        return f"{self.place} of layer {self.layer}"


def sites_of(model: torch.nn.Module) -> list[Site]:
    return list(_modules(model))


@contextlib.contextmanager
def captured(model: torch.nn.Module, sites: Sequence[Site]) -> Iterator[dict[Site, torch.Tensor]]:
    """The activations of some sites in the model's last forward pass inside of the context.

    The last axis of an activation is the neurons; the others are those of the model's code.

    Raises `UserError` if the model lacks a site. The message names those that the model has.
    """
    modules, found = _modules(model), {}
    for site in sites:
        if site not in modules:
            raise UserError(f"no site {site}; the model has {_in_words(list(modules))}")
    hooks = [_hooked(modules[site], site, found) for site in sites]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _hooked(module: torch.nn.Module, site: Site, found: dict):
    """Copy a module's activation into `found`: its input for `MLP`, otherwise its output."""

    def keep(values) -> None:
        # Some blocks return a tuple, whose first element is the residual stream.
        found[site] = (values[0] if isinstance(values, tuple) else values).detach()

    if site.place == MLP:
        return module.register_forward_pre_hook(lambda _, given: keep(given))
    return module.register_forward_hook(lambda _, __, made: keep(made))


def _modules(model: torch.nn.Module) -> dict[Site, torch.nn.Module]:
    """The module of every site, in the order of the blocks."""
    found = {}
    for name, block in model.named_modules():
        if not (match := OF_BLOCK.search(name)):
            continue
        layer, inside = int(match[1]), dict(block.named_modules())
        for place, last in ((MLP, LAST_OF_MLP), (ATTENTION, LAST_OF_ATTENTION)):
            for own, module in inside.items():
                if last.search(own):
                    found[Site(layer, place)] = module
        found[Site(layer, RESIDUAL)] = block
    return found


def _in_words(sites: Sequence[Site]) -> str:
    if not sites:
        return "no sites"
    layers = [site.layer for site in sites]
    places = [place for place in PLACES if any(site.place == place for site in sites)]
    return f"{', '.join(places)} of the layers {min(layers)} to {max(layers)}"
