"""The background learner: takes what has arrived, learns it, and swaps in the next version."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from lamaml.errors import Unwritable
from lamaml.estimators import LaMAMLClassifier
from lamaml.serving.answers import Question, answer
from lamaml.serving.entries import Entry, end_batch
from lamaml.serving.journal import Journal
from lamaml.serving.learning import Version, next_version
from lamaml.serving.versions import VersionStore

_LOG = logging.getLogger("lamaml.serving")
_FULL_BATCH = 10  # rows per update of the estimators: fewer cost as much
_RETRY_SECONDS = 1.0

Listener = Callable[[Version, Sequence[Entry], float], None]
"""Called by the learner after each batch: the version, its entries, and the seconds it took."""


class Learner:
    """One thread that learns from the journal's entries.

    Args:
      version: to start from.
      journal: in which the ends of batches are written down.
      store: of versions.
      batch_rows: most rows in a batch.
      batch_delay: seconds to wait for more rows than a few.
      snapshot_rows: number of rows after which a version is stored.
      snapshot_seconds: time after which it is, if there are new rows.
      on_batch: called after each batch, when readers see its version.
    """

    def __init__(
        self,
        version: Version,
        journal: Journal,
        store: VersionStore,
        *,
        batch_rows: int,
        batch_delay: float,
        snapshot_rows: int,
        snapshot_seconds: float,
        on_batch: Listener,
    ) -> None:
        self.version = version  # readers take it in one step
        self.failure: BaseException | None = None
        self.rows_per_second = 0.0
        self.backlog_rows = 0
        self._journal, self._store, self._on_batch = journal, store, on_batch
        self._batch_rows, self._batch_delay = batch_rows, batch_delay
        self._snapshot_rows, self._snapshot_seconds = snapshot_rows, snapshot_seconds
        self._backlog: deque[Entry] = deque()
        self._changed = threading.Condition()
        self._is_stopping = False
        self._snapshot_reason: str | None = None
        stored = store.list()  # older than the version, if batches were learned again
        self._stored = stored[-1].number if stored else 0
        self._stored_rows = stored[-1].monitor.rows_learned if stored else 0
        self._stored_time = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="lamaml-learner", daemon=True)

    def start(self) -> None:
        """Begin to learn."""
        self._thread.start()

    def add(self, entries: Sequence[Entry]) -> None:
        """Append entries that are in the journal."""
        with self._changed:
            self._backlog.extend(entries)
            self.backlog_rows += sum(entry.num_rows for entry in entries)
            self._changed.notify_all()

    def request_snapshot(self, reason: str) -> None:
        """Have the version stored after the current batch."""
        with self._changed:
            self._snapshot_reason = reason
            self._changed.notify_all()

    def wait_for_snapshot(self) -> None:
        """Wait until a version that was requested is stored."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._snapshot_reason is None or not self._thread.is_alive()
            )

    def wait_for(self, entry: int, timeout: float | None) -> bool:
        """Wait until an entry was learned; return False after `timeout` seconds.

        Raises:
          RuntimeError: the learner has stopped.
        """

        def is_over() -> bool:
            return self.version.last_entry >= entry or not self._thread.is_alive()

        with self._changed:
            self._changed.wait_for(is_over, timeout)
        if self.version.last_entry < entry and not self._thread.is_alive():
            raise RuntimeError("the learner has stopped") from self.failure
        return self.version.last_entry >= entry

    def stop(self) -> None:
        """Finish the current batch, store its version, and end the thread."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        try:
            while entries := self._next_batch():
                self._learn(entries)
            if self.failure is None:
                self._store_version("stopped")
        except Exception as error:  # noqa: BLE001  (predictions go on; `failure` says why)
            _LOG.exception("the learner has stopped")
            self.failure = error
        with self._changed:
            self._changed.notify_all()

    def _next_batch(self) -> list[Entry]:
        """Return the next entries; waits for them. Empty when the service stops."""
        while True:
            with self._changed:
                self._changed.wait_for(self._has_work, self._seconds_to_snapshot())
                if self._backlog and not self._is_stopping:
                    self._changed.wait_for(self._is_full, self._batch_delay)
                if self._is_stopping:
                    return []
                if self._backlog:
                    return self._take()
            # Without the lock: storing waits for the journal's thread, which adds entries.
            self._store_if_due()

    def _has_work(self) -> bool:
        return bool(self._backlog) or self._is_stopping or self._snapshot_reason is not None

    def _is_full(self) -> bool:
        return self.backlog_rows >= _FULL_BATCH or self._is_stopping

    def _take(self) -> list[Entry]:
        """Return the first entry, and those after it that fit into a batch; a rollback alone."""
        taken = [self._backlog.popleft()]
        num_rows = taken[0].num_rows
        while self._backlog and taken[0].rollback_to is None:
            entry = self._backlog[0]
            if entry.rollback_to is not None or num_rows + entry.num_rows > self._batch_rows:
                break
            num_rows += entry.num_rows
            taken.append(self._backlog.popleft())
        return taken

    def _learn(self, entries: list[Entry]) -> None:
        clock = time.perf_counter()
        number, last = self.version.number + 1, entries[-1].number
        written = self._journal.submit(end_batch(number, last))  # while the batch is learned
        version = next_version(self.version, entries, self._store.load_model)
        _compile_for_readers(self.version, version, entries)
        while True:
            try:
                written.result()
                break
            except Unwritable as error:
                _LOG.warning("%s: trying again", error)
                time.sleep(_RETRY_SECONDS)
                written = self._journal.submit(end_batch(number, last))
        seconds, num_rows = time.perf_counter() - clock, sum(e.num_rows for e in entries)
        if num_rows:
            rate = num_rows / seconds
            self.rows_per_second += 0.2 * (rate - self.rows_per_second)
        with self._changed:
            self.version = version
            self.backlog_rows -= num_rows
            self._changed.notify_all()
        self._on_batch(version, entries, seconds)
        if entries[0].rollback_to is not None:
            self._store_version("rollback")
        else:
            self._store_if_due()

    def _seconds_to_snapshot(self) -> float | None:
        if self.version.number == self._stored:
            return None
        return max(self._stored_time + self._snapshot_seconds - time.monotonic(), 0.0)

    def _store_if_due(self) -> None:
        num_rows = self.version.monitor.rows_learned - self._stored_rows
        seconds = time.monotonic() - self._stored_time
        if self._snapshot_reason is not None:
            self._store_version(self._snapshot_reason)
        elif num_rows >= self._snapshot_rows or seconds >= self._snapshot_seconds:
            self._store_version("scheduled")

    def _store_version(self, reason: str) -> None:
        self._stored_time = time.monotonic()
        if self.version.number != self._stored and self.version.is_fitted:
            try:
                self._store.save(self.version, reason, time.time())
                self._stored = self.version.number
                self._stored_rows = self.version.monitor.rows_learned
            except OSError as error:  # the journal has everything: the next one may succeed
                _LOG.warning("version %d was not stored (%s)", self.version.number, error)
        with self._changed:
            self._snapshot_reason = None
            self._changed.notify_all()


def _compile_for_readers(before: Version, after: Version, entries: Sequence[Entry]) -> None:
    """Compile the prediction of a model whose programs may differ, before readers meet it."""
    if not after.is_fitted or not entries[0].num_rows:
        return
    if not before.is_fitted or _num_classes(before) != _num_classes(after):
        answer(after, [Question(entries[0].x[:1], "", keep=False)])


def _num_classes(version: Version) -> int:
    model = version.model
    return len(model.classes_) if isinstance(model, LaMAMLClassifier) else 0
