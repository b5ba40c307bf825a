"""Random keys, named by purpose and folded with counters where they are used."""

from typing import NamedTuple, TypeVar

import jax
import numpy as np

Keys = TypeVar("Keys", bound=tuple[jax.Array, ...])


class RunKeys(NamedTuple):
    """The random keys of a run of `train`, by purpose."""

    init: jax.Array
    order: jax.Array
    augmentation: jax.Array
    glance: jax.Array
    update: jax.Array


def keys_from_seed(kind: type[Keys], seed: int | np.uint32 | jax.Array) -> Keys:
    """Return one key per field of a NamedTuple class; the seed may be traced.

    >>> keys_from_seed(RunKeys, 0)._fields
    ('init', 'order', 'augmentation', 'glance', 'update')
    """
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return kind(*jax.random.split(jax.random.key(seed), len(names)))


def fold(key: jax.Array, *counters: jax.Array | int) -> jax.Array:
    """Return the key that belongs to these counters, such as task and update."""
    for counter in counters:
        key = jax.random.fold_in(key, counter)
    return key
