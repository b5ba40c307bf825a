"""GEM's projection: the conditions that make a dual optimal, closed forms, and what it costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import (
    KEY,
    assert_close,
    assert_same_bits,
    batch_of,
    linear,
    network,
    network_batch,
    network_params,
)

from lamaml.errors import InvalidArgument
from lamaml.learners import a_gem, gem, online
from lamaml.learners.gem import project, solve_dual

PROJECT = jax.jit(project, static_argnames=("margin", "ridge"))


def problem(seed, num_tasks, size=12, num_past=None):
    """Rows G, of which the past tasks' are filled, and a gradient g that violates the first."""
    rng = np.random.default_rng(seed)
    rows, gradient = rng.normal(size=(num_tasks, size)), rng.normal(size=size)
    num_past = num_tasks if num_past is None else num_past
    rows[num_past:] = 0
    gradient *= -np.sign(rows[0] @ gradient)
    return rows.astype(np.float32), gradient.astype(np.float32), num_past


def projected(rows, gradient, num_past, margin=0.0, ridge=0.0):
    """The projection of a gradient held in two leaves, as one vector."""
    leaves = {"a": jnp.asarray(rows[:, :5]).reshape(-1, 5), "b": jnp.asarray(rows[:, 5:])}
    parts = {"a": jnp.asarray(gradient[:5]), "b": jnp.asarray(gradient[5:])}
    products = jnp.asarray(rows @ gradient)
    found = PROJECT(parts, leaves, products, num_past, margin=margin, ridge=ridge)
    return np.concatenate([found["a"], found["b"]])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    num_past=st.integers(1, 8),
    margin=st.sampled_from([0.0, 0.1, 0.5]),
    ridge=st.sampled_from([0.0, 1e-3]),
)
def test_the_dual_meets_the_kkt_conditions(seed, num_past, margin, ridge):
    rows, gradient, _ = problem(seed, num_past)
    gram, products = rows @ rows.T, rows @ gradient
    dual = solve_dual(gram, products, np.int32(num_past), margin=margin, ridge=ridge)
    slack = gram @ dual + ridge * dual + products  # λ = Gg̃ + εv
    scale = 1e-4 * (1 + np.abs(products).max())
    assert (dual >= margin - 1e-6).all()
    assert (slack >= -scale).all()
    assert np.abs(slack * (dual - margin)).max() <= scale * (1 + dual.max())


@pytest.mark.parametrize(
    ("num_tasks", "num_past"), [(1, 1), (3, 2), (7, 3), (7, 6), (20, 5), (20, 20)]
)
def test_no_past_task_is_left_violated(num_tasks, num_past):
    rows, gradient, _ = problem(num_tasks, num_tasks, num_past=num_past, size=30)
    after = projected(rows, gradient, num_past, ridge=1e-3)
    dual = solve_dual(rows @ rows.T, rows @ gradient, np.int32(num_past), margin=0.0, ridge=1e-3)
    assert (rows @ after >= -1e-3 * dual.max() - 1e-4).all()
    np.testing.assert_allclose(after, gradient + rows.T @ dual, atol=1e-5)


def test_without_margin_and_ridge_it_is_the_nearest_feasible_point():
    rows, gradient, num_past = problem(3, 5)
    after = projected(rows, gradient, num_past)
    step, values = after - gradient, rows @ after
    dual = np.linalg.lstsq(rows.T, step, rcond=None)[0]
    np.testing.assert_allclose(rows.T @ dual, step, atol=1e-5)  # a combination of rows
    assert (dual > -1e-5).all()  # none of which is taken away
    assert (values > -1e-5).all()
    np.testing.assert_allclose(dual * values, 0, atol=1e-4)  # and only where it binds
    np.testing.assert_allclose(projected(rows, after, num_past), after, atol=1e-5)


@pytest.mark.parametrize("margin", [0.0, 0.2, 5.0])
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 1.0])
def test_one_past_task_has_a_closed_form(margin, ridge):
    rows, gradient, _ = problem(1, 1)
    dual = max(margin, -(rows[0] @ gradient) / (rows[0] @ rows[0] + ridge))
    expected = gradient + dual * rows[0]
    np.testing.assert_allclose(
        projected(rows, gradient, 1, margin, ridge), expected, rtol=1e-4, atol=1e-5
    )


def test_a_gradient_that_violates_nothing_is_untouched_even_with_a_margin():
    rows, gradient, num_past = problem(0, 4)
    gradient = np.linalg.lstsq(rows, np.ones(4), rcond=None)[0].astype(np.float32)
    assert (rows @ gradient > 0).all()
    np.testing.assert_array_equal(projected(rows, gradient, num_past, margin=0.5), gradient)


