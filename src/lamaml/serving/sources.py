"""Streams that a service reads itself: NDJSON from a file, a folder or standard input; Redis.

The position in a file is stored in the same transaction as its rows: after a crash, reading goes on
behind the last row in the journal. Lines that cannot be learned are counted and left out.
"""

import json
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from lamaml.errors import InvalidArgument, Unwritable
from lamaml.serving.config import Source
from lamaml.serving.errors import BadRows, QueueFull
from lamaml.serving.intake import Receipt
from lamaml.serving.service import Service
from lamaml.serving.watch import Watch

_LOG = logging.getLogger("lamaml.serving")
_POLL = 0.2  # seconds between two looks at a file that has been read to its end
_LINES = 100  # per transaction

Row = tuple[Any, Any]
"""Features and label."""


class Reader:
    """A thread that reads a source until it is closed.

    Args:
      name: of the thread.
      work: called with this reader; returns when `stopping` is set or the source has ended.
      can_stop: whether the thread ends soon after `close`; standard input blocks.
    """

    def __init__(
        self, name: str, work: Callable[["Reader"], None], *, can_stop: bool = True
    ) -> None:
        self.stopping = threading.Event()
        self._can_stop = can_stop
        self._work = work
        self._thread = threading.Thread(target=self._run, name=f"lamaml-{name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading."""
        self.stopping.set()
        if self._can_stop:
            self._thread.join()

    def join(self, timeout: float) -> None:
        """Wait until the source has ended."""
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._work(self)
        except Exception:  # noqa: BLE001  (the service goes on without this source)
            _LOG.exception("%s: reading has stopped", self._thread.name)


def start_sources(service: Service, sources: Sequence[Source], watch: Watch) -> list[Reader]:
    """Start to read all sources of a configuration.

    Raises:
      InvalidArgument: a path does not exist.
      DataUnavailable: a source needs a package that is not installed.
    """
    return [_start(service, source, watch) for source in sources]


def _start(service: Service, source: Source, watch: Watch) -> Reader:
    if source.kind == "redis":
        from lamaml.serving.redis_source import RedisStream

        return Reader("redis", RedisStream(service, source, watch).read)
    if source.path == "-":
        lines = LineSource(service, watch)
        return Reader("stdin", lambda reader: lines.read_lines(reader, sys.stdin), can_stop=False)
    path = Path(source.path or "")
    if not path.exists():
        raise InvalidArgument(f"source {path}: no such file or folder")
    return Reader("ndjson", FileSource(service, watch, path).read)


def parse_line(line: str) -> Row:
    """Return the features `x` and the label `y` of a line of JSON; raise BadRows for another."""
    try:
        found = json.loads(line)
        return found["x"], found["y"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f'must be JSON like {{"x": [1, 2], "y": "label"}}: {line[:50]!r}'
        raise BadRows({0: reason}) from error


class LineSource:
    """Has a service learn rows, waiting while its queue is full."""

    def __init__(self, service: Service, watch: Watch) -> None:
        self._service, self._watch = service, watch

    def read_lines(self, reader: Reader, lines: Iterable[str]) -> None:
        """Learn every line as it comes; many share a commit."""
        written: deque[Future[Receipt]] = deque()
        for line in filter(str.strip, lines):
            row = self.parsed([line])
            if row and (future := self.submitted(reader, row[0])):
                written.append(future)
            if len(written) >= _LINES:
                written.popleft().result()
            if reader.stopping.is_set():
                return
        for future in written:
            future.result()

    def parsed(self, lines: Iterable[str]) -> list[Row]:
        """Return the rows of some lines; those that are no rows are reported and left out."""
        rows = []
        for line in lines:
            try:
                rows.append(parse_line(line))
            except BadRows as error:
                self._watch.refused(error.reasons)
        return rows

    def submitted(
        self, reader: Reader, row: Row, key: str | None = None
    ) -> "Future[Receipt] | None":
        """Submit one row when the queue has room; None if it is bad, or the reader stops."""
        while not reader.stopping.is_set():
            try:
                return self._service.submit_rows([row[0]], [row[1]], key=key)
            except QueueFull as full:
                reader.stopping.wait(min(full.retry_after, 1.0))
            except InvalidArgument as error:
                self._watch.refused(getattr(error, "reasons", {0: str(error)}))
                return None
        return None

    def learn(self, reader: Reader, rows: Sequence[Row], position: tuple[str, str]) -> None:
        """Journal rows together with the position behind them; bad ones are left out."""
        while rows and not reader.stopping.is_set():
            x, y = [row for row, _ in rows], [label for _, label in rows]
            try:
                self._service.submit_rows(x, y, position=position).result()
                return
            except BadRows as error:
                self._watch.refused(error.reasons)
                rows = [row for i, row in enumerate(rows) if i not in error.reasons]
            except InvalidArgument as error:  # too many classes: which row is it?
                if len(rows) == 1:
                    self._watch.refused({0: str(error)})
                    return
                for row in rows:
                    self.learn(reader, [row], position)
                return
            except QueueFull as full:
                reader.stopping.wait(min(full.retry_after, 1.0))
            except Unwritable as error:  # a full disk: nothing may be skipped
                _LOG.warning("%s: trying again", error)
                reader.stopping.wait(1.0)


class FileSource(LineSource):
    """Follows an NDJSON file, or the *.ndjson files of a folder in the order of their names.

    A file that has grown is read on; of a folder, all files are.
    """

    def __init__(self, service: Service, watch: Watch, path: Path) -> None:
        super().__init__(service, watch)
        self._path = path
        self._offsets: dict[Path, int] = {}

    def read(self, reader: Reader) -> None:
        """Read until the reader is closed."""
        while not reader.stopping.is_set():
            paths = sorted(self._path.glob("*.ndjson")) if self._path.is_dir() else [self._path]
            if not any(self._read_file(reader, path) for path in paths):
                reader.stopping.wait(_POLL)

    def _read_file(self, reader: Reader, path: Path) -> bool:
        """Read what is new in a file; return whether there was anything."""
        source = f"file:{path.resolve()}"
        if path not in self._offsets:
            self._offsets[path] = int(self._service.position(source) or 0)
        start = self._offsets[path]
        if path.stat().st_size <= start:
            return False
        with path.open("rb") as file:
            file.seek(start)
            while not reader.stopping.is_set():
                lines = [line for line in (file.readline() for _ in range(_LINES)) if line]
                if lines and not lines[-1].endswith(b"\n"):
                    lines.pop()  # still being written
                if not lines:
                    break
                end = self._offsets[path] + sum(map(len, lines))
                texts = [line.decode("utf-8", "replace") for line in lines if line.strip()]
                self.learn(reader, self.parsed(texts), (source, str(end)))
                if not reader.stopping.is_set():
                    self._offsets[path] = end
        return self._offsets[path] > start
