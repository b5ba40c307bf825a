"""One network a task: warm starts, no interference, and answers by the row's own task."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import (
    HEADS,
    KEY,
    MODEL,
    assert_close,
    assert_same_bits,
    network,
    network_batch,
    network_params,
)

from lamaml.errors import InvalidArgument
from lamaml.evaluation import metrics
from lamaml.learners import independent, online
from lamaml.models import cross_entropy, mlp
from lamaml.streams import digits_permutations
from lamaml.training import Schedule, train

NUM_TASKS = 3
LEARNER = independent(
    network, apply=MODEL.apply, num_tasks=NUM_TASKS, learning_rate=0.3, heads=HEADS
)
UPDATE = jax.jit(LEARNER.update, donate_argnums=0)


def on_task(seed, task):
    batch = network_batch(seed)
    return batch._replace(task=jnp.full_like(batch.task, task), y=batch.y % 2 + 2 * task)


def net(state, task):
    return jax.tree.map(lambda leaf: np.array(leaf[task]), state.nets)


def trained(tasks):
    state = LEARNER.init(network_params(), network_batch(0))
    for seed, task in enumerate(tasks):
        state, _ = UPDATE(state, on_task(seed, task), KEY)
    return state


def test_training_a_task_leaves_the_other_networks_as_they_were():
    state = trained([0, 0, 1])
    before = [net(state, task) for task in range(NUM_TASKS)]
    state, _ = UPDATE(state, on_task(7, 1), KEY)
    assert_same_bits(net(state, 0), before[0])
    assert_same_bits(net(state, 2), before[2])
    assert_same_bits(before[2], jax.tree.map(np.array, network_params()))
    assert not np.array_equal(net(state, 1)["head"]["weight"], before[1]["head"]["weight"])


def test_a_network_starts_from_the_one_before():
    state = trained([0, 0])
    start = net(state, 0)
    state, info = UPDATE(state, on_task(5, 1), KEY)
    value, gradient = jax.jit(jax.value_and_grad(network))(start, on_task(5, 1))
    assert_close(net(state, 1), jax.tree.map(lambda p, g: p - 0.3 * g, start, gradient))
    np.testing.assert_allclose(info["loss"], value, rtol=1e-6)


def test_on_one_task_it_is_online():
    plain = online(network, learning_rate=0.3)
    update, expected = jax.jit(plain.update), plain.init(network_params(), network_batch(0))
    for seed in range(3):
        expected, _ = update(expected, on_task(seed, 0), KEY)
    state = trained([0, 0, 0])
    assert_same_bits(state.params, expected.params)
    assert_same_bits(net(state, 0), jax.tree.map(np.array, expected.params))


def test_every_task_has_all_the_weights_of_a_network():
    sizes = [
        sum(leaf.size for leaf in jax.tree.leaves(tree))
        for tree in (trained([0]).nets, network_params())
    ]
    assert sizes[0] == NUM_TASKS * sizes[1]


def test_each_row_is_answered_by_its_own_tasks_network():
    state = trained([0, 1, 2])
    x, task = network_batch(9).x, jnp.array([0, 1, 2, 2, 1, 0])
    answers = jax.jit(LEARNER.predict)(state, x, task)
    for row in range(len(x)):
        logits = np.array(MODEL.apply(net(state, int(task[row])), x[row : row + 1]))[0]
        own = slice(2 * int(task[row]), 2 * int(task[row]) + 2)
        assert int(answers[row]) == own.start + int(np.argmax(logits[own]))


def test_it_neither_forgets_nor_is_changed_backwards():
    """BTI is 0, not nearly 0; and there is something to forget."""
    stream = digits_permutations(seed=0, num_tasks=2, num_samples=120)
    model = mlp(64, 10, hidden_sizes=(20,))
    learner = independent(
        cross_entropy(model.apply), apply=model.apply, num_tasks=2, learning_rate=0.3
    )
    *_, last = train(stream, model, learner, Schedule(glances=3), seed=0)
    found = metrics(last.matrix, last.baseline)
    assert found.bti == 0
    assert found.la > 0.5


@pytest.mark.parametrize("wrong", [{"num_tasks": 0}, {"learning_rate": 0}, {"max_norm": 0}])
def test_settings_out_of_range_are_named(wrong):
    settings = {"apply": MODEL.apply, "num_tasks": 2, "learning_rate": 0.1} | wrong
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        independent(network, **settings)
