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
    tanh,
    total,
    where_above,
)
from palimpsest.training.fleet.kernels.tasks import (
    Kernel,
    address_of,
    addresses,
    by_member,
    check_indices,
    check_shapes,
    floats_at,
    integers_at,
    member_step,
    part_of_task,
    parts_per_member,
    together,
)
from palimpsest.training.fleet.kernels.vector import LANES, VECTOR

# Rows, and numbers, of one task where a member's rows need not stay together.
ROWS_PER_TASK, NUMBERS_PER_TASK = 512, 16384
# Of the approximation of gelu by tanh(scale * (x + cube * x^3)).
GELU_SCALE, GELU_CUBE = math.sqrt(2 / math.pi), 0.044715


# Norms


@Kernel
def _norm_forward(task, room, integers, numbers):
    """y[M, N, D] = (x - mean) / deviation * (w + offset) + b.

    The mean is 0 unless rows are `centred`.

    `stats` keeps the mean and the inverse deviation of every row. A task is a part of a member.
    """
    parts, rows, width, centred, x, w, w_step = integers_at(integers, 7)
    b, b_step, y, stats = integers_at(integers + 56, 4)
    member, first, count = part_of_task(task, parts, rows)
    w, b, eps = w + member * w_step, b + member * b_step, load_double(numbers)
    offset = splat(load_double(numbers + 8))
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
            weight = load_first(w + at, rest) + offset
            value = fma(normal, weight, load_first(b + at, rest)) if b != 0 else normal * weight
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
    offset = splat(load_double(numbers))
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
        _norm_row_back(width, centred, x + place, w, offset, stat, g + place, dx + place, dw, db)


@njit(forceinline=True)
def _norm_row_back(width, centred, x, w, offset, stats, g, dx, dw, db):
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
        weight = load_first(w + at, rest) + offset
        sums = fma(grad, weight, sums)
        sums_normal = fma(grad_normal, weight, sums_normal)
    of_mean = total(sums) / np.float32(width) if centred != 0 else np.float32(0.0)
    of_normal = splat(total(sums_normal) / np.float32(width))
    for j in range(0, width, LANES):
        at, rest = 4 * j, width - j
        normal = (load_first(x + at, rest) - mean) * inverse
        grad = load_first(g + at, rest) * (load_first(w + at, rest) + offset) - splat(of_mean)
        store_first(dx + at, (grad - normal * of_normal) * inverse, rest)


def rms_norm(x_MND, weight_MD, eps: float, offset: float = 0.0) -> torch.Tensor:
    return _Norm.apply(x_MND, weight_MD, None, eps, offset)


def layer_norm(x_MND, weight_MD, bias_MD, eps: float) -> torch.Tensor:
    return _Norm.apply(x_MND, weight_MD, bias_MD, eps, 0.0)


