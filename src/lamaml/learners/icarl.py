"""iCaRL (Rebuffi et al., 2017), in the task-incremental form of GEM's authors.

    L = ℓ(θ; b) + λ Σ_{τ<t} KL(softmax z_τ ‖ softmax f_τ(x; θ))    x: one exemplar a class of task τ
    θ ← θ − lr · clip(∇L)
    at a task's end: herd exemplars of its classes, shorten older sets, z ← f(exemplars; θ) for all
    a row is answered with the class whose exemplars' mean output is nearest to its own

f_τ are the outputs of task τ; distances are over all outputs. Where a task has no exemplars yet its
first class is the answer, which scores chance.
Deviation: all rows of a task are herded, where La-MAML's authors lose its last batch. Where all
tasks share one head, each task keeps its own exemplars of every class.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml.errors import require
from lamaml.learners.gradients import clip_to_norm, descend, global_norm, named_keys
from lamaml.memory import (
    Exemplars,
    TaskRows,
    add_sets,
    class_means,
    clear,
    draw_one_each,
    empty_exemplars,
    empty_task_rows,
    keep,
    kept_rows,
)
from lamaml.models import Heads, head_mask
from lamaml.types import Batch, Info, Learner, Loss, Params

_BLOCK = 10  # exemplars to a gradient: only as many blocks are computed as hold any
_SLICE = 250  # rows to a pass of the network at a task's end
_UNKNOWN = (
    -1e29
)  # the nearness of a class without exemplars: below any other, above a closed output's


class ICaRLState(NamedTuple):
    """What iCaRL needs."""

    params: Params  # θ
    exemplars: Exemplars
    targets: jax.Array  # z, (M, outputs), of the exemplars at the last task's end
    rows: TaskRows  # of the task under way


def icarl(
    loss: Loss,
    *,
    apply: Callable[[Params, jax.Array], jax.Array],
    heads: Heads,
    learning_rate: float,
    memory_size: int,
    task_size: int,
    distillation: float = 1.0,
    max_norm: float | None = 2.0,
) -> Learner:
    """SGD that holds the outputs on exemplars still, and answers by nearest class mean.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      apply: the network, (params, x) -> logits.
      heads: which outputs belong to each task; None where all tasks share one head.
      learning_rate: lr > 0.
      memory_size: M, exemplars of all classes together.
      task_size: rows of the task under way that can be kept for herding.
      distillation: λ ≥ 0.
      max_norm: c, gradients are clipped to this norm; None for no clipping.

    Example:
      >>> import jax.numpy as jnp
      >>> from lamaml.models import cross_entropy, mlp, task_heads
      >>> model, heads = mlp(64, 10), task_heads(10, 2)
      >>> learner = icarl(
      ...     cross_entropy(model.apply, heads), apply=model.apply, heads=heads,
      ...     learning_rate=0.1, memory_size=20, task_size=100,
      ... )
    """
    require(learning_rate > 0, "learning_rate", learning_rate, "positive")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(task_size > 0, "task_size", task_size, "at least 1")
    require(distillation >= 0, "distillation", distillation, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")

    def init(params: Params, batch: Batch) -> ICaRLState:
        exemplars = empty_exemplars(batch, memory_size)
        outputs = jax.eval_shape(apply, params, exemplars.x)
        return ICaRLState(
            params, exemplars, jnp.zeros(outputs.shape), empty_task_rows(batch, task_size)
        )

    def forgotten(params: Params, rows: Batch, targets: jax.Array) -> jax.Array:
        """Σ weight · KL(softmax z_τ ‖ softmax f_τ)."""
        given, wanted = (
            jax.nn.log_softmax(head_mask(logits, rows.task, heads))
            for logits in (apply(params, rows.x), targets)
        )
        return jnp.sum(rows.weight[:, None] * jnp.exp(wanted) * (wanted - given))

    def update(state: ICaRLState, batch: Batch, key: jax.Array) -> tuple[ICaRLState, Info]:
        weight = distillation * draw_one_each(state.exemplars, named_keys(key).replay)
        past = Batch(*state.exemplars[:3], weight)
        order = jnp.argsort(weight == 0, stable=True)  # the drawn ones, then the others
        num_drawn = jnp.sum(weight > 0)

        def distil(block: jax.Array, done: tuple[jax.Array, Params]) -> tuple[jax.Array, Params]:
            number = block * _BLOCK + jnp.arange(_BLOCK)
            places = order[number]
            rows = Batch(*(field[places] for field in past[:4]))
            rows = rows._replace(weight=jnp.where(number < num_drawn, rows.weight, 0.0))
            more = jax.value_and_grad(forgotten)(state.params, rows, state.targets[places])
            value, gradient = jax.tree.map(jnp.add, done, more)
            return value, gradient

        start = jax.value_and_grad(loss)(state.params, batch)
        value, gradient = jax.lax.fori_loop(0, -(-num_drawn // _BLOCK), distil, start)
        params = descend(state.params, clip_to_norm(gradient, max_norm), learning_rate)
        rows = keep(state.rows, batch, when=batch.first)
        info = {"loss": value, "gradient_norm": global_norm(gradient)}
        return state._replace(params=params, rows=rows), info

    def end_task(state: ICaRLState, key: jax.Array) -> ICaRLState:
        def output(row: jax.Array) -> jax.Array:
            return apply(state.params, row[None])[0]

        rows = kept_rows(state.rows)
        logits = jax.lax.map(output, rows.x, batch_size=_SLICE)
        own = head_mask(jnp.ones_like(logits), rows.task, heads) > 0
        features = jnp.where(own, logits, 0.0)  # f_τ
        exemplars = add_sets(state.exemplars, rows, features, logits.shape[-1])
        targets = jax.lax.map(output, exemplars.x, batch_size=_SLICE)
        return ICaRLState(state.params, exemplars, targets, clear(state.rows))

    def predict(state: ICaRLState, x: jax.Array, task: jax.Array) -> jax.Array:
        outputs = apply(state.params, x)
        remembered = apply(state.params, state.exemplars.x)
        means, known = class_means(state.exemplars, remembered, outputs.shape[-1])
        gaps = jax.lax.map(lambda mean: jnp.sum(jnp.square(outputs - mean), axis=1), means).T
        nearness = jnp.where(known, -gaps, _UNKNOWN)
        return jnp.argmax(head_mask(nearness, task, heads), axis=-1)

    return Learner(init, update, end_task, predict)
