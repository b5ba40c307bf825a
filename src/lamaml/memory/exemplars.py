"""Exemplars chosen by herding (Welling, 2009; Rebuffi et al., 2017): few rows with the class mean.

    p_e = argmin_{x unused} ‖ μ_c − (f(x) + Σ_{j<e} f(p_j)) / (e + 1) ‖        e = 0 … m − 1

A set of exemplars belongs to one class of one task and keeps the order of the choice, so that its
first rows are a good smaller set. All sets together hold at most M rows, ⌊M / sets⌋ each.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml.errors import require
from lamaml.memory.rows import room
from lamaml.types import Batch

_FREE = 2**31 - 1  # the rank of a free slot


class Exemplars(NamedTuple):
    """At most M rows in herded sets."""

    x: jax.Array  # (M, ...)
    y: jax.Array  # (M,)
    task: jax.Array  # (M,)
    rank: jax.Array  # (M,) e, the place in its set's order
    position: jax.Array | None = None  # (M,)

    def held(self) -> jax.Array:
        """Return which slots hold an exemplar."""
        return self.rank < _FREE


def empty_exemplars(batch: Batch, memory_size: int) -> Exemplars:
    """Return free slots for `memory_size` rows like those of the batch."""
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    x, y, task, position = room((batch.x, batch.y, batch.task, batch.position), memory_size)
    return Exemplars(x, y, task, jnp.full(memory_size, _FREE, jnp.int32), position)


def add_sets(exemplars: Exemplars, rows: Batch, features: jax.Array, num_classes: int) -> Exemplars:
    """Shorten the sets to their new quota and add one per class among the rows of a task.

    Args:
      exemplars: the sets so far.
      rows: the rows of the task that ended; padding is never chosen.
      features: (n, d), the features of the rows.
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
    x, y, task, position = jax.tree.map(
        lambda old, new: jnp.concatenate([old, new])[best],
        (exemplars.x, exemplars.y, exemplars.task, exemplars.position),
        (rows.x, rows.y, rows.task, rows.position),
    )
    return Exemplars(x, y, task, rank[best], position)


def herd(features: jax.Array, owner: jax.Array, num_classes: int, quota: jax.Array) -> jax.Array:
    """Return the rank of each row within its class, for the first `quota` rows of a class.

    Args:
      features: (n, d).
      owner: (n,) the class of each row; `num_classes` for rows that are not to be chosen.
      num_classes: the number of classes; all are herded at once.
      quota: m, the number of exemplars per class.
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
    """Return a weight per slot: 1/(sets of its task) for one exemplar drawn per set, else 0."""
    present = exemplars.held()
    alike = exemplars.task[:, None] == exemplars.task[None, :]
    same_set = alike & (exemplars.y[:, None] == exemplars.y[None, :]) & present
    lot = jax.random.uniform(key, present.shape)
    drawn = present & (lot >= jnp.max(jnp.where(same_set, lot, -1.0), axis=1))
    num_sets = jnp.sum(alike & drawn, axis=1)
    return jnp.where(drawn, 1.0 / jnp.maximum(num_sets, 1), 0.0)


def class_means(
    exemplars: Exemplars, features: jax.Array, num_classes: int
) -> tuple[jax.Array, jax.Array]:
    """Return the mean feature of each class's exemplars, over all tasks, and which have any."""
    owner = jnp.where(exemplars.held(), exemplars.y, num_classes)
    return _means(features, owner == jnp.arange(num_classes)[:, None])


def _means(features: jax.Array, member: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the mean of each class's rows (0 for an empty class), and which classes have any."""
    size = jnp.sum(member, axis=1, keepdims=True)
    total = jnp.matmul(member.astype(features.dtype), features)
    return total / jnp.maximum(size, 1), size[:, 0] > 0
