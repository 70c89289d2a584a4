"""Locks on files: held as long as a process lives, and given back by the system when it dies."""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from palimpsest.errors import UserError

POLL_SECONDS = 0.5
# What a file system without locks answers.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class NoLocks(UserError):
    """The file system has no locks."""


class Lock:
    """An exclusive lock on a file, released by `release` or by the end of the process.

    It survives `exec`, so that a job that replaces itself by a launcher keeps what it holds;
    processes that are started otherwise do not inherit it.
    """

    def __init__(self, path: Path, handle: int):
        self.path, self.handle, self.owner = path, handle, os.getpid()

    def release(self) -> None:
        """Let others have it; the file is taken away, if it is this user's.

        In a forked child, which shares the lock, it stays with the process that took it.
        """
        if os.getpid() == self.owner:
            with contextlib.suppress(OSError):
                self.path.unlink()
        os.close(self.handle)


def try_to_lock(path: str | Path) -> Lock | None:
    """The lock on a file, or None while another process has it.

    Raises `UserError` where the file cannot be made, and `NoLocks` where the file system has none.
    """
    path = Path(path)
    handle = None
    try:
        while True:
            handle = _opened(path)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, handle):
                os.set_inheritable(handle, True)
                return Lock(path, handle)
            os.close(handle)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError as error:
        kind = NoLocks if error.errno in NO_LOCKS else UserError
        raise kind(f"{path}: cannot be locked: {error.strerror}") from None


def wait_for(path: str | Path, waiting: Callable[[], None]) -> Lock:
    """The lock on a file, once it is free; `waiting` is called when it is not free at once."""
    lock = try_to_lock(path)
    if lock is None:
        waiting()
    while lock is None:
        time.sleep(POLL_SECONDS)
        lock = try_to_lock(path)
    return lock


def _opened(path: Path) -> int:
    """The file, made if it is not there, for all users to lock.

    Opened for writing, which network file systems want before they lock. Systems that protect
    files in folders shared by all refuse to make a file that is there already.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        with contextlib.suppress(OSError):
            os.fchmod(handle, 0o666)
        return handle


def _is_still(path: Path, handle: int) -> bool:
    """Whether the locked file is the one at the path: its last holder may have taken it away."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False
