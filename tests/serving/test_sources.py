"""Rows that a service reads itself: NDJSON files, standard input, a Redis stream."""

import io
import json
import shutil
import socket
import subprocess
import time

import pytest
from small_services import rows, service

from lamaml.errors import InvalidArgument
from lamaml.serving.config import Drift, Source
from lamaml.serving.sources import LineSource, Reader, start_sources
from lamaml.serving.watch import Watch

REDIS = shutil.which("redis-server")


def lines(start, stop):
    x, y = rows(start, stop)
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return "".join(json.dumps({"x": row, "y": label}) + "\n" for row, label in pairs)


def until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Reading:
    """A service that reads sources."""

    def __init__(self, folder, *sources, **settings):
        self.service = service(folder, **settings)
        self.watch = Watch(self.service, Drift())
        self.readers = start_sources(self.service, sources, self.watch)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for reader in self.readers:
            reader.close()
        self.watch.close()
        self.service.close()

    def has_learned(self, count):
        until(lambda: self.service.version.monitor.rows_learned >= count)
        assert self.service.version.monitor.rows_learned == count


def test_a_folder_is_followed_and_read_once(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    source = Source(kind="ndjson", path=str(folder))
    (folder / "b.ndjson").write_text(lines(10, 20))
    (folder / "a.ndjson").write_text(lines(0, 10) + "nonsense\n" + '{"x": [1], "y": "up"}\n')
    with Reading(tmp_path / "service", source) as reading:
        reading.has_learned(20)
        assert len(reading.watch.refusals) == 2
        with (folder / "b.ndjson").open("a") as file:
            whole = lines(20, 31)
            file.write(whole[:-10])  # the last line is not complete
            file.flush()
            reading.has_learned(30)
            file.write(whole[-10:])
        reading.has_learned(31)
    (folder / "c.ndjson").write_text(lines(31, 35))
    with Reading(tmp_path / "service", source) as reading:
        reading.has_learned(35)


def test_lines_wait_for_a_full_queue(tmp_path):
    path = tmp_path / "rows.ndjson"
    path.write_text(lines(0, 300))
    source = Source(kind="ndjson", path=str(path))
    with Reading(tmp_path / "service", source, queue_rows=100, batch_rows=10) as reading:
        reading.has_learned(300)


def test_standard_input(tmp_path):
    with Reading(tmp_path) as reading:
        source = LineSource(reading.service, reading.watch)
        text = lines(0, 250) + "\n[]\n" + '{"x": [1, 2], "y": null}\n'
        reader = Reader("stdin", lambda reader: source.read_lines(reader, io.StringIO(text)))
        reader.join(30)
        reading.has_learned(250)
        assert len(reading.watch.refusals) == 2


def test_a_path_that_does_not_exist(tmp_path):
    source = Source(kind="ndjson", path=str(tmp_path / "nowhere"))
    with Reading(tmp_path / "service") as reading, pytest.raises(InvalidArgument, match="no such"):
        start_sources(reading.service, [source], reading.watch)


@pytest.fixture
def redis_port(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(REDIS), "--port", str(port), "--save", "", "--dir", str(tmp_path)]
    with subprocess.Popen([*command, "--bind", "127.0.0.1"], stdout=subprocess.DEVNULL) as server:
        yield port
        server.kill()


@pytest.mark.skipif(REDIS is None, reason="needs redis-server (Debian package of this name)")
def test_a_redis_stream(tmp_path, redis_port):
    redis = pytest.importorskip("redis", reason="needs redis: pip install 'lamaml[redis]'")
    client = redis.Redis(port=redis_port)

    def answers():
        try:
            return client.ping()
        except redis.ConnectionError:
            return False

    until(answers)
    source = Source(kind="redis", stream="rows", url=f"redis://127.0.0.1:{redis_port}/0")
    for line in lines(0, 30).splitlines():
        client.xadd("rows", {"data": line})
    client.xadd("rows", {"data": "nonsense"})
    client.xadd("rows", {"other": "field"})
    with Reading(tmp_path / "service", source) as reading:
        reading.has_learned(30)
        until(lambda: client.xpending("rows", "lamaml")["pending"] == 0)
        assert len(reading.watch.refusals) == 2
    # Delivered to the service, but killed before the acknowledgement: they come again, and those
    # that are in the journal are not learned again.
    for line in lines(30, 40).splitlines():
        client.xadd("rows", {"data": line})
    name = socket.gethostname()
    delivered = client.xreadgroup("lamaml", name, {"rows": ">"}, count=10)[0][1]
    with service(tmp_path / "service") as opened:
        for number, fields in delivered[:4]:
            found = json.loads(fields[b"data"])
            opened.learn([found["x"]], [found["y"]], key=f"redis:rows:{number.decode()}")
    with Reading(tmp_path / "service", source) as reading:
        reading.has_learned(40)
        until(lambda: client.xpending("rows", "lamaml")["pending"] == 0)
    client.close()
