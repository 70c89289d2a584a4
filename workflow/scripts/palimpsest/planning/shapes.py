"""The shape of a model at its scale, and the settings and strings that it is trained with."""

import math
from dataclasses import dataclass, fields
from functools import cached_property

from palimpsest.models.table import Model

# Of a recursive language no string is the longest; this many expected lengths hold nearly all.
LENGTHS_OF_RECURSIVE = 6
START_TOKEN = 1
TWIN_SPECIALS = 2
OPT_POSITIONS = 1026  # learned positions of OPT's twins, with the two that the class adds


@dataclass(frozen=True)
class Shape:
    """What memory and time depend on: parameters, layers, hidden width, size of the vocabulary."""

    parameters: int
    layers: int
    hidden: int
    vocabulary: int

    @property
    def largest(self) -> int:
        """Parameters of the largest single matrix, the embedding."""
        return min(self.parameters, self.vocabulary * self.hidden)


def full_shape(row: Model) -> Shape:
    """The shape of a pretrained model, from the table."""
    return Shape(row.parameters, row.layers, row.hidden, row.vocabulary)


def twin_shape(row: Model, n_terminals: int) -> Shape:
    """The shape of a model's twin on a language, its parameters in closed form.

    Twelve times the squared width per layer (four attention matrices, and a feed-forward layer of
    twice as much, gated or not), and an embedding at either end; norms and biases are left out. A
    test holds it to within a tenth of the true number.
    """
    vocabulary = n_terminals + TWIN_SPECIALS
    positions = OPT_POSITIONS if row.model_type == "opt" else 0
    layers = 12 * row.twin_layers * row.twin_hidden**2
    parameters = layers + (2 * vocabulary + positions) * row.twin_hidden
    return Shape(parameters, row.twin_layers, row.twin_hidden, vocabulary)


@dataclass(frozen=True)
class Training:
    """The keys of `training` in the configuration that memory and time depend on."""

    epochs: int
    batch_size: int
    micro_batch_size: int
    processes: int
    zero_stage: int
    offload_optimizer: str
    precision: str
    evaluate_every: int
    evaluation_batch_size: int
    checkpoint_every: int

    @classmethod
    def of(cls, training: dict) -> "Training":
        """Those of a section `training`."""
        return cls(**{field.name: training[field.name] for field in fields(cls)})

    @property
    def width(self) -> int:
        """Bytes of a weight. `auto` is planned as what a GPU makes of it, bf16."""
        return 4 if self.precision == "fp32" else 2

    @property
    def offloaded(self) -> bool:
        """Whether the optimiser's state is kept in main memory."""
        return self.offload_optimizer == "cpu"

    @property
    def passes(self) -> int:
        """Forward passes of each process per optimiser step."""
        return math.ceil(self.batch_size / (self.micro_batch_size * self.processes))

    @property
    def strings_per_pass(self) -> int:
        """Strings in a forward pass of one process when training."""
        return math.ceil(self.batch_size / (self.passes * self.processes))

    @property
    def measurements(self) -> int:
        """How often the strings are measured: untrained, every so many epochs, and at the end."""
        return 1 + math.ceil(self.epochs / self.evaluate_every)

    @property
    def checkpoints(self) -> int:
        """Checkpoints that an undisturbed run saves; none at its end."""
        return (self.epochs - 1) // self.checkpoint_every if self.checkpoint_every else 0


@dataclass(frozen=True)
class Strings:
    """The strings of a run: how many are trained on and measured, and their tokens.

    `expected` and `longest` are the tokens of a string as a model reads it, from the grammar.
    """

    n_trained: int
    n_measured: int
    expected: float
    longest: int

    def steps(self, training: Training) -> int:
        """Optimiser steps of a run."""
        return training.epochs * math.ceil(self.n_trained / training.batch_size)

    def tokens_trained(self, training: Training) -> float:
        """Tokens that a run is trained on, copies and epochs counted."""
        return training.epochs * self.n_trained * self.expected

    def tokens_measured(self, training: Training) -> float:
        """Tokens that a run is measured on, over all its measurements."""
        return training.measurements * self.n_measured * self.expected


@dataclass(frozen=True)
class Hardware:
    """The machine that is planned for; its units are those of the configuration."""

    gpu_memory_gb: float
    gpu_teraflops: float
    utilisation: float
    main_memory_gb: float
    longest_job_hours: float
    twin_gpus: int

    @classmethod
    def of(cls, hardware: dict) -> "Hardware":
        """The machine of a block `hardware`; how many seeds share a job is not of the machine."""
        return cls(**{field.name: hardware[field.name] for field in fields(cls)})

    @cached_property
    def operations(self) -> float:
        """Operations per second that one GPU is assumed to reach."""
        return self.gpu_teraflops * 1e12 * self.utilisation


def tokens(length: float, longest: float, predict_end: bool) -> tuple[float, int]:
    """Expected and largest number of tokens of a language's strings, from those of terminals."""
    more = START_TOKEN + predict_end
    if math.isinf(longest):
        longest = math.ceil(LENGTHS_OF_RECURSIVE * length)
    return length + more, int(longest) + more
