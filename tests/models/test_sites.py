"""Activations at the sites of models: of plain models of every family, and of fleets."""

import numpy as np
import pytest
import torch

from helpers.experiments import ROOT, message
from helpers.families import FAMILIES
from palimpsest.jobs.fleet_models import FleetModels
from palimpsest.models import Site, read_models
from palimpsest.models.build import build
from palimpsest.models.sites import ATTENTION, MLP, PLACES, RESIDUAL, captured, sites_of

VOCABULARY = 11
TABLE = read_models(ROOT / "config/models.tsv")
IDS = torch.tensor([[0, 2, 5, 9, 3], [0, 7, 7, 2, 10]])


def twin(family: str, seed: int):
    """A twin that was not trained."""
    return build(TABLE[family], "twin", VOCABULARY, seed, torch.float32).eval()


def block(model, layer: int) -> torch.nn.Module:
    """One block, by the names of each class."""
    decoder = getattr(model, "gpt_neox", None) or model.model
    return getattr(decoder, "decoder", decoder).layers[layer]


def last_linear(model, layer: int) -> torch.nn.Module:
    """The last linear layer of the feed-forward layer, by the names of each class."""
    own = block(model, layer)
    if hasattr(own, "fc2"):
        return own.fc2
    return own.mlp.dense_4h_to_h if hasattr(own.mlp, "dense_4h_to_h") else own.mlp.down_proj


def attention(model, layer: int) -> torch.nn.Module:
    """The attention of a block, by the names of each class."""
    own = block(model, layer)
    return own.attention if hasattr(own, "attention") else own.self_attn


@pytest.mark.parametrize("family", FAMILIES)
def test_sites_are_where_their_names_say(family):
    """Against hooks on modules that the test names, and the hidden states of transformers."""
    model = twin(family, 0)
    n_layers = model.config.num_hidden_layers
    sites = sites_of(model)
    assert sites == [Site(layer, place) for layer in range(n_layers) for place in PLACES]
    seen = {}
    for layer in range(n_layers):
        last_linear(model, layer).register_forward_hook(
            lambda _, __, made, layer=layer: seen.update({(layer, "down"): made})
        )
        attention(model, layer).register_forward_hook(
            lambda _, __, made, layer=layer: seen.update({(layer, "attention"): made[0]})
        )
    with torch.no_grad(), captured(model, sites) as found:
        states = model(IDS, output_hidden_states=True, use_cache=False).hidden_states
    for layer in range(n_layers):
        down = last_linear(model, layer)
        neurons = found[Site(layer, MLP)]
        assert neurons.shape[-1] == down.in_features > model.config.hidden_size
        made = torch.nn.functional.linear(neurons, down.weight, down.bias)
        torch.testing.assert_close(made, seen[layer, "down"])
        torch.testing.assert_close(found[Site(layer, ATTENTION)], seen[layer, "attention"])
        residual = found[Site(layer, RESIDUAL)]
        assert residual.shape == (*IDS.shape, model.config.hidden_size)
        if layer < n_layers - 1:
            torch.testing.assert_close(residual, states[layer + 1])
    assert not any(module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fleet_has_the_activations_of_its_members(family):
    """Where feed-forward layers are one operation, too; and afterwards they are again."""
    alone = [twin(family, seed) for seed in (0, 1)]
    weights = [{name: p.detach() for name, p in own.named_parameters()} for own in alone]
    fleet = FleetModels(TABLE[family], VOCABULARY, weights, torch.device("cpu"))
    ids_MBT = torch.stack([IDS, IDS.flip(0)])
    before = fleet.logits(ids_MBT)
    sites = fleet.sites()
    assert sites == sites_of(alone[0])
    found = fleet.activations(ids_MBT, sites)
    for member, own in enumerate(alone):
        with torch.no_grad(), captured(own, sites) as expected:
            own(ids_MBT[member], use_cache=False)
        for site, values in zip(sites, found, strict=True):
            wanted = expected[site].reshape(*IDS.shape, -1)
            torch.testing.assert_close(values[member], wanted, atol=1e-5, rtol=1e-4)
    assert torch.equal(fleet.logits(ids_MBT), before)


def test_only_what_is_asked_for_is_read():
    """In the order of the request."""
    weights = dict(twin("opt-6.7b", 0).named_parameters())
    fleet = FleetModels(TABLE["opt-6.7b"], VOCABULARY, [weights], torch.device("cpu"))
    some = [Site(1, RESIDUAL), Site(0, MLP)]
    residual, mlp = fleet.activations(IDS.unsqueeze(0), some)
    whole = dict(
        zip(fleet.sites(), fleet.activations(IDS.unsqueeze(0), fleet.sites()), strict=True)
    )
    np.testing.assert_array_equal(residual, whole[some[0]])
    np.testing.assert_array_equal(mlp, whole[some[1]])
    assert not residual.requires_grad


@pytest.mark.parametrize("site", [Site(2, MLP), Site(0, "head")])
def test_a_site_that_is_not_there_is_refused_with_those_that_are(site):
    model = twin("opt-6.7b", 0)

    def ask():
        with captured(model, [Site(0, RESIDUAL), site]):
            pass

    assert message(ask) == (
        f"no site {site}; the model has mlp, attention, residual of the layers 0 to 1"
    )
    assert not any(module._forward_hooks for module in model.modules())
