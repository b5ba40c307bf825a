"""The loss: cross-entropy over a task's own outputs, each row by its weight."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.models import cross_entropy, head_mask, mlp, squared_error, task_heads
from lamaml.types import Batch

MODEL = mlp(4, 6, hidden_sizes=(5,))
PARAMS = jax.tree.map(lambda p: p + 0.1, jax.jit(MODEL.init)(jax.random.key(0)))
SHARED = jax.jit(jax.value_and_grad(cross_entropy(MODEL.apply)))
HEADS = jax.jit(jax.value_and_grad(cross_entropy(MODEL.apply, task_heads(6, 2))))


def batch(y, task, weight=None, x=None):
    random = np.random.default_rng(1).normal(size=(len(y), 4)).astype(np.float32)
    x = jnp.asarray(random if x is None else x)
    weight = jnp.ones(len(y)) if weight is None else jnp.asarray(weight, jnp.float32)
    return Batch(x, jnp.asarray(y), jnp.asarray(task), weight)


def by_hand(rows, classes_per_task):
    """The definition, one row at a time, in float64."""
    logits = np.asarray(MODEL.apply(PARAMS, rows.x), np.float64)
    losses = []
    for z, y, task in zip(logits, rows.y, rows.task, strict=True):
        start, stop = (0, 6) if classes_per_task is None else (2 * task, 2 * task + 2)
        z, label = z[int(start) : int(stop)], int(y) - int(start)
        losses.append(np.log(np.exp(z).sum()) - z[label])
    return np.average(losses, weights=rows.weight)


@pytest.mark.parametrize("heads", [None, 2])
def test_it_is_the_weighted_mean_cross_entropy_of_each_rows_own_head(heads):
    rows = batch([0, 3, 4, 1], [0, 1, 2, 0], [1.0, 0.5, 2.0, 1.0])
    value, _ = (HEADS if heads else SHARED)(PARAMS, rows)
    assert float(value) == pytest.approx(by_hand(rows, heads), rel=1e-5)


def test_head_rows_of_absent_tasks_get_exactly_no_gradient():
    _, gradient = HEADS(PARAMS, batch([2, 3, 2], [1, 1, 1]))
    head = gradient["head"]
    for absent in (slice(0, 2), slice(4, 6)):
        assert (head["weight"][absent] == 0).all()
        assert (head["bias"][absent] == 0).all()
    assert (head["weight"][2:4] != 0).any()
    _, gradient = SHARED(PARAMS, batch([2, 3, 2], [1, 1, 1]))
    assert (gradient["head"]["bias"] != 0).all()


@pytest.mark.parametrize("value_and_grad", [SHARED, HEADS])
def test_rows_of_weight_0_are_as_if_they_were_not_there(value_and_grad):
    kept = batch([0, 3, 4], [0, 1, 2])
    garbage = jnp.full((2, 4), 1e4)
    padded = batch([0, 3, 4, 5, 0], [0, 1, 2, 0, 2], [1, 1, 1, 0, 0], jnp.vstack([kept.x, garbage]))
    ours, theirs = value_and_grad(PARAMS, padded), value_and_grad(PARAMS, kept)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), ours, theirs)


@pytest.mark.parametrize("value_and_grad", [SHARED, HEADS])
def test_nothing_but_padding_gives_0_and_no_gradient(value_and_grad):
    value, gradient = value_and_grad(PARAMS, batch([0, 3], [0, 1], [0, 0]))
    assert float(value) == 0
    for leaf in jax.tree.leaves(gradient):
        assert (leaf == 0).all()  # which NaN is not


def test_large_logits_stay_finite():
    rows = batch([2, 3], [1, 1], x=jnp.full((2, 4), 1e6))
    for value_and_grad in (SHARED, HEADS):
        for leaf in jax.tree.leaves(value_and_grad(PARAMS, rows)):
            assert jnp.isfinite(leaf).all()


def test_equal_tasks_average_to_the_mean_of_their_losses():
    y, task = [0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2]
    whole = batch(y, task)
    parts = [
        batch(y[i : i + 2], task[i : i + 2], x=whole.x[i : i + 2]) for i in range(0, len(y), 2)
    ]
    mean = np.mean([float(HEADS(PARAMS, part)[0]) for part in parts])
    assert float(HEADS(PARAMS, whole)[0]) == pytest.approx(mean, rel=1e-6)


def test_head_mask_opens_the_outputs_of_a_rows_task_and_no_other():
    logits = jnp.arange(12.0).reshape(2, 6)
    masked = head_mask(logits, jnp.array([0, 2]), task_heads(6, 2))
    np.testing.assert_array_equal(masked[0, :2], logits[0, :2])
    np.testing.assert_array_equal(masked[1, 4:], logits[1, 4:])
    assert float(masked[0, 2:].max()) < -1e20
    assert float(masked[1, :4].max()) < -1e20
    assert jnp.isfinite(masked).all()
    np.testing.assert_array_equal(jnp.argmax(masked, axis=1), [1, 5])


def test_head_mask_of_a_shared_head_changes_nothing():
    logits = jnp.arange(6.0).reshape(1, 6)
    np.testing.assert_array_equal(head_mask(logits, jnp.array([2]), None), logits)


def test_task_heads_give_each_task_its_own_outputs():
    assert task_heads(6, None) is None
    np.testing.assert_array_equal(task_heads(6, 2).argmax(axis=0), [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(task_heads(5, 2).sum(axis=1), [2, 2, 1])


def test_an_output_in_no_head_gets_no_gradient_and_a_traced_table_works():
    table = task_heads(6, 2)
    table[:, 5] = False

    @jax.jit
    def gradient(table):
        return jax.grad(cross_entropy(MODEL.apply, table))(PARAMS, batch([4, 4], [2, 2]))

    assert (gradient(table)["head"]["bias"][5] == 0).all()


def test_squared_error_is_half_the_weighted_mean_square():
    rows = batch([0.5, -1.0, 9.0], [0, 0, 0], [1.0, 3.0, 0.0])
    found = squared_error(MODEL.apply)(PARAMS, rows)
    errors = np.asarray(MODEL.apply(PARAMS, rows.x))[:, 0] - np.asarray(rows.y)
    expected = np.average(errors**2, weights=rows.weight) / 2
    assert float(found) == pytest.approx(expected, rel=1e-5)
