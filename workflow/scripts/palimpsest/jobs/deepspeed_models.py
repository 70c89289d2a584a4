"""One trained model held at a time, through accelerate and DeepSpeed (ZeRO 0 to 2).

Every process works on the same batches, because losses are of whole batches: what several share is
the optimiser's memory. Their edits agree, as random numbers follow from seeds alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from palimpsest.errors import UserError
from palimpsest.models.build import build
from palimpsest.models.parts import embeddings_and_head, layers
from palimpsest.training.deepspeed_engine import make_accelerator, stand_alone_unless_launched
from palimpsest.training.recipe import ADAM_BETAS, ADAM_EPS
from palimpsest.training.runs import Material, Run


class DeepSpeedHolder:
    """Holds any model of the table, in this process (and its peers, under a launcher).

    There is one model in it, made once, which `open` gives other weights: those that were opened
    before are gone. Raises `UserError` for ZeRO 3.
    """

    def __init__(self, run: Run, material: Material):
        if run.recipe.zero_stage == 3:
            raise UserError(
                f"training/zero_stage: ZeRO 3 leaves no process a whole weight of {run.model}, "
                "which this job needs; set it to 2 (of one full model: in training_by_model), with "
                "offload_optimizer: cpu if memory is short"
            )
        stand_alone_unless_launched()
        self.run = run
        # A loss is of a whole batch, so nothing is accumulated.
        recipe = replace(run.recipe, micro_batch_size=run.recipe.batch_size)
        self.accelerator, self.dtype = make_accelerator(recipe, save_weights=False)
        self.rank = self.accelerator.process_index
        self.device = self.accelerator.device
        # The size of a twin depends on the vocabulary of the strings.
        self._vocabulary, recipe = material.vocabulary, run.recipe
        model = self.build(material.seed)
        optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=recipe.learning_rate,
            betas=ADAM_BETAS,
            eps=ADAM_EPS,
            weight_decay=recipe.weight_decay,
            fused=True,
        )
        self._prepared, _ = self.accelerator.prepare(model, optimizer)
        self._prepared.eval()

    def build(self, seed: int):
        """The model as before any fine-tuning, on the CPU."""
        return build(self.run.row, self.run.scale, self._vocabulary, seed, self.dtype)

    def together(self, n: int) -> int:
        """How many of `n` models are opened at once: one."""
        return 1

    def open(self, weights: list[dict[str, torch.Tensor]]) -> DeepSpeedModels:
        """The model with the given weights."""
        (weights_of_one,) = weights
        self.opened = DeepSpeedModels(self, self._prepared, weights_of_one)
        return self.opened

    def agree(self, values: np.ndarray) -> np.ndarray:
        """What the first process has, in all, so that each decides the same."""
        tensor = torch.from_numpy(values).to(self.device)
        torch.distributed.broadcast(tensor, src=0)
        return tensor.cpu().numpy()

    def wait(self) -> None:
        """Wait for all processes to come here."""
        self.accelerator.wait_for_everyone()

    def close(self) -> None:
        """Leave the group of processes; nothing can be opened after that."""
        self.accelerator.free_memory()
        self.accelerator.wait_for_everyone()
        torch.distributed.destroy_process_group()


class DeepSpeedModels:
    """One model; implements `palimpsest.models.Models`.

    Its weights are those that the optimiser steps, in float32 whatever it predicts in; gradients
    are float32, too. It never drops out, so that all processes see the same model.
    """

    count = 1

    def __init__(self, engine: DeepSpeedHolder, prepared, weights: dict[str, torch.Tensor]):
        self.engine, self.device = engine, engine.device
        self._prepared = prepared
        self._module = prepared.module
        self._parameters = dict(self._module.named_parameters())
        self._masters = _Masters(prepared)
        self.shapes = {name: parameter.shape for name, parameter in self._parameters.items()}
        self.embeddings, self.head = embeddings_and_head(self._module)
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                self._masters.set(parameter, weights[name].to(self.device, torch.float32))
        self.fresh_optimizer()

    def logits(self, ids_MBT: torch.Tensor) -> torch.Tensor:
        """Logits float32[1, B, T, V] of the next token at every position."""
        return self._run(ids_MBT).logits.float().unsqueeze(0)

    def hidden(self, ids_MBT: torch.Tensor, layer: int) -> torch.Tensor:
        """What layer `layer` (0: the embeddings) leaves at every position, float32[1, B, T, D]."""
        states = self._run(ids_MBT, output_hidden_states=True).hidden_states
        return states[layer].float().unsqueeze(0)

    def _run(self, ids_MBT: torch.Tensor, **asked_for):
        """The module's outputs; padding stands behind a string, where causal attention sees none.

        Not the engine's: it expects each of its outputs to lead to a step.
        """
        self._check_open()
        return self._module(input_ids=ids_MBT[0], use_cache=False, **asked_for)

    def gradients(self, loss_M: torch.Tensor) -> dict[str, torch.Tensor]:
        """Of the model's loss, without a step, float32[1, ...]; the same in all processes."""
        grads = torch.autograd.grad(
            loss_M.sum(),
            list(self._parameters.values()),
            allow_unused=True,
            materialize_grads=True,
        )
        gradients = {}
        for name, grad in zip(self.shapes, grads, strict=True):
            gradients[name] = grad.float().contiguous().unsqueeze(0)
            torch.distributed.broadcast(gradients[name], src=0)
        return gradients

    def step(self, loss_M: torch.Tensor, rate_M: torch.Tensor) -> None:
        """One step of AdamW at a learning rate, the gradient clipped.

        Raises `UserError` where DeepSpeed would leave out a step whose gradient is not finite.
        """
        for group in self._prepared.optimizer.param_groups:
            group["lr"] = float(rate_M)
        self._prepared.backward(_ReachesAll.apply(loss_M.sum(), *self._parameters.values()))
        self._prepared.step()
        if not self._prepared.was_step_applied():
            raise UserError(
                f"{self.engine.run.model}: the gradient is no longer finite; lower the learning "
                "rate of this job"
            )

    def fresh_optimizer(self) -> None:
        """Forget the optimiser's moments, as a new phase does."""
        for state in self._prepared.basic_optimizer.state.values():
            for name, value in state.items():
                if torch.is_tensor(value):
                    value.zero_()
                else:
                    state[name] = type(value)(0)

    @contextlib.contextmanager
    def weights(self) -> Iterator[dict[str, torch.Tensor]]:
        """The weights float32[1, ...], which may be changed in place inside of the context."""
        self._check_open()
        with torch.no_grad():
            whole = {name: self._masters.get(p) for name, p in self._parameters.items()}
            yield {name: tensor.unsqueeze(0) for name, tensor in whole.items()}
            for name, tensor in whole.items():
                self._masters.set(self._parameters[name], tensor)

    def _check_open(self) -> None:
        if self.engine.opened is not self:
            raise RuntimeError("other weights were opened since; these are gone")

    def initial(self, seeds: list[int]) -> dict[str, torch.Tensor]:
        """Weights float32[1, ...] as before any fine-tuning; a seed matters to twins only."""
        (seed,) = seeds
        model = dict(self.engine.build(seed).named_parameters())
        return {
            name: model[name].detach().to(self.device, torch.float32).unsqueeze(0)
            for name in self.shapes
        }

    def layers(self) -> list[str]:
        """Names of the layers, in order: `embedding`, `0`, `1`, ..., `head`."""
        return layers(self.shapes)


