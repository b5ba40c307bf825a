"""Nothing waits for a compiler twice: few programs, a cache on disk, and `warm_up`."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_streams import bits, blobs, classifier, regressor

from lamaml.errors import Diverged
from lamaml.estimators import _compiled
from lamaml.estimators._config import SETTINGS, build_learner, choose_batch_size
from lamaml.learners import LEARNERS, online

X, Y = blobs(40, num_classes=4)


@pytest.fixture
def compiled():
    """The names of the programs that are compiled, or read from a cache, during a test."""
    names = []

    def listen(event, duration, **facts):
        if event.endswith("backend_compile_duration"):
            names.append(facts.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


def later_calls(model, x, y):
    """Negative numbers, fractions, other numbers of rows, late classes, names of tasks."""
    whole = np.round(3 * x)
    model.partial_fit(whole[:10] - 20, y[:10]).partial_fit(whole[:10] + 0.5, y[:10])
    model.partial_fit(x[:1], y[:1]).partial_fit(x[:11], y[:11])
    model.partial_fit(np.tile(x, (25, 1)), np.tile(y, 25))
    model.partial_fit(x[:30], np.arange(30))
    for task in range(6):
        model.partial_fit(x[:10], y[:10], task=task)
    model.predict(x[:1])
    model.predict_proba(np.tile(x, (3, 1)))


@pytest.mark.parametrize(("learner", "columns"), [("er", 5), ("la_maml", 6)])
def test_later_calls_compile_nothing(learner, columns, compiled):
    x, y = blobs(40, num_classes=4, num_columns=columns)  # no other test has compiled for these
    model = classifier(learner=learner).partial_fit(np.abs(np.round(x[:10])), y[:10])
    model.predict(x[:1])
    assert 0 < len(compiled) <= 2  # the update, a block of predictions
    compiled.clear()
    later_calls(model, x, y)
    classifier(learner=learner, random_state=7).partial_fit(x, y)
    assert compiled == []


@pytest.mark.parametrize("make", [classifier, regressor])
def test_warm_up_changes_nothing_and_compiles_everything(make, compiled):
    x = np.hstack([X, X, X[:, :1]])  # a number of columns of its own
    random = np.random.RandomState(3)
    model = make(held_out=0.1, random_state=random)
    before = random.get_state()[1].tobytes()
    assert model.warm_up(x, Y) is model
    assert model._fitted is None
    assert not hasattr(model, "n_features_in_")
    assert random.get_state()[1].tobytes() == before
    assert compiled
    compiled.clear()
    model.partial_fit(x, Y).predict(x)
    assert model.report_.updates == 4
    assert compiled == []
    before = bits(model)
    model.warm_up(-x, Y)
    assert bits(model) == before


def test_a_call_that_diverges_leaves_the_overwritten_state_as_it_was():
    model = classifier(learner="online", learner_options={"learning_rate": 0.1}, scale=False)
    model.partial_fit(X, Y)
    before = bits(model)
    with pytest.raises(Diverged):
        model.partial_fit(np.full_like(X, 3e38), Y)
    assert bits(model) == before


def test_predictions_do_not_depend_on_the_number_of_rows():
    model = classifier().partial_fit(X, Y)
    rows = np.tile(X, (40, 1))[: _compiled.CHUNK + 50]
    together = model.predict_proba(rows)
    assert np.array_equal(together[:40], model.predict_proba(X))
    assert np.array_equal(together[7:8], model.predict_proba(X[7:8]))


def test_batches_grow_with_the_call_unless_they_are_fixed():
    config = classifier().partial_fit(X, Y)._fitted.config
    assert [choose_batch_size(config, n) for n in (1, 50_000, 50_001, 10**7)] == [10, 10, 50, 50]
    fixed = classifier(batch_size=7).partial_fit(X, Y)._fitted.config
    assert choose_batch_size(fixed, 10**7) == 7


def test_large_batches_take_at_most_five_steps(monkeypatch):
    built = []

    def recorded(loss, *, inner_steps):
        built.append(inner_steps)
        return online(loss, learning_rate=0.1)

    def steps(learner, given, num_rows, **options):
        model = classifier(learner=learner, learner_options={"inner_steps": given}, **options)
        fitted = model.partial_fit(X[:10], Y[:10])._fitted
        build_learner(fitted.config, fitted.loss_inputs, num_rows)
        return built[-1]

    assert steps(recorded, 10, 50) == 10  # a learner from outside keeps what was given
    monkeypatch.setitem(SETTINGS, "la_maml", {})
    monkeypatch.setitem(LEARNERS, "la_maml", recorded)
    assert [steps("la_maml", *case) for case in [(10, 10), (10, 50), (3, 50)]] == [10, 5, 3]
    assert steps("la_maml", 10, 50, batch_size=50) == 10


def test_states_of_constants_are_made_without_a_program(compiled):
    params, table = {"w": np.arange(3.0, dtype=np.float32)}, jnp.asarray([2.0, 3.0])

    def constants(params):
        return params, jnp.full_like(params["w"], 0.1), jnp.zeros((), jnp.int32), table

    def computed(params):
        return params, params["w"] + 1

    def counted(params):
        return params, jnp.arange(3)

    found, expected = _compiled.constants_on_host(constants, params), jax.jit(constants)(params)
    compiled.clear()
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert _compiled.constants_on_host(computed, params) is None
    assert _compiled.constants_on_host(counted, params) is None
    assert compiled == []


def test_garbage_is_collected_again_after_a_call():
    assert gc.isenabled()
    classifier().partial_fit(X, Y)
    assert gc.isenabled()
    gc.disable()
    try:
        classifier().partial_fit(X, Y)
        assert not gc.isenabled()
    finally:
        gc.enable()


SCRIPT = """
import numpy as np
from lamaml import LaMAMLClassifier
LaMAMLClassifier("er", hidden_sizes=(8,)).partial_fit(np.eye(4), range(4)).predict(np.eye(4))
import jax
print(jax.config.values["jax_compilation_cache_dir"])
"""


def run_with(folder, **variables):
    """Return the cache folder that a fresh process used, its warnings being errors."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
        if name in os.environ
    }
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    environment = kept | {"HOME": str(folder)} | variables
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def programs_in(folder):
    return [path for path in Path(folder).rglob("*") if "-cache" in path.name]


