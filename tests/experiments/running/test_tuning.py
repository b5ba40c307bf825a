"""The search for settings: on validation rows only, resumed without repeating a trial.

LAMAML_TUNE_TRIALS is the number of trials of the killed study (default 4; `make soak` has 20).
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lamaml.cli import main
from lamaml.errors import InvalidArgument, LamamlError
from lamaml.experiments.recipes.load import recipe
from lamaml.experiments.running.engines import Workers
from lamaml.experiments.running.search import make_request, read_search
from lamaml.experiments.running.tuning import tune
from lamaml.experiments.storing.results import read_run
from lamaml.experiments.storing.studies import Study, TrialState, read_study
from lamaml.streams import load_stream
from lamaml.types import Choices, Examples, Range, Stream
from processes import kill_all

pytest.importorskip("optuna", reason="needs Optuna: pip install 'lamaml[tune]'")
pytestmark = [
    pytest.mark.usefixtures("compiled"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]
TRIALS = int(os.environ.get("LAMAML_TUNE_TRIALS", "4"))
SMALL = ("--samples", "60", "--set", "glances=1", "--set", "epochs=5", "--tasks", "2")


def digits(out: Path, num_trials: int, epochs: int = 1, **options: object) -> Study:
    fixed = {"glances": 1, "epochs": epochs}
    chosen = recipe("digits_rotations", "er", overrides=fixed)
    request, space = make_request(chosen, num_samples=40, fixed=list(fixed), **options)
    return tune(request, space, out, num_trials=num_trials, workers=Workers(1))


def test_a_bad_start_is_left_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tune", "digits_rotations", "er", *SMALL, "--trials", "4", "--json"]
    with pytest.raises(SystemExit) as ending:
        main([*words, "--start", "learning_rate=0.0001", "--out", str(tmp_path / "study")])
    assert ending.value.code == 0
    found = json.loads(capsys.readouterr().out)
    study = read_study(tmp_path / "study")
    assert len(found["trials"]) == len(study.trials) == 4
    first, best = study.trials[0], study.best
    assert first.settings == {"learning_rate": 0.0001}
    assert best is not None
    assert best.ra > first.ra + 10
    rate = recipe(str(tmp_path / "study/tuned.toml"), "er").settings
    assert rate["learning_rate"] == best.settings["learning_rate"]
    assert (rate["glances"], rate["max_norm"]) == (1, 2.0)
    page = (tmp_path / "study/report.html").read_text("utf-8")
    assert page.count("<figcaption>") == 2
    assert f"{best.ra:.2f} % in trial {best.number}" in page
    run = read_run(tmp_path / f"study/trials/{best.number}")
    assert run.settings.split == "validation"
    assert run.summary.ra.mean == best.ra


def test_a_killed_study_goes_on_and_repeats_no_trial(tmp_path: Path) -> None:
    out = tmp_path / "study"
    words = ["tune", "digits_rotations", "er", *SMALL, "--trials", str(TRIALS), "--out", str(out)]
    command = [sys.executable, "-m", "lamaml", *words, "--processes", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (out / "study.json").exists() or len(read_study(out).trials) < TRIALS // 2:
        assert process.poll() is None
        time.sleep(0.02)
    kill_all(process.pid)
    process.communicate()
    before = read_study(out).trials
    times = {path: path.stat().st_mtime_ns for path in out.glob("trials/*/seed-0/status.json")}
    numbers = [trial.number for trial in before]
    ended = {number: times[out / f"trials/{number}/seed-0/status.json"] for number in numbers}
    with pytest.raises(SystemExit) as ending:
        main(words)
    assert ending.value.code == 0
    after = read_study(out).trials
    assert [trial.number for trial in after] == list(range(TRIALS))
    assert list(after[: len(before)]) == list(before)
    for number, made in ended.items():
        assert (out / f"trials/{number}/seed-0/status.json").stat().st_mtime_ns == made


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "study"
    words = ["tune", "digits_rotations", "online", "--set", "epochs=500", "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "lamaml", *words], stderr=subprocess.PIPE, text=True
    )
    while not list(out.glob("trials/*/seed-0/diagnostics.jsonl")):
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGTERM)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert error.endswith(f"`--out {out}` with the same command continues\n")


MODULE = """
import numpy as np
from lamaml.streams import load_stream
from lamaml.types import Examples
from dataclasses import replace
def stream(*, seed, num_tasks=10, num_samples=300, poison=False):
    assert num_tasks <= 2, "a later task is read"
    found = load_stream("digits_rotations", seed=seed, num_tasks=num_tasks, num_samples=num_samples)
    tasks = [
        task._replace(test=Examples(task.test.x[::-1] * 0, task.test.y * 0)) if poison else task
        for task in found.tasks
    ]
    return replace(found, tasks=tasks)
