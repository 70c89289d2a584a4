"""Locks on files; the system releases a lock when the process that holds the lock ends."""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from palimpsest.errors import UserError

POLL_SECONDS = 0.5
# Error codes of a file system without locks.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class NoLocks(UserError):
    """The file system has no locks."""


class Lock:
    """An exclusive lock on a file, released by `release` or by the end of the process.

    A lock survives `exec`: a job that replaces itself by a launcher keeps its locks. Processes that
    are started in another way do not inherit the lock.
    """

    def __init__(self, path: Path, handle: int):
        self.path, self.handle, self.owner = path, handle, os.getpid()

    def release(self) -> None:
        """Release the lock, and delete the file if this user is allowed to.

        A forked child shares the lock. If the child calls this, the parent keeps the lock.
        """
        if os.getpid() == self.owner:
            with contextlib.suppress(OSError):
                self.path.unlink()
        os.close(self.handle)


def try_to_lock(path: str | Path) -> Lock | None:
    """The lock on a file, or None if another process holds the lock.

    Raises `UserError` if the file cannot be made, and `NoLocks` if the file system has no locks.
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
    """Wait for the lock on a file; calls `waiting` once if the lock is not free immediately."""
    lock = try_to_lock(path)
    if lock is None:
        waiting()
    while lock is None:
        time.sleep(POLL_SECONDS)
        lock = try_to_lock(path)
    return lock


def _opened(path: Path) -> int:
    """Open the file, or make it, so that all users can lock it.

    The file is opened for writing, because network file systems require this for a lock. It is
    first opened without O_CREAT: in a folder that all users share, some systems refuse O_CREAT for
    an existing file of another user.
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
    """Whether the locked file is still at the path; the last holder may have deleted the file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False
