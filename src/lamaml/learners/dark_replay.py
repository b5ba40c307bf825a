"""Dark replay: remembered answers, and the term that holds a network to them.

    D(θ) = mean over replayed rows j of q_j · (1/C_j) ‖f(x_j; θ) − z_j‖²

z_j are the logits of row j when it was first seen, C_j the number of outputs that competed then;
outputs that were closed, or that did not exist yet, do not enter. q_j is 1, or, gated, the
probability that z_j gave to the row's label: an answer is worth remembering as far as it was right.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml.models import Heads, head_mask
from lamaml.types import Batch, Params


class Answers(NamedTuple):
    """What is kept with each row."""

    logits: jax.Array  # z, (n, outputs)
    is_open: jax.Array  # (n, outputs) the outputs that competed when z was stored


def answers_of(
    apply: Callable[[Params, jax.Array], jax.Array],
    params: Params,
    batch: Batch,
    heads: Heads,
    *,
    num_outputs: int,
    when: jax.Array | bool,
) -> Answers:
    """Return today's answers to the rows of a batch; not `when`, none, and nothing is computed."""

    def today() -> Answers:
        logits = apply(params, batch.x)
        return Answers(logits, head_mask(jnp.ones_like(logits), batch.task, heads) > 0)

    return jax.lax.cond(when, today, lambda: no_answers(len(batch.y), num_outputs))


def no_answers(num_rows: int, num_outputs: int) -> Answers:
    """Return answers that hold a network to nothing."""
    shape = (num_rows, num_outputs)
    return Answers(jnp.zeros(shape), jnp.zeros(shape, bool))


def dark_term(outputs: jax.Array, batch: Batch, *, is_gated: bool) -> jax.Array:
    """Return D for the rows of a batch that carry answers.

    Args:
      outputs: f(x; θ), (n, outputs).
      batch: its `extra` holds the answers.
      is_gated: weigh each row by the probability that its answer gave to its label.
    """
    answers: Answers = batch.extra
    count = jnp.sum(answers.is_open, axis=-1)  # C_j
    gaps = jnp.where(answers.is_open, outputs - answers.logits, 0.0)
    distance = jnp.sum(jnp.square(gaps), axis=-1) / jnp.maximum(count, 1)
    weight = batch.weight * (count > 0)
    total = jnp.sum(weight)
    if is_gated:
        closed = jnp.where(answers.is_open, answers.logits, -jnp.inf)
        shares = jax.nn.softmax(jnp.where(count[:, None] > 0, closed, 0.0), axis=-1)
        weight *= jnp.take_along_axis(shares, batch.y[:, None], axis=-1)[:, 0]  # q_j
    return jnp.sum(weight * distance) / jnp.where(total > 0, total, 1.0)
