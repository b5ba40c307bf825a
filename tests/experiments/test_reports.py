"""The page: self-contained, with the numbers, and no wider than the screen."""

import html
import json
import re
import shutil
import subprocess
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from lamaml.errors import InvalidArgument
from lamaml.experiments.figures import Series, curves, heat_map, inline
from lamaml.experiments.reports import render, write_report
from lamaml.experiments.results import Run, read_run, summary
from lamaml.experiments.tables import spread

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
VOID = {"meta", "link", "br", "img", "input", "hr", "path", "use", "image", "rect"}


@pytest.fixture(scope="module")
def runs(small_run: Run, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """A run, another of the same learner that diverged in part, and one of another learner."""
    folder = tmp_path_factory.mktemp("runs")
    partly = Path(shutil.copytree(small_run.folder, folder / "partly"))
    (partly / "seed-1/status.json").write_text('{"status": "diverged", "message": "<nan>"}')
    other = Path(shutil.copytree(small_run.folder, folder / "other"))
    settings = json.loads((other / "settings.json").read_text())
    settings |= {"learner": "er", "published": {"ra": [77.42, 0.65]}}
    (other / "settings.json").write_text(json.dumps(settings))
    return [small_run, read_run(partly), read_run(other)]


@pytest.fixture(scope="module")
def page(runs: list[Run]) -> str:
    return render(runs)


def test_it_needs_nothing_else(page: str) -> None:
    assert not re.search(r"https?:|<script|<link|@import|<iframe", page)
    for source in re.findall(r'(?:src|href)="([^"]*)"', page):
        assert source.startswith(("#", "data:image/png;base64,"))


def test_it_holds_the_numbers(page: str, runs: list[Run]) -> None:
    for run in runs:
        found = summary(run)
        for metric in ("ra", "bti", "la", "fwt"):
            assert spread(found[metric]["mean"], found[metric]["sd"]) in page
    assert "77.42 ± 0.65" in page
    assert "hyper_rate" in page
    assert "diverged, &lt;nan&gt;" in page
    assert page.count("<figcaption>") == 4 + 3


def test_it_is_well_formed(page: str) -> None:
    class Balance(HTMLParser):
        open: list[str]

        def handle_starttag(self, tag: str, attributes: object) -> None:
            if tag not in VOID:
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in VOID:
                assert self.open.pop() == tag

    parser = Balance()
    parser.open = []
    parser.feed(page)
    assert parser.open == []
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))


def test_the_same_runs_give_the_same_page(page: str, runs: list[Run]) -> None:
    assert render(runs) == page


def test_colours_are_the_pages_own() -> None:
    values = np.random.default_rng(0).random((2, 1000))
    series = [Series(np.arange(1000), values, "--series-0")]
    drawing = inline(partial(curves, series, "updates", percent=False), "a")
    assert "var(--series-0)" in drawing
    assert not re.search(r"#0[0-4]0[0-4]0[0-9]", drawing)
    assert len(drawing) < 60_000


def test_large_matrices_are_drawn_without_numbers() -> None:
    assert inline(partial(heat_map, np.full((2, 2), 0.25)), "a").count(">25<") == 4
    assert inline(partial(heat_map, np.full((30, 30), 0.25)), "a").count(">25<") <= 2  # tick labels


def test_where_a_task_was_not_tested_again_its_last_accuracy_stands() -> None:
    matrix = np.array([[0.21, 0.1, np.nan], [np.nan, 0.32, 0.1], [np.nan, np.nan, 0.43]])
    drawing = inline(partial(heat_map, matrix), "a")
    assert [drawing.count(f">{number}<") for number in (21, 32, 43)] == [3, 2, 1]


def test_a_page_that_cannot_be_written(runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be written"):
        write_report(runs, tmp_path)


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [400, 1400])
def test_it_fits_the_screen(page: str, width: int, tmp_path: Path) -> None:
    measure = (
        "<script>onload = () => { const root = frames[0].document.documentElement;"
        "document.title = JSON.stringify({wide: root.scrollWidth, high: root.scrollHeight,"
        "drawn: [...root.querySelectorAll('svg')].every(s => s.clientHeight > 50)}) }</script>"
    )
    frame = f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{html.escape(page)}">'
    (tmp_path / "frame.html").write_text(f"<!doctype html>{measure}<body>{frame}</iframe></body>")
    quiet = ["--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", "--hide-scrollbars"]
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", *quiet]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"]
    command += ["--window-size=1500,1000", "--dump-dom", f"file://{tmp_path}/frame.html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title is not None
    found = json.loads(html.unescape(title[1]))
    assert found["wide"] == width
    assert found["high"] > 900
    assert found["drawn"]
    assert "CONSOLE" not in done.stderr
