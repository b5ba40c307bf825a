"""A page in headless Chromium."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

_MEASURE = (
    "<script>onload = () => { const root = frames[0].document.documentElement;"
    "document.title = JSON.stringify({wide: root.scrollWidth, high: root.scrollHeight,"
    "drawn: [...root.querySelectorAll('img')].every(i => i.naturalWidth && i.clientHeight > 50)"
    "}) }</script>"
)


def opened(page: str, width: int, folder: Path) -> dict[str, Any]:
    """How wide and high it is, whether every drawing is seen, and what it says to the console."""
    frame = f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{html.escape(page)}">'
    (folder / "frame.html").write_text(f"<!doctype html>{_MEASURE}<body>{frame}</iframe></body>")
    quiet = ["--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", "--hide-scrollbars"]
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", *quiet]
    command += [f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr"]
    command += ["--window-size=1500,1000", "--dump-dom", f"file://{folder}/frame.html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title is not None
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(title[1])) | {"console": console}
