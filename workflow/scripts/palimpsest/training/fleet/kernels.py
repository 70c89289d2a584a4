"""The operations of stacked models, compiled for the CPU: as `operations`, but fast.

Every tensor of parameters has the members first (M); activations are [M, N, D], where N counts the
tokens of all strings of a member's batch. Everything is float32. A member's result is the same to
the bit whatever its neighbours are and however many threads share the work: each number is computed
by one thread, in an order that depends on the shapes of one member alone.

The kernels are written in numba on vectors of as many numbers as a register of this machine holds
(`Lanes`), so that nothing depends on what the compiler manages to vectorise by itself. They take
addresses, and distances ("steps", "rows") in bytes, instead of arrays: numba then has nothing to
unpack and no references to count. Compiling is what would take long, so a kernel does one task of
many, all kernels share one loop over tasks in threads, and what several of them use is compiled
once (`_shared`); numba keeps all of it on disk.
"""

import math
import operator
from array import array
from functools import cache, cached_property

import llvmlite.binding as llvm
import numpy as np
import torch
from llvmlite import ir
from numba import cfunc, config, get_num_threads, get_thread_id, njit, prange, types
from numba.core import cgutils
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

# Numba compiles for this machine, unless its settings name another.
HOST = config.CPU_NAME is None and config.CPU_FEATURES is None
WIDE = llvm.get_host_cpu_features().get("avx512f", False) if HOST else False
LANES = 16 if WIDE else 8
VECTOR = 4 * LANES  # bytes
CACHE_LINE = 64  # bytes
# Rows of the tiles of a matrix product, by their width in vectors: the most whose sums fit into the
# registers (32, or 16 of the narrower ones), then fewer, for the rows that are left.
TILES = (
    {4: (6, 2, 1), 3: (8, 2, 1), 2: (12, 4, 1), 1: (24, 8, 2, 1)}
    if WIDE
    else {3: (4, 1), 2: (6, 2, 1), 1: (12, 4, 1)}
)
WIDEST = max(TILES)
# Rows of x and g that stay in the cache while a gradient of weights is summed over them.
TOGETHER = 96
# Queries whose scores are computed together: a multiple of the rows of every tile.
QUERIES = 24
# Rows, and numbers, of one task where a member's rows need not stay together.
# Rows by which some kernels are ahead of themselves in fetching what they read and write.
AHEAD = 16
ROWS_PER_TASK, NUMBERS_PER_TASK = 512, 16384
LOG2_E = 1.4426950408889634
# The logarithm of 2 in two parts, the first with few enough bits that its multiples are exact.
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4

# Of the approximation of gelu by tanh(scale * (x + cube * x^3)).
GELU_SCALE, GELU_CUBE = math.sqrt(2 / math.pi), 0.044715
# The names under which kernels call what several of them use.
MULTIPLY, TRANSPOSE = "palimpsest_multiply", "palimpsest_transpose"

# Vectors in LLVM

FLOAT, DOUBLE, INT32, INT64 = ir.FloatType(), ir.DoubleType(), ir.IntType(32), ir.IntType(64)
VALUES, INTEGERS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT32, LANES)
WIDE_VALUES = ir.VectorType(DOUBLE, LANES)
POINTER, VOID = ir.PointerType(), ir.VoidType()
SUFFIX = f"v{LANES}f32"


def _call(builder, name: str, result, *arguments):
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, arguments)


def _splat(builder, scalar):
    """All lanes the same."""
    kind = ir.VectorType(scalar.type, LANES)
    vector = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, INT32(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(INTEGERS, [0] * LANES))


def _first(builder, count):
    """Mask of the first so many lanes."""
    lanes = ir.Constant(INTEGERS, list(range(LANES)))
    return builder.icmp_signed("<", lanes, _splat(builder, builder.trunc(count, INT32)))


def _load(builder, address, mask=None):
    pointer = builder.inttoptr(address, POINTER)
    if mask is None:
        return builder.load(pointer, align=4, typ=VALUES)
    zeros = ir.Constant(VALUES, [0.0] * LANES)
    name = f"llvm.masked.load.{SUFFIX}.p0"
    return _call(builder, name, VALUES, pointer, INT32(4), mask, zeros)


def _store(builder, address, value, mask=None):
    pointer = builder.inttoptr(address, POINTER)
    if mask is None:
        builder.store(value, pointer, align=4)
    else:
        _call(builder, f"llvm.masked.store.{SUFFIX}.p0", VOID, value, pointer, INT32(4), mask)


def _load_scalar(builder, address):
    return builder.load(builder.inttoptr(address, POINTER), align=4, typ=FLOAT)


def _fma(builder, a, b, c):
    return _call(builder, f"llvm.fma.{SUFFIX}", VALUES, a, b, c)


def _plus(builder, address, step, times: int):
    return builder.add(address, builder.mul(step, INT64(times)))


def _helper(builder, name: str, arguments, emit):
    """Call a function of integers that the module being built gets once, written by `emit`."""
    kind = ir.FunctionType(VOID, [INT64] * len(arguments))
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    if function.is_declaration:
        function.linkage = "internal"
        function.attributes.add("noinline")
        inner = ir.IRBuilder(function.append_basic_block("entry"))
        emit(inner, *function.args)
        inner.ret_void()
    builder.call(function, arguments)


# Vectors in numba


class LanesType(types.Type):
    """A vector of `LANES` float32."""

    def __init__(self):
        super().__init__(name=f"Lanes{LANES}")


Lanes = LanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, VALUES)


