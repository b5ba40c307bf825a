"""Jobs, the events they send, and how both cross a pipe: one JSON object per line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lamaml import errors
from lamaml._records import FLAT, from_json, to_json
from lamaml.errors import LamamlError
from lamaml.experiments.storing.records import RunSettings, SeedStatus


@dataclass(frozen=True)
class Job:
    """One seed of a run. With a checkpoint in its folder the job continues from there.

    Attributes:
      settings: of the run.
      seed: one of the run's seeds.
      folder: the seed's folder.
      is_exclusive: whether the process locks the seed, because it has not inherited the lock of
        the run.
    """

    settings: RunSettings
    seed: int
    folder: Path
    is_exclusive: bool = False

    def to_line(self) -> str:
        """The job as a line of JSON."""
        return json.dumps(to_json(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> "Job":
        """Read what `to_line` returned."""
        return from_json(cls, json.loads(line))


@dataclass(frozen=True)
class Ready:
    """The stream is built and the last checkpoint read."""

    num_tasks: int
    num_updates: int  # of the whole job
    updates: int  # already made
    pid: int


@dataclass(frozen=True)
class Progress:
    """Updates were made."""

    task: int  # the task that the next update belongs to, from 0
    updates: int  # made so far
    retained: float | None  # mean accuracy over the tasks finished so far; None before the first


@dataclass(frozen=True)
class Note:
    """A message for the user."""

    message: str


@dataclass(frozen=True)
class Ended:
    """The job has ended; its status is in its folder."""

    status: SeedStatus = field(metadata=FLAT)


@dataclass(frozen=True)
class Refused:
    """The job's settings, data, checkpoint or disk were refused, as they would be for every job."""

    error: LamamlError

    def to_json(self) -> dict[str, str]:
        """The error's class, or the nearest that this package knows, and its message."""
        known = next(kind for kind in type(self.error).__mro__ if kind.__name__ in _ERRORS)
        return {"error": known.__name__, "message": str(self.error)}

    @classmethod
    def from_json(cls, value: Mapping[str, str]) -> "Refused":
        """Read what `to_json` returned."""
        return cls(_ERRORS[value["error"]](value["message"]))


Event = Ready | Progress | Note | Ended
"""What a job tells the process that started it."""

_EVENTS: dict[str, Any] = {kind.__name__: kind for kind in (Ready, Progress, Note, Ended, Refused)}
_ERRORS = {
    kind.__name__: kind
    for kind in (
        LamamlError,
        errors.InvalidArgument,
        errors.DataUnavailable,
        errors.DataCorrupt,
        errors.Unwritable,
        errors.InUse,
        errors.Forked,
        errors.Mismatch,
    )
}


def event_to_line(event: Event | Refused) -> str:
    """An event as a line of JSON."""
    return json.dumps({"event": type(event).__name__, **to_json(event)}) + "\n"


def event_from_line(line: str) -> Event | Refused:
    """Read what `event_to_line` returned."""
    value = json.loads(line)
    event: Event | Refused = from_json(_EVENTS[value["event"]], value)
    return event
