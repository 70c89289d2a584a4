"""Matrix products: `linear`, held to `operations.linear`, and the products that kernels call."""

import torch
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from palimpsest.training.fleet.kernels import vector
from palimpsest.training.fleet.kernels.simd import load_first, padded, splat, store_first
from palimpsest.training.fleet.kernels.tasks import (
    Kernel,
    address_of,
    addresses,
    by_member,
    check_shapes,
    integers_at,
    member_step,
    part_of_task,
    parts_per_member,
    shared,
)
from palimpsest.training.fleet.kernels.vector import (
    INT64,
    INTEGERS,
    LANES,
    VALUES,
    VECTOR,
    WIDE,
)

# Rows of the tiles of a matrix product, by their width in vectors: first the most whose sums fit
# into the registers (32, or 16 of the narrower ones) together with a row of B and a factor. One
# register is spare: without it, compilers move sums to memory. Then fewer, for the rows that are
# left.
TILES = (
    {4: (6, 2, 1), 3: (8, 2, 1), 2: (12, 4, 1), 1: (24, 8, 2, 1)}
    if WIDE
    else {2: (6, 2, 1), 1: (12, 4, 1)}
)
WIDEST = max(TILES)
# Rows of x and g that stay in the cache while a gradient of weights is summed over them.
TOGETHER = 96


def _strip(vectors: int):
    """The product in `rows` rows and `vectors` vectors of columns; the last has `last` numbers."""

    def write(builder, rows, last, k, a, a_row, a_col, b, b_row, c, c_row, start, start_row):
        row = INT64(0)
        for height in TILES[vectors]:
            tiles = builder.sdiv(builder.sub(rows, row), INT64(height))
            with cgutils.for_range(builder, tiles) as loop:
                here = builder.add(row, builder.mul(loop.index, INT64(height)))
                places = [
                    builder.add(address, builder.mul(here, step))
                    for address, step in ((a, a_row), (c, c_row), (start, start_row))
                ]
                started = cgutils.is_not_null(builder, start)
                steps = a_row, c_row, start_row
                _write_tile(
                    builder, height, vectors, last, k, places, steps, a_col, b, b_row, started
                )
            row = builder.add(row, builder.mul(tiles, INT64(height)))

    @intrinsic
    def strip(context, rows, last, k, a, a_row, a_col, b, b_row, c, c_row, start, start_row):
        def emit(context, builder, _, values):
            vector.call_helper(builder, f"strip_{vectors}", values, write)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 12), emit

    return strip


def _write_tile(builder, height, vectors, last, k, places, steps, a_col, b, b_row, started):
    """A tile of the product, its sums in registers: C = start + A B, or A B unless `started`."""
    (a, c, start), (a_row, c_row, start_row) = places, steps
    masks = [None] * (vectors - 1) + [vector.first_lanes(builder, last)]
    cells = [(i, j) for i in range(height) for j in range(vectors)]
    zeros = ir.Constant(VALUES, [0.0] * LANES)
    sums = {cell: cgutils.alloca_once_value(builder, zeros) for cell in cells}
    for cell in cells:
        builder.store(zeros, sums[cell])
    with builder.if_then(started):
        for i, j in cells:
            address = builder.add(vector.moved(builder, start, start_row, i), INT64(j * VECTOR))
            builder.store(vector.load(builder, address, masks[j]), sums[i, j])
    with cgutils.for_range(builder, k) as loop:
        a_here = builder.add(a, builder.mul(loop.index, a_col))
        b_here = builder.add(b, builder.mul(loop.index, b_row))
        row_of_b = [
            vector.load(builder, builder.add(b_here, INT64(j * VECTOR)), masks[j])
            for j in range(vectors)
        ]
        for i in range(height):
            factor = vector.splat(
                builder,
                vector.load_scalar(builder, vector.moved(builder, a_here, a_row, i)),
            )
            for j in range(vectors):
                total = vector.fma(builder, factor, row_of_b[j], builder.load(sums[i, j]))
                builder.store(total, sums[i, j])
    for i, j in cells:
        address = builder.add(vector.moved(builder, c, c_row, i), INT64(j * VECTOR))
        count = last if j == vectors - 1 else INT64(LANES)
        vector.store_first(builder, address, builder.load(sums[i, j]), count)


