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

_MEASURE = """<script>onload = () => {
  const page = frames[0], root = page.document.documentElement, all = words =>
    [...root.querySelectorAll(words)];
  const told = all("[data-values]").map(plot => {
    const [x, y, text] = JSON.parse(plot.dataset.values).at(-1), box = plot.getBoundingClientRect();
    plot.dispatchEvent(new page.PointerEvent("pointermove", {
      clientX: box.left + x * box.width / 1000, clientY: box.top + y * box.height / 1000}));
    const tip = root.querySelector(".tip"), there = tip.getBoundingClientRect();
    const seen = !tip.hidden && there.left >= 0 && there.right <= root.clientWidth;
    const found = {wanted: text, shown: seen ? tip.textContent : ""};
    plot.dispatchEvent(new page.PointerEvent("pointerleave"));
    return {...found, gone: tip.hidden};
  });
  document.title = JSON.stringify({
    wide: root.scrollWidth, high: root.scrollHeight, told,
    background: page.getComputedStyle(page.document.body).backgroundColor,
    drawn: all("img").every(i => i.naturalWidth && i.clientHeight > 50),
    labelled: all("img").every(i => i.closest("[role=img]").ariaLabel),
    source: all("img")[0].currentSrc,
    scrolled: all(".scroll").filter(box => box.scrollWidth > box.clientWidth).length,
  }) }</script>"""


def opened(page: str, width: int, folder: Path, scheme: str = "light") -> dict[str, Any]:
    """What Chromium makes of a page: its size, colours and pictures, what it shows on hover.

    Args:
      page: as HTML.
      width: of the window, in pixels.
      folder: for the browser's files.
      scheme: the reader's colour scheme, "light" or "dark".
    """
    style = f"border:0;width:{width}px;height:900px;color-scheme:{scheme}"
    frame = f'<iframe style="{style}" srcdoc="{html.escape(page)}">'
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
