"""Cross-entropy with the head mask, and the squared error.

A table of heads says which outputs belong to a task: boolean, (tasks, outputs). This is the only
module that reads it. None stands for one head that all tasks share.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.types import Batch, Loss, Params

Heads = np.ndarray | jax.Array | None
"""A (tasks, outputs) table of booleans, or None where all tasks share one head."""

_CLOSED = -1e30  # a closed output's logit: finite, so that 0 · logit stays 0


def task_heads(num_outputs: int, classes_per_task: int | None) -> np.ndarray | None:
    """Return the table in which task τ owns the outputs [c·τ, c·(τ+1)), for c classes per task.

    >>> task_heads(4, 2).astype(int).tolist()
    [[1, 1, 0, 0], [0, 0, 1, 1]]
    """
    if classes_per_task is None:
        return None
    owner = np.arange(num_outputs) // classes_per_task
    return owner == np.arange(-(-num_outputs // classes_per_task))[:, None]


def head_mask(logits: jax.Array, task: jax.Array, heads: Heads) -> jax.Array:
    """Return the logits with the outputs outside each row's head closed.

    >>> head_mask(jnp.zeros((1, 4)), jnp.array([1]), task_heads(4, 2)).argmax()
    Array(2, dtype=int32)
    """
    if heads is None:
        return logits
    return jnp.where(jnp.asarray(heads)[task], logits, _CLOSED)


def cross_entropy(apply: Callable[[Params, jax.Array], jax.Array], heads: Heads = None) -> Loss:
    """Return the weighted mean cross-entropy of a batch, each row over the head of its own task.

    Args:
      apply: the network, (params, x) -> logits.
      heads: which outputs belong to each task; None where all tasks share one head.
    """

    def loss(params: Params, batch: Batch) -> jax.Array:
        logits = head_mask(apply(params, batch.x), batch.task, heads)
        # A product with the one-hot label: the gradient of an indexed read is a slow scatter.
        label = jax.nn.one_hot(batch.y, logits.shape[-1])
        surprise = jax.nn.logsumexp(logits, axis=-1) - jnp.sum(label * logits, axis=-1)
        return weighted_mean(surprise, batch.weight)

    return loss


def squared_error(apply: Callable[[Params, jax.Array], jax.Array]) -> Loss:
    """Return half the weighted mean squared error of a batch, for a network with one output.

    Args:
      apply: the network, (params, x) -> outputs; `batch.y` holds the targets in their unit.
    """

    def loss(params: Params, batch: Batch) -> jax.Array:
        errors = apply(params, batch.x)[:, 0] - batch.y
        return weighted_mean(jnp.square(errors) / 2, batch.weight)

    return loss


def weighted_mean(values: jax.Array, weight: jax.Array) -> jax.Array:
    """Return the mean over rows by weight; 0 where no row has any weight."""
    total = jnp.sum(weight)
    return jnp.sum(weight * values) / jnp.where(total > 0, total, 1.0)
