"""Feed-forward layers, held to `operations.gated_feed_forward` and `operations.feed_forward`."""

import torch

from palimpsest.training.fleet.kernels.pointwise import ACTIVATIONS, activated, activated_back
from palimpsest.training.fleet.kernels.products import TOGETHER, multiply, sum_rows, transpose
from palimpsest.training.fleet.kernels.simd import padded
from palimpsest.training.fleet.kernels.tasks import (
    Kernel,
    address_of,
    addresses,
    by_member,
    check_shapes,
    integers_at,
    member_steps,
    part_of_task,
    parts_per_member,
)


@Kernel
def _feed_forward(task, room, integers, numbers):
    """y[M, N, O] = (act(gate) * up) down^T + bias; gate and up[M, N, F] (padded) are kept.

    Where there is no second matrix (its address is 0), y = act(gate) down^T + bias. A task is a
    part of a member's rows.
    """
    parts, rows, inputs, inner, outputs, kind, x = integers_at(integers, 7)
    gate_w, gate_step, gate_b, gate_b_step, up_w, up_step = integers_at(integers + 56, 6)
    down_w, down_step, down_b, down_b_step, gate, up, y = integers_at(integers + 104, 7)
    member, first, count = part_of_task(task, parts, rows)
    x_row, y_row = 4 * inputs, 4 * outputs
    inner_row, turned_row = 4 * padded(inner), 4 * padded(outputs)
    turned_gate, size = room, padded(inputs) * inner_row
    turned_up = turned_gate + size
    turned_down = turned_up + size
    hidden = turned_down + padded(inner) * turned_row
    transpose(inner, inputs, gate_w + member * gate_step, x_row, turned_gate)
    if up_w != 0:
        transpose(inner, inputs, up_w + member * up_step, x_row, turned_up)
    transpose(outputs, inner, down_w + member * down_step, 4 * inner, turned_down)
    start, end = gate_b + member * gate_b_step, down_b + member * down_b_step
    last = member * rows + first + count
    for row in range(member * rows + first, last, TOGETHER):
        some, of_x = min(TOGETHER, last - row), (x + row * x_row, x_row, 4)
        of_gate, of_up = gate + row * inner_row, 0
        multiply(some, inner, inputs, *of_x, turned_gate, inner_row, of_gate, inner_row, start, 0)
        if up_w != 0:
            of_up = up + row * inner_row
            multiply(some, inner, inputs, *of_x, turned_up, inner_row, of_up, inner_row, 0, 0)
        activated(kind, some * padded(inner), of_gate, of_up, hidden)
        of_hidden, of_y = (hidden, inner_row, 4), (y + row * y_row, y_row)
        multiply(some, outputs, inner, *of_hidden, turned_down, turned_row, *of_y, end, 0)


@Kernel
def _feed_forward_backward(task, room, integers, numbers):
    """Gradients of the input, the two or three matrices and the biases whose address is not 0.

    A task is a member. With `work` [3, M, N, F] (padded), there are two rounds. In the first, a
    task is a part of a member's rows, and computes all but the gradients of parameters. In the
    second (`finishing`), a task is a part of a member's inner features, and computes these
    gradients.
    """
    parts, rows, inputs, inner, outputs, kind, x, g = integers_at(integers, 8)
    gate_w, gate_step, up_w, up_step, down_w, down_step = integers_at(integers + 64, 6)
    gate, up, work, area, finishing = integers_at(integers + 112, 5)
    dx, dgate_w, dup_w, ddown_w, dgate_b, ddown_b = integers_at(integers + 152, 6)
    x_row, y_row, inner_row = 4 * inputs, 4 * outputs, 4 * padded(inner)
    member, first, count = part_of_task(task, parts, inner if finishing != 0 else rows)
    start, end = (0, rows) if finishing != 0 else (first, first + count)
    if finishing == 0:
        first, count = 0, inner
    gate_w, up_w = gate_w + member * gate_step, up_w + member * up_step
    down_w += member * down_step
    at = member * inner + first
    dgate_w, dup_w = dgate_w + at * x_row, dup_w + at * x_row
    dgate_b = dgate_b + 4 * at if dgate_b != 0 else 0
    ddown_w = ddown_w + 4 * (member * outputs * inner + first)
    ddown_b = ddown_b + member * y_row if ddown_b != 0 and first == 0 else 0
    for row in range(start, end, TOGETHER):
        some, here = min(TOGETHER, end - row), member * rows + row
        of_x, of_g = x + here * x_row, g + here * y_row
        of_hidden = work + here * inner_row if work != 0 else room
        of_gate = of_hidden + area * inner_row
        of_up = of_gate + area * inner_row
        if finishing == 0:
            down = down_w, 4 * inner
            multiply(some, inner, outputs, of_g, y_row, 4, *down, of_gate, inner_row, 0, 0)
            at, size = here * inner_row, some * padded(inner)
            kept = gate + at, up + at if up != 0 else 0
            activated_back(kind, size, *kept, of_gate, of_gate, of_up, of_hidden)
            of_dx = dx + here * x_row, x_row
            multiply(some, inputs, inner, of_gate, inner_row, 4, gate_w, x_row, *of_dx, 0, 0)
            if up != 0:
                multiply(some, inputs, inner, of_up, inner_row, 4, up_w, x_row, *of_dx, *of_dx)
        if finishing != 0 or work == 0:
            going_on = row > 0
            of_hidden, of_gate = of_hidden + 4 * first, of_gate + 4 * first
            of_up += 4 * first
            gate_start, up_start, down_start = (dgate_w, dup_w, ddown_w) if going_on else (0, 0, 0)
            # Read along their columns (4 bytes apart), so that they are turned.
            gate_T, up_T = (of_gate, 4, inner_row), (of_up, 4, inner_row)
            multiply(count, inputs, some, *gate_T, of_x, x_row, dgate_w, x_row, gate_start, x_row)
            if up != 0:
                multiply(count, inputs, some, *up_T, of_x, x_row, dup_w, x_row, up_start, x_row)
            of_ddown = ddown_w, 4 * inner, down_start, 4 * inner
            multiply(outputs, count, some, of_g, 4, y_row, of_hidden, inner_row, *of_ddown)
            if dgate_b != 0:
                sum_rows(some, count, of_gate, inner_row, dgate_b, going_on)
            if ddown_b != 0:
                sum_rows(some, outputs, of_g, y_row, ddown_b, going_on)


