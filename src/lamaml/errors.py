"""The exceptions of this package, as a tree.

LamamlError
├── InvalidArgument (also a ValueError)   names the argument, its value and the allowed range
├── DataUnavailable (also an OSError)     a file is missing: which one, where it goes, its address
├── DataCorrupt (also an OSError)         a file exists but is not what it should be
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
    """Base class of all exceptions of this package."""


class InvalidArgument(LamamlError, ValueError):
    """An argument is outside its allowed range."""


class DataUnavailable(LamamlError, OSError):
    """A data file is missing and cannot be downloaded."""


class DataCorrupt(LamamlError, OSError):
    """A data file is truncated, altered or of another format."""


class Unwritable(LamamlError, OSError):
    """A file cannot be written; its previous version is intact."""


class InUse(LamamlError):
    """Another process is working on the same folder."""


class Forked(LamamlError, RuntimeError):
    """This process was forked from one with compiled programs, whose threads it lacks."""


class Mismatch(LamamlError):
    """A checkpoint belongs to a run with other settings, versions or data."""


class ContractViolation(LamamlError, AssertionError):
    """A learner does not do what every learner must.

    Attributes:
      check: the name of the check that failed.
    """

    def __init__(self, message: str, check: str) -> None:
        super().__init__(message)
        self.check = check


class Diverged(LamamlError):
    """Training diverged: a loss, weight or rate is not finite. Runs record it as their result.

    Attributes:
      task: the number of the task, from 1; None where there are no tasks.
      update: the number of the update within the task, from 1.
    """

    def __init__(self, message: str, task: int | None = None, update: int | None = None) -> None:
        super().__init__(message)
        self.task, self.update = task, update


def unknown_name(kind: str, name: str, known: Iterable[str], of: str = "") -> InvalidArgument:
    """Return the error for an unknown name, with the nearest known one.

    Args:
      kind: what the name should name.
      name: as it was given.
      known: the names there are.
      of: what has these names, "" where `kind` says it all.

    Examples:
      >>> raise unknown_name("learner", "lamaml", ["la_maml", "er"])
      Traceback (most recent call last):
      lamaml.errors.InvalidArgument: unknown learner 'lamaml': did you mean 'la_maml'? (er, la_maml)
      >>> raise unknown_name("setting", "width", ["memory_size"], of="er")
      Traceback (most recent call last):
      lamaml.errors.InvalidArgument: unknown setting 'width' of er: must be one of memory_size
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    there_are = ", ".join(names)
    hint = f"did you mean {near[0]!r}? ({there_are})" if near else f"must be one of {there_are}"
    return InvalidArgument(f"unknown {kind} {name!r}{f' of {of}' if of else ''}: {hint}")


def require(condition: bool, argument: str, value: object, allowed: str) -> None:
    """Raise InvalidArgument unless the condition holds.

    Examples:
      >>> require(3 > 0, "memory_size", 3, "at least 1")
      >>> require(False, "memory_size", 0, "at least 1")
      Traceback (most recent call last):
      lamaml.errors.InvalidArgument: memory_size = 0: must be at least 1
    """
    if not condition:
        raise InvalidArgument(f"{argument} = {value!r}: must be {allowed}")
