import numpy as np
import pytest

from lamaml.streams._tasks import Selection, groups, hold_out, select_by_class


def rows(label: np.ndarray) -> Selection:
    return Selection(lambda number: number[:, None], np.arange(len(label)), label, label)


@pytest.mark.parametrize(("size", "fraction", "taken"), [(500, 0.1, 50), (60, 0.1, 6), (4, 0.1, 1)])
def test_hold_out_takes_the_same_share_of_every_group(size, fraction, taken):
    label = np.random.default_rng(0).permutation(np.arange(10 * size) % 10)
    held, left = hold_out(rows(label), label, fraction, seed=0, purpose="validation")
    assert np.bincount(held.label).tolist() == [taken] * 10
    assert sorted([*held.number, *left.number]) == list(range(10 * size))


def test_hold_out_never_takes_all():
    label = np.array([0, 0, 1])
    held, left = hold_out(rows(label), label, 0.9, seed=0, purpose="test")
    assert held.label.tolist() == [0]
    assert left.label.tolist() == [0, 1]


def test_hold_out_is_random():
    label = np.zeros(100, int)
    one, other = (
        hold_out(rows(label), label, 0.1, seed=seed, purpose="test")[0] for seed in (0, 1)
    )
    assert set(one.number) != set(other.number)


def test_label_is_the_position_of_the_class():
    order = np.array([2, 0, 3, 1])
    made = select_by_class(lambda number: number, np.array([0, 1, 2, 3, 2]), order, 2)
    assert made.label.tolist() == [1, 3, 0, 2, 0]
    assert made.task.tolist() == [0, 1, 0, 1, 0]
    assert made.subset(np.array([4, 0])).load().y.tolist() == [0, 1]


def test_groups_of_nothing():
    assert [group.tolist() for group in groups(np.arange(0), 2)] == [[], []]
