"""Any learner, answering from an exponential average of its weights (Arani et al., 2022).

    θ_avg ← d · θ_avg + (1 − d) · θ        after every update of the learner

The learner itself never sees θ_avg. d = 0 is the learner.
"""

from typing import NamedTuple

import jax

from lamaml.errors import require
from lamaml.types import Batch, Info, Learner, Params, State


class AveragedState(NamedTuple):
    """A learner's state, and the average of its weights."""

    learned: State
    params: Params  # θ_avg


def averaged(learner: Learner, decay: float) -> Learner:
    """Return the learner, answering from an average of its weights.

    Args:
      learner: any learner whose state has `params`.
      decay: d, in [0, 1), the share of the average that stays at each update.

    Examples:
      >>> from lamaml.learners import online
      >>> from lamaml.models import cross_entropy, mlp
      >>> learner = averaged(online(cross_entropy(mlp(64, 10)), learning_rate=0.1), decay=0.99)
    """
    require(0 <= decay < 1, "decay", decay, "in [0, 1)")

    def follow(average: Params, params: Params) -> Params:
        if not decay:
            return params
        return jax.tree.map(lambda a, p: decay * a + (1 - decay) * p, average, params)

    def init(params: Params, batch: Batch) -> AveragedState:
        return AveragedState(learner.init(params, batch), params)

    def update(state: AveragedState, batch: Batch, key: jax.Array) -> tuple[AveragedState, Info]:
        learned, info = learner.update(state.learned, batch, key)
        return AveragedState(learned, follow(state.params, learned.params)), info

    def end_task(state: AveragedState, key: jax.Array) -> AveragedState:
        learned = learner.end_task(state.learned, key)  # type: ignore[misc]
        return AveragedState(learned, state.params)

    def predict(state: AveragedState, x: jax.Array, task: jax.Array) -> jax.Array:
        learned = state.learned._replace(params=state.params)
        return learner.predict(learned, x, task)  # type: ignore[misc]

    return Learner(
        init,
        update,
        end_task if learner.end_task else None,
        predict if learner.predict else None,
    )
