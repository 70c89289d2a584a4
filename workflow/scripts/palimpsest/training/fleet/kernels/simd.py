"""Vectors in numba: loads, stores, arithmetic, and the exponential function and hyperbolic tangent.

`exp` and `tanh` are held to `torch.exp` and `torch.tanh` through the operations that use them.
"""

import operator

from llvmlite import ir
from numba import njit, types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_jitable, register_model

from palimpsest.training.fleet.kernels import vector
from palimpsest.training.fleet.kernels.vector import (
    DOUBLE,
    INT32,
    INT64,
    INTEGERS,
    LANES,
    POINTER,
    SUFFIX,
    VALUES,
    VOID,
    WIDE,
)

CACHE_LINE = 64  # bytes
# Rows by which some kernels are ahead of themselves in fetching what they read and write.
AHEAD = 16
LOG2_E = 1.4426950408889634
# The logarithm of 2 in two parts, the first with few enough bits that its multiples are exact.
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4


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


@register_jitable
def padded(count):
    """`count`, rounded up to whole vectors; kernels and Python can call this."""
    return (count + LANES - 1) // LANES * LANES


@intrinsic
def load(context, address):
    return Lanes(types.int64), lambda context, builder, _, v: vector.load(builder, *v)


@intrinsic
def load_first(context, address, count):
    """The first `count` numbers of a vector from memory (all or none, if need be), the others 0."""

    def emit(context, builder, _, values):
        address, count = values
        return vector.load(builder, address, vector.first_lanes(builder, count))

    return Lanes(types.int64, types.int64), emit


@intrinsic
def store(context, address, value):
    def emit(context, builder, _, values):
        vector.store(builder, *values)
        return context.get_dummy_value()

    return types.void(types.int64, Lanes), emit


@intrinsic
def store_first(context, address, value, count):
    def emit(context, builder, _, values):
        vector.store_first(builder, *values)
        return context.get_dummy_value()

    return types.void(types.int64, Lanes, types.int64), emit


@intrinsic
def load_scalar(context, address):
    return types.float32(types.int64), lambda context, builder, _, v: vector.load_scalar(
        builder, *v
    )


@intrinsic
def store_scalar(context, address, value):
    def emit(context, builder, _, values):
        builder.store(values[1], builder.inttoptr(values[0], POINTER), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.float32), emit


@intrinsic
def load_integer(context, address):
    def emit(context, builder, _, values):
        return builder.load(builder.inttoptr(values[0], POINTER), align=8, typ=INT64)

    return types.int64(types.int64), emit


@intrinsic
def store_integer(context, address, value):
    def emit(context, builder, _, values):
        builder.store(values[1], builder.inttoptr(values[0], POINTER), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), emit


@intrinsic
def load_double(context, address):
    def emit(context, builder, _, values):
        return builder.load(builder.inttoptr(values[0], POINTER), align=8, typ=DOUBLE)

    return types.float64(types.int64), emit


@intrinsic
def prefetch(context, address):
    """Have memory brought into the cache, if it exists."""

    def emit(context, builder, _, values):
        place = builder.inttoptr(values[0], POINTER)
        vector.call(builder, "llvm.prefetch.p0", VOID, place, INT32(0), INT32(3), INT32(1))
        return context.get_dummy_value()

    return types.void(types.int64), emit


@njit(forceinline=True)
def fetch(address, count):
    """Have `count` float32 brought into the cache, if they exist."""
    for at in range(address, address + 4 * count, CACHE_LINE):
        prefetch(at)


@intrinsic
def splat(context, scalar):
    return Lanes(types.float32), lambda context, builder, _, v: vector.splat(builder, *v)


@intrinsic
def fma(context, a, b, c):
    """The sum a * b + c, rounded once."""
    return Lanes(Lanes, Lanes, Lanes), lambda context, builder, _, v: vector.fma(builder, *v)


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
    """The first `count` lanes of a, the others of b."""

    def emit(context, builder, _, values):
        count, a, b = values
        return builder.select(vector.first_lanes(builder, count), a, b)

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
        return vector.call(builder, f"llvm.rint.{SUFFIX}", VALUES, *values)

    return Lanes(Lanes), emit


@intrinsic
def scaled(context, x, power):
    """Powers of two, from -150 to 129, times x."""

    def emit(context, builder, _, values):
        x, power = values
        if WIDE:
            arguments = (x, power, x, ir.IntType(16)(-1), INT32(4))
            return vector.call(builder, "llvm.x86.avx512.mask.scalef.ps.512", VALUES, *arguments)
        # In two steps: each multiplies by a power that float32 can hold.
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
    def emit(context, builder, _, values):
        return _folded(builder, values[0], builder.fadd)

    return types.float32(Lanes), emit


@intrinsic
def largest(context, x):
    def emit(context, builder, _, values):
        def larger(a, b):
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        return _folded(builder, values[0], larger)

    return types.float32(Lanes), emit


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
