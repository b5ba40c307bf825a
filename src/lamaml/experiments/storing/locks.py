"""Locks on run folders: one command at a time.

The kernel keeps the lock. Worker processes inherit it from the command that started them, so it is
free only when the last of them has exited, however that happened. The content of the file is for
people.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lamaml._io import writing
from lamaml._records import from_json, to_json
from lamaml.errors import InUse

NAME = "lock"
PATIENCE = 30.0  # seconds, for worker processes that write their last checkpoints


class Lock(NamedTuple):
    """A lock that this process holds."""

    descriptor: int  # a process that inherits it holds the lock as well
    taken_over: str  # the previous owner if it did not release the lock, else ""


class _Owner(NamedTuple):
    """What a lock file says."""

    pid: int
    host: str
    started: float

    @property
    def alive(self) -> bool:
        """Whether the process may still run; unknown on another host."""
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True

    def __str__(self) -> str:
        minutes = max(0.0, time.time() - self.started) / 60
        return f"process {self.pid} on {self.host}, which began {minutes:.1f} minutes ago"


@contextmanager
def locked(folder: Path, name: str = NAME, *, wait_for_anyone: bool = False) -> Iterator[Lock]:
    """Keep other commands out of a folder for the time of the block.

    Args:
      folder: must exist.
      name: of the lock's file in it.
      wait_for_anyone: wait a while even if the owner still runs, or may run on another machine.

    Raises:
      InUse: another command works on it; the message says which, and since when.
      Unwritable: the folder is not writable.
    """
    path = folder / name
    with writing(path):
        descriptor = _acquire(path, wait_for_anyone)
    try:
        before = _owner(path)
        mine = _Owner(os.getpid(), socket.gethostname(), time.time())
        with writing(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(to_json(mine)).encode(), 0)
        yield Lock(descriptor, str(before or ""))
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path, wait_for_anyone: bool) -> int:
    deadline = time.monotonic() + PATIENCE
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if _lock(descriptor):
            if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
            os.close(descriptor)  # its owner has removed the file since: it locks nothing
            continue
        os.close(descriptor)
        owner = _owner(path)
        may_run = not wait_for_anyone and (owner is None or owner.alive)
        if may_run or time.monotonic() > deadline:
            raise InUse(f"{path.parent} is in use by {owner or 'a process that has just begun'}")
        time.sleep(0.1)  # its workers are writing their last checkpoints


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _owner(path: Path) -> _Owner | None:
    """The owner according to the file; None if it has not been written yet."""
    try:
        return from_json(_Owner, json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError):
        return None
