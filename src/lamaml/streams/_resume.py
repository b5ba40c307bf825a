"""A download that goes on where it was cut off."""

import os
from pathlib import Path

import requests

from lamaml.streams._progress import Bar, progress_bar

CONNECT_SECONDS = 10
SILENCE_SECONDS = 30
CHUNK_SIZE = 1 << 16


class ResumingDownloader:
    """What pooch calls to fetch an address.

    Bytes are appended to a `.part` file, which outlives this process. A connection that breaks is
    made again for as long as each new one brings some bytes.
    """

    def __init__(self, part: Path) -> None:
        self.part = part

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        """Fetch `url` into `output_file`."""
        with progress_bar(f"downloading {url.rpartition('/')[2]}") as bar:
            while True:
                before = self._size()
                try:
                    if self._go_on(url, before, bar):
                        break
                except (
                    requests.ConnectionError,
                    requests.Timeout,
                    requests.exceptions.ChunkedEncodingError,
                ):
                    if self._size() <= before:
                        raise
        os.replace(self.part, output_file)

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _go_on(self, url: str, start: int, bar: Bar) -> bool:
        """Append what the server has from `start` on; whether all of it is there now."""
        # Without "identity" a server may compress, and offsets would mean something else.
        headers = {"Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        timeout = (CONNECT_SECONDS, SILENCE_SECONDS)
        with requests.get(url, headers=headers, stream=True, timeout=timeout) as response:
            if start and response.status_code == requests.codes.requested_range_not_satisfiable:
                if response.headers.get("Content-Range") == f"bytes */{start}":
                    return True
                self.part.unlink()  # longer than the file: it is of another one
                return False
            response.raise_for_status()
            continued = response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            done = start if continued else 0
            length = response.headers.get("Content-Length")
            bar.reach(done, done + int(length) if length else None)
            with self.part.open("ab" if continued else "wb") as file:
                for chunk in response.iter_content(CHUNK_SIZE):
                    file.write(chunk)
                    bar.advance(len(chunk))
        return True
