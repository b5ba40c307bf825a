"""One command at a time on a run folder.

The kernel keeps the lock, and the processes that compute hold it together with the command that
started them: it is free once the last of them is gone, however they went. What the file says is for
people. Windows has no such lock: there two commands are not kept apart.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from lamaml._io import writing
from lamaml.errors import InUse

if sys.platform != "win32":
    import fcntl

NAME = "lock"
PATIENCE = 30.0  # seconds, for processes whose command is gone


class Lock(NamedTuple):
    """A folder is ours."""

    descriptor: int  # whoever inherits it holds the lock as well
    taken_over: str  # from whom, who left without a word; or nothing


@contextmanager
def locked(folder: Path) -> Iterator[Lock]:
    """Keep other commands from a folder for the time of the block.

    Raises:
      InUse: another one works on it; says which, and for how long.
      Unwritable: the folder is.
    """
    path = folder / NAME
    with writing(path):
        descriptor = _acquire(path)
    try:
        before = _owner(path)
        mine = {"pid": os.getpid(), "host": socket.gethostname(), "started": time.time()}
        with writing(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(mine).encode(), 0)
        yield Lock(descriptor, _describe(before) if before else "")
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path) -> int:
    deadline = time.monotonic() + PATIENCE
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if _lock(descriptor):
            if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
            os.close(descriptor)  # its owner has removed it since: it keeps nobody out
            continue
        os.close(descriptor)
        owner = _owner(path)
        if _lives(owner) or time.monotonic() > deadline:
            raise InUse(f"{path.parent} is in use by {_describe(owner)}")
        time.sleep(0.1)  # its processes are writing their last checkpoints


def _lock(descriptor: int) -> bool:
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _owner(path: Path) -> dict[str, Any]:
    """What the file says; nothing where its owner has not written yet."""
    try:
        owner = json.loads(path.read_bytes())
        return {"pid": int(owner["pid"]), "host": str(owner["host"]), "started": owner["started"]}
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        return {}


def _lives(owner: dict[str, Any]) -> bool:
    if not owner or owner["host"] != socket.gethostname():
        return True  # as far as can be known here
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _describe(owner: dict[str, Any]) -> str:
    if not owner:
        return "a process that has just begun"
    minutes = max(0.0, time.time() - float(owner["started"])) / 60
    return f"process {owner['pid']} on {owner['host']}, which began {minutes:.1f} minutes ago"