def gated_feed_forward(x_MNI, gate_MFI, up_MFI, down_MOF, activation: str) -> torch.Tensor:
    kind = ACTIVATIONS[activation]
    return _FeedForward.apply(x_MNI, gate_MFI, up_MFI, down_MOF, None, None, kind)


def feed_forward(x_MNI, up_MFI, up_MF, down_MOF, down_MO, activation: str) -> torch.Tensor:
    return _FeedForward.apply(
        x_MNI, up_MFI, None, down_MOF, up_MF, down_MO, ACTIVATIONS[activation]
    )


class _FeedForward(torch.autograd.Function):
    """Gated if there is a second matrix."""

    @staticmethod
    def forward(ctx, x, gate, up, down, gate_bias, down_bias, kind):
        (members, rows, inputs), (_, inner, _), outputs = x.shape, gate.shape, down.shape[1]
        wanted = (inner, inputs), (inner, inputs), (outputs, inner), (inner,), (outputs,)
        x, given = x.contiguous(), [gate, up, down, gate_bias, down_bias]
        for i, (parameter, shape) in enumerate(zip(given, wanted, strict=True)):
            if parameter is not None:
                check_shapes((parameter.shape, (members, *shape)))
                given[i] = by_member(parameter)
        gate, up, down, gate_bias, down_bias = given
        ctx.sizes = rows, inputs, inner, outputs, kind
        ctx.has_biases = gate_bias is not None, down_bias is not None
        width = padded(inner)
        of_gate = x.new_empty(members, rows, width)
        of_up = None if up is None else torch.empty_like(of_gate)
        y = x.new_empty(members, rows, outputs)
        ctx.save_for_backward(x, gate, up, down, of_gate, of_up)
        parts = parts_per_member(members)
        weights = member_steps(gate, gate_bias, up, down, down_bias)
        _feed_forward(
            members * parts,
            *(parts, *ctx.sizes, address_of(x), *weights, *addresses(of_gate, of_up, y)),
            room=width * (2 * padded(inputs) + padded(outputs) + TOGETHER),
        )
        return y

    @staticmethod
    def backward(ctx, g):
        x, gate, up, down, of_gate, of_up = ctx.saved_tensors
        g, dx = g.contiguous(), torch.empty_like(x)
        weights = [None if w is None else w.new_empty(w.shape) for w in (gate, up, down)]
        members, rows, _, inner, outputs = len(x), *ctx.sizes[:4]
        biases = [
            x.new_empty(members, size) if biased else None
            for size, biased in zip((inner, outputs), ctx.has_biases, strict=True)
        ]
        parts, width = parts_per_member(members), of_gate.shape[2]
        sizes = parts, *ctx.sizes, *addresses(x, g), *member_steps(gate, up, down)
        work = x.new_empty(3, members, rows, width) if parts > 1 else None
        area = TOGETHER if work is None else members * rows
        kept, grads = addresses(of_gate, of_up, work), addresses(dx, *weights, *biases)
        room = 3 * TOGETHER * width
        for finishing in range(1 if work is None else 2):
            tasks = members * parts
            _feed_forward_backward(tasks, *sizes, *kept, area, finishing, *grads, room=room)
        return dx, *weights, *biases, None
