"""One trained model at a time, held by accelerate and DeepSpeed (ZeRO 0 to 2).

Every process works on the same batches, because a loss is computed on a whole batch. The processes
share only the optimiser's memory. They change the weights in the same way, because all random
numbers depend on seeds only.

With adapters, steps train only the adapters. Everything else sees whole weights: the frozen weights
with the adapters merged into them.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from palimpsest.errors import UserError
from palimpsest.models.adapters import (
    initial_values,
    is_of_adapter,
    pairs_in,
    plain_name,
    with_adapter,
)
from palimpsest.models.build import build
from palimpsest.models.parameter_names import embeddings_and_head, layers
from palimpsest.models.sites import Site, captured, sites_of
from palimpsest.models.trained import ADAMW, MOMENTUM, SGD
from palimpsest.training.deepspeed_engine import (
    make_accelerator,
    prepare,
    stand_alone_unless_launched,
    trained_in,
)
from palimpsest.training.recipe import ADAM_BETAS, ADAM_EPS
from palimpsest.training.runs import Material, Run


class DeepSpeedHolder:
    """Holds any model of the table, in this process or in all processes of a launcher.

    The model is built once. `open` gives it new weights and discards those opened before. Raises
    `UserError` for ZeRO 3.
    """

    def __init__(self, run: Run, material: Material):
        if run.recipe.zero_stage == 3:
            raise UserError(
                f"recipes: zero_stage: with ZeRO 3 no process has a whole weight of {run.model}, "
                "which this job needs; set it to 2 (for only one full model: in "
                "training_by_model), with offload_optimizer: cpu if memory is short"
            )
        stand_alone_unless_launched()
        self.run = run
        # A loss is computed on a whole batch, so gradients are not accumulated.
        recipe = replace(run.recipe, micro_batch_size=run.recipe.batch_size)
        self.accelerator, self.dtype = make_accelerator(recipe, run.scale, save_weights=False)
        self.rank = self.accelerator.process_index
        self.device = self.accelerator.device
        # The size of a twin depends on the vocabulary of the strings.
        self._vocabulary, recipe = material.vocabulary, run.recipe
        model = self.build(material.seed)
        if recipe.lora:
            model = with_adapter(model, recipe.lora, run.row.model, material.seed)
        optimizer = torch.optim.AdamW(
            trained_in(model),
            lr=recipe.peak_rate,
            betas=ADAM_BETAS,
            eps=ADAM_EPS,
            weight_decay=recipe.weight_decay,
            fused=True,
        )
        self._prepared, _ = prepare(self.accelerator, model, optimizer)
        self._prepared.eval()

    def build(self, seed: int):
        """The model before any fine-tuning, on the CPU."""
        return build(self.run.row, self.run.scale, self._vocabulary, seed, self.dtype)

    def together(self, n: int) -> int:
        return 1

    def open(self, weights: list[dict[str, torch.Tensor]]) -> DeepSpeedModels:
        (weights_of_one,) = weights
        kind = AdaptedModels if self.run.recipe.lora else DeepSpeedModels
        self.opened = kind(self, self._prepared, weights_of_one)
        return self.opened

    def agree(self, values: np.ndarray) -> np.ndarray:
        tensor = torch.from_numpy(values).to(self.device)
        torch.distributed.broadcast(tensor, src=0)
        return tensor.cpu().numpy()

    def wait(self) -> None:
        self.accelerator.wait_for_everyone()

    def close(self) -> None:
        self.accelerator.free_memory()
        self.accelerator.wait_for_everyone()
        torch.distributed.destroy_process_group()


class DeepSpeedModels:
    """One model; implements `palimpsest.models.Models`.

    Its weights are the optimiser's, in float32 whatever the precision of its predictions. Its
    gradients are in float32, too. Dropout is off, so that all processes see the same model.
    """

    count = 1

    def __init__(self, engine: DeepSpeedHolder, prepared, weights: dict[str, torch.Tensor]):
        self.engine, self.device = engine, engine.device
        self._prepared = prepared
        self._module = prepared.module
        named = dict(self._module.named_parameters())
        # The whole model's weights, and what steps train: the same, or only an adapter.
        self._parameters = {plain_name(n): p for n, p in named.items() if not is_of_adapter(n)}
        self._trained = {n: p for n, p in named.items() if p.requires_grad}
        self._masters = _Masters(prepared)
        self.shapes = {name: parameter.shape for name, parameter in self._parameters.items()}
        self.embeddings, self.head = embeddings_and_head(self._module)
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                self._masters.set(parameter, weights[name].to(self.device, torch.float32))
        self.fresh_optimizer()

    def logits(self, ids_MBT: torch.Tensor) -> torch.Tensor:
        return self._run(ids_MBT).logits.float().unsqueeze(0)

    def hidden(self, ids_MBT: torch.Tensor, layer: int) -> torch.Tensor:
        states = self._run(ids_MBT, output_hidden_states=True).hidden_states
        return states[layer].float().unsqueeze(0)

    def sites(self) -> list[Site]:
        return sites_of(self._module)

    def activations(self, ids_MBT: torch.Tensor, sites: Sequence[Site]) -> list[torch.Tensor]:
        with torch.no_grad(), captured(self._module, sites) as found:
            self._run(ids_MBT)
        return [found[site].float().reshape(*ids_MBT.shape, -1) for site in sites]

    def _run(self, ids_MBT: torch.Tensor, **asked_for):
        """The module's outputs. Padding follows a string, so causal attention never sees it.

        DeepSpeed's engine is not called here, because it expects a step after each of its outputs.
        """
        self._check_open()
        return self._module(input_ids=ids_MBT[0], use_cache=False, **asked_for)

    def gradients(self, loss_M: torch.Tensor) -> dict[str, torch.Tensor]:
        """Gradients float32[1, ...] of the model's loss, without a step; equal in all processes."""
        return self._gradients(loss_M)

    def _gradients(self, loss_M: torch.Tensor) -> dict[str, torch.Tensor]:
        """Gradients of what steps train, by the parameter's own name."""
        grads = torch.autograd.grad(
            loss_M.sum(),
            list(self._trained.values()),
            allow_unused=True,
            materialize_grads=True,
        )
        gradients = {}
        for name, grad in zip(self._trained, grads, strict=True):
            gradients[name] = grad.float().contiguous().unsqueeze(0)
            torch.distributed.broadcast(gradients[name], src=0)
        return gradients

    def step(self, loss_M: torch.Tensor, rate_M: torch.Tensor) -> None:
        """One step of the optimiser at a learning rate, with the gradient clipped.

        Raises `UserError` if the gradient is not finite; DeepSpeed would skip this step.
        """
        if self._kind == SGD:
            finite = self._step_of_sgd(loss_M, float(rate_M))
        else:
            finite = self._step_of_adamw(loss_M, float(rate_M))
        if not finite:
            raise UserError(
                f"{self.engine.run.model}: the gradient is no longer finite; lower the learning "
                "rate of this job"
            )

    def _step_of_adamw(self, loss_M: torch.Tensor, rate: float) -> bool:
        """One step of DeepSpeed's optimiser; whether the gradient was finite."""
        for group in self._prepared.optimizer.param_groups:
            group["lr"] = rate
        self._prepared.backward(_ReachesAll.apply(loss_M.sum(), *self._trained.values()))
        self._prepared.step()
        return self._prepared.was_step_applied()

    def _step_of_sgd(self, loss_M: torch.Tensor, rate: float) -> bool:
        """One step of SGD with momentum; whether the gradient was finite.

        DeepSpeed holds only one optimiser. This one needs the gradients and the velocity of the
        all trained weights in every process, in float32.
        """
        gradients = self._gradients(loss_M)
        norm = torch.stack([grad.norm() for grad in gradients.values()]).norm()
        if not norm.isfinite():
            return False
        shrink = (self.engine.run.recipe.gradient_clipping / (norm + 1e-6)).clamp(max=1.0)
        with self._in_float32(self._trained) as weights:
            for name, grad in gradients.items():
                velocity = self._velocity.setdefault(name, torch.zeros_like(grad))
                weights[name].sub_(rate * velocity.mul_(MOMENTUM).add_(shrink * grad))
        return True

    def fresh_optimizer(self, kind: str = ADAMW) -> None:
        self._kind, self._velocity = kind, {}
        for state in self._moments:
            for name, value in state.items():
                if torch.is_tensor(value):
                    value.zero_()
                else:
                    state[name] = type(value)(0)

    def optimizer_state(self) -> _OptimizerState:
        """The optimiser with its moments, which wait in the memory of the CPU."""
        if self._kind == SGD:
            return _OptimizerState(self._kind, [_on_cpu(self._velocity)])
        return _OptimizerState(self._kind, [_on_cpu(state) for state in self._moments])

    def restore_optimizer(self, state: _OptimizerState) -> None:
        self.fresh_optimizer(state.kind)
        if state.kind == SGD:
            self._velocity = {name: v.to(self.device) for name, v in state.moments[0].items()}
            return
        for own, kept in zip(self._moments, state.moments, strict=True):
            for name, value in kept.items():
                if torch.is_tensor(value):
                    own[name].copy_(value)
                else:
                    own[name] = value

    @property
    def _moments(self) -> list[dict]:
        """What AdamW holds in this process, per (part of a) parameter."""
        return list(self._prepared.basic_optimizer.state.values())

    @contextlib.contextmanager
    def weights(self) -> Iterator[dict[str, torch.Tensor]]:
        self._check_open()
        with self._in_float32(self._parameters) as weights:
            yield weights

    @contextlib.contextmanager
    def _in_float32(
        self, parameters: dict[str, torch.nn.Parameter]
    ) -> Iterator[dict[str, torch.Tensor]]:
        """Some parameters float32[1, ...], which may be changed in place inside of the context."""
        with torch.no_grad():
            whole = {name: self._masters.get(p) for name, p in parameters.items()}
            yield {name: tensor.unsqueeze(0) for name, tensor in whole.items()}
            for name, tensor in whole.items():
                self._masters.set(parameters[name], tensor)

    def _check_open(self) -> None:
        if self.engine.opened is not self:
            raise RuntimeError("other weights were opened since then, so these weights are closed")

    def initial(self, seeds: list[int]) -> dict[str, torch.Tensor]:
        """Weights float32[1, ...] before any fine-tuning; only a twin's depend on the seed."""
        (seed,) = seeds
        model = dict(self.engine.build(seed).named_parameters())
        return {
            name: model[name].detach().to(self.device, torch.float32).unsqueeze(0)
            for name in self.shapes
        }

    def layers(self) -> list[str]:
        return layers(self.shapes)


