"""GPU memory and main memory of a run, by part, with DeepSpeed 0.19 and our evaluation.

The parts do not all peak at the same time, but they are added, so a sum is an upper estimate of the
memory that PyTorch allocates. All sizes are in bytes.
"""

import math

from palimpsest.planning.assumptions import MEMORY_SAFETY
from palimpsest.planning.shapes import Shape, Training, trained_parameters

GB = 1e9

FP32 = 4
MOMENTS = 2 * FP32  # AdamW's two running means
# DeepSpeed's defaults, in parameters: the bucket of gradients to send and, with ZeRO 3, the
# parameters that are gathered at the same time, and those that are updated at the same time.
BUCKET = 5e8
GATHERED = 1e9 + 5e7
UPDATED_AT_ONCE = 1e9
# Numbers that the backward pass needs per layer, token and unit of the hidden width: the largest of
# the paper's six families (Gemma 2; OPT has 12). A test counts them. Nothing is recomputed.
ACTIVATIONS = 42
# Numbers that dropout in adapters adds: the inputs of a layer's matrices once more, and which of
# them were dropped. Adapters without dropout add none. A test counts them.
DROPPED = 16
# Memory of the backward pass in addition to the saved activations, relative to these activations.
BACKWARD = 0.5
# Bytes per token and entry of the vocabulary. Training: log probabilities and two of their
# gradients in float32, and four copies in the model's own format (Gemma 2, which caps its logits).
# Measuring, all in float32: logits, their difference from the largest, and its exponential. A large
# batch needs less, because it is measured in pieces.
LOGIT_BYTES_TRAINED, LOGIT_COPIES_TRAINED = 3 * FP32, 4
LOGIT_BYTES_MEASURED = 3 * FP32
# Numbers in memory at one time in a forward pass that saves no activations, per token and unit of
# the hidden width.
ACTIVATIONS_MEASURED = 24
RESERVED = 2 * GB  # the CUDA context, communication libraries, and fragmentation of memory

PROCESS = 4 * GB  # main memory of a process with PyTorch and CUDA in it, without a model
LEAST_OF_FULL, LEAST_OF_TWINS = 16 * GB, 4 * GB
LEAST_OF_EVALUATIONS = 2 * GB
PREDICTION = 3 * 24  # three numbers per prediction, in three copies: read, joined and selected
WAVE = 8  # members that a fleet trains at once per CPU thread; more members are not faster
FLEET_COPIES = 5  # copies of a member's parameters


def gpu_memory(shape: Shape, training: Training, longest: int) -> dict[str, float]:
    """Bytes on each GPU, by part; `longest` is the number of tokens of the longest string."""
    return {
        "weights": weights(shape, training),
        "gradients": gradients(shape, training),
        "optimiser": 0.0 if training.offloaded else optimiser(shape, training),
        "buffers": buffers(shape, training),
        **transient(shape, training, longest),
        "reserved": RESERVED,
    }


def gpu_peak(shape: Shape, training: Training, longest: int) -> float:
    return sum(gpu_memory(shape, training, longest).values())


def weights(shape: Shape, training: Training) -> float:
    """The weights in the model's own format; ZeRO 3 divides them among the processes."""
    parts = training.processes if training.zero_stage == 3 else 1
    beside = trained_parameters(shape, training) if training.adapts else 0
    return training.width * (shape.parameters + beside) / parts


def gradients(shape: Shape, training: Training) -> float:
    """Gradients of what is trained, in the model's own format.

    With ZeRO 0 and 1, a process holds all gradients until the step. With ZeRO 2 and 3, it holds its
    share; if the optimiser is offloaded, the share moves to main memory immediately.
    """
    trained = trained_parameters(shape, training)
    if training.zero_stage < 2:
        return training.width * trained
    if training.offloaded:
        return 0.0
    return training.width * trained / training.processes


def optimiser(shape: Shape, training: Training) -> float:
    """A process's share of master weights, moments and gradients in float32, of what is trained.

    In float32 without ZeRO, weights and gradients need no copies. In float32 with ZeRO 1 and 2, the
    weights are copied, but not the gradients. ZeRO 3 copies both, but the gradients of at most
    `UPDATED_AT_ONCE` parameters at a time.
    """
    in_fp32, trained = training.width == FP32, trained_parameters(shape, training)
    if training.zero_stage == 0:
        return (MOMENTS if in_fp32 else MOMENTS + 2 * FP32) * trained
    share = trained / training.processes
    copied = 0.0 if in_fp32 and training.zero_stage < 3 else share
    if training.zero_stage == 3 and not training.offloaded:
        copied = min(share, UPDATED_AT_ONCE)
    return (MOMENTS + FP32) * share + FP32 * copied


