"""Meta-BGD (He et al., 2019; Gupta, Yadav and Paull, 2020): C-MAML on Gaussian weights.

For m = 1 … M_c, with ε ~ N(0, I) and θ = μ + σ ⊙ ε:

    ĝ_m = |b| · clip(∇_θ L̄(θ_1 … θ_K; b_m))         the look-ahead of `c_maml`, with a new draw b_m

and with E₁ = mean ĝ_m, E₂ = mean ĝ_m ⊙ ε (Zeno et al., 2018)

    μ ← μ − η σ² ⊙ E₁
    σ ← σ √(1 + (σE₂/2)²) − σ²E₂/2  =  σ · exp(−asinh(σE₂/2))

Deviation: as in `c_maml`; all of b_m are drawn before b is pushed, and every m takes the rows of b
in the order of this glance; the authors' code samples and updates its inner rates too, against the
paper's constant one.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.gradients import (
    clip_to_norm,
    constant_rates,
    descend,
    join,
    named_keys,
)
from lamaml.learners.inner_loop import check_inner_loop, meta_gradient
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate


class MetaBGDState(NamedTuple):
    """State of Meta-BGD: mean and standard deviation per weight, replay memory."""

    params: Params  # μ, the mean weights; used for prediction
    stds: Params  # σ, one standard deviation per weight
    memory: Reservoir  # R


def meta_bgd(
    loss: Loss,
    *,
    learning_rate: float,
    initial_std: float,
    inner_steps: int,
    memory_size: int,
    num_monte_carlo: int = 2,
    inner_rate: Rate = 0.1,
    replay_size: int = 10,
    first_order: bool = False,
    meta_loss: str = "mean",
    max_norm: float | None = 2.0,
    inner_clamp: float | None = None,
) -> Learner:
    """Meta-learn one Gaussian per weight; uncertain weights take larger steps.

    Args:
      loss: ℓ and L, the weighted mean loss of a batch.
      learning_rate: η > 0; a weight's own rate is η σ² |b|.
      initial_std: σ₀ > 0.
      inner_steps: K, the number of fast updates per batch.
      memory_size: M, the number of rows in the reservoir.
      num_monte_carlo: M_c, the number of weight samples per update.
      inner_rate: α ≥ 0, the constant rate of the fast updates.
      replay_size: number of rows replayed with each new batch.
      first_order: treat the inner gradients as constants.
      meta_loss: "mean" or "sum" over the steps, or the "last" step.
      max_norm: c, each meta-gradient is clipped to this norm; None for no clipping.
      inner_clamp: limit on each element of the inner gradients; the authors' CNN code uses c.

    Examples:
      >>> import jax.numpy as jnp
      >>> learner = meta_bgd(
      ...     lambda w, b: jnp.mean((b.x - w) ** 2),
      ...     learning_rate=50.0, initial_std=0.02, inner_steps=2, memory_size=5,
      ... )
    """
    require(learning_rate > 0, "learning_rate", learning_rate, "positive")
    require(initial_std > 0, "initial_std", initial_std, "positive")
    require(num_monte_carlo > 0, "num_monte_carlo", num_monte_carlo, "at least 1")
    require(inner_rate >= 0, "inner_rate", inner_rate, "at least 0")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(replay_size >= 0, "replay_size", replay_size, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")
    check_inner_loop(inner_steps, meta_loss, inner_clamp)

    def init(params: Params, batch: Batch) -> MetaBGDState:
        stds = constant_rates(params, initial_std)
        return MetaBGDState(params, stds, empty_reservoir(batch, memory_size))

    def update(state: MetaBGDState, batch: Batch, key: jax.Array) -> tuple[MetaBGDState, Info]:
        keys = named_keys(key)

        def explore(draw: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, Params, Params]:
            replay_key, noise_key = draw
            noise = normal_like(state.params, noise_key)  # ε
            sampled = jax.tree.map(lambda m, s, e: m + s * e, state.params, state.stds, noise)
            ahead = meta_gradient(
                loss,
                sampled,
                constant_rates(state.params, inner_rate),
                batch,
                join(sample(state.memory, replay_size, replay_key), batch),  # b, b_m
                inner_steps=inner_steps,
                first_order=first_order,
                meta_loss=meta_loss,
                inner_clamp=inner_clamp,
            )
            size = jnp.sum(batch.weight)  # |b|
            gradient = jax.tree.map(lambda g: size * g, clip_to_norm(ahead.params, max_norm))  # ĝ
            return ahead.loss, gradient, jax.tree.map(jnp.multiply, gradient, noise)

        draws = [jax.random.split(k, num_monte_carlo) for k in (keys.replay, keys.noise)]
        explored = jax.lax.map(explore, tuple(draws))
        value, slope, curvature = jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), explored)
        variances = jax.tree.map(lambda s: learning_rate * jnp.square(s), state.stds)  # η σ²
        params = descend(state.params, slope, variances)  # E₁
        stds = jax.tree.map(
            lambda s, e: s * jnp.exp(-jnp.arcsinh(s * e / 2)), state.stds, curvature
        )  # E₂
        memory = push(state.memory, batch, keys.reservoir, when=batch.first)
        info = {"loss": value, "gradient_norm": global_norm(slope), "std_mean": mean(stds)}
        return MetaBGDState(params, stds, memory), info

    return Learner(init, update)


def normal_like(tree: Params, key: jax.Array) -> Params:
    """Return standard normal numbers in the shapes of a tree, with one key per leaf."""
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    noise = [jax.random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, noise)


def mean(tree: Params) -> jax.Array:
    """Return the mean element of a tree."""
    leaves = jax.tree.leaves(tree)
    total = sum((jnp.sum(leaf) for leaf in leaves), start=jnp.zeros(()))
    return total / sum(leaf.size for leaf in leaves)
