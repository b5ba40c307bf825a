"""The parts of an estimator's state: moments, stored rows, labels, held-out rows."""

import numpy as np
import pytest
from small_streams import classifier

from lamaml.estimators._holdout import add_rows, empty_holdout
from lamaml.estimators._labels import add_classes, add_task, empty_labels, encode
from lamaml.estimators._rows import Rows, holds_exactly
from lamaml.estimators._scaling import add_to_moments, empty_moments, mean_and_deviation


def test_moments_are_those_of_all_rows_at_once():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 3)) * [1, 1e-3, 1e3] + [0, 1e3, -5]
    seen = empty_moments(3)
    for part in np.split(rows, [1, 3, 40]):
        seen = add_to_moments(seen, part)
    assert np.allclose(seen.mean, rows.mean(axis=0), rtol=1e-12)
    assert np.allclose(seen.scatter, 100 * rows.var(axis=0), rtol=1e-9)


def test_a_column_that_does_not_vary_is_left_alone():
    constant = np.full((10, 1), np.float32(0.1))
    centre, deviation = mean_and_deviation(add_to_moments(empty_moments(1), constant))
    assert deviation.tolist() == [1]
    assert centre[0] == constant[0, 0]


@pytest.mark.parametrize(
    ("given", "stored"),
    [("uint8", "uint8"), ("int16", "float32"), ("int64", "float32"), ("float64", "float32")],
)
def test_stored_rows_are_exact_and_know_their_position(given, stored):
    x = np.array([[0, 7, 255], [3, 100, 1]], given)
    memory = classifier(held_out=0).partial_fit(x, [0, 1])._fitted.learner_state.memory
    assert memory.x.dtype == stored
    assert np.array_equal(memory.x[:2], x)
    assert memory.position[:2].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("value", "dtype", "is_exact"),
    [(255, "uint8", True), (256, "uint8", False), (-1, "uint8", False), (0.5, "uint8", False)],
)
def test_a_dtype_must_hold_every_number_exactly(value, dtype, is_exact):
    rows = np.array([[0, value]], np.float32)
    assert holds_exactly(dtype, rows) == is_exact
    assert holds_exactly("float32", rows)


def test_outputs_stay_with_their_classes():
    labels = add_classes(empty_labels(np.dtype(int)), np.array([5, 9]))
    labels = add_task(labels, "a", encode(labels, np.array([9])))
    more = add_classes(labels, np.array([1, 5]))
    assert encode(more, np.array([5, 9])).tolist() == [0, 1]
    more = add_task(more, None, encode(more, np.array([1])))
    assert more.heads.tolist() == [[False, True, False], [False, True, True]]


def test_held_out_rows_are_a_uniform_sample():
    """Each of 40 rows is kept with probability 5/40, whatever calls they came in."""
    kept = np.zeros(40)
    for seed in range(2000):
        held = empty_holdout(5, 1, np.dtype(np.float32), np.dtype(np.int32))
        for positions in np.split(np.arange(40), [3, 20]):
            zeros = np.zeros(len(positions))
            rows = Rows(positions[:, None].astype(np.float32), zeros, zeros)
            held = add_rows(held, rows, positions, 0, lambda rows: rows.x[:, 0] + 1, seed)
        assert np.array_equal(held.score, held.position + 1)
        kept[held.position] += 1
    assert kept.sum() == 5 * 2000
    assert abs(kept / 2000 - 5 / 40).max() < 5 * np.sqrt(5 / 40 * 35 / 40 / 2000)
