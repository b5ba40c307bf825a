"""Finds and kills the processes that a process has started."""

import contextlib
import time

import psutil


def children(pid: int) -> list[psutil.Process]:
    """Returns the processes that a process has started, and those that they have started."""
    return psutil.Process(pid).children(recursive=True)


def is_alive(process: psutil.Process) -> bool:
    """Returns whether it still runs; one that only waits for its parent to notice does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill_all(pid: int) -> None:
    """Kills a process and its children, and returns when none of them runs."""
    family = [psutil.Process(pid), *children(pid)]
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    deadline = time.monotonic() + 30
    while any(map(is_alive, family)):
        assert time.monotonic() < deadline, family
        time.sleep(0.01)
