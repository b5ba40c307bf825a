"""A-GEM's projection, and which rows its reference gradient is of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import (
    KEY,
    assert_close,
    batch_of,
    linear,
    network,
    network_batch,
    network_params,
)

from lamaml.errors import InvalidArgument
from lamaml.learners import a_gem
from lamaml.learners.a_gem import gradient_by_pieces, project
from lamaml.memory import rows_before, rows_of


def vectors(seed):
    rng = np.random.default_rng(seed)
    gradient, reference = rng.normal(size=(2, 8)).astype(np.float32)
    return gradient, reference * -np.sign(gradient @ reference)


@pytest.mark.parametrize("seed", range(3))
def test_a_gradient_against_the_past_loses_that_part(seed):
    gradient, reference = vectors(seed)
    after = project({"w": jnp.asarray(gradient)}, {"w": jnp.asarray(reference)})["w"]
    np.testing.assert_allclose(after @ reference, 0, atol=1e-5)
    assert np.linalg.norm(after) <= np.linalg.norm(gradient)
    np.testing.assert_allclose(project(after, jnp.asarray(reference)), after, atol=1e-6)


def test_a_gradient_that_agrees_with_the_past_is_untouched():
    gradient, reference = vectors(0)
    np.testing.assert_array_equal(project(gradient, -reference), gradient)


def test_the_opposite_of_the_reference_becomes_nothing():
    _, reference = vectors(0)
    np.testing.assert_allclose(project(-3 * reference, reference), np.zeros(8), atol=1e-6)


def test_without_a_past_there_is_no_projection():
    gradient, _ = vectors(0)
    np.testing.assert_array_equal(project(gradient, jnp.zeros(8)), gradient)


def on_task(batch, task):
    return batch._replace(task=jnp.full_like(batch.task, task))


def test_the_first_task_constrains_the_second():
    """Slopes u then −u: the second task's step would undo the first's, and is refused."""
    learner = a_gem(linear, learning_rate=0.1, memory_size=4, num_tasks=2)
    update = jax.jit(learner.update)
    past, new = batch_of([[0.6, 0.8]] * 2), on_task(batch_of([[-0.6, -0.8], [-0.6, 0.8]]), 1)
    state, _ = update(learner.init(jnp.zeros(2), past), past, KEY)
    np.testing.assert_allclose(state.params, [-0.06, -0.08], rtol=1e-6)
    after, info = update(state, new, KEY)
    # The new gradient (−.6, 0) loses its part along (.6, .8).
    np.testing.assert_allclose(
        after.params - state.params, -0.1 * np.array([-0.384, 0.288]), rtol=1e-5
    )
    np.testing.assert_allclose(info["gradient_norm"], 0.6, rtol=1e-6)
    np.testing.assert_allclose(info["loss"], 0.6 * 0.06, rtol=1e-5)


def test_equal_rings_give_the_mean_of_the_tasks_gradients():
    learner = a_gem(network, learning_rate=0.1, memory_size=12, num_tasks=3)
    params = network_params()
    update, gradient = jax.jit(learner.update), jax.jit(jax.grad(network))
    state = learner.init(params, network_batch(0))
    for task in range(2):
        state, _ = update(state, on_task(network_batch(task), task), KEY)
    each = [gradient(params, rows_of(state.memory, task)) for task in range(2)]
    whole = gradient(params, rows_before(state.memory, 2, None, KEY))
    assert_close(whole, jax.tree.map(lambda a, b: (a + b) / 2, *each), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("piece", [1, 2, 3, 4, 100])
@pytest.mark.parametrize("weight", [[1, 1, 1, 1], [1, 1, 0, 0], [0, 1, 0, 2], [1, 0, 0, 0]])
def test_pieces_add_up_to_the_whole(piece, weight):
    rows = network_batch(0)
    rows = rows._replace(weight=jnp.resize(jnp.array(weight, jnp.float32), rows.weight.shape))
    params = network_params()
    found = jax.jit(lambda r: gradient_by_pieces(network, params, r, piece=piece))(rows)
    assert_close(found, jax.jit(jax.grad(network))(params, rows), rtol=1e-5, atol=1e-6)


def test_no_rows_have_no_gradient():
    rows = network_batch(0)
    found = gradient_by_pieces(network, network_params(), rows._replace(weight=0 * rows.weight))
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(found))


def test_the_reference_can_be_of_a_few_rows():
    """One reference row of two slopes: which one is drawn decides the step."""
    learner = a_gem(
        linear, learning_rate=1.0, memory_size=4, num_tasks=2, ref_size=1, max_norm=None
    )
    update = jax.jit(learner.update)
    past, new = batch_of([[1.0, 0.0], [0.0, 1.0]]), on_task(batch_of([[-1.0, -1.0]]), 1)
    state, _ = update(learner.init(jnp.zeros(2), past), past, KEY)
    steps = {
        tuple(
            np.round(
                np.asarray(update(state, new, jax.random.key(seed))[0].params - state.params), 3
            ).tolist()
        )
        for seed in range(12)
    }
    assert steps == {(0.0, 1.0), (1.0, 0.0)}


@pytest.mark.parametrize(
    "wrong",
    [{"learning_rate": 0}, {"memory_size": 1}, {"num_tasks": 0}, {"ref_size": 0}, {"max_norm": 0}],
)
def test_settings_out_of_range_are_named(wrong):
    settings = {"learning_rate": 0.1, "memory_size": 4, "num_tasks": 2} | wrong
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        a_gem(linear, **settings)
