"""Attention and rotary positions, held to `operations.attention` and `operations.apply_rotary`."""

import math

import numpy as np
import torch
from numba import njit

from palimpsest.training.fleet.kernels.products import multiply, transpose
from palimpsest.training.fleet.kernels.simd import (
    AHEAD,
    CACHE_LINE,
    exp,
    fetch,
    first_of,
    fma,
    greater,
    largest,
    load,
    load_double,
    load_first,
    load_scalar,
    padded,
    prefetch,
    splat,
    store,
    store_first,
    store_scalar,
    tanh,
    total,
)
from palimpsest.training.fleet.kernels.tasks import (
    Kernel,
    address_of,
    addresses,
    check_shapes,
    integers_at,
)
from palimpsest.training.fleet.kernels.vector import LANES, VECTOR

# Queries whose scores are computed together: a multiple of the rows of every tile.
QUERIES = 24


@Kernel
def _attention_forward(task, room, integers, numbers):
    """out[S, T, H, d] and, of every query, the largest score and the inverse of the weights' sum.

    A task is a head of a sequence.
    """
    heads, length, width, q, q_s, q_h, q_t = integers_at(integers, 7)
    k, k_s, k_h, k_t, v, v_s, v_h, v_t, out, stats = integers_at(integers + 56, 10)
    row = 4 * heads * width
    q = _head(task, heads, length, width, q, q_s, q_h, q_t)
    k = _head(task, heads, length, width, k, k_s, k_h, k_t)
    v = _head(task, heads, length, width, v, v_s, v_h, v_t)
    out = _head(task, heads, length, width, out, length * row, 4 * width, row)
    stats += 8 * length * task
    scaling, softcap = load_double(numbers), load_double(numbers + 8)
    scores, scores_row = room + 4 * padded(length) * padded(width), 4 * padded(length)
    transpose(length, width, k, k_t, room)
    for first in range(0, length, QUERIES):
        count = min(QUERIES, length - first)
        seen = first + count
        of_q, of_out = q + first * q_t, out + first * row
        multiply(count, seen, width, of_q, q_t, 4, room, scores_row, scores, scores_row, 0, 0)
        if softcap > 0:
            _cap(first, count, scaling, softcap, scores, scores_row, 0)
        factor = 1.0 if softcap > 0 else scaling
        _weigh(first, count, factor, scores, scores_row, stats)
        multiply(count, width, seen, scores, scores_row, 4, v, v_t, of_out, row, 0, 0)
        for i in range(count):
            inverse = splat(load_scalar(stats + 8 * (first + i) + 4))
            for j in range(0, width, LANES):
                here = of_out + i * row + 4 * j
                store_first(here, load_first(here, width - j) * inverse, width - j)


@njit
def _place(task, heads, string_step, head_step):
    """Distance in bytes of the head of a task from the beginning of its tensor."""
    return task // heads * string_step + task % heads * head_step


@njit
def _head(task, heads, length, width, x, string_step, head_step, row):
    """Address of the head of a task, while that of the next task is fetched into the cache.

    Its rows lie so far apart that the processor would not fetch them by itself.
    """
    following = x + _place(task + 1, heads, string_step, head_step)
    for i in range(length):
        for at in range(following + i * row, following + i * row + 4 * width, CACHE_LINE):
            prefetch(at)
    return x + _place(task, heads, string_step, head_step)


@njit
def _cap(first, count, scaling, softcap, scores, scores_row, slopes):
    """Scores become softcap * tanh(scores * scaling / softcap); `slopes`, unless 0, its slopes."""
    for i in range(count):
        for at in range(i * scores_row, i * scores_row + 4 * (first + i + 1), VECTOR):
            t = tanh(load(scores + at) * splat(scaling / softcap))
            store(scores + at, splat(softcap) * t)
            if slopes != 0:
                store(slopes + at, splat(scaling) * (splat(1.0) - t * t))


@njit
def _weigh(first, count, scaling, scores, scores_row, stats):
    """Scores of queries from `first` on become weights (whose sum is not 1 yet), later ones 0."""
    scale = splat(scaling)
    # Two loops, so that the processor can work on several rows at once in either.
    for i in range(count):
        row, last, rest = _row(scores + i * scores_row, first + i + 1)
        top = first_of(rest, load(last), splat(-math.inf))
        for here in range(row, last, VECTOR):
            top = greater(top, load(here))
        store_scalar(stats + 8 * (first + i), largest(top) * np.float32(scaling))
    for i in range(count):
        row, last, rest = _row(scores + i * scores_row, first + i + 1)
        stat = stats + 8 * (first + i)
        shift = splat(-load_scalar(stat))
        sums = first_of(rest, exp(fma(load(last), scale, shift)), splat(0.0))
        store(last, sums)
        for here in range(row, last, VECTOR):
            weight = exp(fma(load(here), scale, shift))
            store(here, weight)
            sums = sums + weight
        for here in range(last + VECTOR, row + 4 * (first + count), VECTOR):
            store(here, splat(0.0))
        store_scalar(stat + 4, np.float32(1.0) / total(sums))


