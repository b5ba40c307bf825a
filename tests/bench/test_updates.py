"""What `lamaml bench` counts and how it divides; not how long anything takes."""

import json

import pytest

from lamaml.bench import updates
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
    assert updates.work("mlp", learner, order) == expected


def test_a_share_is_of_the_matrix_products_beside_it(monkeypatch, capsys) -> None:
    seconds = {"matrix product": 0.1, "first": 0.2, "second": 0.4}
    monkeypatch.setattr(updates, "best_seconds", lambda calls: {n: seconds[n] for n in calls})
    monkeypatch.setattr(updates, "update_call", lambda *case: lambda: case)
    updates.measure_here("la_maml on the mlp")
    first, second = json.loads(capsys.readouterr().out)["updates"]
    assert first["gemm_gflops"] == pytest.approx(2 * 1024**3 / 0.1 / 1e9)
    assert first["share"] == pytest.approx(first["gflop"] / 0.2 / first["gemm_gflops"])
    assert first["ms"] == 200.0
    assert second["share"] == pytest.approx(second["gflop"] / 0.4 / second["gemm_gflops"])


def test_an_update_is_a_real_one() -> None:
    call = updates.update_call("mlp", "la_maml", "first")
    losses = [float(call()["loss"]) for _ in range(3)]
    assert losses[2] < losses[0]  # it learns the same rows again and again


def test_every_part_is_of_a_known_learner() -> None:
    learners = {part.partition(" on the ")[0] for part in updates.PARTS if " on " in part}
    assert learners <= set(LEARNERS)
    assert {"online", "er", "c_maml", "sync_la_maml", "la_er", "la_maml"} <= learners


def test_a_part_that_fails_is_named(monkeypatch) -> None:
    monkeypatch.setattr(updates, "PARTS", {"nothing": dict})
    with pytest.raises(RuntimeError, match="measuring nothing with 1 threads failed"):
        updates.main_measurements(threads=(1,))
