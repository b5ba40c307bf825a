"""The page: self-contained, with the numbers, and no wider than the screen."""

import base64
import csv
import errno
import json
import os
import re
import shutil
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from browser import needs_chromium, opened

from lamaml.errors import DataCorrupt, Unwritable
from lamaml.experiments.reporting.figures import Drawing, export, picture, svg
from lamaml.experiments.reporting.heat_maps import accuracy_matrix
from lamaml.experiments.reporting.line_plots import Series, curves, task_lines
from lamaml.experiments.reporting.page import render, write_report
from lamaml.experiments.reporting.palette import DARK, LIGHT, colour_of
from lamaml.experiments.reporting.sections import sections
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reporting.tables import pairs_table, spread
from lamaml.experiments.storing.results import Run, read_run
from lamaml.experiments.storing.summary import Spread
from lamaml.learners import LEARNERS

_VOID = {"meta", "link", "br", "img", "input", "hr", "source"}


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
    assert not re.search(r"https?:|<script .*src|<link|@import|<iframe|fetch\(", page)
    for source in re.findall(r'(?:src|srcset|href)="([^"]*)"', page):
        assert source.startswith(("#", "data:image/svg+xml;base64,"))


def test_it_holds_the_numbers(page: str, runs: list[Run]) -> None:
    for run in runs:
        for metric in ("ra", "bti", "la", "fwt", "aaa"):
            found = run.summary.metric(metric)
            assert spread(found.mean, found.sd) in page
    assert "77.42 ± 0.65" in page
    assert "hyper_rate" in page
    assert "diverged, &lt;nan&gt;" in page
    layers = ("hidden_1", "hidden_2", "head")
    assert page.count("<figcaption>") == page.count('role="img"') == 7 + 3 * (3 + len(layers))
    captions = re.findall("<figcaption>rates of (.*?)<", page)
    assert captions == 3 * ["hidden_1", "hidden_2", "head"]
    assert page.count("Training loss") == page.count("accuracy against cost") == 2  # and its label


def test_it_says_where_the_runs_are_from(page: str, runs: list[Run]) -> None:
    for run in runs:
        assert f"<td>{run.folder}</td>" in page
        assert f"<td>{run.summary.seconds.compile:.1f}</td>" in page
    revision = runs[0].environment.revision
    assert revision is None or revision[:12] in page
    assert re.search(r"<td>20\d\d-\d\d-\d\d \d\d:\d\d</td>", page)


def test_the_best_of_each_column_is_bold(page: str, runs: list[Run]) -> None:
    for metric in ("ra", "bti", "la", "fwt"):
        spreads = [run.summary.metric(metric) for run in runs]
        best = max(spreads, key=lambda found: found.mean or 0)
        assert f"<b>{spread(best.mean, best.sd)}</b>" in page


def test_joint_training_is_a_line_and_a_row(small_run: Run, tmp_path: Path) -> None:
    whole = small_run.settings.recipe
    settings = replace(small_run.settings, num_tasks=None, num_samples=None)
    run = replace(small_run, settings=settings)
    recipe = replace(whole, benchmark="joint_digits_rotations")
    joint = replace(run, settings=replace(settings, recipe=recipe))
    (section,) = sections([run, joint])
    assert [entry.label for entry in section.joint] == ["joint training"]
    drawing = svg(section.figures[0].draw)
    assert ">chance<" in drawing
    assert ">joint training<" in drawing
    assert ">joint training<" not in svg(sections([run])[0].figures[0].draw)
    assert len(sections([small_run, joint])) == 2  # of another size: a section of its own


def test_figures_and_tables_are_files_too(runs: list[Run], tmp_path: Path) -> None:
    write_report(runs, tmp_path / "page.html", tmp_path / "files")
    suffixes = [path.suffix for path in (tmp_path / "files").iterdir()]
    assert suffixes.count(".svg") == suffixes.count(".pdf") == 25
    assert suffixes.count(".md") == suffixes.count(".tex") == suffixes.count(".csv") == 2
    drawing = (tmp_path / "files/digits_rotations-single-seen.svg").read_text()
    assert "#2f5fd0" in drawing  # the page's blue, in the light
    assert "var(--" not in drawing
    words = re.findall(r">([^<>]+)</text>", drawing)
    assert "Accuracy on the tasks seen so far" in words
    assert any(word.startswith("la_maml") for word in words)
    table = (tmp_path / "files/digits_rotations-single.csv").read_text()
    rows = list(csv.DictReader(table.splitlines()))
    assert sorted(row["learner"] for row in rows) == ["er", "la_maml", "la_maml"]
    assert sorted(row["finished"] for row in rows) == ["1", "2", "2"]
    assert float(rows[0]["ra"]) == max(run.summary.ra.mean for run in runs)
    assert [row["ra_sd"] == "" for row in rows] == [row["finished"] == "1" for row in rows]
    assert "−" not in table
    pairs = (tmp_path / "files/digits_rotations-single-pairs.csv").read_text()
    assert pairs.startswith("benchmark,learner,baseline,metric,seeds,difference,low,high,p,note\n")
    latex = (tmp_path / "files/digits_rotations-single.tex").read_text()
    assert r"la\_maml" in latex
    assert "±" not in latex