"""


def test_neither_test_rows_nor_later_tasks_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream fails if a third task is asked for; other test rows give the same study."""
    (tmp_path / "guarded.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    studies = []
    for poison in (False, True):
        settings = {"poison": poison, "glances": 1, "learning_rate": 0.1}
        chosen = recipe("guarded:stream", "er", overrides=settings)
        request, space = make_request(
            chosen, num_tasks=2, num_samples=40, fixed=list(settings), searches=MEMORY
        )
        out = tmp_path / str(poison)
        studies.append(tune(request, space, out, num_trials=2, workers=Workers(1)))
    one, other = ([(t.settings, t.ra) for t in study.trials] for study in studies)
    assert one == other
    runs = [read_run(tmp_path / f"{poison}/trials/0") for poison in (False, True)]
    assert runs[0].seeds[0].status.data == runs[1].seeds[0].status.data  # they are no part of it


MEMORY = {"memory_size": Choices((5, 50))}


def test_a_prefix_equals_the_beginning_of_the_stream() -> None:
    def rows(stream: Stream, task: int) -> list[Examples]:
        return [stream.tasks[task].train, stream.tasks[task].validation]

    short = load_stream("digits_rotations", seed=0, num_tasks=3)
    whole = load_stream("digits_rotations", seed=0)
    for task in range(3):
        for one, other in zip(rows(short, task), rows(whole, task), strict=True):
            assert np.array_equal(one.x, other.x)
            assert np.array_equal(one.y, other.y)


def test_hopeless_trials_are_stopped_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamaml.experiments.running.tuning.STARTUP", 1)
    wide = {"learning_rate": Range(1e-9, 0.3)}
    study = digits(tmp_path / "study", 3, epochs=100, searches=wide, start={"learning_rate": 0.3})
    states = [trial.state for trial in study.trials]
    assert states[0] is TrialState.FINISHED
    assert TrialState.PRUNED in states
    pruned = read_run(tmp_path / f"study/trials/{states.index(TrialState.PRUNED)}")
    assert pruned.summary.statuses == ["interrupted"]
    assert len(pruned.seeds[0].matrix) == 3
    assert np.isnan(pruned.seeds[0].matrix[2]).all()  # the last task was never learned


def test_a_setting_that_diverges_is_recorded(tmp_path: Path) -> None:
    chosen = recipe("digits_rotations", "online", overrides={"glances": 1, "max_norm": None})
    request, space = make_request(
        chosen,
        num_samples=40,
        fixed=["glances", "max_norm"],
        searches={"learning_rate": Choices((0.1, 1e30))},
        start={"learning_rate": 1e30},
    )
    study = tune(request, space, tmp_path / "study", num_trials=1, workers=Workers(1))
    assert [trial.state for trial in study.trials] == [TrialState.DIVERGED]
    assert study.best is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on": "test"}, "on = 'test': must be prefix or validation"),
        ({"fixed": ["learning_rate", "glances"]}, "nothing to search"),
        ({"start": {"memory_size": 5}}, "unknown searched setting 'memory_size'"),
    ],
)
def test_requests_that_are_refused(options: dict, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        make_request(recipe("digits_rotations", "er"), **options)


def test_another_study_in_the_folder_is_refused(tmp_path: Path) -> None:
    digits(tmp_path / "study", 1, num_tasks=1)
    with pytest.raises(InvalidArgument, match="num_tasks 1 there, 2 here"):
        digits(tmp_path / "study", 1, num_tasks=2)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.tex").touch()
    with pytest.raises(InvalidArgument, match="exists and is not a study"):
        digits(tmp_path / "thesis", 1)


def test_where_to_search_is_read_from_text() -> None:
    assert read_search("0.001:0.5") == Range(0.001, 0.5)
    assert read_search("1,2", int) == Choices((1, 2))
    for text in ("0:1", "2:1", "a:b", "1.5,x"):
        with pytest.raises(InvalidArgument):
            read_search(text)


def test_without_optuna_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(LamamlError, match=r"pip install 'lamaml\[tune\]'"):
        digits(tmp_path / "study", 1)
