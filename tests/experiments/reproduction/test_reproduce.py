"""`lamaml reproduce` from end to end, on the embedded digits: killed, started again, looked at."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from browser import needs_chromium, opened

from lamaml import cli
from lamaml._records import from_json
from lamaml.bench import Measurements
from lamaml.experiments.reproduction.figures import figures
from lamaml.experiments.reproduction.outcomes import Outcome, read_outcomes
from lamaml.experiments.reproduction.run import render_page
from lamaml.experiments.reproduction.tables import tables
from lamaml.experiments.reproduction.targets import TARGETS
from lamaml.experiments.storing.records import read_record
from lamaml.panel.run import read_panel
from processes import kill_all
from results_documents import results_page, with_tables

ROOT = Path(__file__).parents[3]
_MLP = ("la_maml", "mlp", "first", 1)  # the updates of which README shows the fastest
PAPER = [name for name, target in TARGETS.items() if target.of_paper]
COMMAND = [sys.executable, "-m", "lamaml", "reproduce"]
SMALL = ["--scale", "quick", "--tasks", "3", "--samples", "60", "--rate", "0.03", "--rate", "0.3"]
TIMES = ("seconds", "train_seconds", "ms_per_update", "date")


def finished(store: Path) -> dict[Path, tuple[int, bytes]]:
    """Every file of the seeds that have finished, and when it was written."""
    seeds = [
        status.parent
        for status in store.glob("*/seed-*/status.json")
        if json.loads(status.read_bytes())["status"] == "finished"
    ]
    files = [file for seed in seeds for file in sorted(seed.rglob("*")) if file.is_file()]
    return {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


def killed_after(num_files: int, out: Path) -> dict[Path, tuple[int, bytes]]:
    """Start everything, kill it with all it has started, and say what had been finished."""
    command = [*COMMAND, "all", *SMALL, "--out", str(out)]
    with (out / "said").open("wb") as said, subprocess.Popen(command, stderr=said) as process:
        while len(finished(out / "cells")) < num_files:
            assert process.poll() is None, (out / "said").read_text()
            time.sleep(0.2)
        kill_all(process.pid)
    return finished(out / "cells")


@pytest.fixture(scope="module")
def killed(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, dict[Path, tuple[int, bytes]], str]:
    """A folder where all was killed and started again; what was finished then; what was said."""
    out = tmp_path_factory.mktemp("reproduction")
    before = killed_after(60, out)
    done = subprocess.run(
        [*COMMAND, "all", *SMALL, "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out, before, done.stderr


@pytest.fixture(scope="module")
def outcomes(killed) -> dict[str, dict[str, Any]]:
    out, _, _ = killed
    return {name: json.loads((out / "quick" / f"{name}.json").read_text()) for name in PAPER}


def without_times(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in cell.items() if k not in TIMES} for cell in outcome["cells"]]


def test_finished_cells_are_not_computed_again(killed) -> None:
    out, before, said = killed
    assert len(before) >= 60
    for file, (written, content) in before.items():
        assert file.stat().st_mtime_ns == written, file
        assert file.read_bytes() == content
    num_finished = sum(file.name == "status.json" for file in before)
    assert runs_announced(said) == runs_announced((out / "said").read_text()) - num_finished


def runs_announced(said: str) -> int:
    found = re.search(r"\d+ cells, \d+ of them not finished: (\d+) runs, \d at once, about", said)
    assert found is not None, said
    return int(found[1])


def test_it_ends_as_if_it_had_not_been_killed(killed, outcomes, tmp_path: Path) -> None:
    names = ["table4", "figure-lookahead"]
    command = [*COMMAND, *names, *SMALL, "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    for name in names:
        alone = json.loads((tmp_path / "quick" / f"{name}.json").read_text())
        assert without_times(alone) == without_times(outcomes[name])


def test_a_third_time_nothing_is_computed_and_the_page_is_the_same(killed, capfd) -> None:
    out, _, _ = killed
    page = (out / "quick/report.html").read_bytes()
    with pytest.raises(SystemExit) as ending:
        cli.main(["reproduce", "all", *SMALL, "--out", str(out), "--json"])
    assert ending.value.code == 0
    printed, said = capfd.readouterr()
    assert "nothing is computed again" in said
    assert [json.loads(line)["target"] for line in printed.splitlines()] == PAPER
    assert (out / "quick/report.html").read_bytes() == page


def test_a_target_made_again_leaves_the_others_on_the_page(killed, capfd) -> None:
    out, _, _ = killed
    page = (out / "quick/report.html").read_bytes()
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "table2", *SMALL, "--out", str(out), "--json"])
    assert json.loads(capfd.readouterr().out)["target"] == "table2"
    assert (out / "quick/report.html").read_bytes() == page


def test_every_cell_has_its_numbers(outcomes) -> None:
    for name, outcome in outcomes.items():
        assert outcome["missing"] == []
        assert outcome["scale"] == "quick"
        for cell in outcome["cells"]:
            assert set(cell["statuses"]) <= {"finished", "diverged"}, (name, cell["row"])
            assert set(cell["verdicts"].values()) <= {"–"}  # digits are not the paper's data
        assert {claim["verdict"] for claim in outcome["claims"]} <= {"not judged"}
        read = from_json(Outcome, outcome)
        assert "paper" not in tables(read)[0].header
        assert all("digits_" in drawing.caption for drawing in figures(read))
    assert all(cell["measured"]["alignment"] for cell in outcomes["table4"]["cells"])
    assert outcomes["figure-lookahead"]["cells"][0]["measured"] is not None
    assert all(len(c["ra"]["values"]) == 2 for c in outcomes["table1"]["cells"])


def test_tables_and_figures_are_files_too(killed, outcomes) -> None:
    folder = killed[0] / "quick"
    for name, outcome in outcomes.items():
        for suffix in (".md", ".tex", ".csv"):
            assert (folder / f"{name}{suffix}").stat().st_size > 50
        rows = (folder / f"{name}.csv").read_text().splitlines()
        assert len(rows) == 1 + len(tables(from_json(Outcome, outcome))[0].rows)
    for figure in ("robustness-la_maml", "robustness-grid-c_maml", "time", "intertask"):
        assert (folder / f"figure-{figure}.svg").read_bytes().startswith(b"<?xml")
        assert (folder / f"figure-{figure}.pdf").read_bytes().startswith(b"%PDF")


def test_more_seeds_keep_those_there_are(killed, tmp_path: Path) -> None:
    only = ["--only", "la-maml rotations"]
    command = [*COMMAND, "table2", *SMALL, *only, "--out", str(tmp_path)]
    subprocess.run([*command, "--seeds", "1"], check=True, capture_output=True)
    before = finished(tmp_path / "cells")
    subprocess.run([*command, "--seeds", "2"], check=True, capture_output=True)
    assert all(file.stat().st_mtime_ns == written for file, (written, _) in before.items())
    found = json.loads((tmp_path / "quick/table2.json").read_text())
    assert [len(cell["ra"]["values"]) for cell in found["cells"]] == [2]


def test_stored_runs_nothing_and_writes_what_has_finished(killed, tmp_path: Path, capfd) -> None:
    arguments = ["reproduce", "table2", *SMALL, "--stored", "--json"]
    with pytest.raises(SystemExit) as ending:
        cli.main([*arguments, "--out", str(tmp_path)])
    assert ending.value.code == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["cells"], len(found["missing"])) == ([], 4)
    assert not (tmp_path / "cells").exists()

    (tmp_path / "cells").symlink_to(killed[0] / "cells")
    before = finished(tmp_path / "cells")
    with pytest.raises(SystemExit):
        cli.main([*arguments, "--out", str(tmp_path), "--seeds", "5"])  # two have finished
    found = json.loads(capfd.readouterr().out)
    assert [len(cell["ra"]["values"]) for cell in found["cells"]] == [2] * 4
    assert found["missing"] == []
    assert (tmp_path / "quick/report.html").is_file()
    assert finished(tmp_path / "cells") == before


def test_recorded_cells_of_another_machine_stay(killed, tmp_path: Path) -> None:
    def recorded(folders: Iterable[Path], machine: str, record: str = "record") -> Outcome:
        out = tmp_path / machine
        (out / "cells").mkdir(parents=True)
        for folder in folders:
            (out / "cells" / folder.name).symlink_to(folder)
        words = ["reproduce", "table2", *SMALL, "--stored", "--out", str(out)]
        with pytest.raises(SystemExit):
            cli.main([*words, "--record", str(tmp_path / record)])
        (path,) = (tmp_path / record).glob("table2-quick-*.json")
        return read_record(path, Outcome)

    folders = list((killed[0] / "cells").iterdir())
    whole = recorded(folders, "all", "whole")
    first, second = (cell.cell for cell in whole.cells[:2])
    assert len(recorded([f for f in folders if f.name.startswith(first)], "one").cells) == 1
    both = recorded([f for f in folders if f.name.startswith(second)], "two")
    assert list(both.cells) == list(whole.cells[:2])
    assert len(both.missing) == 2
    assert recorded([], "none").cells == both.cells


def test_at_quick_sizes_learners_learn_and_forget(tmp_path: Path) -> None:
    """As in the demo: La-MAML retains more than ER, ER more than Online."""
    only = ["--only", "online rotations", "--only", "er single cifar-100", "--only", "la-maml rot"]
    command = [*COMMAND, "table1", "table3", "--scale", "quick", *only, "--seeds", "1"]
    subprocess.run([*command, "--out", str(tmp_path)], check=True, capture_output=True)
    cells = [
        cell
        for name in ("table1", "table3")
        for cell in json.loads((tmp_path / f"quick/{name}.json").read_text())["cells"]
    ]
    found = {cell["learner"]: cell["ra"]["mean"] for cell in cells}
    assert {cell["benchmark"] for cell in cells} == {"digits_rotations"}
    assert found["la_maml"] > found["er"] + 2 > found["online"] + 10


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_fits_the_screen(outcomes, width: int, scheme: str, tmp_path: Path) -> None:
    page = render_page([from_json(Outcome, found) for found in outcomes.values()])
    found = opened(page, width, tmp_path, scheme)
    assert found["wide"] == width
    assert found["drawn"]
    assert found["labelled"]
    assert (found["scrolled"] > 0) == (width == 400)
    assert all(hover["shown"] == hover["wanted"] != "" for hover in found["told"])
    assert not found["console"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["table9"], "table1"),
        (["table1", "--scale", "tiny"], "quick"),
        (["table1", "--scale", "quick", "--only", "nothing"], "no cell matches --only"),
    ],
)
def test_wrong_words_are_one_line(arguments, words, capfd, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ending:
        cli.main(["reproduce", *arguments, "--out", str(tmp_path / "out")])
    said = capfd.readouterr().err
    assert ending.value.code == 2
    assert words in said
    assert said.count("\n") == 1


def test_documents_say_what_the_outcomes_say() -> None:
    found = read_outcomes(ROOT / "docs/results")
    page = (ROOT / "docs/results.md").read_text("utf-8")
    measured = Measurements.from_json(json.loads((ROOT / "docs/bench.json").read_text()))
    assert page == results_page(found, measured)
    for picture in re.findall(r"\]\((results/.*?\.svg)\)", page):
        assert (ROOT / "docs" / picture).is_file(), "make results"
    for name in ("README.md", "docs/speed.md", "docs/serving.md"):
        text = (ROOT / name).read_text("utf-8")
        assert with_tables(text, found, measured, read_panel(ROOT / "docs/panel.json")) == text


def test_the_readme_shows_only_full_size_cells_of_la_maml() -> None:
    found = read_outcomes(ROOT / "docs/results")
    measured = Measurements.from_json(json.loads((ROOT / "docs/bench.json").read_text()))
    empty = "<!-- la_maml -->\n<!-- end -->\n<!-- bench -->\n<!-- end -->"
    panel = read_panel(ROOT / "docs/panel.json")
    table, bench = with_tables(empty, found, measured, panel).split("<!-- end -->")[:2]
    cells = [cell for o in found.values() for cell in o.cells if cell.learner == "la_maml"]
    whole = {c.column for c in cells if c.is_whole and c.row == "La-MAML" and not c.measured.curves}
    assert table.count("\n| ") == 2 + len(whole)  # header, rule, cells
    assert "| Rotations | 5 | " in table
    assert "Not run at full size yet: CIFAR-100, multiple" in table
    mlp = [t.ms for t in measured.updates if (t.learner, t.model, t.order, t.threads) == _MLP]
    assert f"{min(mlp):.3g} ms (MLP, first order)" in bench
    partial = {name: found[name] for name in found if not name.startswith("table1-full")}
    assert "Not run at full size yet: Rotations; Permutations; Many" in with_tables(
        empty, partial, measured, panel
    )
