"""Many models of one architecture as one model: stacked parameters, unchanged Hugging Face code.

The members of a fleet differ in their parameters only. Only the leaf modules use parameters: linear
layers, embeddings and norms. Each leaf module is replaced by one that holds the parameters of all
members. All other code of the model runs unchanged, on one batch with the strings of all members:
M * B strings.
"""

import contextlib
import math
import sys
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import nn
from torch.func import functional_call, vmap
from transformers import AttentionInterface, PreTrainedModel

from palimpsest.errors import UserError
from palimpsest.models.sites import Site, captured, sites_of
from palimpsest.training.fleet import operations

ATTENTION = "palimpsest_fleet"
ROTARY = "apply_rotary_pos_emb"
ACTIVATIONS = {
    "SiLUActivation": "silu",
    "SiLU": "silu",
    "GELUTanh": "gelu_pytorch_tanh",
    "GELUActivation": "gelu",
    "ReLU": "relu",
}
GATED_ACTIVATION = "act_fn"
GATED = {"gate_proj", "up_proj", "down_proj"}


class Stack:
    """M models of one architecture, built from one of them.

    `theta` float32[M, P] holds the parameters of all members, in the order of `shapes`; the tensors
    in `parameters` are views of `theta`. Padding needs no mask, because attention is causal and
    padding follows a string.
    """

    # While activations are read, a feed-forward layer is not one operation.
    is_observed = False

    def __init__(self, model: PreTrainedModel, members: int, device: torch.device):
        _check_no_dropout(model)
        self.members = members
        self.operations = operations_for(device)
        self.shapes = {name: p.shape for name, p in model.named_parameters()}
        self.theta = torch.empty(members, sum(s.numel() for s in self.shapes.values()))
        self.theta = self.theta.to(device)
        # A tied parameter has several names, but is stored once.
        places = [(n, id(p)) for n, p in model.named_parameters(remove_duplicate=False)]
        first = {id(p): name for name, p in model.named_parameters()}
        self._tied = {name: first[same] for name, same in places}
        homes = {sys.modules[type(module).__module__] for module in model.modules()}
        self._rotating = [home for home in homes if hasattr(home, ROTARY)]
        # Of predictions that can be repeated, by the shape of their ids; with ids and logits.
        self._programs: dict[torch.Size, tuple] = {}
        self.model = _with_stacked_leaves(model, self).to(device)
        self.parameters: list[torch.Tensor] = []
        self.use(members)

    def use(self, members: int) -> None:
        """Compute with the first `members` members only."""
        if self.parameters and len(self.parameters[0]) == members:
            return
        self.members = members
        views = dict(zip(self.shapes, self.views(self.theta[:members]), strict=True))
        views = {name: view.requires_grad_() for name, view in views.items()}
        self.parameters = list(views.values())
        for name, same in self._tied.items():
            place, _, attribute = name.rpartition(".")
            setattr(self.model.get_submodule(place), attribute, views[same])

    def keep(self, members: list[int]) -> None:
        self.theta = self.theta[members]
        self.parameters, self._programs = [], {}
        self.use(len(members))

    def views(self, flat_MP: torch.Tensor) -> list[torch.Tensor]:
        """Cut float[M, P] (or float[P]) into the parameters, each in its shape."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = flat_MP.detach().split(sizes, dim=-1)
        return [
            part.view(*flat_MP.shape[:-1], *shape)
            for part, shape in zip(parts, self.shapes.values(), strict=True)
        ]

    def load(self, member: int, parameters: Iterable[torch.Tensor]) -> None:
        """Set the parameters of one member, in the order of `shapes`."""
        self.theta[member] = torch.cat([p.detach().flatten() for p in parameters])

    def __call__(self, ids_MBT: torch.Tensor) -> torch.Tensor:
        """Logits [M, B, T, V] of the next token at every position of every member's strings."""
        return self._run(ids_MBT).logits.view(*ids_MBT.shape, -1)

    @torch.no_grad()
    def predictions(self, ids_MBT: torch.Tensor) -> torch.Tensor:
        """The logits [M, B, T, V] without gradients, faster than a call of the stack.

        The next predictions for ids of this shape overwrite them.
        """
        if ids_MBT.shape in self._programs:
            program, given_MBT, logits_MBTV = self._programs[ids_MBT.shape]
            given_MBT.copy_(ids_MBT)
            program.run()
            return logits_MBTV
        ids_MBT = ids_MBT.clone(memory_format=torch.contiguous_format)
        logits_MBTV = self.theta.new_empty(*ids_MBT.shape, self.model.config.vocab_size)
        with self.operations.member_by_member(len(ids_MBT), ids_MBT, self.theta) as queue:
            self.operations.copy_(logits_MBTV, self(ids_MBT))
        if queue is not None and queue.program is not None:
            self._programs[ids_MBT.shape] = queue.program, ids_MBT, logits_MBTV
        return logits_MBTV

    def hidden(self, ids_MBT: torch.Tensor, layer: int) -> torch.Tensor:
        """Hidden states [M, B, T, D] after a layer; layer 0 is the embeddings."""
        states = self._run(ids_MBT, output_hidden_states=True).hidden_states
        return states[layer].reshape(*ids_MBT.shape, -1)

    def sites(self) -> list[Site]:
        return sites_of(self.model)

    def activations(self, ids_MBT: torch.Tensor, sites: Sequence[Site]) -> list[torch.Tensor]:
        """Activations [M, B, T, N] at some sites, without gradients."""
        self.is_observed = True
        try:
            with torch.no_grad(), captured(self.model, sites) as found:
                self._run(ids_MBT)
        finally:
            self.is_observed = False
        return [found[site].reshape(*ids_MBT.shape, -1) for site in sites]

    def _run(self, ids_MBT: torch.Tensor, **asked_for):
        """The model's outputs for the strings of all members as one batch."""
        _, self.rows, length = ids_MBT.shape
        with self._rotation():
            return self.model(
                input_ids=ids_MBT.flatten(0, 1),
                # Given explicitly, so that no model computes them from a mask.
                position_ids=torch.arange(length, device=ids_MBT.device).unsqueeze(0),
                use_cache=False,
                **asked_for,
            )

    @contextlib.contextmanager
    def _rotation(self) -> Iterator[None]:
        """Let the model's code use this device's operation to rotate queries and keys.

        A class with rotary positions calls a function in its own Python module. This function is
        replaced while the context is active.
        """
        plain = {module: getattr(module, ROTARY) for module in self._rotating}
        try:
            for module in plain:
                setattr(module, ROTARY, self._rotate)
            yield
        finally:
            for module, function in plain.items():
                setattr(module, ROTARY, function)

    def _rotate(self, query, key, cos_1Td, sin_1Td, unsqueeze_dim: int = 1):
        """Queries and keys [S, H, T, d], rotated by their positions."""
        return self.operations.apply_rotary(query, key, cos_1Td[0], sin_1Td[0])