def _operation(function, method: str) -> None:
    """Let an operator of Python work on two vectors."""

    @infer_global(function)
    class Template(ConcreteTemplate):
        cases = (signature(Lanes, Lanes, Lanes),)

    @lower_builtin(function, Lanes, Lanes)
    def lower(context, builder, signature, values):
        return getattr(builder, method)(*values)


_operation(operator.add, "fadd")
_operation(operator.sub, "fsub")
_operation(operator.mul, "fmul")
_operation(operator.truediv, "fdiv")


@intrinsic
def load(context, address):
    """A vector from memory."""
    return Lanes(types.int64), lambda context, builder, _, v: _load(builder, *v)


@intrinsic
def load_first(context, address, count):
    """The first `count` numbers of a vector from memory (all or none, if need be), the others 0."""

    def emit(context, builder, _, values):
        address, count = values
        return _load(builder, address, _first(builder, count))

    return Lanes(types.int64, types.int64), emit


@intrinsic
def store(context, address, value):
    """A vector into memory."""

    def emit(context, builder, _, values):
        _store(builder, *values)
        return context.get_dummy_value()

    return types.void(types.int64, Lanes), emit


@intrinsic
def store_first(context, address, value, count):
    """The first so many numbers of a vector into memory."""

    def emit(context, builder, _, values):
        address, value, count = values
        _store(builder, address, value, _first(builder, count))
        return context.get_dummy_value()

    return types.void(types.int64, Lanes, types.int64), emit


@intrinsic
def load_scalar(context, address):
    """One float32 from memory."""
    return types.float32(types.int64), lambda context, builder, _, v: _load_scalar(builder, *v)


@intrinsic
def store_scalar(context, address, value):
    """One float32 into memory."""

    def emit(context, builder, _, values):
        builder.store(values[1], builder.inttoptr(values[0], POINTER), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.float32), emit


@intrinsic
def load_integer(context, address):
    """One int64 from memory."""

    def emit(context, builder, _, values):
        return builder.load(builder.inttoptr(values[0], POINTER), align=8, typ=INT64)

    return types.int64(types.int64), emit


@intrinsic
def load_double(context, address):
    """One float64 from memory."""

    def emit(context, builder, _, values):
        return builder.load(builder.inttoptr(values[0], POINTER), align=8, typ=DOUBLE)

    return types.float64(types.int64), emit


@intrinsic
def prefetch(context, address):
    """Have memory brought into the cache, if it exists."""

    def emit(context, builder, _, values):
        place = builder.inttoptr(values[0], POINTER)
        _call(builder, "llvm.prefetch.p0", VOID, place, INT32(0), INT32(3), INT32(1))
        return context.get_dummy_value()

    return types.void(types.int64), emit


@njit(forceinline=True)
def _fetch(address, count):
    """Have so many float32 brought into the cache, if they exist."""
    for at in range(address, address + 4 * count, CACHE_LINE):
        prefetch(at)


@intrinsic
def splat(context, scalar):
    """All lanes the same."""
    return Lanes(types.float32), lambda context, builder, _, v: _splat(builder, *v)


@intrinsic
def fma(context, a, b, c):
    """The sum a * b + c, rounded once."""
    return Lanes(Lanes, Lanes, Lanes), lambda context, builder, _, v: _fma(builder, *v)


@intrinsic
def greater(context, a, b):
    """The larger of each pair; b where one is NaN."""

    def emit(context, builder, _, values):
        return builder.select(builder.fcmp_ordered(">", *values), *values)

    return Lanes(Lanes, Lanes), emit


@intrinsic
def lesser(context, a, b):
    """The smaller of each pair; b where one is NaN."""

    def emit(context, builder, _, values):
        return builder.select(builder.fcmp_ordered("<", *values), *values)

    return Lanes(Lanes, Lanes), emit


@intrinsic
def first_of(context, count, a, b):
    """The first so many lanes of a, the others of b."""

    def emit(context, builder, _, values):
        count, a, b = values
        return builder.select(_first(builder, count), a, b)

    return Lanes(types.int64, Lanes, Lanes), emit


@intrinsic
def where_above(context, a, b, c, d):
    """Lanes of c where a is greater than b, else of d."""

    def emit(context, builder, _, values):
        a, b, c, d = values
        return builder.select(builder.fcmp_ordered(">", a, b), c, d)

    return Lanes(Lanes, Lanes, Lanes, Lanes), emit


@intrinsic
def nearest(context, x):
    """Rounded to integers."""

    def emit(context, builder, _, values):
        return _call(builder, f"llvm.rint.{SUFFIX}", VALUES, *values)

    return Lanes(Lanes), emit


@intrinsic
def root(context, x):
    """Square roots."""

    def emit(context, builder, _, values):
        return _call(builder, f"llvm.sqrt.{SUFFIX}", VALUES, *values)

    return Lanes(Lanes), emit


@intrinsic
def scaled(context, x, power):
    """Powers of two, from -150 to 129, times x."""

    def emit(context, builder, _, values):
        x, power = values
        if WIDE:
            arguments = (x, power, x, ir.IntType(16)(-1), INT32(4))
            return _call(builder, "llvm.x86.avx512.mask.scalef.ps.512", VALUES, *arguments)
        # In two steps, of which each is a power that float32 can hold.
        power = builder.fptosi(power, INTEGERS)
        half = builder.ashr(power, ir.Constant(INTEGERS, [1] * LANES))
        for part in (half, builder.sub(power, half)):
            exponent = builder.add(part, ir.Constant(INTEGERS, [127] * LANES))
            bits = builder.shl(exponent, ir.Constant(INTEGERS, [23] * LANES))
            x = builder.fmul(x, builder.bitcast(bits, VALUES))
        return x

    return Lanes(Lanes, Lanes), emit