@njit
def _row(start, count):
    """Addresses of a row and of its last vector, and how many numbers this vector holds."""
    rest = count - padded(count) + LANES
    return start, start + 4 * (count - rest), rest


@Kernel
def _attention_backward(task, room, integers, numbers):
    """dq, dk and dv[S, T, H, d]; a task is a head of a sequence.

    The last queries come first: they see all keys, so that they begin the sums of dk and dv.
    """
    heads, length, width, q, q_s, q_h, q_t = integers_at(integers, 7)
    k, k_s, k_h, k_t, v, v_s, v_h, v_t = integers_at(integers + 56, 8)
    out, stats, g, dq, dk, dv = integers_at(integers + 120, 6)
    row = 4 * heads * width
    q = _head(task, heads, length, width, q, q_s, q_h, q_t)
    k = _head(task, heads, length, width, k, k_s, k_h, k_t)
    v = _head(task, heads, length, width, v, v_s, v_h, v_t)
    out = _head(task, heads, length, width, out, length * row, 4 * width, row)
    g = _head(task, heads, length, width, g, length * row, 4 * width, row)
    stats += 8 * length * task
    dq = _head(task, heads, length, width, dq, length * row, 4 * width, row)
    dk = _head(task, heads, length, width, dk, length * row, 4 * width, row)
    dv = _head(task, heads, length, width, dv, length * row, 4 * width, row)
    scaling, softcap = load_double(numbers), load_double(numbers + 8)
    scores_row, size = 4 * padded(length), 4 * padded(length) * padded(width)
    turned_k, turned_v, scores = room, room + size, room + 2 * size
    grads = scores + QUERIES * scores_row
    along = grads + QUERIES * scores_row
    slopes = along + 4 * padded(QUERIES) if softcap > 0 else 0
    transpose(length, width, k, k_t, turned_k)
    transpose(length, width, v, v_t, turned_v)
    for first in range((length - 1) // QUERIES * QUERIES, -1, -QUERIES):
        count = min(QUERIES, length - first)
        seen = first + count
        of_q, of_g = q + first * q_t, g + first * row
        multiply(count, seen, width, of_q, q_t, 4, turned_k, scores_row, scores, scores_row, 0, 0)
        multiply(count, seen, width, of_g, row, 4, turned_v, scores_row, grads, scores_row, 0, 0)
        if softcap > 0:
            _cap(first, count, scaling, softcap, scores, scores_row, slopes)
        for i in range(count):
            store_scalar(along + 4 * i, _dot(width, of_g + i * row, out + (first + i) * row))
        _weigh_back(first, count, scaling, along, scores, grads, slopes, scores_row, stats)
        multiply(count, width, seen, grads, scores_row, 4, k, k_t, dq + first * row, row, 0, 0)
        start_k, start_v = (dk, dv) if seen < length else (0, 0)
        multiply(seen, width, count, grads, 4, scores_row, of_q, q_t, dk, row, start_k, row)
        multiply(seen, width, count, scores, 4, scores_row, of_g, row, dv, row, start_v, row)


@njit
def _weigh_back(first, count, scaling, along, scores, grads, slopes, scores_row, stats):
    """Scores become weights, gradients of weights those of scores before they were scaled.

    `along` are the sums of the gradients times the weights.
    """
    scale, slope = splat(1.0 if slopes != 0 else scaling), splat(scaling)
    for i in range(count):
        row, last, rest = _row(i * scores_row, first + i + 1)
        stat = stats + 8 * (first + i)
        shift, inverse = splat(-load_scalar(stat)), splat(load_scalar(stat + 4))
        mean = splat(load_scalar(along + 4 * i))
        for at in range(row, last + VECTOR, VECTOR):
            weight = exp(fma(load(scores + at), scale, shift)) * inverse
            if slopes != 0:
                slope = load(slopes + at)
            store(scores + at, weight)
            store(grads + at, weight * (load(grads + at) - mean) * slope)
        store(scores + last, first_of(rest, load(scores + last), splat(0.0)))
        store(grads + last, first_of(rest, load(grads + last), splat(0.0)))
        for at in range(last + VECTOR, row + 4 * (first + count), VECTOR):
            store(scores + at, splat(0.0))
            store(grads + at, splat(0.0))


@njit
def _dot(count, x, y):
    sums = splat(0.0)
    for j in range(0, count, LANES):
        sums = fma(load_first(x + 4 * j, count - j), load_first(y + 4 * j, count - j), sums)
    return total(sums)


def attention(query_SHTd, key_SHTd, value_SHTd, scaling: float, softcap: float | None = None):
    return _Attention.apply(query_SHTd, key_SHTd, value_SHTd, scaling, softcap or 0.0)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, scaling, softcap):
        query, key, value = (_in_rows(x) for x in (query, key, value))
        check_shapes((key.shape, query.shape), (value.shape, query.shape))
        strings, heads, length, width = query.shape
        out = query.new_empty(strings, length, heads, width)
        stats = query.new_empty(strings, heads, length, 2)
        ctx.save_for_backward(query, key, value, out, stats)
        ctx.numbers = scaling, softcap
        _attention_forward(
            strings * heads,
            *(heads, length, width),
            *_places(query, key, value),
            *addresses(out, stats),
            numbers=ctx.numbers,
            room=padded(length) * (padded(width) + QUERIES),
        )
        return out

    @staticmethod
    def backward(ctx, g):
        query, key, value, out, stats = ctx.saved_tensors
        strings, heads, length, width = query.shape
        g, grads = g.contiguous(), [torch.empty_like(out) for _ in range(3)]
        _attention_backward(
            strings * heads,
            *(heads, length, width),
            *_places(query, key, value),
            *addresses(out, stats, g, *grads),
            numbers=ctx.numbers,
            room=padded(length) * (2 * padded(width) + 3 * QUERIES) + padded(QUERIES),
        )
        return *(grad.transpose(1, 2) for grad in grads), None, None


