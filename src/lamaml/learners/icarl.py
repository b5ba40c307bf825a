"""iCaRL (Rebuffi et al., 2017), in the task-incremental form of GEM's authors.

    L = ℓ(θ; b) + λ Σ_{τ<t} KL(softmax z_τ ‖ softmax f_τ(x; θ))  x: an exemplar per class of task τ
    θ ← θ − lr · clip(∇L)
    at a task's end: herd exemplars of its classes, shorten older sets, z ← f(exemplars; θ) for all
    prediction: the class whose exemplars' mean output is nearest to the row's output

f_τ are the outputs in the head of task τ when z was stored; an output added later has no target.
Distances are over all outputs in any head, and only classes in the head of the row's task are
predicted. A task without exemplars is answered with its first class, which scores chance.
Deviation: all rows of a task are herded; the code of La-MAML's authors loses the last batch. Where
all tasks share one head, each task keeps its own exemplars of every class.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.gradients import clip_to_norm, descend, named_keys
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
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate

_BLOCK = 10  # exemplars per gradient; blocks without a drawn exemplar are not computed
_SLICE = 250  # rows per pass of the network at a task's end
_UNKNOWN = -1e29  # nearness of a class without exemplars: above that of a closed output


class ICaRLState(NamedTuple):
    """State of iCaRL: weights, exemplars, distillation targets, rows of the current task."""

    params: Params  # θ
    exemplars: Exemplars
    targets: jax.Array  # z, (M, outputs), of the exemplars at the last task's end
    rows: TaskRows  # of the current task
    has_target: jax.Array  # (M, outputs), which outputs were in the exemplar's head at that time


def icarl(
    loss: Loss,
    *,
    apply: Callable[[Params, jax.Array], jax.Array],
    heads: Heads,
    learning_rate: Rate,
    memory_size: int,
    task_size: int,
    distillation: float = 1.0,
    max_norm: float | None = 2.0,
) -> Learner:
    """SGD with distillation on exemplars; predicts the nearest class mean.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      apply: the network, (params, x) -> logits.
      heads: which outputs belong to each task; None where all tasks share one head.
      learning_rate: lr > 0.
      memory_size: M, exemplars of all classes together.
      task_size: rows of the current task that can be kept for herding.
      distillation: λ ≥ 0.
      max_norm: c, gradients are clipped to this norm; None for no clipping.

    Examples:
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
        shape = jax.eval_shape(apply, params, exemplars.x).shape
        rows = empty_task_rows(batch, task_size)
        return ICaRLState(params, exemplars, jnp.zeros(shape), rows, jnp.zeros(shape, bool))

    def divergence(
        params: Params, rows: Batch, targets: jax.Array, has_target: jax.Array
    ) -> jax.Array:
        """Return Σ weight · KL(softmax z_τ ‖ softmax f_τ)."""
        given, wanted = (
            jax.nn.log_softmax(head_mask(logits, jnp.arange(len(logits)), has_target))
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
            stored = state.targets[places], state.has_target[places]
            more = jax.value_and_grad(divergence)(state.params, rows, *stored)
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
        features = jnp.where(in_head(logits, rows.task), logits, 0.0)  # f_τ
        exemplars = add_sets(state.exemplars, rows, features, logits.shape[-1])
        targets = jax.lax.map(output, exemplars.x, batch_size=_SLICE)
        has_target = in_head(targets, exemplars.task)
        return ICaRLState(state.params, exemplars, targets, clear(state.rows), has_target)

    def in_head(logits: jax.Array, task: jax.Array) -> jax.Array:
        return head_mask(jnp.ones_like(logits), task, heads) > 0

    def predict(state: ICaRLState, x: jax.Array, task: jax.Array) -> jax.Array:
        def features(rows: jax.Array) -> jax.Array:
            logits = apply(state.params, rows)
            return logits if heads is None else jnp.where(jnp.any(heads, axis=0), logits, 0.0)

        outputs, remembered = features(x), features(state.exemplars.x)
        means, known = class_means(state.exemplars, remembered, outputs.shape[-1])
        gaps = jax.lax.map(lambda mean: jnp.sum(jnp.square(outputs - mean), axis=1), means).T
        nearness = jnp.where(known, -gaps, _UNKNOWN)
        return jnp.argmax(head_mask(nearness, task, heads), axis=-1)

    return Learner(init, update, end_task, predict)
