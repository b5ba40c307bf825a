"""Online is SGD and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import assert_close, batch_of, network, network_batch, network_params, quadratic

from lamaml.learners import online
from lamaml.learners.gradients import global_norm


def follow(learner, params, batches):
    state, update = learner.init(params, batches[0]), jax.jit(learner.update)
    for batch in batches:
        state, _ = update(state, batch, jax.random.key(0))
    return state


def test_the_quadratic_closed_form():
    """θ_n − c = (1 − lr·a)ⁿ (θ_0 − c)."""
    a, c, rate, steps = 0.7, -1.5, 0.2, 9
    state = follow(
        online(quadratic, learning_rate=rate), jnp.array(2.0), [batch_of([(a, c)])] * steps
    )
    assert float(state.params) - c == pytest.approx((1 - rate * a) ** steps * (2.0 - c), rel=1e-5)


def test_two_tasks_are_sgd_on_their_rows_put_together():
    one, two = ([network_batch(seed) for seed in seeds] for seeds in ((0, 1, 2), (3, 4)))
    learner = online(network, learning_rate=0.3)
    state = follow(learner, network_params(), one)
    state = follow(learner, state.params, two)
    params, slope = network_params(), jax.jit(jax.grad(network))
    for batch in [*one, *two]:
        params = jax.tree.map(lambda p, g: p - 0.3 * g, params, slope(params, batch))
    assert_close(state.params, params)


def test_the_order_of_tasks_matters():
    batches = [batch_of([(1.0, 3.0)]), batch_of([(0.5, -3.0)])]
    learner = online(quadratic, learning_rate=0.5)
    there, back = (follow(learner, jnp.array(0.0), order) for order in (batches, batches[::-1]))
    assert float(there.params) != pytest.approx(float(back.params), abs=0.1)


def test_it_keeps_nothing_but_the_weights():
    params = network_params()
    state = online(network, learning_rate=0.1).init(params, network_batch(0))
    assert jax.tree.structure(state._asdict()) == jax.tree.structure({"params": params})


def test_no_clipping_unless_asked_for():
    params, batch = jnp.array(0.0), batch_of([(1.0, 100.0)])  # slope −100
    free = follow(online(quadratic, learning_rate=0.1), params, [batch])
    clipped = follow(online(quadratic, learning_rate=0.1, max_norm=2.0), params, [batch])
    assert float(free.params) == pytest.approx(10.0)
    assert float(clipped.params) == pytest.approx(0.2)


def test_it_tells_loss_and_gradient_norm_before_the_step():
    params, batch = network_params(), network_batch(0)
    _, info = online(network, learning_rate=0.1).update(
        online(network, learning_rate=0.1).init(params, batch), batch, jax.random.key(0)
    )
    value, gradient = jax.value_and_grad(network)(params, batch)
    np.testing.assert_allclose(info["loss"], value, rtol=1e-6)
    np.testing.assert_allclose(info["gradient_norm"], global_norm(gradient), rtol=1e-6)
