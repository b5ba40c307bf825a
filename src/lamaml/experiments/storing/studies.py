"""The records of a study: what `lamaml tune` searched, tried and found.

OUT/study.json          `Study`: the request, every trial, the best settings; rewritten at each end
OUT/study.db            Optuna's own storage, for its samplers and dashboards
OUT/tuned.toml          the best settings as a recipe file: `lamaml run OUT/tuned.toml LEARNER`
OUT/trials/NUMBER/      the run folder of each trial
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from lamaml._io import write_json
from lamaml._records import FLAT, SPARSE, to_json
from lamaml.errors import DataUnavailable
from lamaml.experiments.storing.records import RunSettings, read_record


class TrialState(StrEnum):
    """How a trial ended."""

    FINISHED = "finished"
    PRUNED = "pruned"
    DIVERGED = "diverged"
    FAILED = "failed"


@dataclass(frozen=True)
class Trial:
    """One point of the search.

    Attributes:
      number: counted from 0.
      settings: the searched ones, by name.
      state: how it ended.
      ra: retained accuracy on validation rows in percent, mean over seeds; None if unfinished.
      sd: its standard deviation over seeds; None with one.
      seconds: of compiling, training and evaluating, over all seeds; None if unfinished.
      message: why it failed.
    """

    number: int
    settings: Mapping[str, Any]
    state: TrialState
    ra: float | None = None
    sd: float | None = None
    seconds: float | None = None
    message: str | None = field(default=None, metadata=SPARSE)


@dataclass(frozen=True)
class Request:
    """What is searched, and on which rows. A study continues only for an equal request.

    Attributes:
      settings: of every trial, except for the searched ones.
      on: "prefix" or "validation".
      space: where each searched setting is looked for, in words: "[0.0001, 0.3]", "{1, 5}".
      start: the first trial.
    """

    settings: RunSettings = field(metadata=FLAT)
    on: str
    space: Mapping[str, str]
    start: Mapping[str, Any]


@dataclass(frozen=True)
class Study:
    """A search: its request, its trials so far, and what they show.

    Attributes:
      request: what is searched.
      trials: in order.
      importances: the share of each searched setting in the variance of RA; {} with few trials.
    """

    request: Request
    trials: Sequence[Trial]
    importances: Mapping[str, float]

    @property
    def best(self) -> Trial | None:
        """The finished trial with the highest accuracy; None if there is none."""
        finished = [trial for trial in self.trials if trial.state is TrialState.FINISHED]
        return max(finished, key=lambda trial: trial.ra or 0.0, default=None)

    @property
    def seconds(self) -> float:
        """Seconds spent in trials that finished."""
        return sum(trial.seconds or 0.0 for trial in self.trials)

    def write(self, folder: Path) -> None:
        """Write `study.json`."""
        write_json(folder / "study.json", to_json(self))


def read_study(folder: Path) -> Study:
    """The study in a folder.

    Raises:
      DataUnavailable: there is none.
      DataCorrupt: its file is damaged.
    """
    if not is_study(folder):
        raise DataUnavailable(f"{folder} is not the folder of a study: it has no study.json")
    return read_record(folder / "study.json", Study)


def is_study(folder: Path) -> bool:
    """Whether a folder is that of a study."""
    return (folder / "study.json").is_file()