def _folded(builder, vector, combine):
    """All lanes combined into one, half with half."""
    width = LANES
    while width > 1:
        width //= 2
        indices = [width + i if i < width else i for i in range(LANES)]
        other = builder.shuffle_vector(vector, vector, ir.Constant(INTEGERS, indices))
        vector = combine(vector, other)
    return builder.extract_element(vector, INT32(0))


@intrinsic
def total(context, x):
    """The sum of all lanes."""

    def emit(context, builder, _, values):
        return _folded(builder, values[0], builder.fadd)

    return types.float32(Lanes), emit


@intrinsic
def largest(context, x):
    """The largest of all lanes."""

    def emit(context, builder, _, values):
        def larger(a, b):
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        return _folded(builder, values[0], larger)

    return types.float32(Lanes), emit


@intrinsic
def sum_of_squares(context, address, count):
    """Of float32[count] in memory, summed in float64."""

    def emit(context, builder, _, values):
        address, count = values
        sums = cgutils.alloca_once_value(builder, ir.Constant(WIDE_VALUES, [0.0] * LANES))
        zero, step = INT64(0), INT64(LANES)
        with cgutils.for_range_slice(builder, zero, count, step, INT64) as (start, _):
            mask = _first(builder, builder.sub(count, start))
            x = _load(builder, _plus(builder, address, start, 4), mask)
            x = builder.fpext(x, WIDE_VALUES)
            builder.store(builder.fadd(builder.load(sums), builder.fmul(x, x)), sums)
        return _folded(builder, builder.load(sums), builder.fadd)

    return types.float64(types.int64, types.int64), emit


@njit
def exp(x):
    """The exponential function to within 2e-7 of itself, with the right limits."""
    x = lesser(splat(89.0), greater(splat(-104.0), x))
    power = nearest(x * splat(LOG2_E))
    r = fma(power, splat(-LN2_LOW), fma(power, splat(-LN2_HIGH), x))
    p = fma(splat(1.9875691500e-4), r, splat(1.3981999507e-3))
    p = fma(p, r, splat(8.3334519073e-3))
    p = fma(p, r, splat(4.1665795894e-2))
    p = fma(p, r, splat(1.6666665459e-1))
    p = fma(p, r, splat(5.0000001201e-1))
    return scaled(fma(p, r * r, r) + splat(1.0), power)


@njit
def tanh(x):
    """The hyperbolic tangent to within 4e-7 of itself, as a quotient of polynomials."""
    x = lesser(splat(7.90531110763549805), greater(splat(-7.90531110763549805), x))
    z = x * x
    p = fma(z, splat(-2.76076847742355e-16), splat(2.00018790482477e-13))
    p = fma(z, p, splat(-8.60467152213735e-11))
    p = fma(z, p, splat(5.12229709037114e-08))
    p = fma(z, p, splat(1.48572235717979e-05))
    p = fma(z, p, splat(6.37261928875436e-04))
    p = fma(z, p, splat(4.89352455891786e-03))
    q = fma(z, splat(1.19825839466702e-06), splat(1.18534705686654e-04))
    q = fma(z, q, splat(2.26843463243900e-03))
    q = fma(z, q, splat(4.89352518554385e-03))
    return x * p / q


# Tasks


@cache
def _compiled(function):
    """A function of integers as one of C, kept for as long as the process lives."""
    kind = types.void(*[types.int64] * function.__code__.co_argcount)
    return cfunc(kind, cache=True, error_model="numpy")(function)


def _shared(name: str, parameters: int):
    """What an intrinsic returns that calls a compiled function of integers by its name."""

    def emit(context, builder, _, values):
        _call(builder, name, VOID, *values)
        return context.get_dummy_value()

    return types.void(*[types.int64] * parameters), emit


@intrinsic
def _call_task(context, function, task, room, integers, numbers):
    """Call the kernel at an address."""

    def emit(context, builder, _, values):
        function, *arguments = values
        kind = ir.FunctionType(VOID, [INT64] * len(arguments))
        builder.call(builder.inttoptr(function, kind.as_pointer()), arguments)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), emit


@njit(parallel=True, nogil=True, cache=True, error_model="numpy")
def _share_out(tasks, function, room, room_step, integers, numbers):
    """Do all tasks of a kernel, each in one thread with scratch of its own."""
    for index in prange(tasks):
        own_room = room + np.int64(get_thread_id()) * room_step
        _call_task(function, np.int64(index), own_room, integers, numbers)


class Kernel:
    """A function of one task, to be called for many: `function(task, room, integers, numbers)`.

    `room` is the address of the thread's scratch; `integers` and `numbers` are those of the int64
    and float64 that all tasks are given.
    """

    def __init__(self, function):
        self.function = function

    def __call__(self, tasks: int, *integers: int, numbers=(), room: int = 0) -> None:
        """Do all tasks, with so many float32 of scratch for each thread."""
        scratch = torch.empty(get_num_threads() * room, dtype=torch.float32)
        integers, numbers = array("q", integers), array("d", numbers)
        given = integers.buffer_info()[0], numbers.buffer_info()[0]
        _share_out(tasks, self.address, scratch.data_ptr(), 4 * room, *given)

    @cached_property
    def address(self) -> int:
        """Of the compiled function."""
        llvm.add_symbol(MULTIPLY, _compiled(_multiply).address)
        llvm.add_symbol(TRANSPOSE, _compiled(_transpose).address)
        return _compiled(self.function).address


@intrinsic(prefer_literal=True)
def integers_at(context, address, count):
    """So many int64 from memory, as a tuple."""
    result = types.UniTuple(types.int64, count.literal_value)

    def emit(context, builder, _, values):
        places = [builder.add(values[0], INT64(8 * i)) for i in range(result.count)]
        places = [builder.inttoptr(place, POINTER) for place in places]
        found = [builder.load(place, align=8, typ=INT64) for place in places]
        return context.make_tuple(builder, result, found)

    return result(types.int64, count), emit


