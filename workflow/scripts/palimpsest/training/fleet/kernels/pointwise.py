"""Norms, activations, the loss and the optimiser: what is done to numbers one by one, or by row.

Held to `rms_norm`, `layer_norm`, `gated`, `activate`, `token_nll` and `adamw_` of `operations`.
"""

import math

import numpy as np
import torch
from numba import njit

from palimpsest.training.fleet.kernels.simd import (
    AHEAD,
    exp,
    fetch,
    first_of,
    fma,
    greater,
    largest,
    lesser,
    load_double,
    load_first,
    load_integer,
    load_scalar,
    splat,
    store_first,
    store_scalar,
    total,
    where_above,
)
from palimpsest.training.fleet.kernels.tasks import (
    Kernel,
    address_of,
    addresses,
    by_member,
    check_shapes,
    floats_at,
    integers_at,
    member_step,
    part_of_task,
    parts_per_member,
)
from palimpsest.training.fleet.kernels.vector import LANES

# Rows, and numbers, of one task where a member's rows need not stay together.
ROWS_PER_TASK, NUMBERS_PER_TASK = 512, 16384
# Of the approximation of gelu by tanh(scale * (x + cube * x^3)).
GELU_SCALE, GELU_CUBE = math.sqrt(2 / math.pi), 0.044715


# Norms


@Kernel
def _norm_forward(task, room, integers, numbers):
    """y[M, N, D] = (x - mean) / deviation * w + b, where the mean is 0 unless rows are `centred`.

    `stats` keeps the mean and the inverse deviation of every row. A task is a part of a member.
    """
    parts, rows, width, centred, x, w, w_step = integers_at(integers, 7)
    b, b_step, y, stats = integers_at(integers + 56, 4)
    member, first, count = part_of_task(task, parts, rows)
    w, b, eps = w + member * w_step, b + member * b_step, load_double(numbers)
    for row in range(member * rows + first, member * rows + first + count):
        here, there = x + 4 * width * row, y + 4 * width * row
        fetch(here + AHEAD * 4 * width, width)
        fetch(there + AHEAD * 4 * width, width)
        mean = _sum(width, here) / np.float32(width) if centred != 0 else np.float32(0.0)
        variance = _sum_of_squares(width, mean, here) / np.float32(width)
        inverse = np.float32(1.0) / np.sqrt(variance + np.float32(eps))
        store_scalar(stats + 8 * row, mean)
        store_scalar(stats + 8 * row + 4, inverse)
        for j in range(0, width, LANES):
            at, rest = 4 * j, width - j
            normal = (load_first(here + at, rest) - splat(mean)) * splat(inverse)
            if b != 0:
                value = fma(normal, load_first(w + at, rest), load_first(b + at, rest))
            else:
                value = normal * load_first(w + at, rest)
            store_first(there + at, value, rest)


@njit(forceinline=True)
def _sum(count, x):
    sums = splat(0.0)
    for j in range(0, count, LANES):
        sums = sums + load_first(x + 4 * j, count - j)
    return total(sums)


@njit(forceinline=True)
def _sum_of_squares(count, mean, x):
    """The sum of (x - mean)^2."""
    sums = splat(0.0)
    for j in range(0, count, LANES):
        apart = first_of(count - j, load_first(x + 4 * j, count - j) - splat(mean), splat(0.0))
        sums = fma(apart, apart, sums)
    return total(sums)


@Kernel
def _norm_backward(task, room, integers, numbers):
    """dx[M, N, D], dw[M, D] and, unless `db` is 0, db[M, D]; a task is a member."""
    rows, width, centred, x, w, w_step, stats, g, dx, dw, db = integers_at(integers, 11)
    w, dw, db = w + task * w_step, dw + 4 * width * task, db + 4 * width * task if db != 0 else 0
    for j in range(0, width, LANES):
        store_first(dw + 4 * j, splat(0.0), width - j)
        if db != 0:
            store_first(db + 4 * j, splat(0.0), width - j)
    for row in range(task * rows, (task + 1) * rows):
        place = 4 * width * row
        for one in (x, g, dx):
            fetch(one + place + AHEAD * 4 * width, width)
        stat = stats + 8 * row
        _norm_row_back(width, centred, x + place, w, stat, g + place, dx + place, dw, db)