class _ReachesAll(torch.autograd.Function):
    """Passes on a loss, which then has a gradient for every weight: of 0 where it reached none.

    For a weight without one, DeepSpeed would take the last that it had, if it offloads.
    """

    @staticmethod
    def forward(context, loss, *parameters):
        context.parameters = parameters
        return loss.clone()

    @staticmethod
    def backward(context, grad):
        return grad, *(p.new_zeros(()).expand_as(p) for p in context.parameters)


class _Masters:
    """The float32 weights that DeepSpeed's optimiser steps, from which the module's are copied.

    In float32 without ZeRO they are the module's own; in bf16 without it they are copies, and ZeRO
    shares flat copies out among the processes.
    """

    def __init__(self, prepared):
        self._is_shared = prepared.zero_optimization()
        self._copies = {}
        if prepared.bfloat16_enabled() and not self._is_shared:
            optimizer = prepared.optimizer
            for own, copies in zip(optimizer.fp16_groups, optimizer.fp32_groups, strict=True):
                self._copies |= zip(map(id, own), copies, strict=True)

    def get(self, parameter: torch.nn.Parameter) -> torch.Tensor:
        """One weight as a whole: itself or a copy."""
        from deepspeed.utils import safe_get_full_fp32_param

        if self._is_shared:
            return safe_get_full_fp32_param(parameter)
        return self._copies.get(id(parameter), parameter).detach()

    def set(self, parameter: torch.nn.Parameter, value: torch.Tensor) -> None:
        """Give a weight another value, in the optimiser and in the module."""
        from deepspeed.utils import safe_set_full_fp32_param

        if self._is_shared:
            safe_set_full_fp32_param(parameter, value)
        elif id(parameter) in self._copies:
            self._copies[id(parameter)].copy_(value)
        # Weights are also read between a loss and its step, for which autograd must not take the
        # unchanged ones for changed.
        parameter.data.copy_(value)
