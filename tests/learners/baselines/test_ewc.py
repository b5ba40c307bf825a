"""EWC: its one parabola is the sum of all tasks' parabolas, and exactly flat where it must be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import (
    KEY,
    assert_close,
    assert_same_bits,
    batch_of,
    linear,
    network,
    network_batch,
    network_params,
    quadratic,
)

from lamaml.errors import InvalidArgument
from lamaml.learners import ewc, online
from lamaml.learners.ewc import consolidation

LEARNER = ewc(network, learning_rate=0.3, penalty=2.0, memory_size=6)
UPDATE, END = (
    jax.jit(LEARNER.update),
    jax.jit(LEARNER.end_task, donate_argnums=0),
)
GRADIENT = jax.jit(jax.grad(network))
PENALTY, SLOPE = jax.jit(consolidation), jax.jit(jax.grad(consolidation, argnums=1))


def begin():
    return LEARNER.init(network_params(), network_batch(0))


def train(state, seeds):
    for seed in seeds:
        state, info = UPDATE(state, network_batch(seed), KEY)
    return state, info


def test_penalty_and_gradient_are_zero_right_after_the_first_switch():
    state = END(train(begin(), range(3))[0], KEY)
    assert float(PENALTY(state, state.params)) == 0
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(SLOPE(state, state.params)))
    assert any((leaf > 0).any() for leaf in jax.tree.leaves(state.stiffness))
    _, info = UPDATE(state, network_batch(9), KEY)
    assert float(info["penalty"]) == 0


def test_a_task_adds_nothing_at_its_own_end():
    state, _ = train(END(train(begin(), range(3))[0], KEY), range(3, 6))
    before = float(PENALTY(state, state.params)), SLOPE(state, state.params)
    state = END(state, KEY)
    assert float(PENALTY(state, state.params)) == before[0] > 0
    assert_close(SLOPE(state, state.params), before[1])


def test_one_parabola_is_the_sum_over_the_tasks():
    """Against F and θ* of three tasks kept apart, as the spec writes it."""
    state, past = begin(), []
    for task in range(3):
        rows = network_batch(3 * task)  # the first six rows are the memory
        state, _ = train(state, range(3 * task, 3 * task + 3))
        gradient = GRADIENT(state.params, rows)
        past.append((jax.tree.map(jnp.square, gradient), jax.tree.map(np.array, state.params)))
        state = END(state, KEY)
    state, info = train(state, [20])

    def penalty(params):
        terms = [
            jax.tree.map(lambda p, f, a: jnp.sum(f * jnp.square(p - a)), params, fisher, anchor)
            for fisher, anchor in past
        ]
        return sum(jax.tree.leaves(terms))

    penalty, slope = jax.jit(penalty), jax.jit(jax.grad(penalty))
    np.testing.assert_allclose(PENALTY(state, state.params), penalty(state.params), rtol=1e-4)
    assert_close(SLOPE(state, state.params), slope(state.params), rtol=1e-4, atol=1e-7)
    before = state.params
    state, info = UPDATE(state, network_batch(21), KEY)
    parts = GRADIENT(before, network_batch(21)), slope(before)
    total = jax.tree.map(lambda g, s: g + 2.0 * s, *parts)
    assert_close(
        state.params, jax.tree.map(lambda p, g: p - 0.3 * g, before, total), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(info["penalty"], 2.0 * penalty(before), rtol=1e-4)


def test_without_penalty_it_is_online():
    free = ewc(network, learning_rate=0.3, penalty=0.0, max_norm=0.5)
    plain = online(network, learning_rate=0.3, max_norm=0.5)
    states = [learner.init(network_params(), network_batch(0)) for learner in (free, plain)]
    updates = [jax.jit(learner.update) for learner in (free, plain)]
    for seed in range(4):
        states = [
            update(s, network_batch(seed), KEY)[0]
            for update, s in zip(updates, states, strict=True)
        ]
        states[0] = jax.jit(free.end_task)(states[0], KEY)
    assert_close(states[0].params, states[1].params)


def test_importance_is_the_square_of_the_mean_gradient():
    """Two opposite gradients: their mean's square is 0, the mean of their squares is not."""
    learner = ewc(linear, learning_rate=0.1, penalty=1.0, memory_size=2)
    rows = batch_of([[3.0, 1.0], [-3.0, 1.0]])
    state, _ = jax.jit(learner.update)(learner.init(jnp.zeros(2), rows), rows, KEY)
    np.testing.assert_allclose(jax.jit(learner.end_task)(state, KEY).stiffness, [0.0, 1.0])


def test_importance_is_of_the_first_rows_of_its_task():
    learner = ewc(linear, learning_rate=0.1, penalty=1.0, memory_size=2)
    update, end_task = jax.jit(learner.update), jax.jit(learner.end_task)
    state = learner.init(jnp.zeros(1), batch_of([[0.0]]))
    later = batch_of([[100.0]], first=False)  # a later glance
    state, _ = update(state, later, KEY)
    for slope in (2.0, 4.0, 50.0):
        state, _ = update(state, later._replace(x=jnp.array([[slope]]), first=True), KEY)
    state = end_task(state, KEY)
    np.testing.assert_allclose(state.stiffness, [3.0**2])
    state, _ = update(state, batch_of([[5.0]]), KEY)
    np.testing.assert_allclose(end_task(state, KEY).stiffness, [3.0**2 + 5.0**2])


def test_a_quadratic_settles_between_the_task_and_the_anchor():
    """½a(θ − c)² with anchor θ* = 0 of importance F: (a·c + 2λFθ*) / (a + 2λF)."""
    learner = ewc(quadratic, learning_rate=0.05, penalty=0.5, memory_size=1)
    update = jax.jit(learner.update)
    first, second = batch_of([[2.0, 1.5]]), batch_of([[4.0, 3.0]])
    state = learner.init(jnp.array(1.0), first)
    state, _ = update(state, first, KEY)
    anchor = float(state.params)
    importance = (2.0 * (anchor - 1.5)) ** 2
    state = jax.jit(learner.end_task)(state, KEY)
    for _ in range(150):
        state, _ = update(state, second, KEY)
    settled = (4.0 * 3.0 + 2 * 0.5 * importance * anchor) / (4.0 + 2 * 0.5 * importance)
    np.testing.assert_allclose(state.params, settled, rtol=1e-5)


@pytest.mark.parametrize(
    "wrong", [{"learning_rate": 0}, {"penalty": -1}, {"memory_size": 0}, {"max_norm": 0}]
)
def test_settings_out_of_range_are_named(wrong):
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        ewc(linear, **{"learning_rate": 0.1, "penalty": 1.0, **wrong})


def test_a_task_without_rows_leaves_no_mark():
    state = END(begin(), KEY)
    assert_same_bits(state.params, network_params())
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(state.stiffness))