class AdaptedModels(DeepSpeedModels):
    """One model whose steps train an adapter only; all other weights are frozen.

    The adapter is fresh when the model is opened. Its random part is drawn with a seed made from
    the opened weights, so that a model has the same adapter whenever it is opened, and other models
    have others. Weights are read and edited whole, in float32 and in main memory: a device that
    holds the model in 16 bits may have no room for them. In bf16, an edited weight is rounded to
    bf16, because a frozen weight has no float32 copy.
    """

    def __init__(self, engine: DeepSpeedHolder, prepared, weights: dict[str, torch.Tensor]):
        self._scale = engine.run.recipe.lora.scale
        named = dict(prepared.module.named_parameters())
        self._pairs = {
            name: (named[down], named[up]) for name, (down, up) in pairs_in(named).items()
        }
        super().__init__(engine, prepared, weights)
        first = next(iter(self._pairs))
        seed = zlib.crc32(weights[first].float().contiguous().numpy())
        shapes = {name: down.shape for name, (down, _) in self._pairs.items()}
        drawn = initial_values(shapes, engine.run.row.model, seed)
        with torch.no_grad():
            for name, (down, up) in self._pairs.items():
                self._masters.set(down, drawn[name].to(self.device))
                self._masters.set(up, torch.zeros(up.shape, device=self.device))

    def gradients(self, loss_M: torch.Tensor) -> dict[str, torch.Tensor]:
        """Refused with `UserError`: gradients of all weights would need the memory of training."""
        raise UserError(
            f"{self.engine.run.model}: gradients of all weights were asked for, and only adapters "
            "are trained; leave this method out, or set adapter to none"
        )

    @contextlib.contextmanager
    def weights(self) -> Iterator[dict[str, torch.Tensor]]:
        """The merged weights float32[1, ...] on the CPU, which may be changed in place.

        A changed weight takes the place of the frozen one, and its adapter begins again.
        """
        self._check_open()
        with torch.no_grad():
            whole = {name: self._merged(name) for name in self._parameters}
            yield {name: tensor.unsqueeze(0) for name, tensor in whole.items()}
            for name, tensor in whole.items():
                if not torch.equal(tensor, self._merged(name)):
                    self._replace(name, tensor)

    def _merged(self, name: str) -> torch.Tensor:
        """A copy of one weight, merged with its adapter, if it has one."""
        weight = self._masters.get(self._parameters[name]).to("cpu", torch.float32, copy=True)
        if name in self._pairs:
            down, up = (self._masters.get(each).cpu() for each in self._pairs[name])
            weight += self._scale * (up @ down)
        return weight

    def _replace(self, name: str, weight: torch.Tensor) -> None:
        self._masters.set(self._parameters[name], weight.to(self.device))
        if name in self._pairs:
            _, up = self._pairs[name]
            self._masters.set(up, torch.zeros(up.shape, device=self.device))

    def initial(self, seeds: list[int]) -> dict[str, torch.Tensor]:
        """The pretrained weights float32[1, ...], on the CPU like `weights`."""
        return {name: weight.cpu() for name, weight in super().initial(seeds).items()}


