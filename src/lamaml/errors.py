"""What can go wrong, as a tree a caller can catch at any height.

LamamlError
├── InvalidArgument (also a ValueError)   an argument's name, value and what is allowed
├── DataUnavailable (also an OSError)     a file is missing: which one, where it goes, its address
├── DataCorrupt (also an OSError)         a file is there, but not what it should be
├── Unwritable (also an OSError)          a disk is full, a folder read-only, a permission lost
├── InUse                                 another process works on this run folder
├── Forked (also a RuntimeError)          compiled programs cannot run in a forked process
├── ContractViolation (also an AssertionError)   a learner fails a check of `lamaml.testing`
├── Mismatch                              a checkpoint of other settings, versions or data
└── Diverged                              a loss, weight or rate is no longer a finite number
"""

import difflib
from collections.abc import Iterable


class LamamlError(Exception):
    """Anything this package raises on purpose."""


class InvalidArgument(LamamlError, ValueError):
    """An argument outside what is allowed."""


class DataUnavailable(LamamlError, OSError):
    """A data file is not there and cannot be fetched."""


class DataCorrupt(LamamlError, OSError):
    """A data file is truncated, altered or of another kind."""


class Unwritable(LamamlError, OSError):
    """A file cannot be written; what was there before it is intact."""


class InUse(LamamlError):
    """Another process works on the same folder."""


class Forked(LamamlError, RuntimeError):
    """This process was forked from one whose threads it would need."""


class Mismatch(LamamlError):
    """A checkpoint is whole, but of a run that differs from this one."""


class ContractViolation(LamamlError, AssertionError):
    """A learner does not do what every learner must.

    Attributes:
      check: the name of the check that failed.
    """

    def __init__(self, message: str, check: str) -> None:
        super().__init__(message)
        self.check = check


class Diverged(LamamlError):
    """Training left the finite numbers. A result of its own, recorded as such.

    Attributes:
      task: where it happened, counted from 1; None where there are no tasks.
      update: of that task, counted from 1.
    """

    def __init__(self, message: str, task: int | None = None, update: int | None = None) -> None:
        super().__init__(message)
        self.task, self.update = task, update


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InvalidArgument:
    """The error for a word that is not in a list, naming the nearest one that is.

    >>> raise unknown_name("learner", "lamaml", ["la_maml", "er"])
    Traceback (most recent call last):
    lamaml.errors.InvalidArgument: unknown learner 'lamaml': did you mean 'la_maml'? (er, la_maml)
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f" did you mean {near[0]!r}?" if near else ""
    return InvalidArgument(f"unknown {kind} {name!r}:{hint} ({', '.join(names)})")


def require(condition: bool, argument: str, value: object, allowed: str) -> None:
    """Raise InvalidArgument unless the condition holds.

    >>> require(3 > 0, "memory_size", 3, "at least 1")
    >>> require(False, "memory_size", 0, "at least 1")
    Traceback (most recent call last):
    lamaml.errors.InvalidArgument: memory_size = 0: must be at least 1
    """
    if not condition:
        raise InvalidArgument(f"{argument} = {value!r}: must be {allowed}")
