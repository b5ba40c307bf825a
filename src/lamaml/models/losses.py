"""Cross-entropy with the head mask, and the squared error.

A table of heads says which outputs belong to a task: boolean, (tasks, outputs). This is the only
module that reads it. None stands for one head that all tasks share.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.types import Batch, FirstLayer, Loss, Model, Params

Heads = np.ndarray | jax.Array | None
"""A (tasks, outputs) table of booleans, or None where all tasks share one head."""

Apply = Callable[[Params, jax.Array], jax.Array]
"""A network: (params, x) -> outputs."""

_CLOSED = -1e30  # a closed output's logit: finite, so that 0 · logit stays 0


def task_heads(num_outputs: int, classes_per_task: int | None) -> np.ndarray | None:
    """Return the table in which task τ owns the outputs [c·τ, c·(τ+1)), for c classes per task.

    Examples:
      >>> task_heads(4, 2).astype(int).tolist()
      [[1, 1, 0, 0], [0, 0, 1, 1]]
    """
    if classes_per_task is None:
        return None
    owner = np.arange(num_outputs) // classes_per_task
    return owner == np.arange(-(-num_outputs // classes_per_task))[:, None]


def head_mask(logits: jax.Array, task: jax.Array, heads: Heads) -> jax.Array:
    """Return the logits with the outputs outside each row's head closed.

    Examples:
      >>> head_mask(jnp.zeros((1, 4)), jnp.array([1]), task_heads(4, 2)).argmax()
      Array(2, dtype=int32)
    """
    if heads is None:
        return logits
    return jnp.where(jnp.asarray(heads)[task], logits, _CLOSED)


@dataclass(frozen=True, eq=False)
class NetworkLoss:
    """The loss of a network: a function of (params, batch) that knows the network's first layer."""

    apply: Apply
    of_outputs: Callable[[jax.Array, Batch], jax.Array]  # (outputs, batch) -> weighted mean
    first_layer: FirstLayer | None

    def __call__(self, params: Params, batch: Batch) -> jax.Array:
        """Return the weighted mean loss of the rows."""
        return self.of_outputs(self.apply(params, batch.x), batch)

    def above_first_layer(self, params: Params, z: jax.Array, batch: Batch) -> jax.Array:
        """Return the same from the first layer's pre-activations; its weights are not read."""
        assert self.first_layer is not None  # noqa: S101 - asked for where it is declared
        return self.of_outputs(self.first_layer.above(params, z), batch)


def cross_entropy(network: Model | Apply, heads: Heads = None) -> NetworkLoss:
    """Return the weighted mean cross-entropy of a batch, each row over the head of its own task.

    Args:
      network: a Model, or a function (params, x) -> logits.
      heads: which outputs belong to each task; None where all tasks share one head.
    """

    def of_outputs(outputs: jax.Array, batch: Batch) -> jax.Array:
        logits = head_mask(outputs, batch.task, heads)
        return mean_loss(surprise(logits, batch.y), batch)

    return _network_loss(network, of_outputs)


def surprise(logits: jax.Array, y: jax.Array) -> jax.Array:
    """Return −log of the probability of each row's class."""
    # A product with the one-hot label: the gradient of an indexed read is a slow scatter.
    label = jax.nn.one_hot(y, logits.shape[-1])
    return jax.nn.logsumexp(logits, axis=-1) - jnp.sum(label * logits, axis=-1)


def add_term(loss: Loss, apply: Apply, term: Callable[[jax.Array, Batch], jax.Array]) -> Loss:
    """Return loss(params, batch) + term(outputs, batch), with the outputs of a network.

    Args:
      loss: a loss of any kind; that of a network keeps its first layer.
      apply: the network, (params, x) -> outputs.
      term: (outputs, batch) -> what is added.
    """
    if isinstance(loss, NetworkLoss):
        alone = loss.of_outputs
        return replace(loss, of_outputs=lambda out, batch: alone(out, batch) + term(out, batch))
    return lambda params, batch: loss(params, batch) + term(apply(params, batch.x), batch)


def squared_error(network: Model | Apply) -> NetworkLoss:
    """Return half the weighted mean squared error of a batch; of several targets, their mean.

    Args:
      network: a Model, or a function (params, x) -> outputs; `batch.y` holds the targets in their
        unit.
    """

    def of_outputs(outputs: jax.Array, batch: Batch) -> jax.Array:
        if batch.y.ndim == 1:
            return mean_loss(jnp.square(outputs[:, 0] - batch.y) / 2, batch)
        errors = jnp.square(outputs[:, : batch.y.shape[1]] - batch.y) / 2
        return mean_loss(jnp.mean(errors, axis=1), batch)

    return _network_loss(network, of_outputs)


def _network_loss(
    network: Model | Apply, of_outputs: Callable[[jax.Array, Batch], jax.Array]
) -> NetworkLoss:
    if isinstance(network, Model):
        return NetworkLoss(network.apply, of_outputs, network.first_layer)
    return NetworkLoss(network, of_outputs, None)


def mean_loss(losses: jax.Array, batch: Batch) -> jax.Array:
    """Return the mean by weight of the losses of a batch, each times its row's scale."""
    if batch.scale is not None:
        losses = losses * batch.scale
    return weighted_mean(losses, batch.weight)


def weighted_mean(values: jax.Array, weight: jax.Array) -> jax.Array:
    """Return the mean over rows by weight; 0 where no row has any weight."""
    total = jnp.sum(weight)
    return jnp.sum(weight * values) / jnp.where(total > 0, total, 1.0)
