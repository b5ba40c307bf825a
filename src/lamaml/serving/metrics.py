"""Metrics in the format of Prometheus."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from lamaml.serving.entries import Entry
from lamaml.serving.learning import Version
from lamaml.serving.monitor import SHORT_WINDOW, WINDOW
from lamaml.serving.service import Service
from lamaml.serving.watch import Watch

_LATENCY = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_DELAY = (1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, 86400.0, 604800.0)


class Metrics:
    """Counters and histograms since the start of this process, and gauges of the service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

        def counter(name: str, text: str, labels: Sequence[str] = ()) -> Counter:
            return Counter(f"lamaml_{name}", text, labels, registry=self._registry)

        def gauge(name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
            return Gauge(f"lamaml_{name}", text, labels, registry=self._registry)

        def histogram(
            name: str, text: str, labels: Sequence[str], buckets: Sequence[float]
        ) -> Histogram:
            return Histogram(
                f"lamaml_{name}", text, labels, registry=self._registry, buckets=buckets
            )

        self.requests = counter("requests", "Requests by path and status", ("path", "status"))
        self.latency = histogram("request_seconds", "Seconds per request", ("path",), _LATENCY)
        self.predicted = counter("predicted_rows", "Rows predicted")
        self.learned = counter("learned_rows", "Rows learned")
        self.refused = counter("refused_rows", "Rows refused as bad")
        self.delay = histogram("label_delay_seconds", "Delay of late labels", (), _DELAY)
        self.batch = histogram("batch_seconds", "Seconds per batch learned", (), _LATENCY)
        self._version = gauge("version", "Number of the version that answers")
        self._waiting = gauge("waiting_rows", "Rows accepted and not yet learned")
        self._score = gauge(
            "prequential_score", "Accuracy (or mean absolute error) before learning", ("window",)
        )
        self._forgetting = gauge("forgetting", "Loss of score on held-out rows since they arrived")
        self._at_zero = gauge("rates_at_zero", "Share of the learning rates at zero")
        self._alarms = gauge("drift_alarms", "Drift alarms since the start")

    def on_batch(self, version: Version, entries: Sequence[Entry], seconds: float) -> None:
        """Count a batch; the learner calls it."""
        self.learned.inc(sum(entry.num_rows for entry in entries))
        self.batch.observe(seconds)
        for entry in entries:
            if entry.delay is not None:
                self.delay.observe(entry.delay)

    def text(self, service: Service, watch: Watch) -> bytes:
        """Return all metrics as `GET /metrics` answers them."""
        monitor, report = service.version.monitor, watch.report
        self._version.set(service.version.number)
        self._waiting.set(service.backlog)
        self._alarms.set(watch.num_alarms)
        windows = {
            str(SHORT_WINDOW): monitor.window_score(SHORT_WINDOW),
            str(WINDOW): monitor.window_score(WINDOW),
            "all": monitor.score,
        }
        for window, score in windows.items():
            if score is not None:
                self._score.labels(window).set(score)
        if report is not None and report.forgetting is not None:
            self._forgetting.set(report.forgetting)
        if report is not None and report.rates_at_zero is not None:
            self._at_zero.set(report.rates_at_zero)
        return bytes(generate_latest(self._registry))
