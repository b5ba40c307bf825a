"""Fast and slow weights: two time scales in one answer, for streams that drift and that return.

    b_m = Sample(R) ∪ b, each replayed row with the logits z of when it was stored
    θ ← AdamW(θ, ∇[ℓ(θ; b_m) + λ · D(θ)])    the slow weights keep: most of their rows are replayed,
                                             and D holds their answers near z (`dark_replay`, gated)
    θ_avg ← a·θ_avg + (1 − a)·θ              their average answers; a = min(d, t / (t + 10))
    φ ← φ − lr · clip(∇ℓ(φ; b))              the fast weights follow: new rows alone
    ψ ← ψ − lr · [clip(∇d(ψ)) + decay·ψ]     the gate tells new rows from replayed ones
                                             K such steps per batch
    push b to R by reservoir sampling, with the logits of θ_avg after these steps
    s ← ρⁿ·s + (1 − ρⁿ)·mean r               the share of the fast weights, where for the n new rows
    r = s·p(y | x; φ) / [s·p(y | x; φ) + e^κ·(1 − s)·p(y | x; θ_avg)],    before they were learned
    w(x) = s · exp(γ·min(0, g(x; ψ)))
    p(y | x) = (1 − w(x)) · p(y | x; θ_avg) + w(x) · p(y | x; φ)

s is the online EM estimate of the weight of φ in a mixture of two, so that whichever answered the
new rows better answers the next; κ is what the fast weights have to be better by. The gate has a
veto: its loss d is that of a logistic regression of new against replayed rows, g its logit, and a
row that resembles the latter is left to the slow weights. So a concept that contradicts the past is
followed at once, and nothing else is forgotten for it.
Complementary learning systems (Arani et al., 2022) also pair two time scales, but average weights.
A regression mixes outputs instead of probabilities and has no D. Its p are normal, with the mean
squared error of the batch as variance.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.adam import adam_step
from lamaml.learners.dark_replay import answers_of, dark_term, no_answers
from lamaml.learners.gradients import clip_to_norm, descend, join, named_keys
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.models import Heads, add_term, head_mask, surprise, weighted_mean
from lamaml.types import Batch, Info, Learner, Loss, Params

Apply = Callable[[Params, jax.Array], jax.Array]
_FIRST_SHARE, _LEAST_SHARE = 0.05, 0.02  # of the fast weights; neither weights are ever ruled out
_MOST_EVIDENCE = 5.0  # of one row in r, in nats: one outlier must not decide
_LEAST_ERROR = 1e-6  # of a regression, in variances of the target
_WARM_UP = 10.0  # in a: early on the average covers a tenth of the steps


class FastAndSlowState(NamedTuple):
    """State of the two time scales."""

    params: Params  # θ_avg, the average of the slow weights, which answers
    slow: Params  # θ, the slow weights
    mean: Params  # m, Adam's moments of θ
    square: Params  # v
    num_steps: jax.Array  # t
    fast: Params  # φ
    gate: Params  # ψ
    share: jax.Array  # s
    memory: Reservoir  # R, each row with its logits z


def fast_and_slow(
    loss: Loss,
    *,
    apply: Apply,
    heads: Heads,
    memory_size: int,
    slow_rate: float = 3e-3,
    weight_decay: float = 0.3,
    average_decay: float = 0.99,
    fast_rate: float = 0.3,
    gate_rate: float = 0.5,
    gate_decay: float = 0.01,
    num_steps: int = 3,
    replay_size: int = 50,
    dark_weight: float = 0.1,
    share_decay: float = 0.95,
    slow_bias: float = 0.1,
    gate_weight: float = 3.0,
    max_norm: float | None = 2.0,
) -> Learner:
    """Slow weights that replay, fast weights that follow, and a gate between their answers.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      apply: the network, (params, x) -> outputs; real targets stand for a regression.
      heads: which outputs belong to each task; None where all tasks share one head.
      memory_size: M, the number of rows in the reservoir.
      slow_rate: AdamW's rate of θ, positive.
      weight_decay: AdamW's decay of θ, at least 0.
      average_decay: d, in [0, 1), the share of θ_avg that stays at each step; 0 for θ itself.
      fast_rate: rate of φ, at least 0.
      gate_rate: rate of ψ, at least 0.
      gate_decay: decay of ψ, at least 0: it must not learn the remembered rows by heart.
      num_steps: K, the number of steps per batch, at most M.
      replay_size: number of rows replayed in each step, at most M / K.
      dark_weight: λ ≥ 0.
      share_decay: ρ, in [0, 1), the share of s that stays at each new row.
      slow_bias: κ ≥ 0, in nats per row.
      gate_weight: γ ≥ 0, how strongly the gate decides; 0 for no gate.
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
    require(weight_decay >= 0, "weight_decay", weight_decay, "at least 0")
    require(0 <= average_decay < 1, "average_decay", average_decay, "in [0, 1)")
    require(fast_rate >= 0, "fast_rate", fast_rate, "at least 0")
    require(gate_rate >= 0, "gate_rate", gate_rate, "at least 0")
    require(gate_decay >= 0, "gate_decay", gate_decay, "at least 0")
    require(num_steps > 0, "num_steps", num_steps, "at least 1")
    require(replay_size > 0, "replay_size", replay_size, "at least 1")
    require(dark_weight >= 0, "dark_weight", dark_weight, "at least 0")
    require(0 <= share_decay < 1, "share_decay", share_decay, "in [0, 1)")
    require(slow_bias >= 0, "slow_bias", slow_bias, "at least 0")
    require(gate_weight >= 0, "gate_weight", gate_weight, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")
    num_steps = min(num_steps, memory_size)
    num_replayed = min(replay_size, memory_size // num_steps)
    likelihood = partial(_log_likelihood, loss, apply, heads)

    def init(params: Params, batch: Batch) -> FastAndSlowState:
        slow, fast, gate = (jax.tree.map(jnp.copy, params) for _ in range(3))
        mean, square = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        count, share = jnp.zeros((), jnp.int32), jnp.full((), _FIRST_SHARE)
        memory = empty_reservoir(_unanswered(apply, params, batch), memory_size)
        return FastAndSlowState(params, slow, mean, square, count, fast, gate, share, memory)

    def logit(gate: Params, x: jax.Array) -> jax.Array:
        return apply(gate, x)[:, 0]  # g

    def difference(gate: Params, new: Batch, replayed: Batch) -> jax.Array:
        x, weight = (rows[: 2 * len(new.y)] for rows in (replayed.x, replayed.weight))  # enough
        is_new = weighted_mean(jax.nn.softplus(-logit(gate, new.x)), new.weight)
        is_old = weighted_mean(jax.nn.softplus(logit(gate, x)), weight)
        return (is_new + is_old) / 2  # d

    def next_share(state: FastAndSlowState, batch: Batch) -> jax.Array:
        fast, slow = (likelihood(params, batch) for params in (state.fast, state.params))
        odds = jnp.log(state.share / (1 - state.share))
        evidence = jnp.clip(fast - slow, -_MOST_EVIDENCE, _MOST_EVIDENCE)
        r = jax.nn.sigmoid(odds + evidence - slow_bias)
        kept = share_decay ** jnp.sum(batch.weight > 0)  # ρⁿ
        share = kept * state.share + (1 - kept) * weighted_mean(r, batch.weight)
        share = jnp.clip(share, _LEAST_SHARE, 1 - _LEAST_SHARE)
        return jnp.where(batch.first, share, state.share)

    def update(
        state: FastAndSlowState, batch: Batch, key: jax.Array
    ) -> tuple[FastAndSlowState, Info]:
        keys = named_keys(key)
        share = next_share(state, batch)  # s
        objective = _holding(loss, apply, dark_weight, batch)
        new = _unanswered(apply, state.params, batch)

        def step(now: FastAndSlowState, replayed: Batch) -> tuple[FastAndSlowState, Info]:
            count = now.num_steps + 1
            rows = join(replayed, new)
            value, gradient = jax.value_and_grad(objective)(now.slow, rows)
            clipped = clip_to_norm(gradient, max_norm)
            slow, mean, square = adam_step(
                now.slow, now.mean, now.square, count, clipped, slow_rate, weight_decay
            )
            stays = jnp.minimum(average_decay, count / (count + _WARM_UP))  # a
            params = jax.tree.map(lambda p, q: stays * p + (1 - stays) * q, now.params, slow)
            follow = clip_to_norm(jax.grad(loss)(now.fast, batch), max_norm)
            fast = descend(now.fast, follow, fast_rate)
            tell = clip_to_norm(jax.grad(difference)(now.gate, batch, replayed), max_norm)
            gate = jax.tree.map(lambda p, g: p - gate_rate * (g + gate_decay * p), now.gate, tell)
            info = {"loss": value, "gradient_norm": global_norm(gradient)}
            after = FastAndSlowState(
                params, slow, mean, square, count, fast, gate, share, now.memory
            )
            has_rows = jnp.any(rows.weight > 0)  # without any, nothing decays
            return jax.tree.map(partial(jnp.where, has_rows), after, now), info

        hands = _deal(sample(state.memory, num_steps * num_replayed, keys.replay), num_steps)
        after, infos = jax.lax.scan(step, state._replace(memory=None, share=share), hands)  # type: ignore[arg-type]
        answered = _answered(apply, after.params, batch, heads)
        memory = push(state.memory, answered, keys.reservoir, when=batch.last)
        info = {name: values[-1] for name, values in infos.items()} | {"share": share}
        return after._replace(memory=memory), info

    def outputs(state: FastAndSlowState, x: jax.Array, task: jax.Array) -> jax.Array:
        veto = gate_weight * jnp.minimum(logit(state.gate, x), 0.0)
        weight = (state.share * jnp.exp(veto))[:, None]  # w
        slow, fast = apply(state.params, x), apply(state.fast, x)
        if _is_regression(state.memory.y):
            return slow + weight * (fast - slow)
        slow, fast = (jax.nn.log_softmax(head_mask(part, task, heads)) for part in (slow, fast))
        return jnp.logaddexp(jnp.log1p(-weight) + slow, jnp.log(weight) + fast)

    def predict(state: FastAndSlowState, x: jax.Array, task: jax.Array) -> jax.Array:
        return jnp.argmax(outputs(state, x, task), axis=-1)

    return Learner(init, update, predict=predict, outputs=outputs)


def _holding(loss: Loss, apply: Apply, dark_weight: float, batch: Batch) -> Loss:
    """Return ℓ + λ · D; of a regression, ℓ."""

    def term(outputs: jax.Array, rows: Batch) -> jax.Array:
        return dark_weight * dark_term(outputs, rows, is_gated=True)

    return loss if _is_regression(batch.y) else add_term(loss, apply, term)


def _unanswered(apply: Apply, params: Params, batch: Batch) -> Batch:
    """Return rows that D leaves out."""
    if _is_regression(batch.y):
        return batch
    num_outputs = jax.eval_shape(apply, params, batch.x).shape[-1]
    return batch._replace(extra=no_answers(len(batch.y), num_outputs))


def _answered(apply: Apply, params: Params, batch: Batch, heads: Heads) -> Batch:
    """Return rows with today's logits z, at the last glance."""
    if _is_regression(batch.y):
        return batch
    num_outputs = jax.eval_shape(apply, params, batch.x).shape[-1]
    answers = answers_of(apply, params, batch, heads, num_outputs=num_outputs, when=batch.last)
    return batch._replace(extra=answers)


def _log_likelihood(
    loss: Loss, apply: Apply, heads: Heads, params: Params, batch: Batch
) -> jax.Array:
    """Return log p(y | x; params) of each row; of a regression, but for a constant."""
    if _is_regression(batch.y):
        error = jnp.maximum(loss(params, batch), _LEAST_ERROR)
        return jnp.full(len(batch.y), -jnp.log(error) / 2)
    return -surprise(head_mask(apply(params, batch.x), batch.task, heads), batch.y)


def _is_regression(y: jax.Array) -> bool:
    return jnp.issubdtype(y.dtype, jnp.floating)


def _deal(drawn: Batch, num_hands: int) -> Batch:
    """Return drawn rows dealt out to the steps, (steps, rows, ...), as evenly as cards."""

    def deal(field: jax.Array) -> jax.Array:
        shape = (len(field) // num_hands, num_hands, *field.shape[1:])
        return jnp.swapaxes(field.reshape(shape), 0, 1)

    fields = (drawn.x, drawn.y, drawn.task, drawn.weight, drawn.position, drawn.extra)
    x, y, task, weight, position, extra = jax.tree.map(deal, fields)
    first = jnp.ones(num_hands, bool)
    return Batch(x, y, task, weight, first, first, position, extra)