def test_two_learners_seed_by_seed(runs: list[Run]) -> None:
    one = runs[0].summary
    values = [value - lower for value, lower in zip(one.ra.values, (2.0, 1.0), strict=True)]
    other = replace(runs[2].summary, ra=Spread(None, None, values))
    table = pairs_table("digits", [("la_maml", one), ("er", other)])
    assert table is not None
    assert table.header[1] == "baseline"
    assert table.rows == [["la_maml", "er", "2", "+1.50", "−4.85 to +7.85", "no"]]
    diverged = replace(other, ra=Spread(None, None, [values[0], None]))
    for changed in (diverged, replace(one, num_tasks=7), replace(one, data=["x", "y"])):
        assert pairs_table("digits", [("la_maml", one), ("er", changed)]) is None


def test_rates_are_counted_by_layer_and_task(small_run: Run) -> None:
    for seed in small_run.seeds:
        found = seed.rates()
        assert len(found) == 2
        sizes = {name: sum(layer.counts) for name, layer in found[0].items()}
        assert sizes == {"hidden_1": 6500, "hidden_2": 10_100, "head": 1010}
        # Nearly all are still near the initial rate, .15.
        layer = found[0]["hidden_1"]
        assert layer.low <= 0.15 <= layer.high


def test_it_is_well_formed(page: str) -> None:
    class Balance(HTMLParser):
        open: list[str]

        def handle_starttag(self, tag: str, attributes: object) -> None:
            if tag not in _VOID:
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in _VOID:
                assert self.open.pop() == tag

    parser = Balance()
    parser.open = []
    parser.feed(page)
    assert parser.open == []
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))


def test_the_same_runs_give_the_same_page(page: str, runs: list[Run]) -> None:
    assert render(runs) == page


def test_figures_are_drawn_in_light_and_in_dark() -> None:
    values = np.random.default_rng(0).random((2, 1000))
    draw = partial(curves, [Series(np.arange(1000), values, 0)], "updates", quantity="positive")
    for palette, other in ((LIGHT, DARK), (DARK, LIGHT)):
        drawing = svg(draw, palette)
        assert palette.series[0] in drawing
        assert palette.soft in drawing
        assert other.series[0] not in drawing
        assert len(drawing) < 60_000
    html = picture(Drawing("a", "<b>", (), draw))
    found = re.findall(r"base64,([^\"]+)\"", html)
    dark, light = (base64.b64decode(document).decode() for document in found)
    assert (light, dark) == (svg(draw, LIGHT), svg(draw, DARK))
    assert 'aria-label="&lt;b&gt;."' in html


def test_axes_have_sensible_limits() -> None:
    flat = np.full((2, 3), 0.1004)
    flat[1] += 1e-6
    tasks = np.array([1, 2, 3])
    for quantity, low, high in (
        ("accuracy", 0, 1),
        ("close accuracy", 0.05, 0.15),
        ("share", 0, 0.11),
        ("positive", 0, 0.11),
    ):
        plot = curves([Series(tasks, flat, 0)], "task", LIGHT, quantity=quantity)
        assert plot.axes.get_ylim() == pytest.approx((low, high), abs=0.003)
        plot.figure.draw_without_rendering()
        assert plot.axes.yaxis.get_offset_text().get_text() == ""
        assert [label.get_text() for label in plot.axes.get_xticklabels()] == ["1", "2", "3"]
    wide = curves([Series(tasks, np.array([[0.0, 0.001, 0.9], [0.0, 0.0, 0.1]]), 0)], "task", LIGHT)
    assert wide.axes.get_ylim() == (0, 1)  # the band is not: no share is negative