@njit(forceinline=True)
def _norm_row_back(width, centred, x, w, stats, g, dx, dw, db):
    """One row of dx; what it adds to dw and db."""
    mean, inverse = splat(load_scalar(stats)), splat(load_scalar(stats + 4))
    sums, sums_normal = splat(0.0), splat(0.0)
    for j in range(0, width, LANES):
        at, rest = 4 * j, width - j
        grad = load_first(g + at, rest)
        normal = (load_first(x + at, rest) - mean) * inverse
        grad_normal = grad * normal
        store_first(dw + at, load_first(dw + at, rest) + grad_normal, rest)
        if db != 0:
            store_first(db + at, load_first(db + at, rest) + grad, rest)
        weight = load_first(w + at, rest)
        sums = fma(grad, weight, sums)
        sums_normal = fma(grad_normal, weight, sums_normal)
    of_mean = total(sums) / np.float32(width) if centred != 0 else np.float32(0.0)
    of_normal = splat(total(sums_normal) / np.float32(width))
    for j in range(0, width, LANES):
        at, rest = 4 * j, width - j
        normal = (load_first(x + at, rest) - mean) * inverse
        grad = load_first(g + at, rest) * load_first(w + at, rest) - splat(of_mean)
        store_first(dx + at, (grad - normal * of_normal) * inverse, rest)


def rms_norm(x_MND, weight_MD, eps: float) -> torch.Tensor:
    return _Norm.apply(x_MND, weight_MD, None, eps)


def layer_norm(x_MND, weight_MD, bias_MD, eps: float) -> torch.Tensor:
    return _Norm.apply(x_MND, weight_MD, bias_MD, eps)


