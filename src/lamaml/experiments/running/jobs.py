"""Jobs, the events they send, and how both cross a pipe: one JSON object per line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamaml import errors
from lamaml._io import plain
from lamaml.errors import LamamlError
from lamaml.experiments.storing.records import RunSettings, SeedStatus


@dataclass(frozen=True)
class Job:
    """One seed of a run. With a checkpoint in its folder the job continues from there.

    Attributes:
      settings: of the run.
      seed: one of the run's seeds.
      folder: the seed's folder.
    """

    settings: RunSettings
    seed: int
    folder: Path

    def to_line(self) -> str:
        """The job as a line of JSON."""
        value = {"settings": self.settings.to_json(), "seed": self.seed, "folder": self.folder}
        return json.dumps(plain(value)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> "Job":
        """Read what `to_line` returned."""
        value = json.loads(line)
        settings = RunSettings.from_json(value["settings"])
        return cls(settings, value["seed"], Path(value["folder"]))


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

    status: SeedStatus


@dataclass(frozen=True)
class Refused:
    """The job's settings, data, checkpoint or disk were refused, as they would be for every job."""

    error: LamamlError


Event = Ready | Progress | Note | Ended
"""What a job tells the process that started it."""

_PLAIN = {kind.__name__: kind for kind in (Ready, Progress, Note)}
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
    return json.dumps({"event": type(event).__name__, **plain(_fields(event))}) + "\n"


def event_from_line(line: str) -> Event | Refused:
    """Read what `event_to_line` returned."""
    value = json.loads(line)
    kind = value.pop("event")
    if kind == "Ended":
        return Ended(SeedStatus.from_json(value))
    if kind == "Refused":
        return Refused(_ERRORS[value["error"]](value["message"]))
    event: Event = _PLAIN[kind](**value)
    return event


def _fields(event: Event | Refused) -> Mapping[str, Any]:
    if isinstance(event, Ended):
        return event.status.to_json()
    if isinstance(event, Refused):
        known = next(kind for kind in type(event.error).__mro__ if kind.__name__ in _ERRORS)
        return {"error": known.__name__, "message": str(event.error)}
    return vars(event)
