"""The counts and ratios of `lamaml bench`; no test measures a time."""

import json

import pytest
from rich.console import Console

from lamaml.bench import Measurements, run, updates
from lamaml.bench.results import EstimatorLatency, GemTime, MerTime, UpdateTime
from lamaml.experiments.storing.environment import Environment
from lamaml.learners import LEARNERS

WEIGHTS = 784 * 100 + 100 * 100 + 100 * 10  # of the MLP, each used once a row


@pytest.mark.parametrize(
    ("learner", "order", "rows", "hessian_products"),
    [
        ("online", "first", 10, 0),
        ("er", "first", 20, 0),
        ("la_er", "first", 10 + 20 + 20, 0),
        ("la_maml", "first", 10 + 10 * 20, 0),
        ("la_maml", "second", 10 + 10 * 20, 10),
    ],
)
def test_the_work_is_a_pass_a_row(learner, order, rows, hessian_products) -> None:
    expected = WEIGHTS * (6 * rows + 12 * hessian_products)
    assert updates.num_operations("mlp", learner, order) == expected


def test_a_share_is_of_the_matrix_products_beside_it(monkeypatch, capsys) -> None:
    seconds = {"matrix product": 0.1, "first": 0.2, "second": 0.4}
    monkeypatch.setattr(updates, "best_seconds", lambda calls: {n: seconds[n] for n in calls})
    monkeypatch.setattr(updates, "update_call", lambda *case: lambda: case)
    run.measure_part("la_maml on the mlp", threads=1)
    found = json.loads(capsys.readouterr().out)
    assert [kind for kind, _ in found] == ["updates", "updates"]
    first, second = (row for _, row in found)
    assert first["gemm_gflops"] == pytest.approx(2 * 1024**3 / 0.1 / 1e9)
    assert first["share"] == pytest.approx(first["gflop"] / 0.2 / first["gemm_gflops"])
    assert first["ms"] == 200.0
    assert second["share"] == pytest.approx(second["gflop"] / 0.4 / second["gemm_gflops"])


def test_an_update_is_a_real_one() -> None:
    call = updates.update_call("mlp", "la_maml", "first")
    losses = [float(call()["loss"]) for _ in range(3)]
    assert losses[2] < losses[0]  # it learns the same rows again and again


def test_every_part_is_of_a_known_learner() -> None:
    learners = {part.partition(" on the ")[0] for part in run.PARTS if " on " in part}
    assert learners <= set(LEARNERS)
    assert {"online", "er", "c_maml", "sync_la_maml", "la_er", "la_maml"} <= learners


def test_a_part_that_fails_is_named(monkeypatch) -> None:
    monkeypatch.setattr(run, "PARTS", {"nothing": None})
    with pytest.raises(RuntimeError, match="measuring nothing with 1 threads failed"):
        run.measure(threads=(1,))


def test_measurements_are_read_as_they_were_written() -> None:
    times = [
        UpdateTime(threads, "la_maml", "mlp", "first", 2.0 / threads, 0.1, 90.0 * threads, 0.5)
        for threads in (1, 2)
    ]
    records = [*times, MerTime(1, 30.0, 3.0, 10.0), GemTime(1, 10, 5.0)]
    found = Measurements.collect(records, Environment({"jax": "0.10"}, machine="x"))
    assert found.gemm_gflops == {"1": 90.0, "2": 180.0}
    assert Measurements.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert found.update_table.header[3:] == ["ms, 1 thread", "share", "ms, 2 threads", "share"]
    assert found.update_table.rows == [["MLP", "la_maml", "first", "2.00", "50 %", "1.00", "50 %"]]


def test_the_printed_table() -> None:
    records = [
        UpdateTime(1, "la_maml", "mlp", "first", 2.0, 0.1, 100.0, 0.5),
        UpdateTime(2, "la_maml", "mlp", "first", 1.0, 0.1, 190.0, 0.5),
        EstimatorLatency(1, 2.4, 2.0, 0.3, 1.2, 7),
    ]
    console = Console(width=200)
    with console.capture() as capture:
        console.print(Measurements.collect(records, Environment({})).terminal)
    text = capture.get()
    assert "100 GFLOP/s with 1, 190 GFLOP/s with 2 threads" in text
    assert "2.00      50.0    50 %" in text
    assert "partial_fit of 10 rows takes 2.40 ms, 1.20 times the bare update" in text
    assert "takes 0.30 ms; 1,000 batch sizes compile 7 programs" in text
