"""Independent networks, one per task (Lopez-Paz and Ranzato, 2017): no sharing, so no forgetting.

    entering task t:   θ_t = θ_{t−1}
    θ_t ← θ_t − lr · ∇ℓ(θ_t; b)
    prediction: a row of task τ by θ_τ

Its networks are 1/T as wide as those it is compared with, and it needs every row's task, at test
time too. A batch belongs to the task of its first row; a task that returns starts from the current
network, not from its own.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.gradients import clip_to_norm, descend
from lamaml.models import Heads, head_mask
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate


class IndependentState(NamedTuple):
    """State of independent networks: the current network and all of them."""

    params: Params  # θ_t, the network of the current task
    nets: Params  # θ_1 … θ_T along a new first axis; initial weights for tasks to come


def independent(
    loss: Loss,
    *,
    apply: Callable[[Params, jax.Array], jax.Array],
    num_tasks: int,
    learning_rate: Rate,
    heads: Heads = None,
    max_norm: float | None = None,
    scenario: str | None = None,
) -> Learner:
    """SGD on one network per task, each started from the one before.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      apply: the network, (params, x) -> logits.
      num_tasks: T, the number of networks.
      learning_rate: lr > 0.
      heads: which outputs belong to each task; None where all tasks share one head.
      max_norm: c, gradients are clipped to this norm; None for no clipping, as in MER's baselines.
      scenario: of the stream; "class" is refused, because no row's task is known at prediction.

    Examples:
      >>> import jax, jax.numpy as jnp
      >>> from lamaml.types import Batch
      >>> learner = independent(
      ...     lambda w, b: jnp.sum((b.x - w) ** 2),
      ...     apply=jnp.multiply, num_tasks=2, learning_rate=0.5,
      ... )
      >>> batch = Batch(jnp.ones(1), jnp.zeros(1, int), jnp.ones(1, int), jnp.ones(1))
      >>> state, _ = learner.update(learner.init(jnp.array(0.0), batch), batch, jax.random.key(0))
      >>> state.nets.tolist()
      [0.0, 1.0]
    """
    require(num_tasks > 0, "num_tasks", num_tasks, "at least 1")
    require(learning_rate > 0, "learning_rate", learning_rate, "positive")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")
    allowed = "'task' or 'domain': one network per task needs every row's task at prediction"
    require(scenario != "class", "scenario", scenario, allowed)

    def init(params: Params, batch: Batch) -> IndependentState:
        nets = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], num_tasks, axis=0), params)
        return IndependentState(params, nets)

    def update(
        state: IndependentState, batch: Batch, key: jax.Array
    ) -> tuple[IndependentState, Info]:
        value, gradient = jax.value_and_grad(loss)(state.params, batch)
        params = descend(state.params, clip_to_norm(gradient, max_norm), learning_rate)
        nets = jax.tree.map(lambda net, p: net.at[batch.task[0]].set(p), state.nets, params)
        info = {"loss": value, "gradient_norm": global_norm(gradient)}
        return IndependentState(params, nets), info

    def predict(state: IndependentState, x: jax.Array, task: jax.Array) -> jax.Array:
        def answer(answers: jax.Array, turn: tuple[Params, jax.Array]) -> tuple[jax.Array, None]:
            net, index = turn

            def ask() -> jax.Array:
                logits = head_mask(apply(net, x), task, heads)
                return jnp.where(task == index, jnp.argmax(logits, axis=-1), answers)

            return jax.lax.cond(jnp.any(task == index), ask, lambda: answers), None

        turns = (state.nets, jnp.arange(num_tasks))
        return jax.lax.scan(answer, jnp.full(len(x), -1), turns)[0]

    return Learner(init, update, predict=predict)
