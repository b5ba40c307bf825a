import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml._trees import cosine
from lamaml.evaluation.alignment import alignment, with_alignment
from lamaml.learners import er
from lamaml.models import cross_entropy, mlp, task_heads
from lamaml.types import Batch

MODEL = mlp(3, 4, hidden_sizes=(5,))
LOSS = cross_entropy(MODEL.apply, task_heads(4, 2))


def rows(task: int, seed: int = 0, count: int = 6) -> Batch:
    key = jax.random.key(seed)
    y = 2 * task + jax.random.randint(key, (count,), 0, 2)
    return Batch(jax.random.normal(key, (count, 3)), y, jnp.full(count, task), jnp.ones(count))


def joined(one: Batch, other: Batch) -> Batch:
    pairs = zip(one[:4], other[:4], strict=True)
    return Batch(*(jnp.concatenate(pair) for pair in pairs))


def test_identical_batches_give_one() -> None:
    params = MODEL.init(jax.random.key(0))
    gradient = jax.grad(LOSS)(params, rows(0))
    found = alignment(gradient, gradient)
    assert found.whole == pytest.approx(1.0, abs=1e-6)
    assert found.trunk == pytest.approx(1.0, abs=1e-6)


def test_disjoint_heads_with_a_frozen_trunk_give_zero() -> None:
    params = MODEL.init(jax.random.key(0))
    one, other = (jax.grad(LOSS)(params, rows(task)) for task in (0, 1))
    frozen = jax.tree.map(jnp.zeros_like, one["hidden_1"])
    found = alignment({**one, "hidden_1": frozen}, {**other, "hidden_1": frozen})
    assert found.whole == 0.0
    assert np.isnan(found.trunk)  # a gradient of 0 has no direction


def test_it_is_the_cosine_of_the_flattened_gradients() -> None:
    params = MODEL.init(jax.random.key(0))
    one, other = (jax.grad(LOSS)(params, rows(0, seed)) for seed in (0, 1))
    flat = [np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(g)]) for g in (one, other)]
    expected = flat[0] @ flat[1] / np.linalg.norm(flat[0]) / np.linalg.norm(flat[1])
    assert cosine(one, other) == pytest.approx(expected, abs=1e-6)


def test_a_measured_run_covers_all_tasks_and_learns_the_same_bits() -> None:
    learner = er(LOSS, learning_rate=0.1, memory_size=20, replay_size=20)
    watched = with_alignment(learner, LOSS, replay_size=20)
    params = MODEL.init(jax.random.key(0))
    plain, state = learner.init(params, rows(0)), watched.init(params, rows(0))
    batches = [rows(0, 1), rows(1, 2), rows(1, 3), rows(1, 3)._replace(first=False)]
    found, replayed, before = [], [], state
    for number, batch in enumerate(batches):
        plain, _ = learner.update(plain, batch, jax.random.key(number))
        before, (state, info) = state, watched.update(state, batch, jax.random.key(number))
        found.append(float(info["alignment"]))
        replayed.append(float(info["alignment_replayed"]))
        if number == 2:  # all six rows of task 0 are held, and six of task 1
            new = jax.grad(LOSS)(before.params, batch)
            old = jax.grad(LOSS)(before.params, rows(0, 1))
            both = jax.grad(LOSS)(before.params, joined(rows(0, 1), rows(1, 2)))
            expected, expected_replayed = cosine(old, new), cosine(both, new)
    for measured in (found, replayed):
        assert np.isnan(measured[0])  # there is no earlier task
        assert np.isnan(measured[3])  # a later glance
    assert found[2] == pytest.approx(float(expected), abs=1e-6)
    assert replayed[2] == pytest.approx(float(expected_replayed), abs=1e-6)
    assert abs(found[2] - replayed[2]) > 0.01
    assert all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(state), strict=True)
    )
