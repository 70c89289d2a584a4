"""Training a fleet: in a wave, many models (members) take their steps together.

A member has its own data, order of the data, seed, initial weights, learning-rate schedule and
number of steps. Its trace is the same as if it were trained alone.
"""

import os
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from palimpsest import traces
from palimpsest.manifests import now
from palimpsest.models.build import build
from palimpsest.training.attempts import fewer_models
from palimpsest.training.batches import IGNORED, by_length
from palimpsest.training.evaluation import measure, strings_at_once
from palimpsest.training.fleet.members import Member
from palimpsest.training.fleet.memory import most_members
from palimpsest.training.fleet.probe import probe
from palimpsest.training.fleet.stack import Stack
from palimpsest.training.manifest import manifest
from palimpsest.training.progress import say_resumed
from palimpsest.training.recipe import ADAM_BETAS, ADAM_EPS
from palimpsest.training.runs import Material, Run
from palimpsest.training.state import State, key
from palimpsest.training.trackers import Trackers

# Keys that decide how the engine `deepspeed` divides its work; they affect no trace of a fleet.
OF_THE_OTHER_ENGINE = ("zero_stage", "offload_optimizer", "micro_batch_size", "precision")


class FleetEngine:
    """Trains the twins of one model in float32, in waves that fit into memory.

    `memory` is the number of bytes that the process may use. On a GPU, the GPU's free memory is
    used instead. `trackers` show each run when it is finished, except runs without one string.
    """

    name = "fleet"
    rank = 0

    def __init__(
        self,
        state_folder: str | Path,
        threads: int,
        memory: int,
        save_weights: bool = False,
        trackers: Trackers | None = None,
    ):
        self.state_folder = Path(state_folder)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.memory = memory
        self.threads = min(threads, os.cpu_count())
        self.save_weights = save_weights
        self.trackers = trackers or Trackers()
        if self.device.type == "cpu":
            import numba

            torch.set_num_threads(self.threads)
            numba.set_num_threads(min(self.threads, numba.config.NUMBA_NUM_THREADS))

    def close(self) -> None:
        """Nothing to close."""

    def configuration(self, run: Run) -> dict:
        return configuration(run)

    def state(self, run: Run) -> State:
        return State(self.state_folder, key(self.configuration(run), run.dataset), run.about())

    def train(self, runs: list[Run], progress) -> None:
        """Train runs of one model, or resume killed runs, until their states are finished.

        `progress(name)` makes a reporter for one wave, which is called after every epoch.
        """
        groups: dict[tuple, list[tuple[Run, State]]] = {}
        for run in runs:
            state = self.state(run)
            if not self._is_finished(run, state):
                groups.setdefault(trained_alike(run), []).append((run, state))
        finished = len(runs) - sum(map(len, groups.values()))
        if finished:
            say_resumed(runs[0].model, "run", finished, len(runs))
        for group in groups.values():
            self._train_group(group, progress)

    def _is_finished(self, run: Run, state: State) -> bool:
        return state.is_finished(self.save_weights, run.by_token, run.kept_epochs)

    def _train_group(self, runs: list[tuple[Run, State]], progress) -> None:
        first, state = runs[0]
        needs = probe(Member(first, Material(first), state), self.device)
        done, most = 0, len(runs)
        while done < len(runs):
            size = min(most, most_members(self, len(runs) - done, needs))
            wave = [
                Member(run, Material(run), state)
                for run, state in runs[done : done + size]
                if not self._is_finished(run, state)
            ]
            name = f"{first.model}, runs {done + 1} to {done + size} of {len(runs)}"
            try:
                if wave:
                    ready = Wave(self, wave)
                    _say_resumed(name, wave)
                    ready.to_the_end(progress(name))
            except torch.OutOfMemoryError:
                # The estimate was too low, or another program took memory. A trace does not depend
                # on its wave, so the wave is resumed in halves.
                most = fewer_models(size, first.model)
            else:
                done += size


