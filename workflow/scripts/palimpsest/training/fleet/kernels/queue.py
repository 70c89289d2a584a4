"""A queue of kernels: one member takes its whole step before the next member begins.

Without a queue, every kernel does its work for all members before the next kernel begins. By the
time a number is read again, the numbers of other members have driven it out of the processor's fast
caches.
"""

import contextlib
import mmap
from array import array
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numba import get_num_threads, get_thread_id, njit, prange
from torch.utils._python_dispatch import TorchDispatchMode

from palimpsest.training.fleet.kernels.pointwise import SIMPLE, join, simple
from palimpsest.training.fleet.kernels.simd import CACHE_LINE, load_integer, store_integer
from palimpsest.training.fleet.kernels.tasks import (
    Kernel,
    call_task,
    integers_at,
    kept_while_equal,
)
from palimpsest.training.fleet.memory import is_even

aten = torch.ops.aten
ALLOCATIONS = {
    aten.empty.memory_format,
    aten.empty_strided.default,
    aten.empty_like.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
}
OPERATIONS = {
    aten.add.Tensor: "add",
    aten.add_.Tensor: "add",
    aten.mul.Tensor: "scale",
    aten.div.Tensor: "divide",
    aten.tanh.default: "tanh",
    aten.tanh_backward.default: "tanh_backward",
}
HUGE_PAGE = 2**21  # bytes


@contextlib.contextmanager
def member_by_member(members: int, *changing: torch.Tensor) -> Iterator["Queue"]:
    """Kernels that are called in this context are done by its end, for one member after another.

    The first axis of their tensors is the members, or members times strings. Tensors that are made
    in this context have no values after it. Kernels may change older tensors in place, and PyTorch
    must not use these before the end. A few members that cannot be shared out evenly are trained
    together, kernel by kernel. The results are the same to the bit. Afterwards the queue may have a
    `program`, which repeats all work with other values in the tensors `changing`.
    """
    queue = Queue(members, is_even(members, get_num_threads()), changing)
    Kernel.queue = queue
    try:
        with queue:
            yield queue
            queue.work_off(last=True)
    finally:
        Kernel.queue = None


class Call(NamedTuple):
    """A kernel that waits, with its tasks for one member."""

    function: int
    tasks: int
    integers: array
    numbers: array


