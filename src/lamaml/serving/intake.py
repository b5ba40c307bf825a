"""The way into the journal: checks, the limit of the queue, and receipts."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from lamaml.errors import require
from lamaml.serving.admission import Admission
from lamaml.serving.config import Settings
from lamaml.serving.entries import Entry, LateLabels, NewRows, last_entry, new_rollback
from lamaml.serving.errors import QueueFull
from lamaml.serving.journal import Journal, Operation
from lamaml.serving.learner import Learner

MAX_ID = 200
"""Most characters of a request_id or a key."""


@dataclass(frozen=True)
class Receipt:
    """What was accepted and is on disk.

    Attributes:
      rows: number of rows; 0 if the request was a repetition.
      entry: number of the last entry of the journal by now; all of them are learned in order.
    """

    rows: int
    entry: int


class Intake:
    """Writes what is accepted to the journal, and hands it to the learner in the same order."""

    def __init__(
        self,
        admission: Admission,
        journal: Journal,
        learner: Learner,
        settings: Settings,
        clock: Callable[[], float],
    ) -> None:
        self.admission = admission
        self._journal, self._learner, self._settings = journal, learner, settings
        self._clock = clock
        self._admitting, self._counting = threading.Lock(), threading.Lock()
        self._rows_in_flight = 0  # accepted, not yet on disk

    @property
    def backlog(self) -> int:
        """Number of rows that are accepted and not yet learned."""
        return self._learner.backlog_rows + self._rows_in_flight

    def rows(
        self, rows: Any, labels: Any, key: str | None, position: tuple[str, str] | None
    ) -> "Future[Receipt]":
        """Accept rows with labels; see `Service.submit_rows`."""
        is_key = key is None or (isinstance(key, str) and 0 < len(key) <= MAX_ID)
        require(is_key, "key", key, f"a string of 1 to {MAX_ID} characters")
        with self._admitting:
            self._check_queue(len(rows) if hasattr(rows, "__len__") else 1)
            x, labels, schema = self.admission.rows(rows, labels)
            size = self._settings.batch_rows
            starts = range(0, len(x), size)
            pieces = [(x[start : start + size], labels[start : start + size]) for start in starts]
            new = NewRows(pieces, self._clock(), schema, key, position)
            return self._submit(new, len(x))

    def labels(self, request_id: str, labels: Any) -> "Future[Receipt]":
        """Accept the labels of an earlier prediction."""
        require(isinstance(request_id, str), "request_id", request_id, "a string")
        with self._admitting:
            found, schema = self.admission.labels(labels)
            self._check_queue(len(found))
            ttl = self._settings.label_ttl
            late = LateLabels(request_id, found, self._clock(), ttl, schema)
            return self._submit(late, len(found))

    def rollback(self, version: int) -> "Future[Receipt]":
        """Accept a rollback."""
        return self._submit(new_rollback(version, self._clock()), 0)

    def _check_queue(self, num_rows: int) -> None:
        failure, most = self._learner.failure, self._settings.queue_rows
        if failure is not None:
            raise QueueFull(f"the learner has stopped ({failure}): restart the service", 60.0)
        require(num_rows <= most, "number of rows", num_rows, f"at most {most} (queue_rows)")
        waiting = self.backlog
        if waiting + num_rows > most:
            rate = max(self._learner.rows_per_second, 1.0)
            seconds = min((waiting + num_rows - most) / rate, 60.0)
            raise QueueFull(f"{waiting} rows wait to be learned, at most {most} may", seconds)

    def _submit(self, operation: Operation[list[Entry]], num_rows: int) -> "Future[Receipt]":
        receipt: Future[Receipt] = Future()
        with self._counting:
            self._rows_in_flight += num_rows

        def on_commit(written: "Future[tuple[list[Entry], int]]") -> None:
            error = written.exception()
            if error is None:
                self._learner.add(written.result()[0])
            with self._counting:
                self._rows_in_flight -= num_rows
            if error is not None:
                receipt.set_exception(error)
            else:
                entries, last = written.result()
                receipt.set_result(Receipt(sum(entry.num_rows for entry in entries), last))

        self._journal.submit(lambda c: (operation(c), last_entry(c)), on_commit=on_commit)
        return receipt