def _in_rows(x: torch.Tensor) -> torch.Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def _places(*tensors: torch.Tensor) -> list[int]:
    """Address and distances in bytes of tensors [S, H, T, d]."""
    places = []
    for x in tensors:
        places += [address_of(x), *(4 * step for step in x.stride()[:3])]
    return places


# Rotary positions


@Kernel
def _rotary(task, room, integers, numbers):
    """Queries and keys [S, T, H, d] turned by their place's angle, or back; a task is a string."""
    length, width, turned, cos, sin, back = integers_at(integers, 6)
    for one in range(integers + 48, integers + 144, 48):
        heads, x, x_s, x_h, x_t, y = integers_at(one, 6)
        x, y, row = x + task * x_s, y + 4 * width * heads * length * task, 4 * turned
        for place in range(length):
            here, out = x + place * x_t, y + 4 * width * heads * place
            angles = cos + place * row, sin + place * row
            fetch(out + AHEAD * 4 * width * heads, width * heads)
            for head in range(heads):
                fetch(here + AHEAD * x_t + head * x_h, width)
            _turn_place(heads, width, turned, *angles, back, here, x_h, out)


@njit
def _turn_place(heads, width, turned, cos, sin, back, x, x_h, y):
    """Rotate the first `turned` features of each head, one half with the other; copy the others."""
    half = turned // 2
    other, y_h = 4 * half, 4 * width
    for j in range(0, half, LANES):
        at, count = 4 * j, half - j
        cos1, cos2 = load_first(cos + at, count), load_first(cos + at + other, count)
        sin1, sin2 = load_first(sin + at, count), load_first(sin + at + other, count)
        if back != 0:
            sin1, sin2 = splat(0.0) - sin2, splat(0.0) - sin1
        sin1 = splat(0.0) - sin1
        for head in range(heads):
            here, out = x + head * x_h + at, y + head * y_h + at
            x1, x2 = load_first(here, count), load_first(here + other, count)
            store_first(out, fma(x1, cos1, x2 * sin1), count)
            store_first(out + other, fma(x2, cos2, x1 * sin2), count)
    for j in range(turned, width, LANES):
        at, count = 4 * j, width - j
        for head in range(heads):
            store_first(y + head * y_h + at, load_first(x + head * x_h + at, count), count)


def apply_rotary(query_SHTd, key_SHTd, cos_Td, sin_Td) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys [S, H, T, d]: x * cos + rotate_half(x) * sin of the first features.

    `cos_Td` has the number of these features; the others stay as they are. There may be fewer heads
    of keys than of queries. In memory the results are [S, T, H, d].
    """
    return _Rotary.apply(query_SHTd, key_SHTd, cos_Td.contiguous(), sin_Td.contiguous())


class _Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, cos, sin):
        ctx.save_for_backward(cos, sin)
        return _turned(query, key, cos, sin, back=False)

    @staticmethod
    def backward(ctx, query, key):
        return *_turned(query, key, *ctx.saved_tensors, back=True), None, None


def _turned(query, key, cos, sin, back: bool) -> tuple[torch.Tensor, torch.Tensor]:
    strings, _, length, width = query.shape
    turned = cos.shape[-1]
    if turned % 2 or turned > width:
        raise ValueError(f"{turned} features to rotate: must be even, and at most {width}")
    check_shapes((cos.shape, (length, turned)), (sin.shape, cos.shape))
    check_shapes((key.shape, (strings, key.shape[1], length, width)))
    both = [_in_rows(x) for x in (query, key)]
    results = [x.new_empty(strings, length, x.shape[1], width) for x in both]
    given = length, width, turned, *addresses(cos, sin), back
    of_query, of_key = (
        (x.shape[1], *_places(x), address_of(y)) for x, y in zip(both, results, strict=True)
    )
    _rotary(strings, *given, *of_query, *of_key)
    return tuple(y.transpose(1, 2) for y in results)