def _say_resumed(name: str, wave: list[Member]) -> None:
    """Say from which epoch a wave goes on; its members may have been saved at different epochs."""
    resumed = [member for member in wave if member.resumed_from]
    if not resumed:
        return
    last = min(resumed, key=lambda member: member.resumed_from)
    alike = [member for member in wave if member.resumed_from == last.resumed_from]
    more = "" if len(alike) == len(wave) else f" or later, {len(resumed)} of {len(wave)} runs"
    say_resumed(name, "epoch", last.resumed_from, last.recipe.epochs, more)


def configuration(run: Run) -> dict:
    """Everything that decides the trace of a run under this engine, except the dataset."""
    whole = run.configuration()
    for name in OF_THE_OTHER_ENGINE:
        del whole["recipe"][name]
    return {**whole, "engine": FleetEngine.name, "precision": "float32"}


def trained_alike(run: Run) -> tuple:
    """The values that must be equal for all members of a wave.

    They decide the shape of a step and of a measurement. Data, seeds, learning rates and numbers of
    steps may differ. A run without some strings measures fewer strings, so it does not share a
    wave with runs that measure more.
    """
    recipe = run.recipe
    shared = ("batch_size", "weight_decay", "gradient_clipping", "predict_end")
    values = [getattr(recipe, name) for name in (*shared, "evaluation_batch_size")]
    measures = run.left_out is None, run.removal is None
    return (run.row, run.scale, run.corpus.alphabet, *measures, *values)


