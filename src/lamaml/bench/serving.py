"""A server under load: latencies of predictions while it learns, and its learning throughput.

The server, `lamaml serve` with its defaults, is a process of its own, and so are its clients: eight
connections, each of which sends a row when the row before was answered. The rows are those of
scikit-learn's digits.

    python -c "from lamaml.bench.serving import serving_load; print(serving_load())"
"""

import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from lamaml.estimators import LaMAMLClassifier
from lamaml.serving import Settings

CONNECTIONS = 8
_CLIENT = Path(__file__).with_name("_load_client.py")
_PER_REQUEST = 500  # rows
_MIN_WAITING = 10_000  # rows that wait when the clients start


@dataclass(frozen=True)
class ServingLoad:
    """A server under load.

    Attributes:
      connections: number of clients, each with one request at a time.
      idle_per_second: predictions of one row per second, while nothing is learned.
      idle_p50_ms: median latency.
      idle_p99_ms: 99th percentile.
      learning_per_second: predictions per second while the server learns at full speed.
      learning_p50_ms: median latency.
      learning_p99_ms: 99th percentile.
      rows_per_second: rows learned per second, without predictions.
      bare_rows_per_second: the same rows, in the same batches, by the estimator alone.
      share: of the bare rate.
      busy_rows_per_second: rows learned per second while the clients predict.
    """

    connections: int
    idle_per_second: float
    idle_p50_ms: float
    idle_p99_ms: float
    learning_per_second: float
    learning_p50_ms: float
    learning_p99_ms: float
    rows_per_second: float
    bare_rows_per_second: float
    share: float
    busy_rows_per_second: float

    def __str__(self) -> str:
        """Returns the figures in three lines."""
        lines = [
            f"lamaml serve, {self.connections} connections, predictions of one row: {name} "
            f"{rate:,.0f} per second, p50 {p50:.1f} ms, p99 {p99:.1f} ms"
            for name, rate, p50, p99 in (
                ("idle", self.idle_per_second, self.idle_p50_ms, self.idle_p99_ms),
                (
                    "while learning",
                    self.learning_per_second,
                    self.learning_p50_ms,
                    self.learning_p99_ms,
                ),
            )
        ]
        learned = f"lamaml serve learns {self.rows_per_second:,.0f} rows per second"
        busy = f"{self.busy_rows_per_second:,.0f} while these clients predict without pause"
        lines.append(f"{learned}, {100 * self.share:.0f} % of the estimator alone, and {busy}")
        return "\n".join(lines)


def can_serve() -> bool:
    """Returns whether the packages of a server are installed."""
    return all(find_spec(name) for name in ("prometheus_client", "starlette", "uvicorn"))


def serving_load(seconds: float = 5.0, num_rows: int = 40_000) -> ServingLoad:
    """Measure a server.

    Args:
      seconds: per measurement of predictions.
      num_rows: per measurement of learning.
    """
    x, y = load_digits(return_X_y=True)
    x = x.astype(int)  # pixels from 0 to 16
    x, y = np.resize(x, (num_rows, 64)), np.resize(y, num_rows)
    with tempfile.TemporaryDirectory(prefix="lamaml-") as folder, _server(Path(folder)) as server:
        bodies = _bodies(x, y)
        server.learn(bodies[:5], wait=True)
        while server.get("/report")["model"] is None:  # the last program is compiled
            time.sleep(0.1)
        clock = time.perf_counter()
        server.learn(bodies, wait=True)
        rate = num_rows / (time.perf_counter() - clock)
        idle = server.predict(x[:100], seconds)
        busy, busy_rate = _while_learning(server, x, y, seconds, rate)
    bare = bare_rate(x, y)
    return ServingLoad(
        CONNECTIONS,
        idle["num_answers"] / seconds,
        idle["p50_ms"],
        idle["p99_ms"],
        busy["num_answers"] / seconds,
        busy["p50_ms"],
        busy["p99_ms"],
        rows_per_second=rate,
        bare_rows_per_second=bare,
        share=rate / bare,
        busy_rows_per_second=busy_rate,
    )


def _while_learning(
    server: "_Server", x: np.ndarray, y: np.ndarray, seconds: float, rate: float
) -> tuple[dict[str, float], float]:
    """Return the latencies while rows wait to be learned all the time, and rows per second."""
    needed = min(max(int(2 * rate * seconds), _MIN_WAITING), Settings().queue_rows)
    bodies = _bodies(np.resize(x, (needed, x.shape[1])), np.resize(y, needed))
    server.learn(bodies, wait=False)
    before, clock = server.get("/report")["rows_learned"], time.perf_counter()
    found = server.predict(x[:100], seconds)
    report, passed = server.get("/report"), time.perf_counter() - clock
    if not report["rows_waiting"]:
        raise RuntimeError("the server had learned everything before the clients were done")
    return found, (report["rows_learned"] - before) / passed


def _bodies(x: np.ndarray, y: np.ndarray) -> list[bytes]:
    parts = [slice(start, start + _PER_REQUEST) for start in range(0, len(x), _PER_REQUEST)]
    requests = [{"rows": x[part].tolist(), "labels": y[part].tolist()} for part in parts]
    return [json.dumps(request).encode() for request in requests]


def bare_rate(x: np.ndarray, y: np.ndarray) -> float:
    """Return the rows per second that the estimator alone learns, in batches of the service."""
    size = Settings().batch_rows
    model = LaMAMLClassifier().partial_fit(x[:size], y[:size])
    clock = time.perf_counter()
    for start in range(0, len(x), size):
        model.partial_fit(x[start : start + size], y[start : start + size])
    return len(x) / (time.perf_counter() - clock)


class _Server:
    """A running server."""

    def __init__(self, port: int) -> None:
        self._port = port

    def learn(self, bodies: Sequence[bytes], *, wait: bool) -> None:
        """Post rows; with `wait`, return when they are learned."""
        for number, body in enumerate(bodies, 1):
            is_last = number == len(bodies)
            self._request("POST", "/learn?wait=true" if wait and is_last else "/learn", body)

    def get(self, path: str) -> Any:
        """Return the answer to a GET request."""
        return self._request("GET", path, None)

    def _request(self, method: str, path: str, body: bytes | None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {text[:200]!r}")
        return json.loads(text)

    def predict(self, rows: np.ndarray, seconds: float) -> dict[str, float]:
        """Return what the clients have measured."""
        words = [str(self._port), str(seconds), str(CONNECTIONS)]
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-P", str(_CLIENT), *words],
            input=json.dumps(rows.tolist()),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)


@contextmanager
def _server(folder: Path) -> Iterator[_Server]:
    (folder / "serve.toml").write_text("[service]\nsnapshot_rows = 5000\n")
    command = [sys.executable, "-m", "lamaml", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            lines = []
            for line in process.stdout or ():
                lines.append(line)
                if found := re.search(r"at http://127\.0\.0\.1:(\d+)", line):
                    yield _Server(int(found[1]))
                    return
            raise RuntimeError("".join(lines))
        finally:
            process.terminate()
