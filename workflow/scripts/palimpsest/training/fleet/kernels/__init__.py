"""The operations of stacked models, compiled for the CPU: as `operations`, but fast.

tests/training/test_fleet_kernels.py holds every function to that of the same name in `operations`.

Every tensor of parameters has the members first (M); activations are [M, N, D], where N counts the
tokens of all strings of a member's batch. Everything is float32. A member's result is the same to
the bit whatever its neighbours are and however many threads share the work: each number is computed
by one thread, in an order that depends on the shapes of one member alone.

The kernels are written in numba on vectors of as many numbers as a register of this machine holds
(`vector`, `simd`), so that nothing depends on what the compiler manages to vectorise by itself;
only AdamW, whose loop is long and simple, is left to the compiler. They take addresses, and
distances ("steps", "rows") in bytes, instead of arrays: numba then has nothing to unpack and no
references to count. Compiling is what would take long, so a kernel does one task of many, all
kernels share one loop over tasks in threads, and what several of them use is compiled once
(`tasks`); numba keeps all of it on disk.
"""

from palimpsest.training.fleet.kernels.attention import apply_rotary, attention
from palimpsest.training.fleet.kernels.feed_forward import feed_forward, gated_feed_forward
from palimpsest.training.fleet.kernels.pointwise import (
    activate,
    adamw_,
    copy_,
    embedding,
    flat,
    gated,
    layer_norm,
    rms_norm,
    token_nll,
)
from palimpsest.training.fleet.kernels.products import linear
from palimpsest.training.fleet.kernels.queue import member_by_member
from palimpsest.training.fleet.kernels.vector import WIDE

__all__ = [
    "WIDE",
    "activate",
    "adamw_",
    "apply_rotary",
    "attention",
    "copy_",
    "embedding",
    "feed_forward",
    "flat",
    "gated",
    "gated_feed_forward",
    "layer_norm",
    "linear",
    "member_by_member",
    "rms_norm",
    "token_nll",
]