@dataclass(frozen=True)
class _OptimizerState:
    """An optimiser that waits: its kind, and its moments by name."""

    kind: str
    moments: list[dict]


def _on_cpu(state: dict) -> dict:
    return {
        name: value.detach().to("cpu", copy=True) if torch.is_tensor(value) else value
        for name, value in state.items()
    }


class _ReachesAll(torch.autograd.Function):
    """Returns a loss unchanged and adds a gradient of 0 for weights that the loss does not use.

    With an offloaded optimiser, DeepSpeed would use an earlier gradient of such a weight again.
    """

    @staticmethod
    def forward(context, loss, *parameters):
        context.parameters = parameters
        return loss.clone()

    @staticmethod
    def backward(context, grad):
        return grad, *(p.new_zeros(()).expand_as(p) for p in context.parameters)


class _Masters:
    """The float32 weights that DeepSpeed's optimiser updates; the module's weights are copies.

    In float32 without ZeRO they are the module's own weights. In bf16 without ZeRO they are
    separate copies. With ZeRO they are flat copies, divided among the processes. A frozen weight is
    its own master.
    """

    def __init__(self, prepared):
        self._is_shared = prepared.zero_optimization()
        self._copies = {}
        if prepared.bfloat16_enabled() and not self._is_shared:
            optimizer = prepared.optimizer
            for own, copies in zip(optimizer.fp16_groups, optimizer.fp32_groups, strict=True):
                self._copies |= zip(map(id, own), copies, strict=True)

    def get(self, parameter: torch.nn.Parameter) -> torch.Tensor:
        """One whole weight: the tensor itself or a copy."""
        from deepspeed.utils import safe_get_full_fp32_param

        if self._is_shared and parameter.requires_grad:
            return safe_get_full_fp32_param(parameter)
        return self._copies.get(id(parameter), parameter).detach()

    def set(self, parameter: torch.nn.Parameter, value: torch.Tensor) -> None:
        from deepspeed.utils import safe_set_full_fp32_param

        if self._is_shared and parameter.requires_grad:
            safe_set_full_fp32_param(parameter, value)
        elif id(parameter) in self._copies:
            self._copies[id(parameter)].copy_(value)
        # A caller may read weights after a loss and before its step. Through `.data`, autograd does
        # not take the unchanged weights for changed ones.
        parameter.data.copy_(value)
