"""The counts and ratios of `lamaml bench`; no test measures a time."""

import json
from types import SimpleNamespace

import pytest
from rich.console import Console

from lamaml.bench import Measurements, run, updates
from lamaml.bench.records import EstimatorLatency, GemTime, MerTime, UpdateTime
from lamaml.experiments.storing.environment import Environment
from lamaml.learners import LEARNERS

FIRST, SECOND, HEAD = 784 * 100, 100 * 100, 100 * 10  # weights of the MLP, by layer
# A layer above the first takes three products per row: forward, and the gradients of its weights
# and of its inputs. The first takes two: nothing reads the gradient of the data.
PASS = 2 * (2 * FIRST + 3 * SECOND + 3 * HEAD)


@pytest.mark.parametrize(
    ("learner", "rows"),
    [("online", 10), ("er", 20), ("la_er", 10 + 20 + 20), ("la_maml", 10 + 10 * 20)],
)
def test_the_work_of_the_general_path_is_a_pass_per_row(learner, rows) -> None:
    counted = updates.update_operations("mlp", learner, "first", updates.GENERAL)
    assert counted.products == rows * PASS


def test_the_function_space_path_does_not_unroll_the_first_layer() -> None:
    pairs = 10 * 10 + 10 * 11 // 2  # of a new row with an old one, or with a new one
    expected = 4 * FIRST * (20 + pairs) + 6 * (SECOND + HEAD) * (10 + 10 * 20)
    counted = updates.update_operations("mlp", "la_maml", "first", updates.FUNCTION_SPACE)
    assert counted.products == expected


def test_the_count_agrees_with_another_tool() -> None:
    counted = updates.update_operations("mlp", "la_maml", "first", updates.GENERAL)
    assert counted.products / 1e9 == pytest.approx(0.0797, abs=5e-5)  # by another tool


def test_a_share_is_of_the_matrix_products_beside_it(monkeypatch, capsys) -> None:
    seconds = {"matrix product": 0.1, "first": 0.2, "second": 0.4}
    monkeypatch.setattr(updates, "best_seconds", lambda calls: {n: seconds[n] for n in calls})
    monkeypatch.setattr(updates, "update_call", lambda *case: lambda: case)
    run.measure_part("la_maml on the mlp, general", threads=1)
    found = json.loads(capsys.readouterr().out)
    assert [kind for kind, _ in found] == ["updates", "updates"]
    first, second = (row for _, row in found)
    assert first["gemm_gflops"] == pytest.approx(2 * 1024**3 / 0.1 / 1e9)
    assert first["share"] == pytest.approx(first["gflop"] / 0.2 / first["gemm_gflops"])
    assert first["ms"] == 200.0
    assert second["share"] == pytest.approx(second["gflop"] / 0.4 / second["gemm_gflops"])


@pytest.mark.parametrize(
    ("learner", "path"),
    [("la_maml", "function_space"), ("la_maml", "general"), ("dark_la_maml", "function_space")],
)
def test_an_update_is_a_real_one(learner, path) -> None:
    call = updates.update_call("mlp", learner, "first", path)
    losses = [float(call()["loss"]) for _ in range(3)]
    assert losses[2] < losses[0]  # it learns the same rows again and again


def test_every_part_is_of_a_known_learner() -> None:
    learners = {part.partition(" on the ")[0] for part in run.PARTS if " on " in part}
    assert learners <= set(LEARNERS)
    assert {"online", "er", "c_maml", "sync_la_maml", "la_er", "la_maml"} <= learners
    assert {"der", "dark_la_maml"} <= learners


def test_a_part_that_fails_is_named(monkeypatch) -> None:
    monkeypatch.setattr(run, "PARTS", {"nothing": None})
    with pytest.raises(RuntimeError, match="measuring nothing with 1 threads failed"):
        run.measure(threads=(1,))


def test_measurements_are_read_as_they_were_written() -> None:
    times = [
        UpdateTime(
            threads, "la_maml", "mlp", "first", "general", 2 / threads, 0.1, 0.01, 90 * threads, 0.5
        )
        for threads in (1, 2)
    ]
    records = [*times, MerTime(1, 30.0, 3.0, 10.0), GemTime(1, 10, 5.0)]
    found = Measurements.collect(records, Environment({"jax": "0.10"}, machine="x"))
    assert found.gemm_gflops == {"1": 90.0, "2": 180.0}
    assert Measurements.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert found.update_table.header[5:] == ["ms, 1 thread", "share", "ms, 2 threads", "share"]
    row = ["MLP", "la_maml", "first", "general", "0.1000", "2.00", "50 %", "1.00", "50 %"]
    assert found.update_table.rows == [row]


def test_the_printed_table() -> None:
    records = [
        UpdateTime(1, "la_maml", "mlp", "first", "function_space", 2.0, 0.1, 0.01, 100.0, 0.5),
        UpdateTime(2, "la_maml", "mlp", "first", "function_space", 1.0, 0.1, 0.01, 190.0, 0.5),
        UpdateTime(1, "dark_la_maml", "mlp", "first", "function_space", 2.1, 0.1, 0.0, 100.0, 0.5),
        EstimatorLatency(1, 2.4, 2.0, 0.3, 1.2, 7, 200),
    ]
    console = Console(width=200)
    with console.capture() as capture:
        console.print(Measurements.collect(records, Environment({})).terminal)
    text = capture.get()
    assert "at most 1.05 times la_maml's time: MLP, first order, 1 thread" in text
    assert "100 GFLOP/s with 1, 190 GFLOP/s with 2 threads" in text
    assert "MLP la_maml first function space 0.1000 2.00 50 % 1.00 50 %" in " ".join(text.split())
    assert "partial_fit of 10 rows takes 2.40 ms, 1.20 times the bare update" in text
    assert "takes 0.30 ms; 200 batch sizes compile 7 programs" in text


def test_quick_measures_few_parts_with_one_number_of_threads(monkeypatch) -> None:
    lines: list[str] = []
    done = SimpleNamespace(returncode=0, stdout="[]")
    monkeypatch.setattr(run.subprocess, "run", lambda *_, **__: done)
    monkeypatch.setattr(run, "stalls", lambda rounds, calls, on_progress: [])
    monkeypatch.setattr(run.Environment, "here", lambda: Environment({}))
    run.measure(quick=True, on_progress=lines.append)
    assert {line.split(": ", 1)[1].split()[0] for line in lines} == {
        "er",
        "la_maml",
        "LaMAMLClassifier,",
    }
    assert all(line.endswith(", 1 thread") for line in lines)
    total = len(lines) + len(run.IMPORTS) + 3
    assert [line.split(":")[0] for line in lines[:2]] == [f"1 of {total}", f"2 of {total}"]
