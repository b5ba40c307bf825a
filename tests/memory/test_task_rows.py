"""The first rows of a task: kept in order, up to the room there is, and forgotten at its end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.errors import InvalidArgument
from lamaml.memory import clear, empty_task_rows, keep, kept_rows
from lamaml.types import Batch

KEEP = jax.jit(keep)


def rows(numbers, weight=None):
    """Rows that are told apart by a number from 1 on."""
    y = jnp.asarray(numbers, jnp.int32)
    x = jnp.stack([y, 10 * y], axis=1).astype(jnp.float32)
    return Batch(x, y, 2 * y, jnp.ones(len(y)) if weight is None else jnp.asarray(weight, float))


def held(kept):
    """The numbers of the rows held, after a look that their parts belong together."""
    batch = kept_rows(kept)
    y = np.asarray(batch.y)[np.asarray(batch.weight) > 0]
    np.testing.assert_array_equal(batch.x[: len(y)], np.stack([y, 10 * y], axis=1))
    np.testing.assert_array_equal(batch.task[: len(y)], 2 * y)
    return y.tolist()


def test_the_first_rows_stay_in_their_order():
    kept = empty_task_rows(rows([0]), 5)
    assert held(kept) == []
    kept = KEEP(KEEP(kept, rows([3, 1])), rows([2]))
    assert held(kept) == [3, 1, 2]
    assert held(KEEP(KEEP(kept, rows([4, 5, 6, 7])), rows([8]))) == [3, 1, 2, 4, 5]


def test_padding_and_later_glances_are_not_kept():
    kept = KEEP(empty_task_rows(rows([0]), 5), rows([1, 2, 3], weight=[1, 0, 1]))
    assert held(kept) == [1, 3]
    assert held(KEEP(kept, rows([4]), when=jnp.array(False))) == [1, 3]


def test_what_is_forgotten_is_overwritten():
    kept = clear(KEEP(empty_task_rows(rows([0]), 3), rows([1, 2, 3])))
    assert held(kept) == []
    assert held(KEEP(kept, rows([4]))) == [4]


def test_there_must_be_room():
    with pytest.raises(InvalidArgument, match="size = 0"):
        empty_task_rows(rows([0]), 0)