def operations_for(device: torch.device):
    """The module with the operations of stacked leaves: PyTorch on a GPU, kernels on the CPU."""
    if device.type != "cpu":
        return operations
    from palimpsest.training.fleet import kernels

    return kernels


def _check_no_dropout(model: PreTrainedModel) -> None:
    """Refuse dropout: a member's dropout would depend on the other members. Twins have none."""
    active = [name for name, m in model.named_modules() if isinstance(m, nn.Dropout) and m.p > 0]
    if active:
        raise UserError(
            f"they have dropout, {active[0]}, and stacked models cannot draw dropout independently"
        )


# Leaves


def _with_stacked_leaves(model: PreTrainedModel, stack: Stack) -> PreTrainedModel:
    AttentionInterface.register(ATTENTION, _attention)
    model.config._attn_implementation = ATTENTION
    for name, module in list(model.named_modules()):
        module._fleet = stack if hasattr(module, "config") else None
        if dict(module.named_parameters(recurse=False)):
            _replace(model, name, _stacked_leaf(module, stack))
    for name, module in list(model.named_modules()):
        if dict(module.named_children()).keys() >= GATED and _activation(module.act_fn):
            _replace(model, name, _GatedFeedForward(module, stack))
        elif type(module).__name__ == "GPTNeoXMLP" and _activation(module.act):
            _replace(model, name, _FeedForward(module, stack))
        elif _activation(module) and not name.endswith(GATED_ACTIVATION):
            _replace(model, name, _Activation(module, stack))
    return model


def _replace(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(parent), attribute, module)


def _stacked_leaf(module: nn.Module, stack: Stack) -> nn.Module:
    if type(module) is nn.Linear:
        return _Linear(module, stack)
    if isinstance(module, nn.Embedding):
        # The class's own code runs (for example, to compute positions). It calls the stacked lookup
        # as the method of its parent class.
        own_code = () if type(module) is nn.Embedding else (type(module),)
        kind = type(f"Stacked{type(module).__name__}", (*own_code, _Embedding), {})
        stacked = kind.__new__(kind)
        nn.Module.__init__(stacked)
        vars(stacked).update({k: v for k, v in vars(module).items() if k != "_parameters"})
        vars(stacked)["stack"] = stack
        return stacked
    if type(module) is nn.LayerNorm and module.bias is not None:
        return _LayerNorm(module, stack)
    if type(module).__name__.endswith("RMSNorm"):
        return _RMSNorm(module, stack)
    return _Any(module, stack)


class _Leaf(nn.Module):
    """A leaf module whose parameters are plain attributes, set by `Stack.use`."""

    def __init__(self, module: nn.Module, stack: Stack):
        super().__init__()
        vars(self)["stack"] = stack
        for name, _ in module.named_parameters(recurse=False):
            setattr(self, name, None)

    def per_member(self, x: torch.Tensor) -> torch.Tensor:
        """[M, N, D] of activations [M * B, T, D] or [M * B * T, D]."""
        return x.reshape(self.stack.members, -1, x.shape[-1])


