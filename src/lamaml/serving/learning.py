"""One batch: the next version is a function of this one and of the journal's entries."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from lamaml.errors import LamamlError
from lamaml.estimators import LaMAMLClassifier, LaMAMLRegressor
from lamaml.serving.entries import Entry
from lamaml.serving.monitor import Failure, Monitor

Estimator = LaMAMLClassifier | LaMAMLRegressor


@dataclass(frozen=True)
class Version:
    """The model after a number of batches; never changed, only followed by another.

    Attributes:
      number: of the last batch; 0 before the first.
      last_entry: number of the last entry that was learned or refused.
      model: nobody calls a method of it that learns.
      monitor: counts and scores so far.
    """

    number: int
    last_entry: int
    model: Estimator
    monitor: Monitor

    @cached_property
    def is_fitted(self) -> bool:
        """Whether it can predict."""
        return is_fitted(self.model)

    @cached_property
    def has_probabilities(self) -> bool:
        """Whether it has probabilities: not for targets, nor for learners such as iCaRL."""
        return hasattr(self.model, "predict_proba")


def is_fitted(model: Estimator) -> bool:
    """Return whether a model has learned anything."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def next_version(
    version: Version, entries: Sequence[Entry], load: Callable[[int], Estimator]
) -> Version:
    """Return the version after a batch.

    Args:
      version: the version before.
      entries: rows, or one rollback.
      load: returns the model of a stored version.
    """
    number, last = version.number + 1, entries[-1].number
    target = entries[0].rollback_to
    if target is not None:
        try:
            return Version(number, last, load(target), version.monitor.after_rollback())
        except LamamlError as error:  # its file is damaged
            failures = [Failure(last, 0, f"rollback to version {target}: {error}")]
            return Version(number, last, version.model, version.monitor.after_failures(failures))
    scores = _scores(version, entries)
    model, failures = _learn(version.model, entries)
    failed = {failure.entry for failure in failures}
    learned = [entry for entry in entries if entry.number not in failed]
    delays = [(entry.num_rows, entry.delay) for entry in learned if entry.delay is not None]
    found = [scores[entry.number] for entry in learned if entry.number in scores]
    monitor = version.monitor.after_rows(
        sum(entry.num_rows for entry in learned), np.concatenate([np.zeros(0), *found]), delays
    )
    return Version(number, last, model, monitor.after_failures(failures) if failures else monitor)


def _learn(model: Estimator, entries: Sequence[Entry]) -> tuple[Estimator, list[Failure]]:
    """Return a copy of the model that has learned the entries, and those that it could not."""
    try:
        return _fit(model, entries), []
    except (LamamlError, ValueError) as error:
        if len(entries) == 1:
            entry, reason = entries[0], str(error)[:300]
            return model, [Failure(entry.number, entry.num_rows, reason)]
    failures = []  # one entry must not cost the others of its batch
    for entry in entries:
        model, failed = _learn(model, [entry])
        failures += failed
    return model, failures


def _fit(model: Estimator, entries: Sequence[Entry]) -> Estimator:
    x = np.concatenate([entry.x for entry in entries])
    y = np.array([label for entry in entries for label in entry.labels])
    return copy.copy(model).partial_fit(x, y)


def _scores(version: Version, entries: Sequence[Entry]) -> dict[int, np.ndarray]:
    """Return the scores of each entry: of what was told then, or of a prediction made now."""
    told = {entry.number: entry.told for entry in entries if entry.told is not None}
    new = [entry for entry in entries if entry.told is None]
    if new and version.is_fitted:
        predictions = version.model.predict(np.concatenate([entry.x for entry in new])).tolist()
        for entry in new:
            told[entry.number] = predictions[: entry.num_rows]
            predictions = predictions[entry.num_rows :]
    is_regression = is_regressor(version.model)
    return {
        entry.number: score_labels(entry.labels, told[entry.number], is_regression)
        for entry in entries
        if entry.number in told
    }


def score_labels(
    labels: Sequence[object], told: Sequence[object], is_regression: bool
) -> np.ndarray:
    """Return 1 or 0 for each class, the absolute error for each target."""
    if is_regression:
        return np.abs(np.asarray(labels, float) - np.asarray(told, float))
    return np.array([label == answer for label, answer in zip(labels, told, strict=True)], float)
