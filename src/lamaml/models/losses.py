"""Cross-entropy with the head mask: the only place that knows which outputs belong to a task."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from lamaml.types import Batch, Loss, Params

_CLOSED = -1e30  # a closed output's logit: finite, so that 0 · logit stays 0


def head_mask(logits: jax.Array, task: jax.Array, classes_per_task: int | None) -> jax.Array:
    """Logits with the outputs of other tasks closed; unchanged where all tasks share one head.

    >>> import jax.numpy as jnp
    >>> head_mask(jnp.zeros((1, 4)), jnp.array([1]), 2).argmax()
    Array(2, dtype=int32)
    """
    if classes_per_task is None:
        return logits
    owner = jnp.arange(logits.shape[-1]) // classes_per_task
    return jnp.where(owner == task[:, None], logits, _CLOSED)


def cross_entropy(
    apply: Callable[[Params, jax.Array], jax.Array], classes_per_task: int | None = None
) -> Loss:
    """The weighted mean cross-entropy of a batch, each row over the outputs of its own task.

    Args:
      apply: the network, (params, x) -> logits.
      classes_per_task: outputs a task owns; None where all tasks share one head.
    """

    def loss(params: Params, batch: Batch) -> jax.Array:
        logits = head_mask(apply(params, batch.x), batch.task, classes_per_task)
        # A product with the one-hot label: the gradient of an indexed read is a slow scatter.
        label = jax.nn.one_hot(batch.y, logits.shape[-1])
        surprise = jax.nn.logsumexp(logits, axis=-1) - jnp.sum(label * logits, axis=-1)
        total = jnp.sum(batch.weight)
        return jnp.sum(batch.weight * surprise) / jnp.where(total > 0, total, 1.0)

    return loss
