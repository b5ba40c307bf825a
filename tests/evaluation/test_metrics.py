"""RA, BTI, LA and FWT, by hand and as identities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lamaml.errors import InvalidArgument
from lamaml.evaluation import metrics

R = np.array([[0.9, 0.3, np.nan], [0.6, 0.8, 0.2], [0.5, 0.7, 1.0]])
B = np.array([0.1, 0.05, 0.15])


def test_one_task_has_no_transfer():
    found = metrics(np.array([[0.7]]), np.array([0.1]))
    assert found.ra == found.la == 0.7
    assert np.isnan([found.bti, found.fwt]).all()


def test_a_hand_made_matrix():
    found = metrics(R, B)
    assert found.ra == pytest.approx((0.5 + 0.7 + 1.0) / 3)
    assert found.la == pytest.approx((0.9 + 0.8 + 1.0) / 3)
    assert found.bti == pytest.approx(((0.5 - 0.9) + (0.7 - 0.8) + 0) / 3)  # over T, not T − 1
    assert found.fwt == pytest.approx(((0.3 - 0.05) + (0.2 - 0.15)) / 3)


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
