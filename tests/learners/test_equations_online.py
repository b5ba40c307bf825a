"""Online is SGD and nothing else."""

import jax.numpy as jnp
import pytest
from problems import KEY, batch_of, compiled, quadratic

from lamaml.learners import online

RATE = 0.2
LEARNER = compiled(online, quadratic, learning_rate=RATE)


def follow(params, rows, learner=LEARNER):
    """The state after a batch for each (a, c)."""
    state = learner.init(jnp.asarray(params), batch_of([rows[0]]))
    for row in rows:
        state, _ = learner.update(state, batch_of([row]), KEY)
    return state


def test_the_quadratic_closed_form():
    """θ_n − c = (1 − lr·a)ⁿ (θ_0 − c)."""
    a, c, steps = 0.7, -1.5, 9
    state = follow(2.0, [(a, c)] * steps)
    assert float(state.params) - c == pytest.approx((1 - RATE * a) ** steps * (2.0 - c), rel=1e-5)


def test_tasks_are_sgd_on_their_rows_put_together():
    one, two = [(0.5, 1.0), (1.5, -2.0), (0.3, 4.0)], [(2.0, 0.0), (1.0, 3.0)]
    theta = 2.0
    for a, c in one + two:
        theta -= RATE * a * (theta - c)
    state = follow(follow(2.0, one).params, two)
    assert float(state.params) == pytest.approx(theta, rel=1e-5)


def test_the_order_of_tasks_matters():
    one, two = [(1.0, 3.0)] * 4, [(0.5, -3.0)] * 4
    there, back = follow(0.0, one + two), follow(0.0, two + one)
    assert abs(float(there.params) - float(back.params)) > 0.1


def test_it_keeps_nothing_but_the_weights():
    assert LEARNER.init(jnp.array(1.0), batch_of([(1.0, 1.0)]))._fields == ("params",)


def test_no_clipping_unless_asked_for():
    clipping = compiled(online, quadratic, learning_rate=RATE, max_norm=2.0)
    rows = [(1.0, 100.0)]  # slope −100
    assert float(follow(0.0, rows).params) == pytest.approx(20.0)
    assert float(follow(0.0, rows, clipping).params) == pytest.approx(0.4)


def test_it_tells_loss_and_gradient_norm_before_the_step():
    batch = batch_of([(1.0, 100.0)])
    _, info = LEARNER.update(LEARNER.init(jnp.array(0.0), batch), batch, KEY)
    assert float(info["loss"]) == pytest.approx(5000.0)
    assert float(info["gradient_norm"]) == pytest.approx(100.0)
