import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lamaml.errors import InvalidArgument, Mismatch
from lamaml.panel.judge import Result, judge, predict_then_learn
from lamaml.panel.models import MODELS, Majority, Setting
from lamaml.panel.page import render
from lamaml.panel.refitted import Refitted
from lamaml.panel.rows import LabelledRows, hold_out
from lamaml.panel.run import FULL, QUICK, plan, read_panel, run
from lamaml.panel.streams import CHOOSING, JUDGING, STREAMS, load
from lamaml.panel.tables import means, summary_table, tables

river = pytest.importorskip("river", reason="needs lamaml[panel]")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A panel of two cheap models on two streams."""
    folder = tmp_path_factory.mktemp("panel")
    jobs = plan(QUICK, 1, ["digits_by_class", "chick_weights"], ["majority", "sgd"])
    run(jobs, folder, QUICK)
    return folder


def test_both_halves_have_streams_of_every_kind():
    for half in (CHOOSING, JUDGING):
        kinds = {(s.is_regression, s.memory_size) for s in STREAMS.values() if s.half == half}
        assert kinds == {(False, 1_000), (False, 200), (True, 1_000)}


def test_a_tenth_is_held_out_and_drifts_move_with_it():
    rows = LabelledRows(np.arange(100.0)[:, None], np.arange(100), drifts=(50,))
    split = hold_out(rows, seed=3)
    assert len(split.held_y) == 10
    assert sorted([*split.y, *split.held_y]) == list(range(100))
    assert split.y[split.drifts[0]] >= 50 > split.y[split.drifts[0] - 1]


def test_every_row_is_predicted_once_before_it_is_learned():
    class Witness(Majority):
        def __init__(self):
            super().__init__(Setting(3, 10, 0))
            self.events = []

        def learn(self, x, y):
            self.events += [("learn", int(i)) for i in x[:, 0]]
            super().learn(x, y)

        def predict(self, x):
            self.events += [("predict", int(i)) for i in x[:, 0]]
            return super().predict(x)

    rows = hold_out(LabelledRows(np.arange(60.0)[:, None], np.arange(60) % 3), seed=0)
    model = Witness()
    answers, _ = predict_then_learn(model, rows)
    assert len(answers) == len(rows.y) - 10
    for row in rows.x[10:, 0].astype(int):
        assert model.events.index(("predict", row)) < model.events.index(("learn", row))
        assert model.events.count(("predict", row)) == 1


def test_a_refitted_model_answers_as_one_that_is_asked_ten_rows_at_a_time():
    rows = load("digits_by_class", 0, 600)

    class InTens(Refitted):
        def next_step(self):
            return 10

    def build(kind):
        from sklearn.neighbors import KNeighborsClassifier

        return kind(lambda: KNeighborsClassifier(1), 10, 50, every=100, is_window=False, seed=0)

    at_once, _ = predict_then_learn(build(Refitted), rows)
    in_tens, _ = predict_then_learn(build(InTens), rows)
    assert np.array_equal(at_once, in_tens)


def test_a_window_keeps_the_last_rows():
    class Recorder:
        classes_ = np.arange(2)

        def fit(self, x, y):
            self.y = y
            return self

    model = Refitted(Recorder, 2, 20, every=10, is_window=True, seed=0)
    for start in range(0, 60, 10):
        x = np.arange(start, start + 10.0)[:, None]
        model.learn(x, x[:, 0].astype(int))
    model.end_stream()
    assert sorted(model._fitted.y) == list(range(40, 60))


@pytest.mark.parametrize("model", ["auto", "mlp", "river_linear", "extra_trees"])
def test_every_kind_of_model_beats_the_majority(model):
    scores = {name: judge("digits_turning", name, 0, 400) for name in (model, "majority")}
    assert scores[model].retained > scores["majority"].retained
    assert 0 <= scores[model].balanced <= 1
    assert scores[model].num_bytes > 0


@pytest.mark.parametrize("model", ["auto", "river_tree", "boosting"])
def test_models_of_numbers_return_finite_errors(model):
    result = judge("chick_weights", model, 0, 200)
    assert np.isfinite(result.prequential)
    assert np.isfinite(result.retained)
    assert np.isnan(result.log_loss)


def test_scores_after_a_drift_are_read_from_the_curve():
    curve = [0.0] * 10 + [1.0] * 30
    fields = {"prequential": 0.5, "retained": 0.5, "balanced": 0.5, "log_loss": 1.0}
    result = Result(
        "sea", "auto", 0, 4_000, **fields, retained_log_loss=1.0, drifts=[950], curve=curve,
        seconds=0.1, num_bytes=1,
    )  # fmt: skip
    assert result.after_drifts == pytest.approx(9 / 9)
    assert result.scores(0, 1_000) == 0.0
    assert result.scores(500, 1_500) == pytest.approx(0.5)


def test_a_finished_result_is_not_computed_again(small, monkeypatch):
    before = {path: path.stat().st_mtime_ns for path in small.rglob("*-0.json")}
    assert len(before) == 4
    jobs = plan(QUICK, 1, ["digits_by_class", "chick_weights"], ["majority", "sgd"])
    run(jobs, small, QUICK)
    assert before == {path: path.stat().st_mtime_ns for path in small.rglob("*-0.json")}


def test_a_folder_holds_one_form(small):
    with pytest.raises(Mismatch, match="quick"):
        run([], small, FULL)


def test_tables_and_page_show_the_stored_results(small):
    panel = read_panel(small / "panel.json")
    found = {table.name: table for table in tables(panel)}
    assert set(found) == {"summary_choosing", "streams", "regression"}
    sgd = next(row for row in found["summary_choosing"].rows if row[0] == "sgd")
    stored = json.loads((small / "results/digits_by_class/sgd-0.json").read_text())
    assert sgd[1] == f"{100 * stored['prequential']:.1f}"
    assert sgd[3] == f"{100 * stored['retained']:.1f}"
    assert sgd[3] in render(panel)


def test_ranks_are_mean_places_over_streams(small):
    panel = read_panel(small / "panel.json")
    found = means(panel, lambda r: r.retained, half=CHOOSING)
    assert dict(zip(found.models, found.ranks(), strict=True)) == {"sgd": 1.0, "majority": 2.0}
    assert not summary_table(panel, JUDGING).rows


def test_unknown_names_are_refused():
    with pytest.raises(InvalidArgument, match="'sea'"):
        plan(FULL, 1, ["see"])
    with pytest.raises(InvalidArgument, match="'mlp'"):
        plan(FULL, 1, [], ["mlpp"])
    assert len(plan(FULL, 2)) == 2 * len(STREAMS) * len(MODELS)


def panel_command(folder, *options):
    command = [sys.executable, "-m", "lamaml", "panel", "--out", str(folder), "--quick"]
    command += ["--stream", "chick_weights", "--processes", "1"]
    return [*command, *options]


def test_an_interrupted_panel_goes_on(tmp_path):
    command = panel_command(tmp_path, "--model", "river_tree", "--seeds", "8")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as work:
        assert "1 of 8" in work.stderr.readline()
        work.send_signal(signal.SIGTERM)
        said = work.stderr.read()
    assert work.returncode == 130
    assert "the same command continues" in said
    stored = len(list(tmp_path.rglob("*-*.json")))
    assert 1 <= stored < 8
    jobs = plan(QUICK, 8, ["chick_weights"], ["river_tree"])
    numbers = []
    panel = run(jobs, tmp_path, QUICK, on_result=lambda done, total, _: numbers.append(done))
    assert len(panel.results) == 8
    assert numbers == list(range(stored + 1, 9))


def test_workers_end_when_the_panel_is_killed(tmp_path):
    psutil = pytest.importorskip("psutil")
    command = panel_command(tmp_path, "--model", "river_forest", "--seeds", "99")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as work:
        work.stderr.readline()
        workers = psutil.Process(work.pid).children(recursive=True)
        assert workers
        os.kill(work.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive


def test_a_stream_without_its_data_is_named_and_left_out(tmp_path, monkeypatch):
    from lamaml.errors import DataUnavailable
    from lamaml.panel.run import Job, _compute

    def missing(*job):
        raise DataUnavailable("no such file")

    monkeypatch.setattr("lamaml.panel.run.judge", missing)
    assert "no such file" in str(_compute(Job("mnist_by_class", "auto", 0, 100), tmp_path))
    assert not list(tmp_path.rglob("*.json"))


def test_the_documents_are_what_the_stored_panel_says():
    from panel_document import panel_page, when_not_to_use_it_page

    docs = Path(__file__).parents[2] / "docs"
    panel = read_panel(docs / "panel.json")
    assert (docs / "panel.md").read_text("utf-8") == panel_page(panel)
    page = docs / "guides" / "when_not_to_use_it.md"
    assert page.read_text("utf-8") == when_not_to_use_it_page(panel)
