"""Herding against its definition written out, and the quota that keeps all sets in the memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.errors import InvalidArgument
from lamaml.memory import add_sets, class_means, draw_one_each, empty_exemplars
from lamaml.memory.exemplars import herd
from lamaml.types import Batch

ADD = jax.jit(add_sets, static_argnums=3)
HERD = jax.jit(herd, static_argnums=2)


def greedy(features, quota):
    """The places of a class's rows by the definition: brute force over every unused row."""
    chosen, mean = [], features.mean(axis=0)
    for _ in range(min(quota, len(features))):
        unused = [i for i in range(len(features)) if i not in chosen]
        total = features[chosen].sum(axis=0)
        gaps = [np.linalg.norm(mean - (total + features[i]) / (len(chosen) + 1)) for i in unused]
        chosen.append(unused[int(np.argmin(gaps))])
    return chosen


def task_rows(task, num_rows, classes, seed=0):
    """Rows of one task whose x is their feature."""
    rng = np.random.default_rng(seed + task)
    y = jnp.asarray(rng.permutation(np.resize(classes, num_rows)), jnp.int32)
    x = jnp.asarray(rng.normal(size=(num_rows, 3)), jnp.float32)
    return Batch(x, y, jnp.full(num_rows, task, jnp.int32), jnp.ones(num_rows))


def sets(exemplars):
    """The ranks held, by task and class."""
    found = {}
    present = np.asarray(exemplars.held())
    for y, task, rank in zip(*(np.asarray(f)[present] for f in exemplars[1:4]), strict=True):
        found.setdefault((int(task), int(y)), []).append(int(rank))
    return {key: sorted(ranks) for key, ranks in found.items()}


def test_rows_are_chosen_as_the_definition_says():
    rows = task_rows(0, 40, [0, 2, 3])
    owner = np.asarray(rows.y)
    rank = np.asarray(HERD(rows.x, rows.y, 5, 7))
    for label in (0, 2, 3):
        members = np.flatnonzero(owner == label)
        order = members[np.argsort(rank[members])][:7]
        np.testing.assert_array_equal(order, members[greedy(np.asarray(rows.x)[members], 7)])
        assert sorted(rank[members])[:7] == list(range(7))


def test_the_first_choice_is_the_row_nearest_to_the_mean():
    rows = task_rows(0, 30, [1])
    gaps = np.linalg.norm(rows.x - rows.x.mean(axis=0), axis=1)
    assert int(np.argmin(HERD(rows.x, rows.y, 2, 3))) == int(np.argmin(gaps))


def test_a_small_class_is_taken_whole_and_padding_never():
    rows = task_rows(0, 6, [0, 1])
    rank = np.asarray(HERD(rows.x, jnp.array([0, 0, 1, 1, 1, 2]), 2, 5))
    assert sorted(rank[:2]) == [0, 1]
    assert sorted(rank[2:5]) == [0, 1, 2]
    assert rank[5] > 100


def test_the_quota_is_the_memory_over_the_classes_seen():
    """M = 200, 20 tasks of 5 classes: 40 a class after the first task, 2 after the last."""
    exemplars = empty_exemplars(task_rows(0, 1, [0]), 200)
    for task in range(20):
        rows = task_rows(task, 250, np.arange(5 * task, 5 * task + 5))
        exemplars = ADD(exemplars, rows, rows.x, 100)
        quota = 200 // (5 * (task + 1))
        assert sets(exemplars) == {
            (t, c): list(range(quota)) for t in range(task + 1) for c in range(5 * t, 5 * t + 5)
        }
    assert quota == 2
    assert int(exemplars.held().sum()) == 200


def test_a_set_is_shortened_from_its_end():
    first, second = task_rows(0, 20, [0, 1]), task_rows(1, 20, [2, 3])
    before = ADD(empty_exemplars(first, 8), first, first.x, 4)
    after = ADD(before, second, second.x, 4)
    old = np.asarray(after.task == 0) & np.asarray(after.held())
    kept = {
        (int(y), int(r)): x
        for x, y, r in zip(after.x[old], after.y[old], after.rank[old], strict=True)
    }
    for x, y, rank in zip(before.x, before.y, before.rank, strict=True):
        if rank < 2:
            np.testing.assert_array_equal(kept.pop((int(y), int(rank))), x)
    assert not kept


def test_a_class_that_returns_has_a_set_a_task():
    exemplars = empty_exemplars(task_rows(0, 1, [0]), 12)
    for task in range(3):
        rows = task_rows(task, 20, [0, 1])
        exemplars = ADD(exemplars, rows, rows.x, 2)
    assert sets(exemplars) == {(task, label): [0, 1] for task in range(3) for label in range(2)}


def test_more_classes_than_places_are_cut_off_at_the_memory():
    rows = task_rows(0, 20, range(10))
    exemplars = ADD(empty_exemplars(rows, 4), rows, rows.x, 10)
    assert int(exemplars.held().sum()) == 4
    assert all(ranks == [0] for ranks in sets(exemplars).values())


def test_one_exemplar_is_drawn_from_every_set_with_equal_chances():
    exemplars = empty_exemplars(task_rows(0, 1, [0]), 12)
    for task, classes in enumerate(([0, 1, 2], [3])):
        rows = task_rows(task, 20, classes)
        exemplars = ADD(exemplars, rows, rows.x, 4)
    weights = jax.vmap(lambda key: draw_one_each(exemplars, key))(
        jax.random.split(jax.random.key(0), 1500)
    )
    weights, y, task = np.asarray(weights), np.asarray(exemplars.y), np.asarray(exemplars.task)
    for label in range(4):
        drawn = weights[:, y == label] > 0
        assert (drawn.sum(axis=1) == 1).all()
        assert np.abs(drawn.mean(axis=0) - 1 / 3).max() < 5 * np.sqrt(2 / 9 / 1500)
    np.testing.assert_allclose(weights[:, task == 0].sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(weights[:, task == 1].sum(axis=1), 1, rtol=1e-6)


def test_nothing_is_drawn_where_nothing_is_held():
    assert not draw_one_each(empty_exemplars(task_rows(0, 1, [0]), 5), jax.random.key(0)).any()


def test_class_means_are_over_the_exemplars_of_a_class():
    rows = task_rows(0, 30, [0, 2])
    exemplars = ADD(empty_exemplars(rows, 10), rows, rows.x, 4)
    means, known = class_means(exemplars, exemplars.x, 4)
    np.testing.assert_array_equal(known, [True, False, True, False])
    for label in (0, 2):
        of_class = np.asarray(exemplars.held()) & (np.asarray(exemplars.y) == label)
        np.testing.assert_allclose(
            means[label], np.asarray(exemplars.x)[of_class].mean(axis=0), rtol=1e-5
        )


def test_there_must_be_room():
    with pytest.raises(InvalidArgument, match="memory_size = 0"):
        empty_exemplars(task_rows(0, 1, [0]), 0)