def test_dependent_gradients_without_a_ridge_are_still_projected():
    rows, gradient, _ = problem(0, 1)
    rows = np.concatenate([rows, 2 * rows, rows])
    after = projected(rows, gradient, 3)
    assert (rows @ after >= -1e-3).all()
    np.testing.assert_allclose(after, projected(rows[:1], gradient, 1), atol=1e-3)


def test_gradients_that_are_no_numbers_give_none():
    """The loop then stops the run as diverged; the solver must not raise before it does."""
    gram = np.full((2, 2), np.inf, np.float32)
    assert np.isnan(
        solve_dual(gram, np.array([-1.0, 1.0]), np.int32(2), margin=0.0, ridge=0.0)
    ).all()


def on_task(batch, task):
    return batch._replace(task=jnp.full_like(batch.task, task))


def two_tasks(learner, num_updates=4):
    """The weights after updates on task 0, and those after each update on task 1."""
    update = jax.jit(learner.update)
    state = learner.init(network_params(), network_batch(0))
    for seed in range(num_updates):
        state, _ = update(state, on_task(network_batch(seed), 0), KEY)
    trail = []
    for seed in range(num_updates, 3 * num_updates):
        state, _ = update(state, on_task(network_batch(seed), 1), KEY)
        trail.append(state.params)
    return trail


def test_with_one_past_task_and_no_margin_it_is_a_gem():
    sizes = {"learning_rate": 0.3, "memory_size": 12, "num_tasks": 2, "max_norm": 0.5}
    ours = two_tasks(gem(network, ridge=0.0, **sizes))
    theirs = two_tasks(a_gem(network, **sizes))
    assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    floor = two_tasks(online(network, learning_rate=0.3, max_norm=0.5))
    assert (
        max(
            jnp.abs(a - b).max()
            for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(floor), strict=True)
        )
        > 1e-3
    )


def test_in_the_first_task_it_is_sgd():
    learner = gem(network, learning_rate=0.3, memory_size=12, num_tasks=2, margin=0.5)
    plain = online(network, learning_rate=0.3)
    batch = on_task(network_batch(0), 0)
    params = network_params()
    ours, _ = jax.jit(learner.update)(learner.init(params, batch), batch, KEY)
    theirs, _ = jax.jit(plain.update)(plain.init(params, batch), batch, KEY)
    assert_same_bits(ours.params, theirs.params)


def test_gradients_are_clipped_before_the_projection_and_not_after_it():
    """One past task of slope u, a new row of slope −u: θ moves by (γ − 1)‖clip u‖ along u."""
    learner = gem(linear, learning_rate=1.0, memory_size=2, num_tasks=2, margin=3.0, max_norm=2.0)
    update = jax.jit(learner.update)
    past, new = batch_of([[30.0, 40.0]]), on_task(batch_of([[-3.0, -4.0]]), 1)
    state, _ = update(learner.init(jnp.zeros(2), past), past, KEY)
    before = state.params
    state, info = update(state, new, KEY)
    np.testing.assert_allclose(
        state.params - before, -(3.0 - 1.0) * 2 * np.array([0.6, 0.8]), rtol=1e-5
    )
    assert int(info["violations"]) == 1


def test_only_past_tasks_gradients_are_computed_by_one_program():
    calls, traces = [], []

    def counted(params, batch):
        traces.append(1)
        jax.debug.callback(lambda: calls.append(1))
        return linear(params, batch)

    learner = gem(counted, learning_rate=0.1, memory_size=12, num_tasks=6)
    update = jax.jit(learner.update)
    rng, num_traces = np.random.default_rng(0), 0
    state = learner.init(jnp.zeros(3), batch_of(np.zeros((1, 3))))
    for task in range(6):
        calls.clear()
        state, _ = update(state, on_task(batch_of(rng.normal(size=(2, 3))), task), KEY)
        jax.effects_barrier()
        assert len(calls) == task + 1
        num_traces = num_traces or len(traces)
        assert len(traces) == num_traces


def test_rows_are_kept_in_their_first_glance():
    learner = gem(linear, learning_rate=0.1, memory_size=4, num_tasks=2)
    update = jax.jit(learner.update)
    rows = batch_of([[1.0], [2.0]], first=False)
    state, _ = update(learner.init(jnp.zeros(1), rows), rows, KEY)
    assert state.memory.num_seen.tolist() == [0, 0]
    state, _ = update(state, rows._replace(first=True, last=False), KEY)
    assert state.memory.num_seen.tolist() == [2, 0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"learning_rate": 0},
        {"memory_size": 1},
        {"num_tasks": 0},
        {"margin": -1},
        {"ridge": -1},
        {"max_norm": 0},
    ],
)
def test_settings_out_of_range_are_named(wrong):
    settings = {"learning_rate": 0.1, "memory_size": 4, "num_tasks": 2} | wrong
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        gem(linear, **settings)