class _Norm(torch.autograd.Function):
    """Rows are centred if there is a bias."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps, offset):
        x, weight = x.contiguous(), by_member(weight)
        members, rows, width = x.shape
        check_shapes((weight.shape, (members, width)))
        y, stats, parts = (
            torch.empty_like(x),
            x.new_empty(members, rows, 2),
            parts_per_member(members),
        )
        ctx.save_for_backward(x, weight, stats)
        ctx.centred, ctx.offset = bias is not None, offset
        if ctx.centred:
            bias = by_member(bias)
            check_shapes((bias.shape, weight.shape))
        start = member_step(bias) if ctx.centred else (0, 0)
        sizes = parts, rows, width, ctx.centred
        given = address_of(x), *member_step(weight), *start, *addresses(y, stats)
        _norm_forward(members * parts, *sizes, *given, numbers=(eps, offset))
        return y

    @staticmethod
    def backward(ctx, g):
        x, weight, stats = ctx.saved_tensors
        (members, rows, width), g = x.shape, g.contiguous()
        dx, dw = torch.empty_like(x), x.new_empty(members, width)
        db = torch.empty_like(dw) if ctx.centred else None
        places = address_of(x), *member_step(weight), *addresses(stats, g, dx, dw, db)
        _norm_backward(members, rows, width, ctx.centred, *places, numbers=(ctx.offset,))
        return dx, dw, db, None, None


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
    parts, count, kind, x, up, y = integers_at(integers, 6)
    member, first, some = part_of_task(task, parts, count)
    at = 4 * (member * count + first)
    activated(kind, some, x + at, up + at if up != 0 else 0, y + at)


@Kernel
def _activate_backward(task, room, integers, numbers):
    """Gradients dx and, unless `up` is 0, dup; a task is a stretch of numbers."""
    parts, count, kind, x, up, g, dx, dup = integers_at(integers, 8)
    member, first, some = part_of_task(task, parts, count)
    at = 4 * (member * count + first)
    of_up = up + at if up != 0 else 0
    activated_back(kind, some, x + at, of_up, g + at, dx + at, dup + at, 0)


def gated(gate, up, activation: str) -> torch.Tensor:
    return _Activate.apply(gate, up, ACTIVATIONS[activation])


def activate(x, activation: str) -> torch.Tensor:
    return _Activate.apply(x, None, ACTIVATIONS[activation])


def _stretches(count: int, most: int) -> tuple[int, int, int]:
    """Tasks, parts of a member, and numbers (or rows) of a member, at most `most` in a part."""
    members = together()
    each = count // members
    parts = max(1, -(-each // most))
    return members * parts, parts, each


class _Activate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, up, kind):
        x, up = x.contiguous(), None if up is None else up.contiguous()
        if up is not None:
            check_shapes((up.shape, x.shape))
        ctx.save_for_backward(x, up)
        ctx.kind, y = kind, torch.empty_like(x)
        _activate_forward(*_stretches(x.numel(), NUMBERS_PER_TASK), kind, *addresses(x, up, y))
        return y

    @staticmethod
    def backward(ctx, g):
        x, up = ctx.saved_tensors
        g, dx = g.contiguous(), torch.empty_like(x)
        dup = None if up is None else torch.empty_like(up)
        sizes = _stretches(x.numel(), NUMBERS_PER_TASK)
        _activate_backward(*sizes, ctx.kind, *addresses(x, up, g, dx, dup))
        return dx, dup, None


# What a queue does in place of PyTorch

SIMPLE = {"add": 0, "scale": 1, "divide": 2, "tanh": 3, "tanh_backward": 4}
ADD, SCALE, DIVIDE, TANH, _ = SIMPLE.values()


@Kernel
def _simple(task, room, integers, numbers):
    """A simple operation on a member's numbers: out = x + y and the like; `out` may be x."""
    count, kind, x, y, out = integers_at(integers, 5)
    number, first = splat(load_double(numbers)), 4 * count * task
    for at in range(first, first + 4 * count, VECTOR):
        rest = (first + 4 * count - at) // 4
        value = load_first(x + at, rest)
        if kind == ADD:
            value = value + load_first(y + at, rest)
        elif kind == SCALE:
            value = value * number
        elif kind == DIVIDE:
            value = value / number
        elif kind == TANH:
            value = tanh(value)
        else:
            slope = load_first(y + at, rest)
            value = value * (splat(1.0) - slope * slope)
        store_first(out + at, value, rest)


def simple(kind: int, x, y, number: float, out) -> None:
    """Write x + y, x * number, x / number, tanh(x) or x * (1 - y^2) into `out`."""
    members = together()
    _simple(members, x.numel() // members, kind, *addresses(x, y, out), numbers=(number,))


def copy_(out, x) -> None:
    """Write `x` into `out`, of the same shape; both are contiguous."""
    check_shapes((out.shape, x.shape))
    simple(SCALE, x.contiguous(), None, 1.0, out)


@Kernel
def _join(task, room, integers, numbers):
    """out[S, T, H, n * d] of n tensors [S, H, T, d]; a task is a string."""
    heads, length, width, count, out = integers_at(integers, 5)
    row = 4 * width * count
    for part in range(count):
        x, x_s, x_h, x_t = integers_at(integers + 40 + 32 * part, 4)
        for place in range(length):
            for head in range(heads):
                here = x + task * x_s + head * x_h + place * x_t
                there = out + row * ((task * length + place) * heads + head) + 4 * width * part
                for j in range(0, width, LANES):
                    store_first(there + 4 * j, load_first(here + 4 * j, width - j), width - j)


def join(tensors, out_STHd) -> torch.Tensor:
    """Tensors [S, H, T, d], one after another in their last axis; `out_STHd` gets the numbers."""
    strings, length, heads, _ = out_STHd.shape
    given = [n for x in tensors for n in (address_of(x), *(4 * step for step in x.stride()[:3]))]
    sizes = heads, length, tensors[0].shape[-1], len(tensors)
    _join(strings, *sizes, address_of(out_STHd), *given)
    return out_STHd.transpose(1, 2)


# Embeddings


@Kernel
def _look_up(task, room, integers, numbers):
    """y[M, N, D] = the rows ids[M, N] of w[M, V, D]; a task is a member."""
    rows, width, ids, w, w_step, y = integers_at(integers, 6)
    w, size = w + task * w_step, 4 * width
    for row in range(task * rows, (task + 1) * rows):
        here = w + size * load_integer(ids + 8 * row)
        for j in range(0, width, LANES):
            store_first(y + size * row + 4 * j, load_first(here + 4 * j, width - j), width - j)


@Kernel
def _look_up_backward(task, room, integers, numbers):
    """dw[M, V, D]: for every row of w, the sum of the rows of g[M, N, D] with its id."""
    rows, width, vocabulary, ids, g, dw = integers_at(integers, 6)
    size = 4 * width
    dw += size * vocabulary * task
    for at in range(dw, dw + size * vocabulary, size):
        for j in range(0, width, LANES):
            store_first(at + 4 * j, splat(0.0), width - j)
    for row in range(task * rows, (task + 1) * rows):
        here, of_g = dw + size * load_integer(ids + 8 * row), g + size * row
        for j in range(0, width, LANES):
            at, rest = 4 * j, width - j
            store_first(here + at, load_first(here + at, rest) + load_first(of_g + at, rest), rest)


def embedding(ids_MN, weight_MVD) -> torch.Tensor:
    """[M, N, D]: each member's own rows."""
    return _Embedding.apply(ids_MN.contiguous(), weight_MVD)


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ids, weight):
        weight = by_member(weight)
        members, vocabulary, width = weight.shape
        check_shapes((ids.shape[:1], (members,)))
        check_indices("id", ids, vocabulary)
        ctx.save_for_backward(ids)
        ctx.sizes, y = (vocabulary, width), weight.new_empty(*ids.shape, width)
        places = address_of(ids, torch.int64), *member_step(weight), address_of(y)
        _look_up(members, ids.shape[1], width, *places)
        return y

    @staticmethod
    def backward(ctx, g):
        (ids,) = ctx.saved_tensors
        (members, rows), (vocabulary, width) = ids.shape, ctx.sizes
        g, dw = g.contiguous(), g.new_empty(members, vocabulary, width)
        places = address_of(ids, torch.int64), *addresses(g, dw)
        _look_up_backward(members, rows, width, vocabulary, *places)
        return None, dw