def test_values_are_where_they_are_drawn() -> None:
    """Places in a picture, found again from the dots of its SVG."""
    one = Series(np.array([4.0]), np.array([[0.5]]), 0, "-", "er")
    plot = curves([one], "task", LIGHT)
    ((x, y, text),) = plot.places()
    drawing = svg(partial(curves, [one], "task"))
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing)[0])
    marks = re.findall(r'<use xlink:href="#\w+" x="([\d.]+)" y="([\d.]+)"', drawing)
    near = [(float(a) / width * 1000, float(b) / height * 1000) for a, b in marks]
    assert any(abs(a - x) < 3 and abs(b - y) < 3 for a, b in near)
    assert text == "er: 50.0 % (task: 4)"


def test_each_learner_has_its_own_colour() -> None:
    colours = [colour_of(learner) for learner in LEARNERS]
    assert len({*colours}) == len(LEARNERS) == len({*LIGHT.series}) == len({*DARK.series})
    matrix = partial(accuracy_matrix, np.full((2, 2), 1.0), colour=colour_of("er"))
    lines = svg(partial(task_lines, np.full((2, 2), 1.0), colour=colour_of("er")))
    assert LIGHT.series[colour_of("er")] in lines
    assert svg(matrix) != svg(partial(accuracy_matrix, np.full((2, 2), 1.0)))


def test_a_palette_is_a_list_of_css_variables() -> None:
    assert LIGHT.css.startswith("--page: #f6f7f9; --card: #ffffff; ")
    assert LIGHT.css.count("--series-") == len(LIGHT.series) == len(DARK.series)


def test_large_matrices_are_drawn_without_numbers() -> None:
    drawing = svg(partial(accuracy_matrix, np.full((2, 2), 0.25)))
    assert drawing.count(">25<") == 4
    for label in ("tested on task", "after task", "accuracy", "100 %"):
        assert f">{label}<" in drawing
    drawing = svg(partial(accuracy_matrix, np.full((30, 30), 0.25)))
    assert drawing.count(">25<") <= 2  # tick labels


def test_where_a_task_was_not_tested_again_its_last_accuracy_stands() -> None:
    matrix = np.array([[0.21, 0.1, np.nan], [np.nan, 0.32, 0.1], [np.nan, np.nan, 0.43]])
    drawing = svg(partial(accuracy_matrix, matrix))
    assert [drawing.count(f">{number}<") for number in (21, 32, 43)] == [3, 2, 1]


def test_a_page_that_cannot_be_written(runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(Unwritable, match="cannot be written"):
        write_report(runs[1:2], tmp_path)


def test_a_damaged_run_is_what_the_error_is_about(small_run: Run, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small_run.folder, tmp_path / "run"))
    (folder / "seed-0/diagnostics.jsonl").write_text("{\n")
    with pytest.raises(DataCorrupt, match=r"diagnostics\.jsonl is missing or damaged"):
        write_report([read_run(folder)], tmp_path / "page.html")


def test_what_was_there_stays_whole_where_the_new_cannot_be_written(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for name in ("page.html", "figure.svg"):
        (tmp_path / name).write_text("older")
    with pytest.raises(Unwritable, match="No space left"):
        write_report(runs[1:2], tmp_path / "page.html")
    with pytest.raises(Unwritable, match="No space left"):
        export(Drawing("figure", "", (), partial(accuracy_matrix, np.eye(2))), tmp_path)
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"page.html": "older", "figure.svg": "older"}


def test_latex_is_written_so_that_it_can_be_read() -> None:
    table = Table("a", "", ["x", "y"], [["50 % ± 1", r"a_b&c#d$e{f}~g^h\i"]])
    assert r"50 \% $\pm$ 1 & a\_b\&c\#d\$e\{f\}\textasciitilde{}g\textasciicircum{}h" in table.latex
    assert r"\textbackslash{}i \\" in table.latex


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_it_fits_the_screen(page: str, width: int, scheme: str, tmp_path: Path) -> None:
    found = opened(page, width, tmp_path, scheme)
    assert found["wide"] == width
    assert found["high"] > 900
    assert found["drawn"]
    assert found["labelled"]
    assert (found["scrolled"] > 0) == (width == 400)
    assert not found["console"]
    palette = {"light": LIGHT, "dark": DARK}[scheme]
    numbers = [int(palette.page[at : at + 2], 16) for at in (1, 3, 5)]
    assert found["background"] == f"rgb({', '.join(map(str, numbers))})"
    assert palette.soft in base64.b64decode(found["source"].partition(",")[2]).decode()
    assert len(found["told"]) == page.count('role="img"')
    for hover in found["told"]:
        assert hover["shown"] == hover["wanted"] != ""
        assert hover["gone"]
