"""What the estimators must show, in sizes fit for every run; `figures.py` has the full ones."""

import figures
import jax
import numpy as np
import pytest
from small_streams import blobs, classifier

from lamaml import LaMAMLClassifier
from lamaml.bench import latency
from lamaml.bench.latency import estimator_latency, programs_compiled
from lamaml.estimators import _compiled
from lamaml.estimators._config import build_learner


def test_a_budget_is_kept_to_the_byte(capsys):
    most, _ = figures.million(num_rows=5000, budget=60_000, call=250)
    one_more = 4 * 64 + 12 + (4 * 64 + 20)  # a row of the memory, and one held out
    assert 60_000 - one_more < most <= 60_000
    assert capsys.readouterr().out.count("resident") == 10 + 1


def test_calls_leave_nothing_behind():
    x, y = blobs(100)
    model = classifier(memory_bytes=5000)
    alive = []
    for _ in range(4):
        for start in range(0, 100, 10):
            model.partial_fit(x[start : start + 10], y[start : start + 10])
        alive.append(sum(array.nbytes for array in jax.live_arrays()))
    assert alive[0] == alive[1] == alive[2] == alive[3]


def test_sizes_of_calls_share_few_programs():
    """A program per size, or per size and method, would be 200 or 400."""
    assert 0 < programs_compiled(200) < 20


def test_latencies_are_measured_beside_the_bare_update(monkeypatch):
    """How long they are `lamaml bench` says, on a quiet machine."""
    seconds = {"partial_fit": 0.003, "bare_update": 0.002, "program": 0.0025, "predict_one": 0.0005}
    seconds["frame"] = 0.004

    def call_each(calls):
        for call in calls.values():
            jax.block_until_ready(call())
            jax.block_until_ready(call())
        return {name: seconds[name] for name in calls}

    monkeypatch.setattr("lamaml.bench.latency.best_seconds", call_each)
    found = estimator_latency("la_maml", 20, threads=1, num_programs=3)
    assert found.partial_fit_ms == pytest.approx(3.0)
    assert found.bare_update_ms == pytest.approx(2.0)
    assert found.ratio == pytest.approx(1.5)
    assert found.predict_one_ms == pytest.approx(0.5)
    assert (found.learner, found.num_columns, found.programs_compiled) == ("la_maml", 20, 3)
    assert "1.50 times the bare update, 1.20 times its own program" in str(found)


def test_the_bare_update_does_what_the_classifier_does():
    """Same work: its state ends where that of the classifier's program ends."""
    x, y = np.random.default_rng(0).integers(0, 256, (10, 20), np.uint8), np.arange(10)
    fitted = LaMAMLClassifier("er").partial_fit(x, y)._fitted
    batch, inputs, state = latency._on_device(fitted, x, y)
    key = _compiled.key_data(0, _compiled.Purpose.UPDATE)
    learner = build_learner(fitted.config, inputs, num_rows=10)
    bare, _ = learner.update(state, batch, jax.random.wrap_key_data(key))
    parts = _compiled.split_memories(state)
    ours, memories, is_finite = _compiled.update(fitted.config, *parts, inputs, batch, True, key)
    assert is_finite
    for one, other in zip(
        jax.tree.leaves(bare), jax.tree.leaves(ours._replace(**memories)), strict=True
    ):
        assert np.allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("real_data")
def test_an_unbroken_stream_of_mnist_is_retained(capsys):
    assert figures.mnist(num_tasks=10, num_samples=500) > 0.1
    assert "difference" in capsys.readouterr().out