def test_compiled_programs_are_kept_and_those_of_a_killed_process_replaced(tmp_path):
    folder = Path(run_with(tmp_path, NPROC="1"))
    assert folder.is_relative_to(tmp_path)
    kept = {program: program.stat().st_mtime_ns for program in programs_in(folder)}
    assert len(kept) >= 2
    unfinished = next(iter(kept))
    unfinished.write_bytes(unfinished.read_bytes()[:100])
    unfinished.with_name(unfinished.name.removesuffix("cache") + "atime").unlink()
    assert run_with(tmp_path, NPROC="1") == str(folder)  # without a warning
    assert unfinished.stat().st_size > 100
    assert set(programs_in(folder)) == kept.keys()
    for program, written in kept.items():
        assert program == unfinished or program.stat().st_mtime_ns == written
    assert run_with(tmp_path, NPROC="2") != str(folder)  # other threads, other programs


def test_the_cache_can_be_moved_and_switched_off(tmp_path):
    assert run_with(tmp_path, LAMAML_COMPILATION_CACHE="off") == "None"
    moved = run_with(tmp_path, LAMAML_COMPILATION_CACHE=str(tmp_path / "here"))
    assert Path(moved).parent == tmp_path / "here"
    theirs = str(tmp_path / "theirs")
    assert run_with(tmp_path, JAX_COMPILATION_CACHE_DIR=theirs) == theirs
    (tmp_path / "file").write_text("")  # a folder cannot be made below it
    assert run_with(tmp_path, LAMAML_COMPILATION_CACHE=str(tmp_path / "file")) == "None"
