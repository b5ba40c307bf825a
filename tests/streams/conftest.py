"""An empty data folder, and a web server that can be told to fail."""

import re
import threading
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
    return folder


class Server:
    """Serves `content` at every path.

    `cuts` says, request by request, after how many bytes the connection breaks; when it is used
    up, nothing breaks. `requests` keeps the Range header of each request.
    """

    def __init__(self) -> None:
        self.content = b""
        self.cuts: list[int] = []
        self.ranges = True
        self.status: int | None = None
        self.requests: list[str | None] = []
        self.address = ""


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers["Range"]
            state.requests.append(asked)
            match = re.fullmatch(r"bytes=(\d+)-", asked or "") if state.ranges else None
            start = int(match[1]) if match else 0
            size = len(state.content)
            if state.status:
                self.send_response(state.status)
            elif match and start >= size:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{size}")
                self.send_header("Content-Length", "0")
            else:
                self.send_response(206 if match else 200)
                if match:
                    self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
                self.send_header("Content-Length", str(size - start))
            self.end_headers()
            if not state.status and start < size:
                cut = state.cuts.pop(0) if state.cuts else size
                self.wfile.write(state.content[start : start + cut])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        state.address = f"http://127.0.0.1:{listening.server_port}"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        listening.shutdown()
        thread.join()
