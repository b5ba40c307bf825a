"""The parts of an estimator's state: moments, stored rows, labels, held-out rows, thinning."""

import numpy as np
import pytest

from lamaml.estimators._budget import _thinned
from lamaml.estimators._holdout import none_held_out, with_rows
from lamaml.estimators._labels import no_labels, outputs_of, with_classes, with_task
from lamaml.estimators._rows import DTYPES, Rows, narrowest, numbered, places_of
from lamaml.estimators._scaling import merged, no_moments, scaling
from lamaml.memory import Reservoir


def test_moments_are_those_of_all_rows_at_once():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 3)) * [1, 1e-3, 1e3] + [0, 1e3, -5]
    seen = no_moments(3)
    for part in np.split(rows, [1, 3, 40]):
        seen = merged(seen, part)
    assert np.allclose(seen.mean, rows.mean(axis=0), rtol=1e-12)
    assert np.allclose(seen.scatter, 100 * rows.var(axis=0), rtol=1e-9)


def test_a_column_that_does_not_vary_is_left_alone():
    constant = np.full((10, 1), np.float32(0.1))
    centre, deviation = scaling(merged(no_moments(1), constant))
    assert deviation.tolist() == [1]
    assert centre[0] == constant[0, 0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_stored_rows_are_exact_and_know_their_place(dtype):
    x = np.array([[0, 7, 255], [3, 100, 1]], np.float32)
    stored = numbered(x, np.array([5, 2**31 + 3]), dtype)
    assert stored.dtype == dtype
    assert np.array_equal(stored[:, :3], x)
    assert places_of(stored).tolist() == [5, 2**31 + 3]


@pytest.mark.parametrize(
    ("value", "name"),
    [(255, "uint8"), (256, "int16"), (-1, "int16"), (32768, "float32"), (0.5, "float32")],
)
def test_the_narrowest_dtype_is_exact(value, name):
    assert narrowest(np.array([[0, value]], np.float32), DTYPES[0]).name == name


def test_outputs_stay_with_their_classes():
    labels = with_classes(no_labels(np.dtype(int)), np.array([5, 9]))
    labels = with_task(labels, "a", outputs_of(labels, np.array([9])))
    more = with_classes(labels, np.array([1, 5]))
    assert outputs_of(more, np.array([5, 9])).tolist() == [0, 1]
    more = with_task(more, None, outputs_of(more, np.array([1])))
    assert more.heads.tolist() == [[False, True, False], [False, True, True]]


def test_held_out_rows_are_a_uniform_sample():
    """Each of 40 rows is kept with probability 5/40, whatever calls they came in."""
    kept = np.zeros(40)
    for seed in range(2000):
        held = none_held_out(5, 1, np.dtype(np.float32), np.dtype(np.int32))
        for places in np.split(np.arange(40), [3, 20]):
            zeros = np.zeros(len(places))
            rows = Rows(places[:, None].astype(np.float32), zeros, zeros)
            held = with_rows(held, rows, places, 0, lambda rows: rows.x[:, 0] + 1, seed)
        assert np.array_equal(held.score, held.place + 1)
        kept[held.place] += 1
    assert kept.sum() == 5 * 2000
    assert abs(kept / 2000 - 5 / 40).max() < 5 * np.sqrt(5 / 40 * 35 / 40 / 2000)


def test_a_thinned_reservoir_is_a_uniform_sample_of_what_it_held():
    kept = np.zeros(10)
    rows = np.arange(10)
    for seed in range(2000):
        full = Reservoir(rows[:, None], rows, rows, np.int32(50))
        thin = _thinned(full, 4, np.uint32(seed))
        assert thin.num_seen == 50
        kept[thin.y] += 1
    assert abs(kept / 2000 - 0.4).max() < 5 * np.sqrt(0.4 * 0.6 / 2000)