class Wave:
    """Members that are trained together.

    Members are sorted by their steps per epoch, longest first. So at every step, the members that
    still have a step in this epoch are the first `n`.
    """

    def __init__(self, engine: FleetEngine, members: list[Member]):
        self.engine, self.device = engine, engine.device
        self.members = sorted(members, key=lambda member: -member.steps_per_epoch)
        self.size = len(members)
        # A member's share of the time of this process: all time, and training without evaluation.
        self.wall_seconds, self.training_seconds = 0.0, 0.0
        started, self.started = time.perf_counter(), now()
        models = self._initial_models()
        self.stack = Stack(self._build(self.members[0]), len(members), self.device)
        # Of steps that can be repeated, by the shape of their ids; and their inputs.
        self.programs: dict[torch.Size, tuple] = {}
        self.first = torch.zeros_like(self.stack.theta)
        self.second = torch.zeros_like(self.stack.theta)
        for place, member in enumerate(self.members):
            self.stack.load(place, models[member.material.seed].parameters())
        self._tabulate_strings()
        for place, member in enumerate(self.members):
            self._take_up(place, member)
        self.wall_seconds += (time.perf_counter() - started) / self.size

    def _initial_models(self) -> dict[int, torch.nn.Module]:
        by_seed = {member.material.seed: member for member in self.members}
        return {seed: self._build(member) for seed, member in by_seed.items()}

    def _build(self, member: Member):
        run, material = member.run, member.material
        model = build(run.row, run.scale, material.vocabulary, material.seed, torch.float32)
        return model.eval()

    def _take_up(self, place: int, member: Member) -> None:
        saved = member.resume(self.stack.theta.shape[1])
        if saved is not None:
            self.stack.theta[place] = saved["theta"]
            self.first[place], self.second[place] = saved["first"], saved["second"]

    def _tabulate_strings(self) -> None:
        """All members' strings as `ids` and `targets` int64[M, S + 1, L]; the last row is empty.

        Padding follows a string, so with causal attention it does not affect the predictions.
        """
        encoded = [member.material.encoded for member in self.members]
        shape = (len(encoded), max(len(e.lengths) for e in encoded) + 1)
        longest = max(e.ids.shape[1] for e in encoded)
        ids = np.full((*shape, longest), self.members[0].material.token_ids.end)
        targets = np.full_like(ids, IGNORED)
        self.lengths = np.ones(shape, dtype=int)
        for place, e in enumerate(encoded):
            ids[place, : e.ids.shape[0], : e.ids.shape[1]] = e.ids
            targets[place, : e.ids.shape[0], : e.ids.shape[1]] = e.targets
            self.lengths[place, : len(e.lengths)] = e.lengths
        vocabulary = self.members[0].material.vocabulary
        if not (ids >= 0).all() or not (ids < vocabulary).all():
            raise ValueError(f"ids must be below {vocabulary}")
        self.ids = torch.from_numpy(ids).to(self.device)
        self.targets = torch.from_numpy(targets).to(self.device)

    def _batch(self, rows_MB: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets [M, B, T] of the rows int[M, B] of the first M members."""
        first_so_many = np.arange(len(rows_MB))[:, None]
        longest = max(2, int(self.lengths[first_so_many, rows_MB].max()))  # one prediction or more
        places = torch.from_numpy(first_so_many), torch.from_numpy(rows_MB)
        ids_MBL = self.ids[places][..., :longest]
        targets_MBL = self.targets[places][..., :longest]
        return ids_MBL[..., :-1], targets_MBL[..., 1:].contiguous()

    def to_the_end(self, progress) -> None:
        if any(not member.measured for member in self.members):
            self._measure([member for member in self.members if not member.measured])
        while self.members:
            started = time.perf_counter()
            self._train_epoch()
            self.training_seconds += (time.perf_counter() - started) / len(self.members)
            self._measure([member for member in self.members if member.is_measured])
            for place, member in enumerate(self.members):
                if member.is_saved:
                    self._save(place, member)
            slowest = min(self.members, key=lambda member: member.epoch - member.recipe.epochs)
            losses = [member.material.shown_loss(member.measured) for member in self.members]
            progress(slowest.epoch, slowest.recipe.epochs, float(np.mean(losses)))
            self.wall_seconds += (time.perf_counter() - started) / len(self.members)
            self._let_go()

    def _train_epoch(self) -> None:
        plans = [member.next_epoch() for member in self.members]
        for step in range(len(plans[0])):
            taking_part = [plan[step] for plan in plans if step < len(plan)]
            self._step(np.stack(taking_part), step)
        for member in self.members:
            member.epoch += 1

    def _step(self, rows_MB: np.ndarray, step: int) -> None:
        """One optimiser step of the first M members on rows int[M, B]; -1 means no string."""
        count = len(rows_MB)
        members, stack = self.members[:count], self.stack
        has_string = (rows_MB >= 0).any(axis=0)
        has_string[0] = True  # a step of which all strings are removed has an empty one
        rows_MB = rows_MB[:, has_string]
        stack.use(count)
        ids_MBT, targets_MBT = self._batch(rows_MB)
        n_tokens = [
            member.count_tokens(rows) for member, rows in zip(members, rows_MB, strict=True)
        ]
        per_token_M = torch.tensor(n_tokens, device=self.device).reciprocal()
        inputs = (
            ids_MBT.contiguous(),
            targets_MBT.flatten(),
            per_token_M.repeat_interleave(targets_MBT[0].numel()),
            self._per_member([member.learning_rate(step) for member in members]),
            self._per_member([member.steps_taken + step + 1 for member in members]),
        )
        if ids_MBT.shape in self.programs:
            program, given = self.programs[ids_MBT.shape]
            for tensor, values in zip(given, inputs, strict=True):
                tensor.copy_(values)
            program.run()
        else:
            self._compute(count, *inputs)

    def _compute(self, count: int, ids_MBT, targets_N, share_N, rate_M, step_M) -> None:
        """The loss and its gradients, and a step of the optimiser.

        The program of the step, if there is one, does the same for other values of the arguments.
        """
        stack, recipe = self.stack, self.members[0].recipe
        operations, state = stack.operations, (stack.theta, self.first, self.second)
        inputs = ids_MBT, targets_N, share_N, rate_M, step_M
        with operations.member_by_member(count, *inputs, *state) as queue:
            logits_NV = stack(ids_MBT).flatten(0, 2)
            nll_N = operations.token_nll(logits_NV, targets_N, IGNORED)
            grads = torch.autograd.grad(nll_N, stack.parameters, share_N)
            theta_MP, first_MP, second_MP = (x[:count] for x in state)
            operations.adamw_(
                theta_MP,
                operations.flat(grads),
                first_MP,
                second_MP,
                rate_M,
                step_M,
                *ADAM_BETAS,
                ADAM_EPS,
                recipe.weight_decay,
                recipe.gradient_clipping,
            )
        if queue is not None and queue.program is not None:
            self.programs[ids_MBT.shape] = queue.program, inputs

    def _per_member(self, values: list[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float64, device=self.device)

    def _measure(self, members: list[Member]) -> None:
        if not members:
            return
        for place, measured in enumerate(self._evaluate()):
            member = self.members[place]
            if member in members:
                member.measured[member.epoch] = member.material.check(measured)
                if member.epoch in member.run.kept_epochs:
                    member.state.keep(member.epoch, self._weights(place))

    def _weights(self, place: int) -> dict[str, torch.Tensor]:
        views = self.stack.views(self.stack.theta[place].cpu())
        return dict(zip(self.stack.shapes, views, strict=True))

    def _evaluate(self) -> list[np.ndarray]:
        """float64[n_rows, strings] for every member: nll, number of right tokens and rank sum.

        The losses of single tokens follow for the members that keep them.
        """
        self.stack.use(len(self.members))
        asked = self.members[0].recipe.evaluation_batch_size
        together = strings_at_once(asked, self.device, len(self.members))
        plans = [
            by_length(m.material.encoded.lengths, m.material.measured_rows, together, 1)
            for m in self.members
        ]
        n_strings = [len(member.material.string_ids) for member in self.members]
        n_rows = [member.material.n_rows for member in self.members]
        return measure(plans, n_strings, self._predict, width=together, n_rows=n_rows)

    def _predict(self, rows_MB: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits and true tokens of all members, each on its own rows."""
        ids_MBT, targets_MBT = self._batch(rows_MB)
        return self.stack.predictions(ids_MBT), targets_MBT

    def _save(self, place: int, member: Member) -> None:
        tensors = {"theta": self.stack.theta, "first": self.first, "second": self.second}
        member.save({name: tensor[place].cpu() for name, tensor in tensors.items()})

    def _let_go(self) -> None:
        """Finish the members that have taken their last step, and remove them from the wave."""
        staying = [place for place, member in enumerate(self.members) if not member.is_done]
        if len(staying) == len(self.members):
            return
        for place, member in enumerate(self.members):
            if member.is_done:
                self._finish(place, member)
        self.members = [self.members[place] for place in staying]
        self.programs = {}
        if self.members:
            self.stack.keep(staying)
            self.first, self.second = self.first[staying], self.second[staying]
            self.ids, self.targets = self.ids[staying], self.targets[staying]
            self.lengths = self.lengths[staying]

    def _finish(self, place: int, member: Member) -> None:
        engine = self.engine
        trace = member.material.trace(member.measured)
        weights = self._weights(place) if engine.save_weights else None
        member.state.finish(
            traces.to_frame(trace),
            manifest(
                trace.run,
                key=member.state.key,
                engine=engine.name,
                configuration=engine.configuration(member.run),
                one_pass=member.material.cohorts is not None,
                parameters=self.stack.theta.shape[1],
                trained_parameters=self.stack.theta.shape[1],
                resolved_revision=None,
                resumed_from_epoch=member.resumed_from,
                trained_together=self.size,
                wall_time_seconds=self.wall_seconds,
                started=self.started,
                training_seconds=self.training_seconds,
                training_tokens=member.tokens,
            ),
            weights,
            member.material.tokens(member.measured),
        )
        if member.run.left_out is None and member.run.removal is None:  # too many to show
            engine.trackers.show_finished(
                member.material.keys, asdict(member.recipe), member.curve()
            )