class _Norm(torch.autograd.Function):
    """Rows are centred if there is a bias."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        x, weight = x.contiguous(), by_member(weight)
        members, rows, width = x.shape
        check_shapes((weight.shape, (members, width)))
        y, stats, parts = (
            torch.empty_like(x),
            x.new_empty(members, rows, 2),
            parts_per_member(members),
        )
        ctx.save_for_backward(x, weight, stats)
        ctx.centred = bias is not None
        if ctx.centred:
            bias = by_member(bias)
            check_shapes((bias.shape, weight.shape))
        start = member_step(bias) if ctx.centred else (0, 0)
        sizes = parts, rows, width, ctx.centred
        given = address_of(x), *member_step(weight), *start, *addresses(y, stats)
        _norm_forward(members * parts, *sizes, *given, numbers=(eps,))
        return y

    @staticmethod
    def backward(ctx, g):
        x, weight, stats = ctx.saved_tensors
        (members, rows, width), g = x.shape, g.contiguous()
        dx, dw = torch.empty_like(x), x.new_empty(members, width)
        db = torch.empty_like(dw) if ctx.centred else None
        places = address_of(x), *member_step(weight), *addresses(stats, g, dx, dw, db)
        _norm_backward(members, rows, width, ctx.centred, *places)
        return dx, dw, db, None


# Activations

SILU, GELU_TANH, GELU, RELU = range(4)
ACTIVATIONS = {"silu": SILU, "gelu_pytorch_tanh": GELU_TANH, "gelu": GELU, "relu": RELU}


@njit(forceinline=True)
def _share(kind, x):
    """What an activation multiplies its argument by, and the slope of the activation."""
    one = splat(1.0)
    if kind == RELU:
        share = where_above(x, splat(0.0), one, splat(0.0))
        return share, share
    if kind == GELU:
        return _normal_share(x)
    slope = one
    z = x
    if kind == GELU_TANH:
        # 1 + tanh(u) is twice the logistic function of 2 u.
        square = x * x
        z = x * fma(square, splat(2 * GELU_SCALE * GELU_CUBE), splat(2 * GELU_SCALE))
        slope = fma(square, splat(6 * GELU_SCALE * GELU_CUBE), splat(2 * GELU_SCALE))
    power = exp(splat(0.0) - z)
    share = one / (one + power)
    # 1 - share to full precision, also where the power is infinite and the share 0.
    other = lesser(splat(3e38), power) * share
    return share, fma(x, slope * (share * other), share)


@njit(forceinline=True)
def _normal_share(x):
    """The normal distribution function (to 1e-7; Abramowitz and Stegun 7.1.26), and its slope."""
    away = greater(x, splat(0.0) - x) * splat(math.sqrt(0.5))
    power = exp(splat(0.0) - away * away)
    t = splat(1.0) / fma(away, splat(0.3275911), splat(1.0))
    p = fma(t, splat(1.061405429), splat(-1.453152027))
    p = fma(t, p, splat(1.421413741))
    p = fma(t, p, splat(-0.284496736))
    p = fma(t, p, splat(0.254829592))
    tail = splat(0.5) * t * p * power
    share = where_above(x, splat(0.0), splat(1.0) - tail, tail)
    return share, fma(x * splat(1 / math.sqrt(2 * math.pi)), power, share)


@njit
def activated(kind, count, x, up, y):
    """The activation of x, times `up` unless this is 0."""
    for j in range(0, count, LANES):
        at, rest = 4 * j, count - j
        value = load_first(x + at, rest)
        value = value * _share(kind, value)[0]
        if up != 0:
            value = value * load_first(up + at, rest)
        store_first(y + at, value, rest)


@njit
def activated_back(kind, count, x, up, g, dx, dup, y):
    """Gradients dx (g may be at its address) and, unless `up` is 0, dup; unless `y` is 0, y too."""
    for j in range(0, count, LANES):
        at, rest = 4 * j, count - j
        value, grad = load_first(x + at, rest), load_first(g + at, rest)
        share, slope = _share(kind, value)
        value = value * share
        if up != 0:
            other = load_first(up + at, rest)
            store_first(dup + at, grad * value, rest)
            grad, value = grad * other, value * other
        store_first(dx + at, grad * slope, rest)
        if y != 0:
            store_first(y + at, value, rest)


@Kernel
def _activate_forward(task, room, integers, numbers):
    """The activation of x, times `up` unless this is 0; a task is a stretch of numbers."""
    count, kind, x, up, y = integers_at(integers, 5)
    first = task * NUMBERS_PER_TASK
    at, some = 4 * first, min(NUMBERS_PER_TASK, count - first)
    activated(kind, some, x + at, up + at if up != 0 else 0, y + at)


@Kernel
def _activate_backward(task, room, integers, numbers):
    """Gradients dx and, unless `up` is 0, dup; a task is a stretch of numbers."""
    count, kind, x, up, g, dx, dup = integers_at(integers, 7)
    first = task * NUMBERS_PER_TASK
    at, some = 4 * first, min(NUMBERS_PER_TASK, count - first)
    of_up = up + at if up != 0 else 0
    activated_back(kind, some, x + at, of_up, g + at, dx + at, dup + at, 0)


def gated(gate, up, activation: str) -> torch.Tensor:
    return _Activate.apply(gate, up, ACTIVATIONS[activation])


def activate(x, activation: str) -> torch.Tensor:
    return _Activate.apply(x, None, ACTIVATIONS[activation])


class _Activate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, up, kind):
        x, up = x.contiguous(), None if up is None else up.contiguous()
        if up is not None:
            check_shapes((up.shape, x.shape))
        ctx.save_for_backward(x, up)
        ctx.kind, y = kind, torch.empty_like(x)
        tasks = -(-x.numel() // NUMBERS_PER_TASK)
        _activate_forward(tasks, x.numel(), kind, *addresses(x, up, y))
        return y

    @staticmethod
    def backward(ctx, g):
        x, up = ctx.saved_tensors
        g, dx = g.contiguous(), torch.empty_like(x)
        dup = None if up is None else torch.empty_like(up)
        tasks = -(-x.numel() // NUMBERS_PER_TASK)
        _activate_backward(tasks, x.numel(), ctx.kind, *addresses(x, up, g, dx, dup))
        return dx, dup, None


# The loss


@Kernel
def _nll_forward(task, room, integers, numbers):
    """nll[N] of logits[N, V], 0 where the target is `ignored`; a task is a stretch of rows."""
    count, width, ignored, logits, targets, nll = integers_at(integers, 6)
    first = task * ROWS_PER_TASK
    for row in range(first, min(count, first + ROWS_PER_TASK)):
        target, here = load_integer(targets + 8 * row), logits + 4 * width * row
        loss = 0.0
        if target != ignored:
            top, sums = _exponentials(width, here)
            loss = math.log(np.float64(sums)) + (np.float64(top) - load_scalar(here + 4 * target))
        store_scalar(nll + 4 * row, loss)


@Kernel
def _nll_backward(task, room, integers, numbers):
    """dlogits[N, V] of g[N]; a task is a stretch of rows."""
    count, width, ignored, logits, targets, g, dlogits = integers_at(integers, 7)
    first = task * ROWS_PER_TASK
    for row in range(first, min(count, first + ROWS_PER_TASK)):
        target, here = load_integer(targets + 8 * row), logits + 4 * width * row
        grad, out = load_scalar(g + 4 * row), dlogits + 4 * width * row
        if target == ignored:
            for j in range(0, width, LANES):
                store_first(out + 4 * j, splat(0.0), width - j)
            continue
        top, sums = _exponentials(width, here)
        factor = splat(grad / sums)
        for j in range(0, width, LANES):
            power = exp(load_first(here + 4 * j, width - j) - splat(top))
            store_first(out + 4 * j, power * factor, width - j)
        store_scalar(out + 4 * target, load_scalar(out + 4 * target) - grad)


@njit(forceinline=True)
def _exponentials(count, x):
    """The largest of some numbers, and the sum of exp(number - largest)."""
    lowest = splat(-math.inf)
    top = lowest
    for j in range(0, count, LANES):
        top = greater(top, first_of(count - j, load_first(x + 4 * j, count - j), lowest))
    peak = largest(top)
    sums = splat(0.0)
    for j in range(0, count, LANES):
        power = exp(load_first(x + 4 * j, count - j) - splat(peak))
        sums = sums + first_of(count - j, power, splat(0.0))
    return peak, total(sums)


def token_nll(logits_NV, targets_N, ignored: int = -100) -> torch.Tensor:
    """float[N]: nats of each target; 0 where it is ignored.

    Raises `IndexError` for a target that is not a column of the logits.
    """
    return _TokenNll.apply(logits_NV, targets_N, ignored)


class _TokenNll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, ignored):
        logits, targets = logits.contiguous(), targets.contiguous()
        check_shapes((targets.shape, logits.shape[:1]))
        outside = ((targets < 0) | (targets >= logits.shape[1])) & (targets != ignored)
        if outside.any():
            found = targets[outside][0].item()
            raise IndexError(f"target {found}; the logits have {logits.shape[1]} columns")
        ctx.save_for_backward(logits, targets)
        ctx.sizes, nll = (*logits.shape, ignored), logits.new_empty(len(logits))
        tasks = -(-len(logits) // ROWS_PER_TASK)
        places = address_of(logits), address_of(targets, torch.int64), address_of(nll)
        _nll_forward(tasks, *ctx.sizes, *places)
        return nll

    @staticmethod
    def backward(ctx, g):
        logits, targets = ctx.saved_tensors
        g, dlogits = g.contiguous(), torch.empty_like(logits)
        tasks = -(-len(logits) // ROWS_PER_TASK)
        places = *addresses(logits), address_of(targets, torch.int64), *addresses(g, dlogits)
        _nll_backward(tasks, *ctx.sizes, *places)
        return dlogits, None, None


# The optimiser


@Kernel
def _adamw(task, room, integers, numbers):
    """One step of one member, the task."""
    count, theta, theta_step, grad, grad_step, first, first_step = integers_at(integers, 7)
    second, second_step, rates, steps = integers_at(integers + 56, 4)
    theta_P = floats_at(theta + task * theta_step, count)
    grad_P = floats_at(grad + task * grad_step, count)
    first_P = floats_at(first + task * first_step, count)
    second_P = floats_at(second + task * second_step, count)
    rate, step = load_double(rates + 8 * task), load_double(steps + 8 * task)
    beta1, beta2 = load_double(numbers), load_double(numbers + 8)
    eps, weight_decay = load_double(numbers + 16), load_double(numbers + 24)
    clipped = min(1.0, load_double(numbers + 32) / (_norm(grad_P) + 1e-6))
    kept, length = 1.0 - rate * weight_decay, rate / (1.0 - beta1**step)
    deviation = math.sqrt(1.0 - beta2**step)
    factors = clipped, kept, beta1, beta2, length, deviation, eps
    _step(theta_P, grad_P, first_P, second_P, *factors)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _norm(x):
    """The Euclidean norm, summed in float64; `reassoc` lets lanes have sums of their own."""
    squares = 0.0
    for number in x:
        squares += np.float64(number) ** 2
    return math.sqrt(squares)


@njit(error_model="numpy", fastmath={"contract"})
def _step(theta, grad, first, second, clipped, kept, beta1, beta2, length, deviation, eps):
    """The compiler makes vectors of this loop by itself; `contract` lets it fuse a * b + c."""
    clipped, kept, length = np.float32(clipped), np.float32(kept), np.float32(length)
    part1, kept2, part2 = np.float32(1.0 - beta1), np.float32(beta2), np.float32(1.0 - beta2)
    deviation, eps = np.float32(deviation), np.float32(eps)
    for j in range(len(theta)):
        g = grad[j] * clipped
        m = first[j] + part1 * (g - first[j])
        v = second[j] * kept2 + part2 * g * g
        first[j], second[j] = m, v
        theta[j] = theta[j] * kept - length * m / (np.sqrt(v) / deviation + eps)


@torch.no_grad()
def adamw_(
    theta_MP,
    grad_MP,
    first_MP,
    second_MP,
    rate_M,
    step_M,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    clipping: float,
) -> None:
    members, count = theta_MP.shape
    rows = theta_MP, by_member(grad_MP), first_MP, second_MP
    if any(row.stride(1) != 1 for row in rows):
        raise ValueError("a kernel needs members whose parameters are contiguous")
    check_shapes(*((row.shape, theta_MP.shape) for row in rows))
    rate_M, step_M = rate_M.double().contiguous(), step_M.double().contiguous()
    places = [place for row in rows for place in member_step(row)]
    places += [address_of(rate_M, torch.float64), address_of(step_M, torch.float64)]
    numbers = beta1, beta2, eps, weight_decay, clipping
    _adamw(members, count, *places, numbers=numbers)
