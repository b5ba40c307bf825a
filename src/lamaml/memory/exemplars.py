"""Exemplars by herding (Welling, 2009; Rebuffi et al., 2017): few rows with their class's mean.

    p_e = argmin_{x unused} ‖ μ_c − (f(x) + Σ_{j<e} f(p_j)) / (e + 1) ‖        e = 0 … m − 1

A set of exemplars belongs to one class of one task and keeps the order of the choice, so that its
first rows are a good smaller set. All sets together hold at most M rows, ⌊M / sets⌋ each.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml.errors import require
from lamaml.memory._task_rows import room
from lamaml.types import Batch

_FREE = 2**31 - 1  # the rank of a place that holds no exemplar


class Exemplars(NamedTuple):
    """At most M rows in herded sets."""

    x: jax.Array  # (M, ...)
    y: jax.Array  # (M,)
    task: jax.Array  # (M,)
    rank: jax.Array  # (M,) e, the place in its set's order


def empty_exemplars(batch: Batch, memory_size: int) -> Exemplars:
    """Room for `memory_size` rows like those of the batch."""
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    x, y, task = (room(rows, memory_size) for rows in (batch.x, batch.y, batch.task))
    return Exemplars(x, y, task, jnp.full(memory_size, _FREE, jnp.int32))


def held(exemplars: Exemplars) -> jax.Array:
    """Which places hold an exemplar."""
    return exemplars.rank < _FREE


def add_sets(exemplars: Exemplars, rows: Batch, features: jax.Array, num_classes: int) -> Exemplars:
    """Shorten the sets to their new quota and add one for each class among the rows of a task.

    Args:
      exemplars: the sets so far.
      rows: of the task that ended; padding is never chosen.
      features: (n, d), where the rows lie.
      num_classes: labels are below it.
    """
    memory_size = len(exemplars.y)
    owner = jnp.where(rows.weight > 0, rows.y, num_classes)
    num_new = jnp.sum(jnp.zeros(num_classes).at[owner].set(1, mode="drop")).astype(jnp.int32)
    num_sets = jnp.sum(exemplars.rank == 0) + num_new
    quota = jnp.maximum(memory_size // jnp.maximum(num_sets, 1), 1)
    rank = jnp.concatenate([exemplars.rank, herd(features, owner, num_classes, quota)])
    rank = jnp.where(rank < quota, rank, _FREE)
    best = jnp.argsort(rank, stable=True)[:memory_size]

    def gather(old: jax.Array, new: jax.Array) -> jax.Array:
        return jnp.concatenate([old, new])[best]

    return Exemplars(
        gather(exemplars.x, rows.x),
        gather(exemplars.y, rows.y),
        gather(exemplars.task, rows.task),
        rank[best],
    )


def herd(features: jax.Array, owner: jax.Array, num_classes: int, quota: jax.Array) -> jax.Array:
    """Each row's place in its class's order, for the first `quota` of them.

    Args:
      features: (n, d).
      owner: (n,) the class of each row; `num_classes` for rows that are not to be chosen.
      num_classes: classes are chosen from side by side.
      quota: m.
    """
    member = owner == jnp.arange(num_classes)[:, None]  # (classes, n)
    mean, _ = _means(features, member)  # μ_c

    def choose(place: jax.Array, done: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        rank, total = done
        gap = mean[owner] - (features + total[owner]) / (place + 1)
        distance = jnp.where(rank == _FREE, jnp.sum(jnp.square(gap), axis=1), jnp.inf)
        distances = jnp.where(member, distance, jnp.inf)
        nearest = jnp.argmin(distances, axis=1)
        left = jnp.isfinite(jnp.min(distances, axis=1))  # else all rows of the class are chosen
        rank = rank.at[jnp.where(left, nearest, len(owner))].set(place, mode="drop")
        return rank, total + jnp.where(left[:, None], features[nearest], 0.0)

    nothing = (jnp.full(len(owner), _FREE, jnp.int32), jnp.zeros_like(mean))
    rank, _ = jax.lax.fori_loop(0, quota, choose, nothing)
    return rank


def draw_one_each(exemplars: Exemplars, key: jax.Array) -> jax.Array:
    """A weight a place: 1/(sets of its task) for one exemplar drawn from every set, else 0."""
    present = held(exemplars)
    alike = exemplars.task[:, None] == exemplars.task[None, :]
    same_set = alike & (exemplars.y[:, None] == exemplars.y[None, :]) & present
    lot = jax.random.uniform(key, present.shape)
    drawn = present & (lot >= jnp.max(jnp.where(same_set, lot, -1.0), axis=1))
    num_sets = jnp.sum(alike & drawn, axis=1)
    return jnp.where(drawn, 1.0 / jnp.maximum(num_sets, 1), 0.0)


def class_means(
    exemplars: Exemplars, features: jax.Array, num_classes: int
) -> tuple[jax.Array, jax.Array]:
    """The mean feature of each class's exemplars, over all tasks; and which classes have any."""
    owner = jnp.where(held(exemplars), exemplars.y, num_classes)
    return _means(features, owner == jnp.arange(num_classes)[:, None])


def _means(features: jax.Array, member: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The mean of each class's rows, 0 for a class without; and which classes have any."""
    size = jnp.sum(member, axis=1, keepdims=True)
    total = jnp.matmul(member.astype(features.dtype), features)
    return total / jnp.maximum(size, 1), size[:, 0] > 0