# Matrix products


def _strip(vectors: int):
    """The product in `rows` rows and so many vectors of columns, the last of which holds `last`."""

    def write(builder, rows, last, k, a, a_row, a_col, b, b_row, c, c_row, start, start_row):
        mask = _first(builder, last)
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
                    builder, height, vectors, mask, k, places, steps, a_col, b, b_row, started
                )
            row = builder.add(row, builder.mul(tiles, INT64(height)))

    @intrinsic
    def strip(context, rows, last, k, a, a_row, a_col, b, b_row, c, c_row, start, start_row):
        def emit(context, builder, _, values):
            _helper(builder, f"strip_{vectors}", values, write)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 12), emit

    return strip


def _write_tile(builder, height, vectors, mask, k, places, steps, a_col, b, b_row, started):
    """A tile of the product, its sums in registers: C = start + A B, or A B unless `started`."""
    (a, c, start), (a_row, c_row, start_row) = places, steps
    masks = [None] * (vectors - 1) + [mask]
    cells = [(i, j) for i in range(height) for j in range(vectors)]
    zeros = ir.Constant(VALUES, [0.0] * LANES)
    sums = {cell: cgutils.alloca_once_value(builder, zeros) for cell in cells}
    for cell in cells:
        builder.store(zeros, sums[cell])
    with builder.if_then(started):
        for i, j in cells:
            address = builder.add(_plus(builder, start, start_row, i), INT64(j * VECTOR))
            builder.store(_load(builder, address, masks[j]), sums[i, j])
    with cgutils.for_range(builder, k) as loop:
        a_here = builder.add(a, builder.mul(loop.index, a_col))
        b_here = builder.add(b, builder.mul(loop.index, b_row))
        row_of_b = [
            _load(builder, builder.add(b_here, INT64(j * VECTOR)), masks[j]) for j in range(vectors)
        ]
        for i in range(height):
            factor = _splat(builder, _load_scalar(builder, _plus(builder, a_here, a_row, i)))
            for j in range(vectors):
                total = _fma(builder, factor, row_of_b[j], builder.load(sums[i, j]))
                builder.store(total, sums[i, j])
    for i, j in cells:
        address = builder.add(_plus(builder, c, c_row, i), INT64(j * VECTOR))
        _store(builder, address, builder.load(sums[i, j]), masks[j])


_strip_1, _strip_2, _strip_3, _strip_widest = (_strip(v) for v in (1, 2, 3, WIDEST))


def _multiply(rows, columns, k, a, a_row, a_col, b, b_row, c, c_row, start, start_row):
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
def multiply(context, rows, columns, k, a, a_row, a_col, b, b_row, c, c_row, start, start_row):
    """C[rows, columns] = start + A[rows, k] B[k, columns], where a row of B and of C is contiguous.

    `a`, `b`, `c` and `start` are addresses, `a_row` and so on the distances in bytes between
    neighbours. `start` may be C itself, one row for all (its step is 0), or 0, for zeros.
    """
    return _shared(MULTIPLY, 12)


@intrinsic
def _transpose_tile(context, rows, columns, source, source_row, target, target_row):
    """`LANES` columns of `LANES` numbers each from as many rows; what lies beyond the edge is 0."""

    def write(builder, rows, columns, source, source_row, target, target_row):
        mask = _first(builder, columns)
        nothing = ir.Constant(mask.type, [False] * LANES)
        tile = []
        for i in range(LANES):
            here = builder.select(builder.icmp_signed("<", INT64(i), rows), mask, nothing)
            tile.append(_load(builder, _plus(builder, source, source_row, i), here))
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
            _store(builder, _plus(builder, target, target_row, i), tile[i])

    def emit(context, builder, _, values):
        _helper(builder, "transpose_tile", values, write)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), emit


def _transpose(rows, columns, source, source_row, target):
    target_row = 4 * padded(rows)
    for i in range(0, rows, LANES):
        for j in range(0, columns, LANES):
            place = source + i * source_row + 4 * j
            to = target + j * target_row + 4 * i
            _transpose_tile(rows - i, columns - j, place, source_row, to, target_row)


@intrinsic
def transpose(context, rows, columns, source, source_row, target):
    """A [columns, rows] copy of float32[rows, columns], both padded with zeros to whole vectors."""
    return _shared(TRANSPOSE, 5)


def _padded(count):
    """So many numbers in whole vectors."""
    return (count + LANES - 1) // LANES * LANES


padded = njit(_padded)


# Linear layers


@Kernel
def _linear_forward(task, room, integers, numbers):
    """y[M, N, O] = x[M, N, I] w[M, O, I]^T + bias[M, O]; a task is a part of a member's rows."""
    parts, rows, inputs, outputs, x, w, w_step, bias, bias_step, y = integers_at(integers, 10)
    member, first, count = _part(task, parts, rows)
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
    member, first, count = _part(task, parts, rows)
    row = member * rows + first
    g, w, dx = g + 4 * outputs * row, w + member * w_step, dx + 4 * inputs * row
    multiply(count, inputs, outputs, g, 4 * outputs, 4, w, 4 * inputs, dx, 4 * inputs, 0, 0)


