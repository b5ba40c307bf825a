"""An empty data folder, and a web server that fails on demand."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lamaml.streams import _download
from lamaml.streams._download import Archive


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """LAMAML_DATA is an empty folder, and no public address can be reached."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("LAMAML_DATA", str(folder))
    monkeypatch.setenv("NO_PROXY", "*")
    nowhere = {
        name: Archive(f"http://127.0.0.1:9/{name}", archive.checksum, archive.exact)
        for name, archive in _download.ARCHIVES.items()
    }
    monkeypatch.setattr(_download, "ARCHIVES", nowhere)
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)  # between attempts
    return folder


class Server:
    """Serves `content` at every path.

    `statuses` and `cuts` describe the first responses: the error they return, and the number of
    bytes after which the connection breaks. When they are used up, responses are complete.
    """

    def __init__(self) -> None:
        self.content = b""
        self.statuses: list[int] = []
        self.cuts: list[int] = []
        self.seconds = 0.0  # that a response takes
        self.num_requests = 0
        self.address = ""


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.num_requests += 1
            time.sleep(state.seconds)
            if state.statuses:
                self.send_error(state.statuses.pop(0))
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(state.content)))
            self.end_headers()
            self.wfile.write(state.content[: state.cuts.pop(0) if state.cuts else None])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        state.address = f"http://127.0.0.1:{listening.server_port}"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        listening.shutdown()
        thread.join()
