"""The metrics of an accuracy matrix and of counts of answers, by hand and as identities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lamaml.errors import InvalidArgument
from lamaml.evaluation import class_accuracies, metrics

R = np.array([[0.9, 0.3, np.nan], [0.6, 0.8, 0.2], [0.5, 0.7, 1.0]])
B = np.array([0.1, 0.05, 0.15])


def test_one_task_has_no_transfer():
    found = metrics(np.array([[0.7]]), np.array([0.1]))
    assert found.ra == found.la == 0.7
    assert np.isnan([found.bti, found.fwt, found.fm, found.mf]).all()
    assert found.aaa == 0.7


def test_a_hand_made_matrix():
    found = metrics(R, B)
    assert found.ra == pytest.approx((0.5 + 0.7 + 1.0) / 3)
    assert found.la == pytest.approx((0.9 + 0.8 + 1.0) / 3)
    assert found.bti == pytest.approx(((0.5 - 0.9) + (0.7 - 0.8) + 0) / 3)  # over T, not T − 1
    assert found.fwt == pytest.approx(((0.3 - 0.05) + (0.2 - 0.15)) / 3)
    assert found.fm == pytest.approx(((0.9 - 0.5) + (0.8 - 0.7)) / 2)
    assert found.mf == pytest.approx(0.9 - 0.5)
    assert found.aaa == pytest.approx((0.9 + (0.6 + 0.8) / 2 + (0.5 + 0.7 + 1.0) / 3) / 3)


def test_forgetting_is_from_the_best_and_may_be_negative():
    matrix = np.array([[0.4, 0, 0], [0.7, 0.5, 0], [0.6, 0.8, 0.9]])
    found = metrics(matrix, np.zeros(3))
    assert found.fm == pytest.approx(((0.7 - 0.6) + (0.5 - 0.8)) / 2)
    assert found.mf == pytest.approx(0.7 - 0.6)


def test_task_ends_without_all_tasks_are_left_out():
    matrix = np.array([[0.4, 0, np.nan], [np.nan, 0.5, 0], [0.6, 0.8, 0.9]])
    found = metrics(matrix, np.zeros(3))
    assert found.aaa == pytest.approx((0.4 + (0.6 + 0.8 + 0.9) / 3) / 2)
    assert found.mf == pytest.approx(0.4 - 0.6)


def test_accuracy_per_class():
    counts = np.array([[8, 2, 0], [1, 0, 3], [0, 0, 0]])
    np.testing.assert_allclose(class_accuracies(counts), [0.8, 0.0, np.nan])
    with pytest.raises(InvalidArgument, match="counts"):
        class_accuracies(np.zeros((2, 3)))


def test_entries_above_the_first_superdiagonal_are_not_read():
    assert np.isnan(R[0, 2])
    assert np.isfinite(metrics(R, B)).all()


def test_a_constant_predictor_neither_forgets_nor_transfers():
    share = np.array([0.1, 0.12, 0.08, 0.11])  # of the class it always answers, in each test set
    found = metrics(np.tile(share, (4, 1)), share)
    assert found.bti == 0
    assert found.fwt == 0
    assert found.ra == found.la == pytest.approx(share.mean())


SHARES = st.floats(0, 1)


@given(st.integers(2, 6).flatmap(lambda t: arrays(float, (t, t), elements=SHARES)))
def test_bti_is_ra_minus_la(matrix):
    found = metrics(matrix, np.zeros(len(matrix)))
    assert found.bti == pytest.approx(found.ra - found.la, abs=1e-12)
    assert -1 <= found.bti <= 1


@given(arrays(float, (4, 4), elements=SHARES))
def test_ra_la_and_bti_do_not_depend_on_the_rows_in_between(matrix):
    shuffled = matrix.copy()
    mask = ~np.eye(4, dtype=bool)
    mask[-1] = False
    shuffled[mask] = 1 - shuffled[mask]
    ours, theirs = metrics(matrix, np.zeros(4)), metrics(shuffled, np.zeros(4))
    assert (ours.ra, ours.la, ours.bti) == (theirs.ra, theirs.la, theirs.bti)


@pytest.mark.parametrize(
    ("matrix", "baseline", "argument"),
    [(np.zeros((2, 3)), np.zeros(2), "matrix"), (np.zeros((2, 2)), np.zeros(3), "baseline")],
)
def test_shapes_that_do_not_fit_are_refused(matrix, baseline, argument):
    with pytest.raises(InvalidArgument, match=argument):
        metrics(matrix, baseline)
