"""Online: stochastic gradient descent on the stream, the lower bound of every comparison.

    θ ← θ − lr · ∇ℓ(θ; b)

It has no memory, so it forgets. With batches of one row it is the paper's Online baseline; on a
joint stream it is the IID upper bound.
"""

from typing import NamedTuple

import jax

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.gradients import clip_to_norm, descend
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate


class OnlineState(NamedTuple):
    """State of SGD: the weights."""

    params: Params  # θ


def online(loss: Loss, *, learning_rate: Rate, max_norm: float | None = None) -> Learner:
    """SGD without memory.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      learning_rate: lr > 0.
      max_norm: c, gradients are clipped to this norm; None for no clipping, as in MER's baselines.

    Examples:
      >>> from lamaml.learners import online
      >>> learner = online(lambda params, batch: params**2, learning_rate=0.25)
      >>> state, info = learner.update(learner.init(1.0, None), None, None)
      >>> float(state.params), float(info["loss"])
      (0.5, 1.0)
    """
    require(learning_rate > 0, "learning_rate", learning_rate, "positive")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")

    def init(params: Params, batch: Batch) -> OnlineState:
        return OnlineState(params)

    def update(state: OnlineState, batch: Batch, key: jax.Array) -> tuple[OnlineState, Info]:
        value, gradient = jax.value_and_grad(loss)(state.params, batch)
        params = descend(state.params, clip_to_norm(gradient, max_norm), learning_rate)
        return OnlineState(params), {"loss": value, "gradient_norm": global_norm(gradient)}

    return Learner(init, update)