@Kernel
def _linear_weights(task, room, integers, numbers):
    """dw[M, O, I] = g[M, N, O]^T x[M, N, I] and, unless `db` is 0, db[M, O]: the sum of g's rows.

    A task is a part of a member's outputs.
    """
    parts, rows, inputs, outputs, x, g, dw, db = integers_at(integers, 8)
    member, first, count = _part(task, parts, outputs)
    x, g = x + 4 * inputs * rows * member, g + 4 * (outputs * rows * member + first)
    dw, g_row, x_row = dw + 4 * inputs * (outputs * member + first), 4 * outputs, 4 * inputs
    for row in range(0, rows, TOGETHER):
        some = min(TOGETHER, rows - row)
        some_g, some_x = g + row * g_row, x + row * x_row
        start = dw if row > 0 else 0
        multiply(count, inputs, some, some_g, 4, g_row, some_x, x_row, dw, x_row, start, x_row)
    if db != 0:
        _sum_rows(rows, count, g, g_row, db + 4 * (outputs * member + first), False)


@njit
def _part(task, parts, size):
    """Member, first and count of the rows (or columns) of a task."""
    member, part = task // parts, task % parts
    most = (size + parts - 1) // parts
    return member, part * most, max(0, min(most, size - part * most))


@njit
def _sum_rows(rows, columns, x, x_row, out, going_on):
    """out[columns] = the sum of the rows of x[rows, columns], added to `out` if `going_on`."""
    for j in range(0, columns, LANES):
        sums = load_first(out + 4 * j, columns - j) if going_on else splat(0.0)
        for i in range(rows):
            sums = sums + load_first(x + i * x_row + 4 * j, columns - j)
        store_first(out + 4 * j, sums, columns - j)


def linear(x_MNI, weight_MOI, bias_MO=None) -> torch.Tensor:
    """[M, N, O]: each member's rows through its own weights."""
    return _Linear.apply(x_MNI, weight_MOI, bias_MO)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        x, weight = x.contiguous(), _by_member(weight)
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        _check_shapes((weight.shape[::2], x.shape[::2]))
        if ctx.has_bias:
            bias = _by_member(bias)
            _check_shapes((bias.shape, weight.shape[:2]))
        (members, rows, inputs), outputs = x.shape, weight.shape[1]
        y = x.new_empty(members, rows, outputs)
        parts = _parts(members)
        sizes = parts, rows, inputs, outputs
        room = _padded(inputs) * _padded(outputs)
        start = _member_step(bias) if ctx.has_bias else (0, 0)
        tasks = members * parts
        given = _address(x), *_member_step(weight), *start, _address(y)
        _linear_forward(tasks, *sizes, *given, room=room)
        return y

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        g = g.contiguous()
        (members, rows, inputs), outputs = x.shape, weight.shape[1]
        parts = _parts(members)
        tasks, sizes = members * parts, (parts, rows, inputs, outputs)
        dx = dw = db = None
        if ctx.needs_input_grad[0]:
            dx = torch.empty_like(x)
            _linear_inputs(tasks, *sizes, _address(g), *_member_step(weight), _address(dx))
        if any(ctx.needs_input_grad[1:]):
            dw = x.new_empty(weight.shape)
            db = x.new_empty(members, outputs) if ctx.has_bias else None
            _linear_weights(tasks, *sizes, *_addresses(x, g, dw, db))
        return dx, dw, db


def _by_member(x: torch.Tensor) -> torch.Tensor:
    """Parameters whose members may lie apart, but each of them in one piece."""
    return x if x[0].is_contiguous() else x.contiguous()


def _member_step(x: torch.Tensor) -> tuple[int, int]:
    """Address and distance in bytes of the members' parameters."""
    return _address(x), 4 * x.stride(0)


def _member_steps(*tensors: torch.Tensor | None) -> list[int]:
    return [n for x in tensors for n in ((0, 0) if x is None else _member_step(x))]


def _addresses(*tensors: torch.Tensor | None) -> list[int]:
    return [0 if tensor is None else _address(tensor) for tensor in tensors]


def _address(x: torch.Tensor, dtype: torch.dtype = torch.float32) -> int:
    """Where the kernels, which cannot tell, find numbers of the kind that they expect."""
    if x.dtype != dtype or x.device.type != "cpu":
        raise TypeError(f"a kernel wants {dtype} on the CPU, not {x.dtype} on {x.device}")
    return x.data_ptr()


def _check_shapes(*pairs) -> None:
    """Kernels do not look where a tensor ends."""
    for shape, wanted in pairs:
        if tuple(shape) != tuple(wanted):
            raise ValueError(f"a kernel was given the shape {tuple(shape)}, not {tuple(wanted)}")


def _parts(members: int) -> int:
    """In how many parts to do a member's work, so that every thread has its share."""
    threads = get_num_threads()
    return 1 if members % threads == 0 else threads


# Attention


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
    """How far from the beginning the head of a task is."""
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
    """Where a row starts and where its last vector does, and how many numbers that one holds."""
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
    """Causal self-attention [S, T, H, d] of S strings; the scores are capped where a model does."""
    return _Attention.apply(query_SHTd, key_SHTd, value_SHTd, scaling, softcap or 0.0)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, scaling, softcap):
        query, key, value = (_in_rows(x) for x in (query, key, value))
        _check_shapes((key.shape, query.shape), (value.shape, query.shape))
        strings, heads, length, width = query.shape
        out = query.new_empty(strings, length, heads, width)
        stats = query.new_empty(strings, heads, length, 2)
        ctx.save_for_backward(query, key, value, out, stats)
        ctx.numbers = scaling, softcap
        _attention_forward(
            strings * heads,
            *(heads, length, width),
            *_places(query, key, value),
            *_addresses(out, stats),
            numbers=ctx.numbers,
            room=_padded(length) * (_padded(width) + QUERIES),
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
            *_addresses(out, stats, g, *grads),
            numbers=ctx.numbers,
            room=_padded(length) * (2 * _padded(width) + 3 * QUERIES) + _padded(QUERIES),
        )
        return *(grad.transpose(1, 2) for grad in grads), None, None


