"""The `deepspeed` engine trains one model at a time, with accelerate and DeepSpeed.

It trains any causal language model of Hugging Face, on the CPU or on one or many GPUs (ZeRO 0 to 3,
with or without offloading).
"""

import logging
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from pickle import PickleError

import numpy as np
import torch

from palimpsest import launch, traces
from palimpsest.errors import UserError
from palimpsest.manifests import now
from palimpsest.models.adapters import merged, with_adapter
from palimpsest.models.build import build
from palimpsest.training.attempts import Passes
from palimpsest.training.batches import IGNORED, Batch, micro_batches
from palimpsest.training.evaluation import evaluate, predict
from palimpsest.training.manifest import manifest
from palimpsest.training.precision import dtype_of
from palimpsest.training.progress import say_resumed
from palimpsest.training.recipe import ADAM_BETAS, ADAM_EPS, Recipe
from palimpsest.training.runs import Material, Run
from palimpsest.training.state import State, key, writing
from palimpsest.training.trackers import Trackers

log = logging.getLogger("palimpsest")

# Errors from reading a damaged checkpoint. DeepSpeed raises TypeError if all files are missing.
LOADING_ERRORS = (OSError, RuntimeError, ValueError, EOFError, LookupError, TypeError, PickleError)


class DeepSpeedEngine:
    """Trains runs one after another, in this process or in all processes of a launcher."""

    name = "deepspeed"

    def __init__(
        self,
        recipe: Recipe,
        state_folder: str | Path,
        save_weights: bool = False,
        passes: Passes | None = None,
        trackers: Trackers | None = None,
        scale: str = "full",
    ):
        stand_alone_unless_launched()
        self.recipe = recipe
        self.trackers = trackers or Trackers()
        self.state_folder = Path(state_folder)
        self.save_weights = save_weights
        self.passes = passes or Passes.of(recipe)
        # Whether the engine is measuring strings now, and not training on them.
        self.is_measuring = False
        cut = replace(recipe, micro_batch_size=self.passes.micro_batch_size)
        self.accumulation_steps = cut.accumulation_steps(int(os.environ["WORLD_SIZE"]))
        self.accelerator, self.dtype = make_accelerator(
            cut, scale, save_weights, **self.trackers.for_accelerator
        )
        self.rank = self.accelerator.process_index
        self.processes = self.accelerator.num_processes
        self.device = self.accelerator.device

    def close(self) -> None:
        self.accelerator.wait_for_everyone()
        torch.distributed.destroy_process_group()

    def configuration(self, run: Run) -> dict:
        return configuration(run, self.processes, str(self.dtype).removeprefix("torch."))

    def state(self, run: Run) -> State:
        return State(self.state_folder, key(self.configuration(run), run.dataset), run.about())

    def train(self, runs: list[Run], progress) -> None:
        """Train runs, or resume killed runs, until their states are finished.

        `progress(name)` makes a reporter for one run; the first process calls the reporter after
        every epoch.
        """
        for run in runs:
            self._train(run, progress)

    def _train(self, run: Run, progress) -> None:
        state = self.state(run)
        if state.is_finished(self.save_weights, run.by_token, run.kept_epochs):
            return
        started, began = time.perf_counter(), now()
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        material = Material(run)
        training = self._ready(run, material, state)
        self.trackers.begin(self.accelerator, material.keys, asdict(self.recipe))
        name = f"{run.model} on {run.dataset}"
        if training.resumed_from and self.rank == 0:
            say_resumed(name, "epoch", training.resumed_from, run.recipe.epochs)
        trace = training.to_the_end(progress(name))
        self.trackers.end()
        weights = training.weights() if self.save_weights else None
        if self.rank == 0:
            content = manifest(
                trace.run,
                key=state.key,
                engine=self.name,
                configuration=self.configuration(run),
                one_pass=material.cohorts is not None,
                parameters=training.n_parameters,
                trained_parameters=training.n_trained,
                resolved_revision=training.resolved_revision,
                resumed_from_epoch=training.resumed_from,
                trained_together=1,
                micro_batch_size=self.passes.micro_batch_size,
                accumulation_steps=self.accumulation_steps,
                evaluation_batch_size=self.passes.evaluation_batch_size,
                out_of_memory=self.passes.tries,
                wall_time_seconds=time.perf_counter() - started,
                started=began,
                training_seconds=training.seconds,
                training_tokens=training.tokens,
            )
            tokens = material.tokens(training.measured)
            state.finish(traces.to_frame(trace), content, weights, tokens)
        self.accelerator.free_memory(training.model, training.optimizer)
        self.accelerator.wait_for_everyone()

    def _ready(self, run: Run, material: Material, state: State) -> "_Training":
        """A run at its newest complete checkpoint, or at its beginning if there is none.

        If loading a checkpoint fails, some weights may have changed already, so the model is built
        again.
        """
        if self.rank == 0:
            state.discard_after_gap(run.kept_epochs)
        while True:
            training = _Training(self, run, material, state)
            checkpoint = self._newest(state)
            if checkpoint is None or self._all(training.resume(checkpoint)):
                return training
            self.accelerator.free_memory(training.model, training.optimizer)
            if self.rank == 0:
                state.discard(checkpoint, "it cannot be loaded")

    def _newest(self, state: State) -> Path | None:
        """The newest complete checkpoint; only the first process checks, so that all agree."""
        found = [state.newest() if self.rank == 0 else None]
        torch.distributed.broadcast_object_list(found, device=self.device)
        return found[0]

    def _all(self, done: bool) -> bool:
        least = torch.tensor(int(done), device=self.device)
        torch.distributed.all_reduce(least, op=torch.distributed.ReduceOp.MIN)
        return bool(least)


