"""Steps, clipping and learning rates on pytrees, and the random keys of an update."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml._trees import global_norm
from lamaml.types import Augment, Batch, Info, Params


class UpdateKeys(NamedTuple):
    """The random keys of one update, by purpose: learners that share a key make the same draw."""

    replay: jax.Array
    reservoir: jax.Array
    noise: jax.Array


def named_keys(key: jax.Array) -> UpdateKeys:
    """Return one key per purpose."""
    return UpdateKeys(*jax.random.split(key, len(UpdateKeys._fields)))


def join(replayed: Batch, batch: Batch) -> Batch:
    """Return the meta-batch b_m: replayed rows, then new ones."""

    def rows(part: Batch) -> Params:
        return part.x, part.y, part.task, part.weight, part.position, part.extra

    x, y, task, weight, position, extra = jax.tree.map(
        lambda *fields: jnp.concatenate(fields), rows(replayed), rows(batch)
    )
    scales = [
        jnp.ones_like(part.weight) if part.scale is None else part.scale
        for part in (replayed, batch)
    ]
    is_scaled = replayed.scale is not None or batch.scale is not None
    scale = jnp.concatenate(scales) if is_scaled else None
    return Batch(x, y, task, weight, batch.first, batch.last, position, extra, scale)


def freshly(augment: Augment | None, batch: Batch, key: jax.Array) -> Batch:
    """Return the rows of a batch augmented for one update; as they are where `augment` is None."""
    return batch if augment is None else batch._replace(x=augment(batch.x, key))


def clip_to_norm(tree: Params, max_norm: float | None) -> Params:
    """Scale to g · min(1, c/‖g‖), one norm over all leaves; bit-identical where ‖g‖ ≤ c."""
    if max_norm is None:
        return tree
    scale = max_norm / jnp.maximum(global_norm(tree), max_norm)
    return jax.tree.map(lambda leaf: leaf * scale, tree)


def clamp(tree: Params, limit: float | None) -> Params:
    """Clip each element to [−limit, limit]; None for no limit."""
    if limit is None:
        return tree
    return jax.tree.map(lambda leaf: jnp.clip(leaf, -limit, limit), tree)


def descend(params: Params, gradient: Params, rates: Params | float) -> Params:
    """Return θ − rate ⊙ g, for one rate or one rate per weight."""
    if isinstance(rates, float | int):
        return jax.tree.map(lambda p, g: p - rates * g, params, gradient)
    return jax.tree.map(lambda p, g, r: p - r * g, params, gradient, rates)


def positive(rates: Params) -> Params:
    """Return max(0, α); its derivative at α ≤ 0 is 0."""
    return jax.tree.map(jax.nn.relu, rates)


def constant_rates(params: Params, rate: float) -> Params:
    """Return α₀ for every weight."""
    return jax.tree.map(lambda p: jnp.full_like(p, rate), params)


def where_positive(gradient: Params, rates: Params) -> Params:
    """Return the gradient through max(0, α): 0 where the rate is not positive."""
    return jax.tree.map(lambda g, r: jnp.where(r > 0, g, 0.0), gradient, rates)


def describe(rates: Params) -> Info:
    """Return the mean of max(0, α), and the share of weights whose rate is not positive."""
    leaves = jax.tree.leaves(rates)
    count = sum(leaf.size for leaf in leaves)
    return {
        "rate_mean": sum(jnp.sum(jax.nn.relu(leaf)) for leaf in leaves) / count,
        "rates_at_zero": sum(jnp.sum(leaf <= 0) for leaf in leaves) / count,
    }
