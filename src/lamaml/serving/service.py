"""The service: a model that answers while it learns, in one process and one folder."""

import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

import numpy as np
from filelock import FileLock, Timeout
from sklearn.base import is_regressor

from lamaml._io import writing
from lamaml.errors import InUse, InvalidArgument, require
from lamaml.estimators import Report
from lamaml.serving.admission import Admission
from lamaml.serving.answers import Answer, Question, answer
from lamaml.serving.config import Settings
from lamaml.serving.entries import forget_old, keep_predictions, last_entry
from lamaml.serving.errors import NotReady
from lamaml.serving.intake import MAX_ID, Intake, Receipt
from lamaml.serving.journal import Journal
from lamaml.serving.learner import Learner, Listener
from lamaml.serving.learning import Estimator, Version
from lamaml.serving.recovery import open_versions, recover
from lamaml.serving.rows import Schema, read_rows
from lamaml.serving.versions import StoredVersion

_FORGET_EVERY = 10.0  # seconds


class Service:
    """A model that answers while it learns.

    Rows are in a journal on disk before `learn` returns; one background thread learns them.
    `predict` answers from the latest version and never waits for learning. After a crash, opening
    the folder again restores the state to the bit. All methods may be called from any thread.

    Args:
      folder: of the journal and the versions, created if it does not exist.
      estimator: a `LaMAMLClassifier` or `LaMAMLRegressor` that is not fitted; it is not changed.
        None for the folder's own, or for a classifier in a new folder.
      settings: see `Settings`.
      on_batch: called by the learner after each batch.

    Raises:
      InUse: another service has the folder open.
      Mismatch: the folder was created with another estimator.

    Example:
      >>> import tempfile
      >>> import numpy as np
      >>> from lamaml import LaMAMLClassifier
      >>> x, y = np.eye(2)[np.arange(80) % 2], np.array(["no", "yes"] * 40)
      >>> folder = tempfile.TemporaryDirectory()
      >>> with Service(folder.name, LaMAMLClassifier("er", hidden_sizes=(8,))) as service:
      ...     receipt = service.learn(x, y)
      ...     _ = service.wait(receipt)
      ...     service.predict([[0, 1]]).predictions
      ['yes']
      >>> folder.cleanup()
    """

    def __init__(
        self,
        folder: str | Path,
        estimator: Estimator | None = None,
        settings: Settings | None = None,
        *,
        on_batch: Listener = lambda version, entries, seconds: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder, self.settings, self._clock = Path(folder), settings or Settings(), clock
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.folder / ".lock")
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise InUse(f"{self.folder}: another service has it open") from None
        self._journal: Journal | None = None
        try:
            self._journal = Journal(self.folder / "journal.db")
            self._open(estimator, on_batch)
        except BaseException:
            if self._journal is not None:
                self._journal.close()
            self._lock.release()
            raise

    def _open(self, estimator: Estimator | None, on_batch: Listener) -> None:
        settings = self.settings
        self._store = open_versions(self.folder, self.journal, estimator, settings)
        recovered = recover(self.journal, self._store)
        is_regression = bool(is_regressor(recovered.version.model))
        admission = Admission(recovered.schema, recovered.classes, is_regression, settings)
        self._last_forgotten = self._clock()
        self._reports: tuple[int, Report] | None = None
        self._learner = Learner(
            recovered.version,
            self.journal,
            self._store,
            batch_rows=settings.batch_rows,
            batch_delay=settings.batch_delay,
            snapshot_rows=settings.snapshot_rows,
            snapshot_seconds=settings.snapshot_seconds,
            on_batch=on_batch,
        )
        self._intake = Intake(admission, self.journal, self._learner, settings, self._clock)
        self._learner.add(recovered.entries)
        self._learner.start()
        if recovered.schema is not None and self.version.is_fitted:
            self.predict(np.zeros((1, *recovered.schema.row_shape)), keep=False)  # compiles

    @property
    def journal(self) -> Journal:
        """The journal, open."""
        if self._journal is None:
            raise InvalidArgument(f"the service of {self.folder} is closed")
        return self._journal

    @property
    def version(self) -> Version:
        """The latest version, which answers predictions."""
        return self._learner.version

    @property
    def schema(self) -> Schema | None:
        """What all rows have in common; None before the first rows."""
        return self._intake.admission.schema

    @property
    def backlog(self) -> int:
        """Number of rows that are accepted and not yet learned."""
        return self._intake.backlog

    @property
    def rows_per_second(self) -> float:
        """Rate of learning, a running mean over batches."""
        return self._learner.rows_per_second

    @property
    def failure(self) -> BaseException | None:
        """Why the learner has stopped; None while it works."""
        return self._learner.failure

    @property
    def is_regression(self) -> bool:
        """Whether labels are numbers to be predicted."""
        return self._intake.admission.is_regression

    def predict(self, rows: Any, request_id: str | None = None, *, keep: bool = True) -> Answer:
        """Return the predictions of the latest version.

        Args:
          rows: see `rows.read_rows`.
          request_id: identifies the prediction when its label comes; None for a new one.
          keep: whether a label may come.

        Raises:
          NotReady: nothing has been learned yet.
          BadRows: a row is not numeric or finite, or of another shape.
        """
        return self.answer([self.ask(rows, request_id, keep=keep)])[0]

    def ask(self, rows: Any, request_id: str | None = None, *, keep: bool = True) -> Question:
        """Check what `predict` is given; `answer` answers many such questions at once."""
        if not self.version.is_fitted:
            raise NotReady("nothing has been learned yet: post rows with labels to learn first")
        if request_id is None:
            request_id = uuid.uuid4().hex
        is_id = isinstance(request_id, str) and 0 < len(request_id) <= MAX_ID
        require(is_id, "request_id", request_id, f"a string of 1 to {MAX_ID} characters")
        x, _ = read_rows(rows, self.schema)
        return Question(x, request_id, keep and self.settings.label_ttl > 0)

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """Return the predictions of the latest version for questions of `ask`."""
        answers = answer(self.version, questions)
        told = [
            (q.request_id, q.x, a.predictions)
            for q, a in zip(questions, answers, strict=True)
            if q.keep
        ]
        if told:
            now = self._clock()
            self.journal.submit(keep_predictions(now, told), is_awaited=False)
            self._forget(now)
        return answers

    def learn(self, rows: Any, labels: Any, *, key: str | None = None) -> Receipt:
        """Accept rows with labels; they are on disk when this returns, and learned soon after.

        Args:
          rows: see `rows.read_rows`.
          labels: one per row.
          key: identifies the request: with a key that was used before, nothing is learned again.

        Raises:
          BadRows: some rows or labels are not valid; nothing of the request is learned.
          QueueFull: too many rows wait to be learned.
          Unwritable: the disk is full; nothing of the request is learned.
        """
        return self.submit_rows(rows, labels, key=key).result()

    def submit_rows(
        self,
        rows: Any,
        labels: Any,
        *,
        key: str | None = None,
        position: tuple[str, str] | None = None,
    ) -> "Future[Receipt]":
        """As `learn`, without waiting for the disk; (source, position) is stored with the rows."""
        return self._intake.rows(rows, labels, key, position)

    def label(self, request_id: str, labels: Any) -> Receipt:
        """Accept the labels of an earlier prediction; they are scored and learned.

        Raises:
          UnknownRequest, AlreadyLabelled, TooLate: there is no such prediction, or not any more.
          BadRows, QueueFull, Unwritable: see `learn`.
        """
        return self.submit_labels(request_id, labels).result()

    def submit_labels(self, request_id: str, labels: Any) -> "Future[Receipt]":
        """As `label`, without waiting for the disk."""
        return self._intake.labels(request_id, labels)

    def rollback(self, number: int) -> Receipt:
        """Return to a stored version; rows learned since then are no longer part of the model.

        Raises:
          UnknownVersion: it is not stored.
        """
        return self._intake.rollback(number).result()

    def wait(self, receipt: Receipt | None = None, timeout: float | None = None) -> bool:
        """Wait until everything accepted up to a receipt was learned; False after `timeout` s."""
        entry = self.journal.submit(last_entry).result() if receipt is None else receipt.entry
        return self._learner.wait_for(entry, timeout)

    def snapshot(self) -> StoredVersion:
        """Store the latest version now, between two batches, and return it.

        Raises:
          NotReady: nothing has been learned yet.
        """
        self._learner.request_snapshot("asked")
        self._learner.wait_for_snapshot()
        stored = self.versions()
        if not stored:
            raise NotReady("nothing has been learned yet")
        return stored[-1]

    def request_snapshot(self, reason: str) -> None:
        """As `snapshot`, without waiting."""
        self._learner.request_snapshot(reason)

    def versions(self) -> list[StoredVersion]:
        """Return the stored versions, oldest first."""
        return self._store.list()

    def report(self) -> Report | None:
        """Return the report of the latest version; None before the first."""
        version, known = self.version, self._reports
        if not version.is_fitted:
            return None
        if known is None or known[0] != version.number:
            known = self._reports = version.number, version.model.report_
        return known[1]

    def position(self, source: str) -> str | None:
        """Return the position of a source that is stored with its last rows."""
        query = "SELECT position FROM positions WHERE source = ?"
        found = self.journal.submit(lambda c: c.execute(query, (source,)).fetchone()).result()
        return None if found is None else str(found[0])

    def close(self) -> None:
        """Finish the current batch, store a version, and release the folder."""
        if self._journal is not None:
            self._learner.stop()
            self._journal.close()
            self._lock.release()
            self._journal = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self, now: float) -> None:
        if now - self._last_forgotten >= _FORGET_EVERY:
            self._last_forgotten = now
            settings = self.settings
            forget = forget_old(now, settings.label_ttl, settings.max_predictions)
            self.journal.submit(forget, is_awaited=False)
