"""Watching a service: reports of the latest version, drift alarms and what they do."""

import json
import logging
import threading
import time
import urllib.request
from collections import deque
from dataclasses import dataclass
from typing import Any

from lamaml._records import to_json
from lamaml.estimators import Report
from lamaml.serving.config import Drift
from lamaml.serving.drift import make_test
from lamaml.serving.errors import UnknownVersion
from lamaml.serving.monitor import SHORT_WINDOW, WINDOW
from lamaml.serving.service import Service

_LOG = logging.getLogger("lamaml.serving")
_REFRESH = 1.0  # seconds between two reports
_WEBHOOK_TIMEOUT = 10.0
_NUM_SHOWN = 20


@dataclass(frozen=True)
class Alarm:
    """One alarm: when, after which version, and why."""

    time: float
    version: int
    reason: str


@dataclass(frozen=True)
class Refusal:
    """A request that was refused because of its rows."""

    time: float
    reasons: dict[str, str]


class Watch:
    """A thread that looks at the latest version every second.

    Args:
      service: to watch.
      drift: when to raise an alarm, and what it does.
    """

    def __init__(self, service: Service, drift: Drift) -> None:
        self.alarms: deque[Alarm] = deque(maxlen=_NUM_SHOWN)
        self.refusals: deque[Refusal] = deque(maxlen=_NUM_SHOWN)
        self.num_alarms = 0
        self.report: Report | None = None
        self._service, self._drift, self._test = service, drift, make_test(drift)
        self._seen = 0  # scored rows that the test has seen
        self._version = -1
        self._quiet_until = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lamaml-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._thread.join()

    def refused(self, reasons: dict[int, str]) -> None:
        """Remember rows that were refused."""
        first = list(reasons.items())[:5]
        self.refusals.append(Refusal(time.time(), {str(i): reason for i, reason in first}))

    def summary(self) -> dict[str, Any]:
        """Return what `GET /report` answers: everything about the service, as JSON types."""
        service, version = self._service, self._service.version
        monitor = version.monitor
        schema, failure = service.schema, service.failure
        return {
            "name": service.settings.name,
            "version": version.number,
            "is_regression": service.is_regression,
            "columns": None if schema is None else (schema.columns or list(schema.row_shape)),
            "rows_learned": monitor.rows_learned,
            "rows_waiting": service.backlog,
            "rows_failed": monitor.rows_failed,
            "rows_per_second": round(service.rows_per_second, 1),
            "score": monitor.score,
            "score_100": monitor.window_score(SHORT_WINDOW),
            "score_1000": monitor.window_score(WINDOW),
            "rows_scored": monitor.rows_scored,
            "label_delay": monitor.delay_sum / monitor.late_rows if monitor.late_rows else None,
            "late_rows": monitor.late_rows,
            "rollbacks": monitor.rollbacks,
            "curve": to_json(monitor.curve),
            "model": None if self.report is None else to_json(vars(self.report)),
            "versions": self.versions(),
            "failures": to_json(monitor.failures),
            "refusals": to_json(list(self.refusals)),
            "alarms": to_json(list(self.alarms)),
            "problem": None if failure is None else f"the learner has stopped: {failure}",
        }

    def versions(self) -> list[dict[str, Any]]:
        """Return the stored versions, newest first, as JSON types."""
        return [
            {
                "version": stored.number,
                "time": stored.time,
                "reason": stored.reason,
                "rows_learned": stored.monitor.rows_learned,
                "score_1000": stored.monitor.window_score(WINDOW),
                "bytes": stored.bytes,
            }
            for stored in reversed(self._service.versions())
        ]

    def _run(self) -> None:
        while not self._stopping.wait(_REFRESH):
            try:
                self._look()
            except Exception:  # noqa: BLE001  (the service goes on without reports)
                _LOG.exception("watching failed")

    def _look(self) -> None:
        version = self._service.version
        if version.number == self._version:
            return
        self.report, self._version = self._service.report(), version.number
        monitor = version.monitor
        num_new = min(monitor.rows_scored - self._seen, len(monitor.recent))
        self._seen = monitor.rows_scored
        scores: list[float] = monitor.recent[len(monitor.recent) - num_new :].tolist()
        if self.report is None:
            return
        reason = self._test(self.report, scores, self._service.is_regression)
        if reason is not None and time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + self._drift.pause
            self._raise_alarm(Alarm(time.time(), version.number, reason))

    def _raise_alarm(self, alarm: Alarm) -> None:
        _LOG.warning("drift alarm after version %d: %s", alarm.version, alarm.reason)
        self.num_alarms += 1
        self.alarms.append(alarm)
        if "snapshot" in self._drift.actions:
            self._service.request_snapshot("alarm")
        if "rollback" in self._drift.actions:
            self._roll_back()
        if "webhook" in self._drift.actions:
            threading.Thread(target=self._post, args=(alarm,), daemon=True).start()

    def _roll_back(self) -> None:
        """Return to the stored version whose recent scores were best, if they were better."""
        sign = -1.0 if self._service.is_regression else 1.0
        now = self._service.version.monitor.window_score(WINDOW)
        scores = {v.number: v.monitor.window_score(WINDOW) for v in self._service.versions()}
        known = {number: sign * score for number, score in scores.items() if score is not None}
        best = max(known, key=lambda number: known[number], default=None)
        if best is None or now is None or known[best] <= sign * now:
            _LOG.warning("no stored version was better: no rollback")
            return
        try:
            self._service.rollback(best)
        except UnknownVersion:
            _LOG.warning("version %d has just been deleted: no rollback", best)

    def _post(self, alarm: Alarm) -> None:
        body = json.dumps({"name": self._service.settings.name, **to_json(alarm)}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._drift.webhook or "", body, headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_WEBHOOK_TIMEOUT):  # noqa: S310
                pass
        except (OSError, ValueError) as error:
            _LOG.warning("the webhook was not reached (%s)", error)