def _in_rows(x: torch.Tensor) -> torch.Tensor:
    """A tensor whose last dimension is contiguous."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _places(*tensors: torch.Tensor) -> list[int]:
    """Address and distances in bytes of tensors [S, H, T, d]."""
    places = []
    for x in tensors:
        places += [_address(x), *(4 * step for step in x.stride()[:3])]
    return places


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
            _fetch(out + AHEAD * 4 * width * heads, width * heads)
            for head in range(heads):
                _fetch(here + AHEAD * x_t + head * x_h, width)
            _turn_place(heads, width, turned, *angles, back, here, x_h, out)


@njit
def _turn_place(heads, width, turned, cos, sin, back, x, x_h, y):
    """Of the first `turned` features of each head, one half turned with the other."""
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

    These are as many as `cos_Td` has; those that follow are left as they are. There may be fewer
    heads of keys than of queries. In memory the results are [S, T, H, d].
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
    _check_shapes((cos.shape, (length, turned)), (sin.shape, cos.shape))
    _check_shapes((key.shape, (strings, key.shape[1], length, width)))
    both = [_in_rows(x) for x in (query, key)]
    results = [x.new_empty(strings, length, x.shape[1], width) for x in both]
    given = length, width, turned, *_addresses(cos, sin), back
    of_query, of_key = (
        (x.shape[1], *_places(x), _address(y)) for x, y in zip(both, results, strict=True)
    )
    _rotary(strings, *given, *of_query, *of_key)
    return tuple(y.transpose(1, 2) for y in results)


# Norms


@Kernel
def _norm_forward(task, room, integers, numbers):
    """y[M, N, D] = (x - mean) / deviation * w + b, where the mean is 0 unless rows are `centred`.

    `stats` keeps the mean and the inverse deviation of every row. A task is a part of a member.
    """
    parts, rows, width, centred, x, w, w_step = integers_at(integers, 7)
    b, b_step, y, stats = integers_at(integers + 56, 4)
    member, first, count = _part(task, parts, rows)
    w, b, eps = w + member * w_step, b + member * b_step, load_double(numbers)
    for row in range(member * rows + first, member * rows + first + count):
        here, there = x + 4 * width * row, y + 4 * width * row
        _fetch(here + AHEAD * 4 * width, width)
        _fetch(there + AHEAD * 4 * width, width)
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
            _fetch(one + place + AHEAD * 4 * width, width)
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
    """Rows divided by their root mean square, times each member's own weights."""
    return _Norm.apply(x_MND, weight_MD, None, eps)


def layer_norm(x_MND, weight_MD, bias_MD, eps: float) -> torch.Tensor:
    """Rows of mean 0 and variance 1, times each member's own weights, plus its own bias."""
    return _Norm.apply(x_MND, weight_MD, bias_MD, eps)


