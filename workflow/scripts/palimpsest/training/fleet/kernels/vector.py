"""Writes LLVM's instructions on vectors, which are as wide as a register of this machine.

Each function adds instructions to a function that is being built, and returns their result. Kernels
call the functions of `simd`, which numba knows, and of `products`.
"""

import llvmlite.binding as llvm
from llvmlite import ir
from numba import config
from numba.core import cgutils

# Numba compiles for this machine, unless its settings name another.
HOST = config.CPU_NAME is None and config.CPU_FEATURES is None
WIDE = llvm.get_host_cpu_features().get("avx512f", False) if HOST else False
LANES = 16 if WIDE else 8
VECTOR = 4 * LANES  # bytes

FLOAT, DOUBLE, INT32, INT64 = ir.FloatType(), ir.DoubleType(), ir.IntType(32), ir.IntType(64)
VALUES, INTEGERS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT32, LANES)
POINTER, VOID = ir.PointerType(), ir.VoidType()
SUFFIX = f"v{LANES}f32"


def call(builder, name: str, result, *arguments):
    """Call a function of the module being built, or of LLVM, by its name."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, arguments)


def splat(builder, scalar):
    """All lanes the same."""
    kind = ir.VectorType(scalar.type, LANES)
    vector = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, INT32(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(INTEGERS, [0] * LANES))


def first_lanes(builder, count):
    """Mask of the first `count` lanes."""
    lanes = ir.Constant(INTEGERS, list(range(LANES)))
    return builder.icmp_signed("<", lanes, splat(builder, builder.trunc(count, INT32)))


def load(builder, address, mask=None):
    """A vector from memory; where there is a mask, 0 in the lanes that it leaves out."""
    pointer = builder.inttoptr(address, POINTER)
    if mask is None:
        return builder.load(pointer, align=4, typ=VALUES)
    zeros = ir.Constant(VALUES, [0.0] * LANES)
    name = f"llvm.masked.load.{SUFFIX}.p0"
    return call(builder, name, VALUES, pointer, INT32(4), mask, zeros)


def store(builder, address, value, mask=None):
    """A vector into memory; where there is a mask, only the lanes that it names."""
    pointer = builder.inttoptr(address, POINTER)
    if mask is None:
        builder.store(value, pointer, align=4)
    else:
        call(builder, f"llvm.masked.store.{SUFFIX}.p0", VOID, value, pointer, INT32(4), mask)


def store_first(builder, address, value, count):
    """The first `count` numbers of a vector into memory (all or none, if need be)."""
    if WIDE:
        return store(builder, address, value, first_lanes(builder, count))
    # With AVX2 some processors take ten times as long for a store that has a mask.
    whole = builder.icmp_signed(">=", count, INT64(LANES))
    with builder.if_else(whole, likely=True) as (then, otherwise):
        with then:
            store(builder, address, value)
        with otherwise:
            store(builder, address, value, first_lanes(builder, count))


def load_scalar(builder, address):
    return builder.load(builder.inttoptr(address, POINTER), align=4, typ=FLOAT)


def fma(builder, a, b, c):
    return call(builder, f"llvm.fma.{SUFFIX}", VALUES, a, b, c)


def moved(builder, address, step, times: int):
    return builder.add(address, builder.mul(step, INT64(times)))


def call_helper(builder, name: str, arguments, emit):
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