_strip_1, _strip_2, _strip_3, _strip_widest = (_strip(min(v, WIDEST)) for v in (1, 2, 3, 4))


@shared
def multiply(rows, columns, k, a, a_row, a_col, b, b_row, c, c_row, start, start_row):
    """C[rows, columns] = start + A[rows, k] B[k, columns], where a row of B and of C is contiguous.

    `a`, `b`, `c` and `start` are addresses, `a_row` and so on the distances in bytes between
    neighbours. `start` may be C itself, one row for all (its step is 0), or 0, for zeros.
    """
    while columns > 0:
        vectors = (columns + LANES - 1) // LANES
        # One more than the widest is better done in halves.
        vectors = (WIDEST + 2) // 2 if vectors == WIDEST + 1 else min(vectors, WIDEST)
        width = min(columns, vectors * LANES)
        last = width - (vectors - 1) * LANES
        if vectors == WIDEST:
            _strip_widest(rows, last, k, a, a_row, a_col, b, b_row, c, c_row, start, start_row)
        elif vectors == 3:
            _strip_3(rows, last, k, a, a_row, a_col, b, b_row, c, c_row, start, start_row)
        elif vectors == 2:
            _strip_2(rows, last, k, a, a_row, a_col, b, b_row, c, c_row, start, start_row)
        else:
            _strip_1(rows, last, k, a, a_row, a_col, b, b_row, c, c_row, start, start_row)
        columns -= width
        b += 4 * width
        c += 4 * width
        start += 4 * width if start != 0 else 0