def configuration(run: Run, processes: int, precision: str) -> dict:
    """Everything that decides the trace of a run under this engine, except the dataset."""
    work = {"engine": DeepSpeedEngine.name, "processes": processes, "precision": precision}
    return {**run.configuration(), **work}


class _Training:
    """A run in progress: the model, its optimiser and the trace so far."""

    def __init__(self, engine: DeepSpeedEngine, run: Run, material: Material, state: State):
        self.engine, self.recipe, self.state = engine, run.recipe, state
        self.material, self.kept_epochs = material, run.kept_epochs
        model = build(run.row, run.scale, material.vocabulary, material.seed, engine.dtype)
        self.n_parameters = count(model.parameters())
        self.resolved_revision = getattr(model.config, "_commit_hash", None)
        self.adapter = run.recipe.lora
        if self.adapter:
            model = with_adapter(model, self.adapter, run.row.model, material.seed)
        self.n_trained = count(trained_in(model))
        optimizer = torch.optim.AdamW(
            trained_in(model),
            lr=self.recipe.peak_rate,
            betas=ADAM_BETAS,
            eps=ADAM_EPS,
            weight_decay=self.recipe.weight_decay,
            fused=True,
        )
        self.model, self.optimizer = prepare(engine.accelerator, model, optimizer)
        self.measured: dict[int, np.ndarray] = {}
        # Seconds and predicted tokens of training in this process, without evaluation.
        self.seconds, self.tokens = 0.0, 0
        self.resumed_from = 0

    def to_the_end(self, progress) -> traces.Trace:
        evaluation_epochs = set(self.recipe.evaluation_epochs())
        if not self.resumed_from:
            self._measure(0)
        for epoch in range(self.resumed_from + 1, self.recipe.epochs + 1):
            started = time.perf_counter()
            self._train_epoch(epoch)
            self.seconds += time.perf_counter() - started
            if epoch in evaluation_epochs:
                self._measure(epoch)
            if self._is_checkpoint(epoch):
                self._save(epoch)
            if self.engine.rank == 0:
                progress(epoch, self.recipe.epochs, self.material.shown_loss(self.measured))
        return self.material.trace(self.measured)

    def _measure(self, epoch: int) -> None:
        self.measured[epoch] = self._evaluate()
        self._show(epoch)
        if epoch in self.kept_epochs:
            weights = self.weights()
            if self.engine.rank == 0:
                self.state.keep(epoch, weights)

    def _show(self, epoch: int) -> None:
        recipe, material = self.recipe, self.material
        steps = recipe.steps_per_epoch(material.epoch_size)
        last = max(0, epoch * steps - 1)
        rate = recipe.learning_rate_at(last, recipe.epochs * steps)
        losses = material.losses(self.measured[epoch])
        self.engine.trackers.show(epoch, {**losses, "learning_rate": rate})

    def weights(self) -> dict[str, torch.Tensor]:
        """The weights, gathered from all processes; every process must call this.

        Only the first process gets the weights. A weight that two layers share has its first name.
        An adapter is merged into the weights, which are then in float32.
        """
        accelerator = self.engine.accelerator
        state = accelerator.get_state_dict(self.model) or {}
        names = [name for name, _ in accelerator.unwrap_model(self.model).named_parameters()]
        weights = {name: state[name].cpu() for name in names if name in state}
        del state
        return merged(weights, self.adapter.scale) if self.adapter else weights

    def _train_epoch(self, epoch: int) -> None:
        engine, recipe, material = self.engine, self.recipe, self.material
        # So dropout, if a model has any, depends only on seed, epoch and process, also after a
        # resume.
        state = np.random.SeedSequence([material.seed, epoch, engine.rank]).generate_state(1)
        torch.manual_seed(int(state[0]))
        order = material.order(epoch)
        steps = recipe.steps_per_epoch(len(order))
        micro_batch_size = engine.passes.micro_batch_size
        slices = micro_batches(
            order, recipe.batch_size, micro_batch_size, engine.rank, engine.processes
        )
        for step, rows_of_passes in enumerate(slices):
            self._set_learning_rate((epoch - 1) * steps + step, recipe.epochs * steps)
            first = step * recipe.batch_size
            in_step = order[first : first + recipe.batch_size]
            n_tokens = int(material.encoded.n_tokens[in_step[in_step >= 0]].sum())
            self._step(rows_of_passes, max(n_tokens, 1))
            self.tokens += n_tokens

    def _step(self, rows_of_passes: list[np.ndarray], n_tokens: int) -> None:
        """One step of the optimiser, over the strings of all processes with `n_tokens` tokens."""
        engine, encoded = self.engine, self.material.encoded
        # DeepSpeed averages over processes and passes. This factor makes the loss the mean over all
        # tokens of the step, however the step is cut into passes.
        factor = engine.processes * engine.accumulation_steps / n_tokens
        for rows in rows_of_passes:
            with engine.accelerator.accumulate(self.model):
                nll = self._nll(encoded.batch(rows, engine.device))
                engine.accelerator.backward(nll * factor)
                self.optimizer.step()
                self.optimizer.zero_grad()

    def _nll(self, batch: Batch) -> torch.Tensor:
        """Sum of the nll over the predicted tokens of a batch, in nats."""
        return torch.nn.functional.cross_entropy(
            predict(self.model, batch).float().flatten(0, 1),
            batch.targets_BT.flatten(),
            ignore_index=IGNORED,
            reduction="sum",
        )

    def _set_learning_rate(self, step: int, total_steps: int) -> None:
        rate = self.recipe.learning_rate_at(step, total_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def _evaluate(self) -> np.ndarray:
        """float64[n_rows, strings], 0 where nothing is measured.

        `UserError` if a loss is not finite.
        """
        engine = self.engine
        engine.is_measuring = True
        measured = evaluate(
            self.model,
            self.material.encoded,
            self.material.measured_rows,
            engine.passes.evaluation_batch_size,
            engine.device,
            (engine.rank, engine.processes),
            self.material.n_rows,
        )
        engine.is_measuring = False
        return self.material.check(measured)

    def _is_checkpoint(self, epoch: int) -> bool:
        every = self.recipe.checkpoint_every
        return every > 0 and epoch % every == 0 and epoch < self.recipe.epochs

    def _save(self, epoch: int) -> None:
        """Save model, optimiser and trace; a kill during this leaves the older checkpoint."""
        engine = self.engine
        if engine.rank == 0:
            self.state.begin(epoch)
        engine.accelerator.wait_for_everyone()
        partial = self.state.folder / f"partial-{epoch:06d}"
        with writing(partial):
            # With an adapter, the weights of the model never change.
            self.model.save_checkpoint(
                str(partial),
                tag="model",
                client_state={"epoch": epoch, "measured": self.measured},
                exclude_frozen_parameters=self.adapter is not None,
            )
        engine.accelerator.wait_for_everyone()
        if engine.rank == 0:
            self.state.commit(partial)

    def resume(self, checkpoint: Path) -> bool:
        """Load a checkpoint; False if it cannot be loaded."""
        try:
            _, client = self.model.load_checkpoint(
                str(checkpoint), tag="model", load_module_strict=self.adapter is None
            )
            self.measured = self.material.resumed(client["measured"])
            self.resumed_from = client["epoch"]
        except LOADING_ERRORS as error:
            log.warning("%s: %s: %s", checkpoint, type(error).__name__, error)
            return False
        return True


def trained_in(model) -> list[torch.nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def count(parameters: Iterable[torch.nn.Parameter]) -> int:
    """Number of weights.

    With ZeRO 3, each process has a part of every weight; `ds_numel` is the size of the whole.
    """
    return sum(getattr(p, "ds_numel", p.numel()) for p in parameters)


def stand_alone_unless_launched() -> None:
    """Without a launcher, set up a process group with only this process, on a free port."""
    if launch.is_launched():
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(
        RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )


def prepare(accelerator, model, optimizer) -> tuple:
    """Model and optimiser as accelerate prepares them.

    DeepSpeed sums gradients over the processes: it copies all of them into one tensor and back.
    Where one process trains without ZeRO, there is nothing to add up, and this is left out.
    """
    prepared, optimizer = accelerator.prepare(model, optimizer)
    if accelerator.num_processes == 1 and not prepared.zero_optimization():
        prepared.enable_backward_allreduce = False
    return prepared, optimizer


def make_accelerator(recipe: Recipe, scale: str, save_weights: bool, **more):
    """An accelerator that runs DeepSpeed with the recipe's settings, and the dtype of weights.

    `scale` is `full` or `twin`. `more` are further arguments of the `Accelerator`.
    """
    import deepspeed
    from accelerate import Accelerator, DeepSpeedPlugin
    from accelerate.utils import DistributedType, InitProcessGroupKwargs

    # Shared-memory collective operations only help several processes on one CPU. Without them, no
    # C++ compiler is needed, and no job waits until another job has built them.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    if recipe.offload_optimizer == "cpu" and not (shutil.which("c++") or shutil.which("g++")):
        raise UserError(
            "recipes: offload_optimizer: cpu needs a C++ compiler, which DeepSpeed builds its "
            "optimiser with; install one (Debian, Ubuntu: apt install g++ python3-dev) or set none"
        )
    deepspeed.utils.logger.setLevel(logging.ERROR)
    dtype = dtype_of(recipe.precision, scale)
    # Without a GPU and without an explicit backend, accelerate assumes only one process.
    on_cpu = [] if torch.cuda.is_available() else [InitProcessGroupKwargs(backend="gloo")]
    settings = deepspeed_settings(recipe, dtype, save_weights)
    accelerator = Accelerator(
        deepspeed_plugin=DeepSpeedPlugin(hf_ds_config=settings),
        gradient_accumulation_steps=recipe.accumulation_steps(int(os.environ["WORLD_SIZE"])),
        kwargs_handlers=on_cpu,
        **more,
    )
    # If ACCELERATE_USE_CPU is set, accelerate silently does not use DeepSpeed.
    if accelerator.distributed_type != DistributedType.DEEPSPEED:
        raise UserError("accelerate did not start DeepSpeed; unset ACCELERATE_USE_CPU and rerun")
    return accelerator, dtype


def deepspeed_settings(recipe: Recipe, dtype: torch.dtype, save_weights=False) -> dict:
    processes = int(os.environ["WORLD_SIZE"])
    zero = {"stage": recipe.zero_stage}
    if recipe.zero_stage == 3:
        zero["stage3_gather_16bit_weights_on_model_save"] = save_weights
    if recipe.offload_optimizer != "none":
        zero["offload_optimizer"] = {"device": recipe.offload_optimizer, "pin_memory": True}
    return {
        "train_micro_batch_size_per_gpu": recipe.micro_batch_size,
        "gradient_accumulation_steps": recipe.accumulation_steps(processes),
        "gradient_clipping": recipe.gradient_clipping,
        "zero_optimization": zero,
        "bf16": {"enabled": dtype == torch.bfloat16},
        "steps_per_print": sys.maxsize,
    }
