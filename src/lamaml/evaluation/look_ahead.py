"""Accuracy on seen tasks after the fast updates and after the meta-update (Figure 3).

accuracy on the tasks seen so far   at θ_K^j, after the fast updates on b   ("inner")
                                    at θ_0^{j+1}, after the meta-update     ("after")
"""

import jax
import jax.numpy as jnp

from lamaml.evaluation.probing import Measure, ProbeRows
from lamaml.learners.gradients import positive
from lamaml.learners.inner_loop import chunks, fast_weights
from lamaml.models import Heads, head_mask
from lamaml.types import Batch, Info, Loss, Model, Params, Preprocess, State


def look_ahead(
    loss: Loss,
    model: Model,
    preprocess: Preprocess,
    *,
    heads: Heads,
    inner_steps: int,
    inner_clamp: float | None,
    clip_inner_rates: bool,
    num_tasks: int,
) -> Measure:
    """Return the measurement of a La-MAML learner; θ_K is recomputed, the state is not changed.

    Args:
      loss: ℓ.
      model: the network.
      preprocess: rows as stored, to rows as the network reads them.
      heads: which outputs belong to each task; None where all tasks share one head.
      inner_steps: K.
      inner_clamp: limit on each element of the inner gradients.
      clip_inner_rates: whether the learner uses max(0, α) in its fast updates.
      num_tasks: the first tasks, during which it is due; later rows are not read.
    """

    def accuracy(params: Params, rows: ProbeRows, num_seen: jax.Array) -> jax.Array:
        def of_task(block: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
            x, y, task = block
            logits = model.apply(params, preprocess(x))
            answers = head_mask(logits, jnp.full(y.shape, task), heads).argmax(axis=-1)
            return jnp.mean(answers == y)

        tasks = jnp.arange(len(rows.y))
        shares = jax.lax.map(of_task, (rows.x, rows.y, tasks))
        return jnp.sum(jnp.where(tasks < num_seen, shares, 0.0)) / num_seen

    def measure(before: State, after: State, batch: Batch, rows: ProbeRows) -> Info:
        num_seen, rows = jnp.max(batch.task) + 1, rows.of_first(num_tasks)
        rates = positive(before.rates) if clip_inner_rates else before.rates
        steps = chunks(batch, inner_steps)
        fast, _ = fast_weights(loss, before.params, rates, steps, inner_clamp=inner_clamp)  # θ_K
        return {
            "accuracy_inner": accuracy(fast, rows, num_seen),
            "accuracy_after": accuracy(after.params, rows, num_seen),
        }

    return measure