@intrinsic
def _transpose_tile(context, rows, columns, source, source_row, target, target_row):
    """`LANES` columns of `LANES` numbers each from as many rows; what lies beyond the edge is 0."""

    def write(builder, rows, columns, source, source_row, target, target_row):
        mask = vector.first_lanes(builder, columns)
        nothing = ir.Constant(mask.type, [False] * LANES)
        tile = []
        for i in range(LANES):
            here = builder.select(builder.icmp_signed("<", INT64(i), rows), mask, nothing)
            tile.append(vector.load(builder, vector.moved(builder, source, source_row, i), here))
        low = [n for i in range(LANES // 2) for n in (i, LANES + i)]
        high = [n + LANES // 2 for n in low]
        # Every round weaves the rows of one half with the other; in the end, rows are columns.
        for _ in range(LANES.bit_length() - 1):
            tile = [
                builder.shuffle_vector(
                    tile[i // 2],
                    tile[i // 2 + LANES // 2],
                    ir.Constant(INTEGERS, (low, high)[i % 2]),
                )
                for i in range(LANES)
            ]
        for i in range(LANES):
            vector.store(builder, vector.moved(builder, target, target_row, i), tile[i])

    def emit(context, builder, _, values):
        vector.call_helper(builder, "transpose_tile", values, write)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), emit


@shared
def transpose(rows, columns, source, source_row, target):
    """A [columns, rows] copy of float32[rows, columns], both padded with zeros to whole vectors."""
    target_row = 4 * padded(rows)
    for i in range(0, rows, LANES):
        for j in range(0, columns, LANES):
            place = source + i * source_row + 4 * j
            to = target + j * target_row + 4 * i
            _transpose_tile(rows - i, columns - j, place, source_row, to, target_row)


# Linear layers


@Kernel
def _linear_forward(task, room, integers, numbers):
    """y[M, N, O] = x[M, N, I] w[M, O, I]^T + bias[M, O]; a task is a part of a member's rows."""
    parts, rows, inputs, outputs, x, w, w_step, bias, bias_step, y = integers_at(integers, 10)
    member, first, count = part_of_task(task, parts, rows)
    transpose(outputs, inputs, w + member * w_step, 4 * inputs, room)
    row = member * rows + first
    x, y = x + 4 * inputs * row, y + 4 * outputs * row
    start = bias + member * bias_step
    turned_row = 4 * padded(outputs)
    multiply(count, outputs, inputs, x, 4 * inputs, 4, room, turned_row, y, 4 * outputs, start, 0)


@Kernel
def _linear_inputs(task, room, integers, numbers):
    """dx[M, N, I] = g[M, N, O] w[M, O, I]; a task is a part of a member's rows."""
    parts, rows, inputs, outputs, g, w, w_step, dx = integers_at(integers, 8)
    member, first, count = part_of_task(task, parts, rows)
    row = member * rows + first
    g, w, dx = g + 4 * outputs * row, w + member * w_step, dx + 4 * inputs * row
    multiply(count, inputs, outputs, g, 4 * outputs, 4, w, 4 * inputs, dx, 4 * inputs, 0, 0)


@Kernel
def _linear_weights(task, room, integers, numbers):
    """dw[M, O, I] = g[M, N, O]^T x[M, N, I] and, unless `db` is 0, db[M, O]: the sum of g's rows.

    A task is a part of a member's outputs.
    """
    parts, rows, inputs, outputs, x, g, dw, db = integers_at(integers, 8)
    member, first, count = part_of_task(task, parts, outputs)
    x, g = x + 4 * inputs * rows * member, g + 4 * (outputs * rows * member + first)
    dw, g_row, x_row = dw + 4 * inputs * (outputs * member + first), 4 * outputs, 4 * inputs
    for row in range(0, rows, TOGETHER):
        some = min(TOGETHER, rows - row)
        some_g, some_x = g + row * g_row, x + row * x_row
        start = dw if row > 0 else 0
        multiply(count, inputs, some, some_g, 4, g_row, some_x, x_row, dw, x_row, start, x_row)
    if db != 0:
        sum_rows(rows, count, g, g_row, db + 4 * (outputs * member + first), False)


@njit
def sum_rows(rows, columns, x, x_row, out, going_on):
    """out[columns] = the sum of the rows of x[rows, columns], added to `out` if `going_on`."""
    for j in range(0, columns, LANES):
        sums = load_first(out + 4 * j, columns - j) if going_on else splat(0.0)
        for i in range(rows):
            sums = sums + load_first(x + i * x_row + 4 * j, columns - j)
        store_first(out + 4 * j, sums, columns - j)


def linear(x_MNI, weight_MOI, bias_MO=None) -> torch.Tensor:
    return _Linear.apply(x_MNI, weight_MOI, bias_MO)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        x, weight = x.contiguous(), by_member(weight)
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        check_shapes((weight.shape[::2], x.shape[::2]))
        if ctx.has_bias:
            bias = by_member(bias)
            check_shapes((bias.shape, weight.shape[:2]))
        (members, rows, inputs), outputs = x.shape, weight.shape[1]
        y = x.new_empty(members, rows, outputs)
        parts = parts_per_member(members)
        sizes = parts, rows, inputs, outputs
        room = padded(inputs) * padded(outputs)
        start = member_step(bias) if ctx.has_bias else (0, 0)
        tasks = members * parts
        given = address_of(x), *member_step(weight), *start, address_of(y)
        _linear_forward(tasks, *sizes, *given, room=room)
        return y

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        g = g.contiguous()
        (members, rows, inputs), outputs = x.shape, weight.shape[1]
        parts = parts_per_member(members)
        tasks, sizes = members * parts, (parts, rows, inputs, outputs)
        dx = dw = db = None
        if ctx.needs_input_grad[0]:
            dx = torch.empty_like(x)
            _linear_inputs(tasks, *sizes, address_of(g), *member_step(weight), address_of(dx))
        if any(ctx.needs_input_grad[1:]):
            dw = x.new_empty(weight.shape)
            db = x.new_empty(members, outputs) if ctx.has_bias else None
            _linear_weights(tasks, *sizes, *addresses(x, g, dw, db))
        return dx, dw, db
