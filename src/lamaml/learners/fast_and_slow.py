"""Fast and slow weights: two time scales in one answer, for streams that drift and that return.

    θ ← Adam(θ, ∇ℓ(θ; b ∪ Sample(R)))        the slow weights keep: most of their rows are replayed
    φ ← φ − lr · clip(∇ℓ(φ; b))              the fast weights follow: new rows alone
                                             K such steps per batch, and then
    ψ ← ψ − lr · clip(∇d(ψ; b, Sample(R)))   the gate tells new rows from remembered ones
    push b to R by reservoir sampling
    Δ ← ρ·Δ + (1 − ρ)·(ℓ(θ; b) − ℓ(φ; b))    how much better the fast ones answered new rows
    w(x) = σ(β·Δ − bias + γ·min(0, g(x; ψ)))
    p(y | x) = (1 − w(x)) · p(y | x; θ) + w(x) · p(y | x; φ)

d is the logistic loss of telling b from Sample(R), g its logit. A row that resembles those of the
present is answered by whichever answered these better; a row that does not, by the slow weights.
So a concept that contradicts the past is followed at once, and nothing else is forgotten for it.
Complementary learning systems (Arani et al., 2022) also pair two time scales, but average weights.
A regression mixes outputs instead of probabilities.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.adam import adam_step
from lamaml.learners.gradients import clip_to_norm, descend, join, named_keys
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.models import Heads, head_mask, weighted_mean
from lamaml.types import Batch, Info, Learner, Loss, Params

_MOST_LOSS = 3.0  # of a batch in Δ: one outlier must not decide


class FastAndSlowState(NamedTuple):
    """State of the two time scales."""

    params: Params  # θ, the slow weights
    mean: Params  # m, Adam's moments of θ
    square: Params  # v
    num_steps: jax.Array  # t
    fast: Params  # φ
    gate: Params  # ψ
    gain: jax.Array  # Δ
    memory: Reservoir  # R


def fast_and_slow(
    loss: Loss,
    *,
    apply: Callable[[Params, jax.Array], jax.Array],
    heads: Heads,
    memory_size: int,
    slow_rate: float = 1e-3,
    fast_rate: float = 0.3,
    gate_rate: float = 0.5,
    num_steps: int = 3,
    replay_size: int = 50,
    decay: float = 0.9,
    sharpness: float = 10.0,
    gate_weight: float = 3.0,
    slow_bias: float = 3.0,
    max_norm: float | None = 2.0,
) -> Learner:
    """Slow weights that replay, fast weights that follow, and a gate between their answers.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      apply: the network, (params, x) -> outputs; real targets stand for a regression.
      heads: which outputs belong to each task; None where all tasks share one head.
      memory_size: M, the number of rows in the reservoir.
      slow_rate: Adam's rate of θ, positive.
      fast_rate: rate of φ, at least 0.
      gate_rate: rate of ψ, at least 0.
      num_steps: K, the number of steps per batch, at most M.
      replay_size: number of rows replayed in each step, at most M / K.
      decay: ρ, in [0, 1).
      sharpness: β ≥ 0, how strongly Δ decides.
      gate_weight: γ ≥ 0, how strongly the gate decides; 0 for no gate.
      slow_bias: bias ≥ 0, in favour of the slow weights.
      max_norm: c, gradients are clipped to this norm; None for no clipping.

    Examples:
      >>> from lamaml.models import cross_entropy, mlp
      >>> model = mlp(64, 10)
      >>> learner = fast_and_slow(
      ...     cross_entropy(model), apply=model.apply, heads=None, memory_size=200
      ... )
    """
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(slow_rate > 0, "slow_rate", slow_rate, "positive")
    require(fast_rate >= 0, "fast_rate", fast_rate, "at least 0")
    require(gate_rate >= 0, "gate_rate", gate_rate, "at least 0")
    require(num_steps > 0, "num_steps", num_steps, "at least 1")
    require(replay_size > 0, "replay_size", replay_size, "at least 1")
    require(0 <= decay < 1, "decay", decay, "in [0, 1)")
    require(sharpness >= 0, "sharpness", sharpness, "at least 0")
    require(gate_weight >= 0, "gate_weight", gate_weight, "at least 0")
    require(slow_bias >= 0, "slow_bias", slow_bias, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")
    num_steps = min(num_steps, memory_size)
    num_replayed = min(replay_size, memory_size // num_steps)

    def init(params: Params, batch: Batch) -> FastAndSlowState:
        mean, square = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        fast, gate = (jax.tree.map(jnp.copy, params) for _ in range(2))
        memory = empty_reservoir(batch, memory_size)
        return FastAndSlowState(
            params, mean, square, jnp.zeros((), jnp.int32), fast, gate, jnp.zeros(()), memory
        )

    def logit(gate: Params, x: jax.Array) -> jax.Array:
        return apply(gate, x)[:, 0]  # g

    def difference(gate: Params, new: Batch, replayed: Batch) -> jax.Array:
        is_new = weighted_mean(jax.nn.softplus(-logit(gate, new.x)), new.weight)
        is_old = weighted_mean(jax.nn.softplus(logit(gate, replayed.x)), replayed.weight)
        return (is_new + is_old) / 2  # d

    def update(
        state: FastAndSlowState, batch: Batch, key: jax.Array
    ) -> tuple[FastAndSlowState, Info]:
        keys = named_keys(key)
        slow_loss = loss(state.params, batch)

        def step(now: FastAndSlowState, replayed: Batch) -> tuple[FastAndSlowState, Info]:
            value, gradient = jax.value_and_grad(loss)(now.params, join(replayed, batch))
            count = now.num_steps + 1
            params, mean, square = adam_step(
                now.params, now.mean, now.square, count, clip_to_norm(gradient, max_norm), slow_rate
            )
            fast_loss, follow = jax.value_and_grad(loss)(now.fast, batch)
            fast = descend(now.fast, clip_to_norm(follow, max_norm), fast_rate)
            info = {"loss": value, "gradient_norm": global_norm(gradient), "fast_loss": fast_loss}
            return FastAndSlowState(params, mean, square, count, fast, *now[-3:]), info

        hands = _deal(sample(state.memory, num_steps * num_replayed, keys.replay), num_steps)
        after, infos = jax.lax.scan(step, state._replace(memory=None, gate=None), hands)  # type: ignore[arg-type]
        replayed = jax.tree.map(lambda rows: rows[0], hands)
        tell = clip_to_norm(jax.grad(difference)(state.gate, batch, replayed), max_norm)
        gate = descend(state.gate, tell, gate_rate)
        fast_loss = infos.pop("fast_loss")[0]  # before the first step
        gain = jnp.minimum(slow_loss, _MOST_LOSS) - jnp.minimum(fast_loss, _MOST_LOSS)
        gain = jnp.where(batch.first, decay * state.gain + (1 - decay) * gain, state.gain)  # Δ
        memory = push(state.memory, batch, keys.reservoir, when=batch.last)
        info = {name: values[-1] for name, values in infos.items()} | {"gain": gain}
        return after._replace(gate=gate, gain=gain, memory=memory), info

    def outputs(state: FastAndSlowState, x: jax.Array, task: jax.Array) -> jax.Array:
        unlike = gate_weight * jnp.minimum(logit(state.gate, x), 0.0)
        odds = (sharpness * state.gain - slow_bias + unlike)[:, None]  # w = σ(odds)
        slow, fast = apply(state.params, x), apply(state.fast, x)
        if jnp.issubdtype(state.memory.y.dtype, jnp.floating):  # a regression
            return slow + jax.nn.sigmoid(odds) * (fast - slow)
        slow, fast = (jax.nn.log_softmax(head_mask(part, task, heads)) for part in (slow, fast))
        log_share = jax.nn.log_sigmoid
        return jnp.logaddexp(log_share(-odds) + slow, log_share(odds) + fast)

    def predict(state: FastAndSlowState, x: jax.Array, task: jax.Array) -> jax.Array:
        return jnp.argmax(outputs(state, x, task), axis=-1)

    return Learner(init, update, predict=predict, outputs=outputs)


def _deal(drawn: Batch, num_hands: int) -> Batch:
    """Return drawn rows dealt out to the steps, (steps, rows, ...), as evenly as cards."""

    def deal(field: jax.Array) -> jax.Array:
        shape = (len(field) // num_hands, num_hands, *field.shape[1:])
        return jnp.swapaxes(field.reshape(shape), 0, 1)

    fields = (drawn.x, drawn.y, drawn.task, drawn.weight, drawn.position, drawn.extra)
    x, y, task, weight, position, extra = jax.tree.map(deal, fields)
    first = jnp.ones(num_hands, bool)
    return Batch(x, y, task, weight, first, first, position, extra)