class Program:
    """Calls for every member, which can be repeated."""

    def __init__(self, members: int, calls: list[Call], steps: list[array], room: int, size: int):
        self.members, self.threads = members, get_num_threads()
        self.table = array("q")
        for call, step in zip(calls, steps, strict=True):
            self.table.extend((call.function, call.tasks, len(call.integers)))
            self.table.extend(x.buffer_info()[0] for x in (call.integers, step, call.numbers))
        most = max(len(call.integers) for call in calls)
        self.room = torch.empty(self.threads * room, dtype=torch.float32)
        self.given = torch.empty(self.threads * most, dtype=torch.int64)
        self.sizes = 4 * room, 8 * most, size
        # The table has addresses only.
        self.kept = calls, steps, list(_pieces)

    def run(self) -> None:
        if get_num_threads() != self.threads:
            raise ValueError(f"a program for {self.threads} threads runs in {get_num_threads()}")
        place, count = self.table.buffer_info()
        rooms = self.room.data_ptr(), self.given.data_ptr()
        _work_off(self.members, place, count // 6, *rooms, *self.sizes)


class Queue(TorchDispatchMode):
    """Kernels that wait; PyTorch's own operations never see a number that is still to be computed.

    PyTorch tells a mode of every operation. Views and allocations need no numbers. Some simple
    operations are done by kernels. Before any other operation on a tensor that a kernel may have to
    fill, all kernels that wait are done; then the queue is no longer `whole`.
    """

    def __init__(self, members: int, waits: bool, changing: Sequence[torch.Tensor] = ()):
        super().__init__()
        self.members, self.waits, self.whole = members, waits, True
        self.program: Program | None = None
        self.changing = set(map(_memory, changing))
        self.repeatable = True
        self.calls: list[Call] = []
        self.room = 0
        # Kernels are given addresses. The tensors are kept here until the kernels are done.
        self.kept: list[torch.Tensor] = []
        # Tensors made in this context, by the address of their memory; and for an address that a
        # kernel was given, the address where this memory begins.
        self.made: dict[int, torch.Tensor] = {}
        self.begins: dict[int, int] = {}

    # What waits

    def note(self, x: torch.Tensor) -> None:
        """Note that a kernel is given the address of a tensor."""
        self.kept.append(x)
        begin = _memory(x)
        if begin in self.made and x.data_ptr():  # an empty tensor has the address 0
            self.begins[x.data_ptr()] = begin

    def add(self, function: int, tasks: int, integers: array, numbers: array, room: int) -> None:
        """Let a kernel wait."""
        if tasks % self.members:
            raise ValueError(f"{tasks} tasks cannot be told apart by {self.members} members")
        self.calls.append(Call(function, tasks // self.members, integers, numbers))
        self.room = max(self.room, room)

    def work_off(self, last: bool = False) -> None:
        """Do all kernels that wait."""
        if not self.calls:
            return
        # Operations of PyTorch read what is computed before the end, so it needs its own memory.
        steps, size = self._share_memory() if self.whole else (self._no_steps(), 0)
        program = Program(self.members, self.calls, steps, self.room, size)
        program.run()
        self.calls = []
        if last and self.whole and self.repeatable:
            self.program = program
            # What is made here has no memory of its own when the program is repeated.
            program.kept += ([x for x in self.kept if _memory(x) not in self.made],)

    def _no_steps(self) -> list[array]:
        return [array("q", bytes(8 * len(call.integers))) for call in self.calls]

    def _share_memory(self) -> tuple[list[array], int]:
        """Give every thread one piece of memory, which all of its members use in turn.

        Tensors made in this context get places in it. Returns, for every call, how far apart the
        members are in a tensor to which a number is the address (0 for other numbers), and the size
        of the piece.
        """
        first, last = {}, {}
        for place, call in enumerate(self.calls):
            for begin in filter(None, map(self.begins.get, call.integers)):
                first.setdefault(begin, place)
                last[begin] = place
        sizes = {}
        for begin in first:
            size = self.made[begin].untyped_storage().nbytes()
            if size % self.members:
                raise ValueError(f"{size} bytes cannot be shared out to {self.members} members")
            sizes[begin] = size // self.members
        offsets, size = _places(tuple((sizes[b], first[b], last[b]) for b in first))
        place_of = dict(zip(first, offsets, strict=True))
        memory = _shared_memory(get_num_threads() * size)
        steps = self._no_steps()
        for call, step in zip(self.calls, steps, strict=True):
            for i, number in enumerate(call.integers):
                begin = self.begins.get(number)
                if begin is not None:
                    call.integers[i] = memory + place_of[begin] + number - begin
                    step[i] = sizes[begin]
        return steps, size

    # PyTorch's operations

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.is_view or func is aten._unsafe_view.default:
            return func(*args, **kwargs)
        if func in ALLOCATIONS:
            return self._noted(func(*args, **kwargs))
        given = *args, *kwargs.values()
        if _touches(given, self.made):
            out = None if kwargs else self._by_kernel(func, args)
            if out is not None:
                return out
            self.whole = False
            self.work_off()
        # What PyTorch computes is not computed again when a program is repeated.
        self.repeatable &= not _touches(given, self.changing)
        return func(*args, **kwargs)

    def _noted(self, x: torch.Tensor) -> torch.Tensor:
        self.made[_memory(x)] = x
        return x

    def _by_kernel(self, func, args) -> torch.Tensor | None:
        """Do a simple operation by a kernel; None if there is no kernel for it."""
        x, y = args[0], args[1] if len(args) > 1 else None
        if func is aten.cat.default:
            return self._joined(x) if y in (-1, x[0].dim() - 1) else None
        kind = OPERATIONS.get(func)
        if kind in ("scale", "divide"):
            if isinstance(y, torch.Tensor) and (y.dim() or _touches(y, self.made)):
                return None
            return self._simple(kind, x, number=float(y))
        if kind is None or (y is not None and (x.shape != getattr(y, "shape", None))):
            return None
        if func is aten.add_.Tensor:
            return self._simple(kind, x, y, out=x) if _touches(x, self.made) else None
        return self._simple(kind, x, y)

    def _simple(self, kind: str, x, y=None, number: float = 0.0, out=None) -> torch.Tensor | None:
        given = [z for z in (x, y) if z is not None]
        if x.numel() % self.members or not all(_is_plain(z) and z.is_contiguous() for z in given):
            return None
        out = self._noted(torch.empty_like(x)) if out is None else out
        simple(SIMPLE[kind], x, y, number, out)
        return out

    def _joined(self, tensors) -> torch.Tensor | None:
        """Tensors of the same shape [S, H, T, d], one after another in their last axis."""
        alike = all(_is_plain(x) and x.shape == tensors[0].shape for x in tensors)
        if not alike or tensors[0].dim() != 4 or len(tensors[0]) % self.members:
            return None
        strings, heads, length, width = tensors[0].shape
        out = torch.empty(strings, length, heads, width * len(tensors))
        return join(tensors, self._noted(out))


def _is_plain(x: torch.Tensor) -> bool:
    """Whether kernels can read it: rows of float32."""
    return x.dtype == torch.float32 and x.stride(-1) == 1


def _touches(x, memories: Container[int]) -> bool:
    """Whether an argument of an operation is, or holds, a tensor in one of some memories."""
    if isinstance(x, torch.Tensor):
        return _memory(x) in memories
    return isinstance(x, list | tuple) and any(_touches(item, memories) for item in x)


def _memory(x: torch.Tensor) -> int:
    return x.untyped_storage().data_ptr()


@njit(parallel=True, nogil=True, cache=True, error_model="numpy")
@kept_while_equal
def _work_off(members, calls, count, room, given, room_step, given_step, memory_step):
    """Do all calls for a member, each with all its tasks, and then those for the next member."""
    for member in prange(members):
        thread = np.int64(get_thread_id())
        own_room, own_given = room + thread * room_step, given + thread * given_step
        for call in range(calls, calls + 48 * count, 48):
            function, tasks, size, integers, steps, numbers = integers_at(call, 6)
            for at in range(0, 8 * size, 8):
                number, step = load_integer(integers + at), load_integer(steps + at)
                if step != 0:
                    # A kernel will add `step` for every member before this one.
                    number += thread * memory_step - member * step
                store_integer(own_given + at, number)
            for task in range(member * tasks, (member + 1) * tasks):
                call_task(function, np.int64(task), own_room, own_given, numbers)


# Memory


@lru_cache
def _places(lives: tuple[tuple[int, int, int], ...]) -> tuple[list[int], int]:
    """Places of tensors of so many bytes, needed from one call to another; the bytes of all.

    A tensor takes the smallest gap that is large enough.
    """
    taken: list[tuple[int, int, int]] = []  # place, end and last call
    places, size = [], 0
    for count, first, last in lives:
        count = -(-count // CACHE_LINE) * CACHE_LINE
        taken = sorted(item for item in taken if item[2] >= first)
        ends, begins = [0, *(end for _, end, _ in taken)], [place for place, _, _ in taken]
        gaps = [
            (begin - end, end)
            for end, begin in zip(ends, [*begins, ends[-1] + size + count], strict=True)
        ]
        place = min((gap for gap in gaps if gap[0] >= count), default=gaps[-1])[1]
        taken.append((place, place + count, last))
        places.append(place)
        size = max(size, place + count)
    return places, size


_pieces: list[mmap.mmap] = []


def _shared_memory(size: int) -> int:
    """The address of memory that lasts as long as the process, in large pages if there are any."""
    if not _pieces or len(_pieces[0]) < size + HUGE_PAGE:
        # Programs keep older, smaller pieces: with some room to grow, there are few.
        _pieces[:] = [mmap.mmap(-1, size + size // 2 + HUGE_PAGE)]
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel may be built without them
                _pieces[0].madvise(mmap.MADV_HUGEPAGE)
    address = np.frombuffer(_pieces[0], dtype=np.uint8).ctypes.data
    return -(-address // HUGE_PAGE) * HUGE_PAGE
