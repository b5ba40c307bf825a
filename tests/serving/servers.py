"""`lamaml serve` as a process, and a client of it."""

import contextlib
import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ADDRESS = re.compile(r"at http://127\.0\.0\.1:(\d+)")


class Client:
    """A connection that stays open; raises OSError or HTTPException when the server dies."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def request(self, method: str, path: str, content: Any = None, **headers: str) -> Any:
        """Returns the status and the parsed body."""
        body = None if content is None else json.dumps(content)
        headers = {"Content-Type": "application/json"} | headers
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        text = response.read()
        is_json = response.headers.get_content_type() == "application/json"
        return response.status, json.loads(text) if is_json else text.decode()

    def post(self, path: str, content: Any = None, **headers: str) -> Any:
        """Returns the body of an answer that must be 200."""
        status, answer = self.request("POST", path, content, **headers)
        assert status == 200, answer
        return answer

    def get(self, path: str) -> Any:
        status, answer = self.request("GET", path)
        assert status == 200, answer
        return answer


@contextlib.contextmanager
def serving(
    folder: Path, *options: str, stdin: Any = None
) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Starts a server on a free port; it is killed at the end if it still runs."""
    command = [sys.executable, "-m", "lamaml", "serve", str(folder), "--port", "0", *options]
    with subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            lines = []
            for line in process.stdout or ():
                lines.append(line)
                found = ADDRESS.search(line)
                if found:
                    yield int(found[1]), process
                    return
            raise AssertionError("".join(lines))
        finally:
            process.kill()
