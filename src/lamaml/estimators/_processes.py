"""Compiled programs do not survive a fork: their threads stay behind, and a call waits for ever."""

import functools
import os

from lamaml.errors import Forked


def check_process() -> None:
    """Refuse to work in a child that was forked from a process which had worked already."""
    if _first_process() != os.getpid():
        raise Forked(
            "this process was forked from one that has used an estimator, and would wait for ever: "
            "start processes with multiprocessing.get_context('spawn'), or with joblib"
        )


@functools.cache
def _first_process() -> int:
    """The process that asked first; a forked child remembers its parent."""
    return os.getpid()