class _Linear(_Leaf):
    def __init__(self, module: nn.Linear, stack: Stack):
        super().__init__(module, stack)
        if module.bias is None:
            self.bias = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y_MNO = self.stack.operations.linear(self.per_member(x), self.weight, self.bias)
        return y_MNO.view(*x.shape[:-1], -1)


class _LayerNorm(_Leaf):
    def __init__(self, module: nn.LayerNorm, stack: Stack):
        super().__init__(module, stack)
        self.eps = module.eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = self.stack.operations.layer_norm
        return norm(self.per_member(x), self.weight, self.bias, self.eps).view(x.shape)


class _RMSNorm(_Leaf):
    """Some families multiply by the weight, others by 1 + weight; a test call tells which."""

    def __init__(self, module: nn.Module, stack: Stack):
        super().__init__(module, stack)
        self.eps = module.eps if hasattr(module, "eps") else module.variance_epsilon
        zero = {"weight": torch.zeros_like(module.weight)}
        ones = torch.ones(1, len(module.weight), device=module.weight.device)
        self.offset = 1.0 if functional_call(module, zero, (ones,)).any() else 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = self.stack.operations.rms_norm
        return norm(self.per_member(x), self.weight, self.eps, self.offset).view(x.shape)


class _Any(_Leaf):
    """Any other leaf module: its own code, mapped over the members."""

    def __init__(self, module: nn.Module, stack: Stack):
        super().__init__(module, stack)
        vars(self)["module"] = module
        self.names = [name for name, _ in module.named_parameters(recurse=False)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        members = self.stack.members
        parameters = {name: getattr(self, name) for name in self.names}
        out = vmap(lambda p, rows: functional_call(self.module, p, (rows,)))(
            parameters, x.view(members, -1, *x.shape[1:])
        )
        return out.flatten(0, 1)


class _Embedding(nn.Embedding):
    """Looks up ids in each member's own table."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """[M * B, T, D] of ids [M * B, T], or of ids [1, T] that all strings share."""
        members = len(self.weight)
        if len(ids) == 1:
            ids = ids.expand(members * self.stack.rows, -1)
        rows = self.stack.operations.embedding(ids.reshape(members, -1), self.weight)
        return rows.view(*ids.shape, -1)


class _GatedFeedForward(nn.Module):
    """A gated feed-forward layer as one operation; with biases, only activation and product."""

    def __init__(self, module: nn.Module, stack: Stack):
        super().__init__()
        vars(self)["stack"] = stack
        self.gate_proj, self.up_proj = module.gate_proj, module.up_proj
        self.down_proj = module.down_proj
        self.activation = _activation(module.act_fn)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        layers = self.gate_proj, self.up_proj, self.down_proj
        is_plain = all(isinstance(layer, _Linear) and layer.bias is None for layer in layers)
        if is_plain and not self.stack.is_observed:
            weights = [layer.weight for layer in layers]
            whole = self.stack.operations.gated_feed_forward
            y_MNO = whole(self.gate_proj.per_member(x), *weights, self.activation)
            return y_MNO.view(*x.shape[:-1], -1)
        gate, up = self.gate_proj(x), self.up_proj(x)
        return self.down_proj(self.stack.operations.gated(gate, up, self.activation))


class _FeedForward(nn.Module):
    """The feed-forward layer of GPT-NeoX as one operation."""

    def __init__(self, module: nn.Module, stack: Stack):
        super().__init__()
        vars(self)["stack"] = stack
        self.dense_h_to_4h, self.dense_4h_to_h = module.dense_h_to_4h, module.dense_4h_to_h
        self.activation = _activation(module.act)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        up, down = self.dense_h_to_4h, self.dense_4h_to_h
        if self.stack.is_observed:
            return down(self.stack.operations.activate(up(x), self.activation))
        parameters = up.weight, up.bias, down.weight, down.bias
        whole = self.stack.operations.feed_forward
        return whole(up.per_member(x), *parameters, self.activation).view(x.shape)


class _Activation(nn.Module):
    def __init__(self, module: nn.Module, stack: Stack):
        super().__init__()
        vars(self)["stack"] = stack
        self.activation = _activation(module)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.stack.operations.activate(x, self.activation)


def _activation(module: nn.Module) -> str | None:
    return ACTIVATIONS.get(type(module).__name__)


def _attention(module, query, key, value, attention_mask, scaling=None, softcap=None, **more):
    """Causal attention, called by transformers for every layer."""
    if (more.get("sliding_window") or math.inf) < query.shape[2]:
        raise UserError(
            "its attention sees only a window of tokens, and strings are longer than the window"
        )
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    scaling = 1 / math.sqrt(query.shape[-1]) if scaling is None else scaling
    attend = module._fleet.operations.attention
    return attend(query, key, value, scaling, softcap), None
