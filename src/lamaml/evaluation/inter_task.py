"""Agreement between the gradients of old tasks as new ones are added (the paper's Appendix A).

    mean over p < q < t of g_p · g_q and of cos(g_p, g_q),   g_p = ∇ℓ(θ; rows of task p)

during task t. With fewer than two old tasks there is no pair, and the result is NaN.
"""

import jax
import jax.numpy as jnp

from lamaml.evaluation.alignment import trunk
from lamaml.evaluation.probing import Measure, ProbeRows
from lamaml.types import Batch, Info, Loss, Params, Preprocess, State


def inter_task(loss: Loss, preprocess: Preprocess, *, num_tasks: int) -> Measure:
    """Return the measurement of the gradients of the tasks before that of the batch.

    Args:
      loss: ℓ.
      preprocess: rows as stored, to rows as the network reads them.
      num_tasks: the first tasks, during which it is due; later rows are not read.
    """

    def gradients(params: Params, rows: ProbeRows) -> Params:
        def of_task(block: tuple[jax.Array, jax.Array, jax.Array]) -> Params:
            x, y, task = block
            weight = jnp.ones(y.shape)
            return jax.grad(loss)(params, Batch(preprocess(x), y, jnp.full(y.shape, task), weight))

        return jax.lax.map(of_task, (rows.x, rows.y, jnp.arange(len(rows.y))))

    def measure(_: State, after: State, batch: Batch, rows: ProbeRows) -> Info:
        rows = rows.of_first(num_tasks)
        found = gradients(after.params, rows)
        old = jnp.arange(len(rows.y)) < jnp.max(batch.task)
        pair = jnp.triu(old[:, None] & old[None, :], k=1)
        whole, of_trunk = _products(found), _products(trunk(found))
        return {
            "inter_task_dot": _mean(whole, pair),
            "inter_task_cosine": _mean(_cosines(whole), pair),
            "inter_task_cosine_trunk": _mean(_cosines(of_trunk), pair),
        }

    return measure


def _products(gradients: Params) -> jax.Array:
    """Return g_p · g_q for every pair."""
    flat = [leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(gradients)]
    return sum((leaf @ leaf.T for leaf in flat), start=jnp.zeros(()))


def _cosines(products: jax.Array) -> jax.Array:
    lengths = jnp.sqrt(jnp.diagonal(products))
    return products / jnp.maximum(lengths[:, None] * lengths[None, :], 1e-30)


def _mean(values: jax.Array, pair: jax.Array) -> jax.Array:
    count = jnp.sum(pair)
    return jnp.where(count > 0, jnp.sum(jnp.where(pair, values, 0.0)) / count, jnp.nan)
