"""Tasks: how kernels are compiled, are shared out over threads, and are told of their tensors."""

import hashlib
import inspect
from array import array
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import torch
from llvmlite import ir
from numba import carray, cfunc, get_num_threads, get_thread_id, njit, prange, types
from numba.extending import intrinsic

from palimpsest.training.fleet.kernels import vector
from palimpsest.training.fleet.kernels.vector import INT64, POINTER, VOID

# A hash of all files of this package. Numba keeps what it compiled for as long as the file of the
# function is the same, but a kernel has parts of other files in it.
SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()[:12]

# Functions that are compiled once for all kernels, by the names under which these call them.
SHARED: dict[str, Callable] = {}


def kept_while_equal(function):
    """Let numba keep what it compiles of a function only while all files are the same."""
    function.__qualname__ += f"-{SOURCES}"  # names the file that numba keeps
    return function


@cache
def compiled(function):
    """A function of integers as one of C, kept for as long as the process lives."""
    kind = types.void(*[types.int64] * function.__code__.co_argcount)
    return cfunc(kind, cache=True, error_model="numpy")(kept_while_equal(function))


def shared(function):
    """Let kernels call a function of integers without having it compiled into each of them."""
    name, signature = f"palimpsest_{function.__name__}", inspect.signature(function)
    SHARED[name] = function

    def call(context, *arguments):
        def emit(context, builder, _, values):
            vector.call(builder, name, VOID, *values)
            return context.get_dummy_value()

        return types.void(*[types.int64] * len(arguments)), emit

    # Numba reads the number of arguments from this signature.
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    call.__signature__ = signature.replace(parameters=[context, *signature.parameters.values()])
    return intrinsic(call)


@intrinsic
def call_task(context, function, task, room, integers, numbers):
    def emit(context, builder, _, values):
        function, *arguments = values
        kind = ir.FunctionType(VOID, [INT64] * len(arguments))
        builder.call(builder.inttoptr(function, kind.as_pointer()), arguments)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), emit


@njit(parallel=True, nogil=True, cache=True, error_model="numpy")
@kept_while_equal
def _share_out(tasks, function, room, room_step, integers, numbers):
    """Do all tasks of a kernel, each in one thread with scratch of its own."""
    for index in prange(tasks):
        own_room = room + np.int64(get_thread_id()) * room_step
        call_task(function, np.int64(index), own_room, integers, numbers)


class Kernel:
    """A function of one task, to be called for many: `function(task, room, integers, numbers)`.

    `room` is the address of the thread's scratch; `integers` and `numbers` are those of the int64
    and float64 that all tasks are given.
    """

    # The queue in which calls wait, if there is one (see `queue`).
    queue = None

    def __init__(self, function):
        self.function = function

    def __call__(self, tasks: int, *integers: int, numbers=(), room: int = 0) -> None:
        """Do all tasks, with `room` float32 of scratch for each thread."""
        integers, numbers = array("q", integers), array("d", numbers)
        if Kernel.queue is not None and Kernel.queue.waits:
            Kernel.queue.add(self.address, tasks, integers, numbers, room)
            return
        scratch = torch.empty(get_num_threads() * room, dtype=torch.float32)
        given = integers.buffer_info()[0], numbers.buffer_info()[0]
        _share_out(tasks, self.address, scratch.data_ptr(), 4 * room, *given)

    @cached_property
    def address(self) -> int:
        for name, function in SHARED.items():
            llvm.add_symbol(name, compiled(function).address)
        return compiled(self.function).address


@intrinsic(prefer_literal=True)
def integers_at(context, address, count):
    """`count` int64 from memory, as a tuple."""
    result = types.UniTuple(types.int64, count.literal_value)

    def emit(context, builder, _, values):
        places = [builder.add(values[0], INT64(8 * i)) for i in range(result.count)]
        places = [builder.inttoptr(place, POINTER) for place in places]
        found = [builder.load(place, align=8, typ=INT64) for place in places]
        return context.make_tuple(builder, result, found)

    return result(types.int64, count), emit


@intrinsic
def _pointer(context, address):
    result = types.CPointer(types.float32)
    return result(types.int64), lambda context, builder, _, v: builder.inttoptr(*v, POINTER)


@njit
def floats_at(address, count):
    return carray(_pointer(address), count)


@njit
def part_of_task(task, parts, size):
    """Member, first and count of the rows (or columns) of a task."""
    member, part = task // parts, task % parts
    most = (size + parts - 1) // parts
    return member, part * most, max(0, min(most, size - part * most))


def by_member(x: torch.Tensor) -> torch.Tensor:
    """Parameters in which each member is contiguous; the members may lie apart."""
    return x if x[0].is_contiguous() else x.contiguous()


def member_step(x: torch.Tensor) -> tuple[int, int]:
    """Address and distance in bytes of the members' parameters."""
    return address_of(x), 4 * x.stride(0)


def member_steps(*tensors: torch.Tensor | None) -> list[int]:
    """Addresses and distances of several; 0 and 0 where there is none."""
    return [n for x in tensors for n in ((0, 0) if x is None else member_step(x))]


def addresses(*tensors: torch.Tensor | None) -> list[int]:
    return [0 if tensor is None else address_of(tensor) for tensor in tensors]


def address_of(x: torch.Tensor, dtype: torch.dtype = torch.float32) -> int:
    """The address of a tensor; `TypeError` unless it is of `dtype` and on the CPU."""
    if x.dtype != dtype or x.device.type != "cpu":
        raise TypeError(f"a kernel needs {dtype} on the CPU, not {x.dtype} on {x.device}")
    if Kernel.queue is not None:
        Kernel.queue.note(x)
    return x.data_ptr()


def check_shapes(*pairs) -> None:
    """Raise `ValueError` for a wrong shape: kernels do not look where a tensor ends."""
    for shape, wanted in pairs:
        if tuple(shape) != tuple(wanted):
            raise ValueError(f"a kernel was given the shape {tuple(shape)}, not {tuple(wanted)}")


def check_indices(what: str, indices: torch.Tensor, count: int, ignored: int = 0) -> None:
    """Raise `IndexError` for an index that is not below `count`: kernels would read beyond the end.

    In a queue, the values of indices may change later; who opens a queue checks all of them before.
    """
    if Kernel.queue is not None:
        return
    outside = ((indices < 0) | (indices >= count)) & (indices != ignored)
    if outside.any():
        raise IndexError(f"{what} {indices[outside][0].item()} is not below {count}")


def parts_per_member(members: int) -> int:
    """The number of parts of a member's work with which every thread has its share."""
    if Kernel.queue is not None and Kernel.queue.waits:
        return 1
    threads = get_num_threads()
    return 1 if members % threads == 0 else threads


def together() -> int:
    """The number of members that a queue tells apart; 1 if there is no queue."""
    return 1 if Kernel.queue is None else Kernel.queue.members