class _Norm(torch.autograd.Function):
    """Rows are centred if there is a bias."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        x, weight = x.contiguous(), _by_member(weight)
        members, rows, width = x.shape
        _check_shapes((weight.shape, (members, width)))
        y, stats, parts = torch.empty_like(x), x.new_empty(members, rows, 2), _parts(members)
        ctx.save_for_backward(x, weight, stats)
        ctx.centred = bias is not None
        if ctx.centred:
            bias = _by_member(bias)
            _check_shapes((bias.shape, weight.shape))
        start = _member_step(bias) if ctx.centred else (0, 0)
        sizes = parts, rows, width, ctx.centred
        given = _address(x), *_member_step(weight), *start, *_addresses(y, stats)
        _norm_forward(members * parts, *sizes, *given, numbers=(eps,))
        return y

    @staticmethod
    def backward(ctx, g):
        x, weight, stats = ctx.saved_tensors
        (members, rows, width), g = x.shape, g.contiguous()
        dx, dw = torch.empty_like(x), x.new_empty(members, width)
        db = torch.empty_like(dw) if ctx.centred else None
        places = _address(x), *_member_step(weight), *_addresses(stats, g, dx, dw, db)
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
def _activated(kind, count, x, up, y):
    """The activation of x, times `up` unless this is 0."""
    for j in range(0, count, LANES):
        at, rest = 4 * j, count - j
        value = load_first(x + at, rest)
        value = value * _share(kind, value)[0]
        if up != 0:
            value = value * load_first(up + at, rest)
        store_first(y + at, value, rest)


@njit
def _activated_back(kind, count, x, up, g, dx, dup, y):
    """Gradients dx (in whose place g may be) and, unless `up` is 0, dup; unless `y` is 0, y too."""
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
    _activated(kind, some, x + at, up + at if up != 0 else 0, y + at)


@Kernel
def _activate_backward(task, room, integers, numbers):
    """Gradients dx and, unless `up` is 0, dup; a task is a stretch of numbers."""
    count, kind, x, up, g, dx, dup = integers_at(integers, 7)
    first = task * NUMBERS_PER_TASK
    at, some = 4 * first, min(NUMBERS_PER_TASK, count - first)
    of_up = up + at if up != 0 else 0
    _activated_back(kind, some, x + at, of_up, g + at, dx + at, dup + at, 0)


def gated(gate, up, activation: str) -> torch.Tensor:
    """The activation of one half of a gated feed-forward layer times the other half."""
    return _Activate.apply(gate, up, ACTIVATIONS[activation])


def activate(x, activation: str) -> torch.Tensor:
    """One of `ACTIVATIONS`, of every number."""
    return _Activate.apply(x, None, ACTIVATIONS[activation])


class _Activate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, up, kind):
        x, up = x.contiguous(), None if up is None else up.contiguous()
        if up is not None:
            _check_shapes((up.shape, x.shape))
        ctx.save_for_backward(x, up)
        ctx.kind, y = kind, torch.empty_like(x)
        tasks = -(-x.numel() // NUMBERS_PER_TASK)
        _activate_forward(tasks, x.numel(), kind, *_addresses(x, up, y))
        return y

    @staticmethod
    def backward(ctx, g):
        x, up = ctx.saved_tensors
        g, dx = g.contiguous(), torch.empty_like(x)
        dup = None if up is None else torch.empty_like(up)
        tasks = -(-x.numel() // NUMBERS_PER_TASK)
        _activate_backward(tasks, x.numel(), ctx.kind, *_addresses(x, up, g, dx, dup))
        return dx, dup, None


# Feed-forward layers


@Kernel
def _feed_forward(task, room, integers, numbers):
    """y[M, N, O] = (act(gate) * up) down^T + bias; gate and up[M, N, F] (padded) are kept.

    Where there is no second matrix (its address is 0), y = act(gate) down^T + bias. A task is a
    part of a member's rows.
    """
    parts, rows, inputs, inner, outputs, kind, x = integers_at(integers, 7)
    gate_w, gate_step, gate_b, gate_b_step, up_w, up_step = integers_at(integers + 56, 6)
    down_w, down_step, down_b, down_b_step, gate, up, y = integers_at(integers + 104, 7)
    member, first, count = _part(task, parts, rows)
    x_row, y_row, inner_row, turned_row = (
        4 * inputs,
        4 * outputs,
        4 * padded(inner),
        4 * padded(outputs),
    )
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
        some, of_x = min(TOGETHER, last - row), x + row * x_row
        of_gate, of_up = gate + row * inner_row, 0
        multiply(
            some,
            inner,
            inputs,
            of_x,
            x_row,
            4,
            turned_gate,
            inner_row,
            of_gate,
            inner_row,
            start,
            0,
        )
        if up_w != 0:
            of_up = up + row * inner_row
            multiply(
                some, inner, inputs, of_x, x_row, 4, turned_up, inner_row, of_up, inner_row, 0, 0
            )
        _activated(kind, some * padded(inner), of_gate, of_up, hidden)
        multiply(
            some,
            outputs,
            inner,
            hidden,
            inner_row,
            4,
            turned_down,
            turned_row,
            y + row * y_row,
            y_row,
            end,
            0,
        )


@Kernel
def _feed_forward_backward(task, room, integers, numbers):
    """Gradients of the input, the two or three matrices and the biases whose address is not 0.

    A task is a member; or, where `work` [3, M, N, F] (padded) is given, a part of a member's rows,
    of which all but the gradients of parameters are computed, or a part of its inner features
    (`finishing`), of which those are.
    """
    parts, rows, inputs, inner, outputs, kind, x, g = integers_at(integers, 8)
    gate_w, gate_step, up_w, up_step, down_w, down_step = integers_at(integers + 64, 6)
    gate, up, work, area, finishing = integers_at(integers + 112, 5)
    dx, dgate_w, dup_w, ddown_w, dgate_b, ddown_b = integers_at(integers + 152, 6)
    x_row, y_row, inner_row = 4 * inputs, 4 * outputs, 4 * padded(inner)
    member, first, count = _part(task, parts, inner if finishing != 0 else rows)
    start, end = (0, rows) if finishing != 0 else (first, first + count)
    if finishing == 0:
        first, count = 0, inner
    gate_w, up_w, down_w = (
        gate_w + member * gate_step,
        up_w + member * up_step,
        down_w + member * down_step,
    )
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
            multiply(
                some, inner, outputs, of_g, y_row, 4, down_w, 4 * inner, of_gate, inner_row, 0, 0
            )
            at = here * inner_row
            _activated_back(
                kind,
                some * padded(inner),
                gate + at,
                up + at if up != 0 else 0,
                of_gate,
                of_gate,
                of_up,
                of_hidden,
            )
            of_dx = dx + here * x_row
            multiply(some, inputs, inner, of_gate, inner_row, 4, gate_w, x_row, of_dx, x_row, 0, 0)
            if up != 0:
                multiply(
                    some,
                    inputs,
                    inner,
                    of_up,
                    inner_row,
                    4,
                    up_w,
                    x_row,
                    of_dx,
                    x_row,
                    of_dx,
                    x_row,
                )
        if finishing != 0 or work == 0:
            going_on = row > 0
            of_hidden, of_gate, of_up = (
                of_hidden + 4 * first,
                of_gate + 4 * first,
                of_up + 4 * first,
            )
            multiply(
                count,
                inputs,
                some,
                of_gate,
                4,
                inner_row,
                of_x,
                x_row,
                dgate_w,
                x_row,
                dgate_w if going_on else 0,
                x_row,
            )
            if up != 0:
                multiply(
                    count,
                    inputs,
                    some,
                    of_up,
                    4,
                    inner_row,
                    of_x,
                    x_row,
                    dup_w,
                    x_row,
                    dup_w if going_on else 0,
                    x_row,
                )
            multiply(
                outputs,
                count,
                some,
                of_g,
                4,
                y_row,
                of_hidden,
                inner_row,
                ddown_w,
                4 * inner,
                ddown_w if going_on else 0,
                4 * inner,
            )
            if dgate_b != 0:
                _sum_rows(some, count, of_gate, inner_row, dgate_b, going_on)
            if ddown_b != 0:
                _sum_rows(some, outputs, of_g, y_row, ddown_b, going_on)


def gated_feed_forward(x_MNI, gate_MFI, up_MFI, down_MOF, activation: str) -> torch.Tensor:
    """[M, N, O]: the activation of one linear layer, times a second, through a third."""
    kind = ACTIVATIONS[activation]
    return _FeedForward.apply(x_MNI, gate_MFI, up_MFI, down_MOF, None, None, kind)


def feed_forward(x_MNI, up_MFI, up_MF, down_MOF, down_MO, activation: str) -> torch.Tensor:
    """[M, N, O]: the activation of one linear layer through a second, both with biases."""
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
                _check_shapes((parameter.shape, (members, *shape)))
                given[i] = _by_member(parameter)
        gate, up, down, gate_bias, down_bias = given
        ctx.sizes = rows, inputs, inner, outputs, kind
        ctx.has_biases = gate_bias is not None, down_bias is not None
        width = _padded(inner)
        of_gate = x.new_empty(members, rows, width)
        of_up = None if up is None else torch.empty_like(of_gate)
        y = x.new_empty(members, rows, outputs)
        ctx.save_for_backward(x, gate, up, down, of_gate, of_up)
        parts = _parts(members)
        weights = _member_steps(gate, gate_bias, up, down, down_bias)
        _feed_forward(
            members * parts,
            *(parts, *ctx.sizes, _address(x), *weights, *_addresses(of_gate, of_up, y)),
            room=width * (2 * _padded(inputs) + _padded(outputs) + TOGETHER),
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
        parts, width = _parts(members), of_gate.shape[2]
        sizes = parts, *ctx.sizes, *_addresses(x, g), *_member_steps(gate, up, down)
        work = x.new_empty(3, members, rows, width) if parts > 1 else None
        area = TOGETHER if work is None else members * rows
        kept, grads = _addresses(of_gate, of_up, work), _addresses(dx, *weights, *biases)
        room = 3 * TOGETHER * width
        for finishing in range(1 if work is None else 2):
            tasks = members * parts
            _feed_forward_backward(tasks, *sizes, *kept, area, finishing, *grads, room=room)
        return dx, *weights, *biases, None


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
    """The largest of some numbers, and the sum of exp of how far they are from it."""
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
    """float[N]: nats of each target; 0 where it is ignored."""
    return _TokenNll.apply(logits_NV, targets_N, ignored)


class _TokenNll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, ignored):
        logits, targets = logits.contiguous(), targets.contiguous()
        _check_shapes((targets.shape, logits.shape[:1]))
        ctx.save_for_backward(logits, targets)
        ctx.sizes, nll = (*logits.shape, ignored), logits.new_empty(len(logits))
        tasks = -(-len(logits) // ROWS_PER_TASK)
        places = _address(logits), _address(targets, torch.int64), _address(nll)
        _nll_forward(tasks, *ctx.sizes, *places)
        return nll

    @staticmethod
    def backward(ctx, g):
        logits, targets = ctx.saved_tensors
        g, dlogits = g.contiguous(), torch.empty_like(logits)
        tasks = -(-len(logits) // ROWS_PER_TASK)
        places = *_addresses(logits), _address(targets, torch.int64), *_addresses(g, dlogits)
        _nll_backward(tasks, *ctx.sizes, *places)
        return dlogits, None, None


# The optimiser


@Kernel
def _adamw(task, room, integers, numbers):
    """One step of one member, the task."""
    count, theta, theta_step, grad, grad_step, first, first_step = integers_at(integers, 7)
    second, second_step, rates, steps = integers_at(integers + 56, 4)
    theta, grad = theta + task * theta_step, grad + task * grad_step
    first, second = first + task * first_step, second + task * second_step
    rate, step = load_double(rates + 8 * task), load_double(steps + 8 * task)
    beta1, beta2 = load_double(numbers), load_double(numbers + 8)
    eps, weight_decay = load_double(numbers + 16), load_double(numbers + 24)
    norm = math.sqrt(sum_of_squares(grad, count))
    clipped = splat(min(1.0, load_double(numbers + 32) / (norm + 1e-6)))
    kept, part1 = splat(1.0 - rate * weight_decay), splat(1.0 - beta1)
    kept2, part2 = splat(beta2), splat(1.0 - beta2)
    length = splat(rate / (1.0 - beta1**step))
    deviation, least = splat(math.sqrt(1.0 - beta2**step)), splat(eps)
    for j in range(0, count, LANES):
        at, rest = 4 * j, count - j
        g = load_first(grad + at, rest) * clipped
        m = load_first(first + at, rest)
        m = fma(part1, g - m, m)
        v = fma(part2 * g, g, load_first(second + at, rest) * kept2)
        store_first(first + at, m, rest)
        store_first(second + at, v, rest)
        moved = length * m / (root(v) / deviation + least)
        store_first(theta + at, load_first(theta + at, rest) * kept - moved, rest)


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
    """One step of AdamW of every member, in place, its gradient clipped to a norm of its own.

    `rate_M` are the members' learning rates, `step_M` counts their steps from 1. The arithmetic is
    that of torch.optim.AdamW after torch.nn.utils.clip_grad_norm_.
    """
    members, count = theta_MP.shape
    rows = theta_MP, _by_member(grad_MP), first_MP, second_MP
    if any(row.stride(1) != 1 for row in rows):
        raise ValueError("a kernel wants members whose parameters are in one piece")
    _check_shapes(*((row.shape, theta_MP.shape) for row in rows))
    rate_M, step_M = rate_M.double().contiguous(), step_M.double().contiguous()
    places = [place for row in rows for place in _member_step(row)]
    places += [_address(rate_M, torch.float64), _address(step_M, torch.float64)]
    numbers = beta1, beta2, eps, weight_decay, clipping
    _adamw(members, count, *places, numbers=numbers)