def buffers(shape: Shape, training: Training) -> float:
    """DeepSpeed's buffers for communication.

    They hold a bucket of gradients, the gradient that is moving into the bucket and, with ZeRO 3,
    the weights that are gathered at the same time. ZeRO 1 to 3 have a whole bucket, however few
    weights are trained.
    """
    trained = trained_parameters(shape, training)
    if training.zero_stage == 0:
        return training.width * min(trained, BUCKET)
    largest = min(shape.largest, trained)
    passing = BUCKET + (largest if training.zero_stage >= 2 else 0)
    offloading = largest if training.offloaded else 0
    gathered = 0.0
    if training.zero_stage == 3:
        gathered = min(shape.parameters, max(GATHERED, shape.largest))
    return training.width * (passing + offloading + gathered)


def transient(shape: Shape, training: Training, longest: int) -> dict[str, float]:
    """Activations and logits, of training or of measuring: the larger sum."""
    trained = _training(shape, training, training.strings_per_pass * longest)
    measured = _measuring(shape, training, training.evaluation_batch_size * longest)
    return max(trained, measured, key=lambda parts: sum(parts.values()))


def _training(shape: Shape, training: Training, tokens: int) -> dict[str, float]:
    numbers = ACTIVATIONS + (DROPPED if training.adapter_dropout else 0)
    saved = numbers * training.width * shape.layers * shape.hidden * tokens
    per_logit = LOGIT_BYTES_TRAINED + LOGIT_COPIES_TRAINED * training.width
    return {
        "activations": saved * (1 + BACKWARD),
        "logits": per_logit * shape.vocabulary * tokens,
    }


def _measuring(shape: Shape, training: Training, tokens: int) -> dict[str, float]:
    return {
        "activations": ACTIVATIONS_MEASURED * training.width * shape.hidden * tokens,
        "logits": LOGIT_BYTES_MEASURED * shape.vocabulary * tokens,
    }


def main_memory(shape: Shape, training: Training) -> float:
    """Main memory of all processes of a job that trains a full model.

    Each process reads the whole model before the model moves to the GPU. If the optimiser is
    offloaded, master weights, gradients and updated weights are in pinned memory, in blocks that
    PyTorch rounds up to powers of two. The first process merges an adapter into the weights in
    float32, if they are kept.
    """
    process = PROCESS + training.width * shape.parameters
    if training.offloaded:
        trained = trained_parameters(shape, training)
        share = trained / training.processes
        pinned = (FP32 * share, FP32 * share, training.width * share)
        process += MOMENTS * share + sum(map(_power_of_two, pinned))
        process += 2 * training.width * min(shape.largest, trained)
    merging = (FP32 - training.width) * shape.parameters if training.adapts else 0
    return max(LEAST_OF_FULL, training.processes * process + merging)


def twin_memory(shape: Shape, training: Training, longest: int, threads: int) -> float:
    """Main memory of a job of twins: one wave of a fleet, whatever the number of waiting runs."""
    tokens = training.batch_size * longest
    saved = ACTIVATIONS * FP32 * shape.layers * shape.hidden * tokens
    member = saved * (1 + BACKWARD) + FP32 * FLEET_COPIES * shape.parameters
    return max(LEAST_OF_TWINS, PROCESS / 2 + WAVE * threads * member)


def evaluation_memory(n_predictions: float) -> float:
    return LEAST_OF_EVALUATIONS + PREDICTION * n_predictions


def asked_for(expected: float, attempt: int, most: float) -> int:
    """Megabytes that a job requests: with a margin, in steps of 500, more at every attempt.

    Never more than `most` bytes, because no machine could ever fulfil such a request.
    """
    wanted = expected if expected in (LEAST_OF_FULL, LEAST_OF_TWINS) else expected * MEMORY_SAFETY
    return min(500 * math.ceil(wanted * (1 + (attempt - 1) / 2) / 500e6), int(most / 1e6))


def _power_of_two(size: float) -> float:
    return 2.0 ** math.ceil(math.log2(size))