# The loss


@Kernel
def _nll_forward(task, room, integers, numbers):
    """nll[N] of logits[N, V], 0 where the target is `ignored`; a task is a stretch of rows."""
    parts, rows, width, ignored, logits, targets, nll = integers_at(integers, 7)
    member, first, count = part_of_task(task, parts, rows)
    for row in range(member * rows + first, member * rows + first + count):
        target, here = load_integer(targets + 8 * row), logits + 4 * width * row
        loss = 0.0
        if target != ignored:
            top, sums = _exponentials(width, here)
            loss = math.log(np.float64(sums)) + (np.float64(top) - load_scalar(here + 4 * target))
        store_scalar(nll + 4 * row, loss)


@Kernel
def _nll_backward(task, room, integers, numbers):
    """dlogits[N, V] of g[N]; a task is a stretch of rows."""
    parts, rows, width, ignored, logits, targets, g, dlogits = integers_at(integers, 8)
    member, first, count = part_of_task(task, parts, rows)
    for row in range(member * rows + first, member * rows + first + count):
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

    Raises `IndexError` for a target that is not a column of the logits (not in a queue).
    """
    return _TokenNll.apply(logits_NV, targets_N, ignored)


class _TokenNll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, ignored):
        logits, targets = logits.contiguous(), targets.contiguous()
        check_shapes((targets.shape, logits.shape[:1]))
        check_indices("target", targets, logits.shape[1], ignored)
        ctx.save_for_backward(logits, targets)
        ctx.sizes, nll = (logits.shape[1], ignored), logits.new_empty(len(logits))
        places = address_of(logits), address_of(targets, torch.int64), address_of(nll)
        _nll_forward(*_stretches(len(logits), ROWS_PER_TASK), *ctx.sizes, *places)
        return nll

    @staticmethod
    def backward(ctx, g):
        logits, targets = ctx.saved_tensors
        g, dlogits = g.contiguous(), torch.empty_like(logits)
        places = *addresses(logits), address_of(targets, torch.int64), *addresses(g, dlogits)
        _nll_backward(*_stretches(len(logits), ROWS_PER_TASK), *ctx.sizes, *places)
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
    inverse, eps = np.float32(1.0 / deviation), np.float32(eps)
    for j in range(len(theta)):
        g = grad[j] * clipped
        m = first[j] + part1 * (g - first[j])
        v = second[j] * kept2 + part2 * g * g
        first[j], second[j] = m, v
        theta[j] = theta[j] * kept - length * m / (np.sqrt(v) * inverse + eps)


@Kernel
def _flatten(task, room, integers, numbers):
    """out[M, P] of `count` tensors, each [M, ...], one after another; a task is a member."""
    total, out, count = integers_at(integers, 3)
    out += 4 * total * task
    for part in range(integers + 24, integers + 24 + 16 * count, 16):
        x, size = integers_at(part, 2)
        x += 4 * size * task
        for j in range(0, size, LANES):
            store_first(out + 4 * j, load_first(x + 4 * j, size - j), size - j)
        out += 4 * size


def flat(tensors) -> torch.Tensor:
    """[M, P] of tensors [M, ...], one after another."""
    tensors = [x.contiguous() for x in tensors]
    members, sizes = len(tensors[0]), [x[0].numel() for x in tensors]
    out = tensors[0].new_empty(members, sum(sizes))
    parts = [n for x, size in zip(tensors, sizes, strict=True) for n in (address_of(x), size)]
    _flatten(members, sum(sizes), address_of(out), len(tensors), *parts)
    return out


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
