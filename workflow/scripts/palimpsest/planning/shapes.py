"""The shape of a model or twin, and the settings and strings with which it is trained."""

import math
from dataclasses import dataclass, fields
from functools import cached_property

from palimpsest.models.adapters import LORA, NONE
from palimpsest.models.table import Model

# A recursive language has no longest string; nearly all of its strings are shorter than this number
# times the expected length.
LENGTHS_OF_RECURSIVE = 6
START_TOKEN = 1
MATRICES = (
    7  # of a layer: four of attention, three of a gated feed-forward layer; others have fewer
)
OPT_POSITIONS = 1026  # learned positions of OPT's twins: 1024, and two that the class adds


@dataclass(frozen=True)
class Shape:
    """The numbers that decide memory and time: parameters, layers, width, vocabulary size."""

    parameters: int
    layers: int
    hidden: int
    vocabulary: int

    @property
    def largest(self) -> int:
        """Parameters of the largest single matrix, the embedding."""
        return min(self.parameters, self.vocabulary * self.hidden)


def full_shape(row: Model) -> Shape:
    return Shape(row.parameters, row.layers, row.hidden, row.vocabulary)


def twin_shape(row: Model, vocabulary: int) -> Shape:
    """The shape of a model's twin with a vocabulary, with an estimate of its parameters.

    A layer has 12 times the squared width: four attention matrices, and a feed-forward layer that
    is twice as large, gated or not. There are two embeddings: input and output. Norms and biases
    are left out. A test checks that the error is below a tenth.
    """
    positions = OPT_POSITIONS if row.model_type == "opt" else 0
    layers = 12 * row.twin_layers * row.twin_hidden**2
    parameters = layers + (2 * vocabulary + positions) * row.twin_hidden
    return Shape(parameters, row.twin_layers, row.twin_hidden, vocabulary)


@dataclass(frozen=True)
class Training:
    """The keys of a recipe that decide memory and time."""

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
    adapter: str = NONE
    adapter_rank: int = 0
    adapter_dropout: float = 0.0

    @classmethod
    def of(cls, training: dict) -> "Training":
        """From the values of a recipe, which has no keys of adapters if there is no adapter."""
        names = (field.name for field in fields(cls))
        return cls(**{name: training[name] for name in names if name in training})

    @property
    def adapts(self) -> bool:
        return self.adapter == LORA

    @property
    def width(self) -> int:
        """Bytes of a weight; `auto` counts as bf16, which it means on a GPU."""
        return 4 if self.precision == "fp32" else 2

    @property
    def offloaded(self) -> bool:
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
        """Number of measurements: before training, every n-th epoch, and at the end."""
        return 1 + math.ceil(self.epochs / self.evaluate_every)

    @property
    def checkpoints(self) -> int:
        """Number of checkpoints of an uninterrupted run; there is none at the end."""
        return (self.epochs - 1) // self.checkpoint_every if self.checkpoint_every else 0


def trained_parameters(shape: Shape, training: Training) -> int:
    """Number of weights that are trained: all, or an upper estimate of those of an adapter.

    An adapter on a matrix has `rank` times the matrix's height and width together. One side of
    every matrix in a layer has the hidden width, so the other side is its size divided by that
    width; sums over a layer need only the number of matrices and their total size. The estimate
    is too high by the norms, by the matrices that a model has fewer than seven of, and by the
    output head if its weights are separate from the embedding. All matrices count as targeted.
    """
    if not training.adapts:
        return shape.parameters
    hidden_sides = MATRICES * shape.layers * shape.hidden
    other_sides = (shape.parameters - shape.largest) // shape.hidden
    return training.adapter_rank * (hidden_sides + other_sides)


@dataclass(frozen=True)
class Strings:
    """The strings of a run: the numbers of training and measured strings, and of their tokens.

    `expected` is the expected, and `longest` the largest, number of tokens of a string, with the
    start token and, if predicted, the end token.
    """

    n_trained: int
    n_measured: int
    expected: float
    longest: int

    def steps(self, training: Training) -> int:
        return training.epochs * math.ceil(self.n_trained / training.batch_size)

    def tokens_trained(self, training: Training) -> float:
        return training.epochs * self.n_trained * self.expected

    def tokens_measured(self, training: Training) -> float:
        return training.measurements * self.n_measured * self.expected


@dataclass(frozen=True)
class Hardware:
    """The machine for the plan; the units are those of the configuration."""

    gpu_memory_gb: float
    gpu_teraflops: float
    gpu_terabytes_per_second: float
    utilisation: float
    main_memory_gb: float
    longest_job_hours: float
    twin_gpus: int
    gpus: int | None

    @classmethod
    def of(cls, hardware: dict) -> "Hardware":
        """From a block `hardware`; its key `seeds_per_job` is not about the machine."""
        return cls(**{field.name: hardware[field.name] for field in fields(cls)})

    @cached_property
    def operations(self) -> float:
        """Assumed operations per second of one GPU."""
        return self.gpu_teraflops * 1e12 * self.utilisation

    @property
    def gpu_memory_speed(self) -> float:
        """Bytes per second between one GPU and its memory."""
        return self.gpu_terabytes_per_second * 1e12


def tokens(length: float, longest: float, predict_end: bool) -> tuple[float, int]:
    """Expected and largest number of tokens of a string, from its expected and largest length."""
    more = START_TOKEN + predict_end
    if math.isinf(longest):
        longest = math.ceil(LENGTHS_OF_RECURSIVE * length)
    return length + more, int(longest) + more
