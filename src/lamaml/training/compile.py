"""Ahead-of-time compiling, and the compiled update of the training loop."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from lamaml.training.keys import RunKeys, fold
from lamaml.types import Augment, Batch, Info, Learner, Preprocess, State

_PROGRAMS_KEPT = 8  # of learners, for the next run of the same one


class CompiledAhead:
    """A function compiled before its first call, so that compile time is measured separately.

    Calls overwrite the first argument. Runs whose arguments have the same shapes share a program.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = jax.jit(function, donate_argnums=0)
        self.programs: dict[Any, Callable[..., Any]] = {}

    def program_for(self, *arguments: Any) -> Callable[..., Any]:
        """Return the program for arguments of these shapes and dtypes."""
        leaves, structure = jax.tree.flatten(arguments)
        shapes = structure, *map(jax.typeof, leaves)
        if shapes not in self.programs:
            self.programs[shapes] = self.function.lower(*arguments).compile()
        return self.programs[shapes]


@functools.lru_cache(maxsize=_PROGRAMS_KEPT)
def compiled_ahead(function: Callable[..., Any]) -> CompiledAhead:
    """Return the function compiled ahead, one for all runs."""
    return CompiledAhead(function)


@functools.lru_cache(maxsize=_PROGRAMS_KEPT)
def compiled_update(
    learner: Learner,
    batch_size: int,
    glances: int,
    augment: Augment | None,
    preprocess: Preprocess,
) -> CompiledAhead:
    """Return one update: read and augment the batch, shuffle it for this glance, learn from it."""

    def update_once(
        state: State,
        x: jax.Array,
        y: jax.Array,
        row_task: jax.Array,
        order: jax.Array,
        counters: jax.Array,
        keys: RunKeys,
    ) -> tuple[State, Info]:
        task, update, num_rows, epoch, number, glance = counters
        rows = order[number]
        index = number * batch_size + jnp.arange(batch_size)
        weight = (index < num_rows).astype(jnp.float32)
        # The same key in every glance of an epoch: a batch is augmented once.
        seen = fold(keys.augmentation, task, epoch, number)
        here = fold(keys.glance, task, update)
        lot = jax.random.uniform(here, weight.shape)
        shuffle = jnp.argsort(jnp.where(weight > 0, lot, 2.0))  # padding stays last
        batch = Batch(
            prepare(x[rows], seen, augment, preprocess)[shuffle],
            y[rows][shuffle],
            row_task[rows][shuffle],
            weight[shuffle],
        ).at_glance(glance, glances, is_first_pass=epoch == 0)
        return learner.update(state, batch, fold(keys.update, task, update))

    return CompiledAhead(update_once)


def prepare(
    x: jax.Array, key: jax.Array, augment: Augment | None, preprocess: Preprocess
) -> jax.Array:
    """Return stored training rows as the network reads them."""
    return augment(x, key) if augment else preprocess(x)
