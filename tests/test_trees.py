"""Trees taken as vectors, the finite check, and padding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml._trees import all_finite, cosine, dot, global_norm, pad_rows

ONE = {"w": jnp.array([[1.0, 2.0]]), "b": jnp.array(2.0)}
OTHER = {"w": jnp.array([[3.0, -1.0]]), "b": jnp.array(0.5)}


def test_dot_norm_and_cosine_are_those_of_the_leaves_as_one_vector():
    a, b = np.array([1.0, 2.0, 2.0]), np.array([3.0, -1.0, 0.5])
    assert float(dot(ONE, OTHER)) == pytest.approx(a @ b)
    assert float(global_norm(ONE)) == pytest.approx(3.0)
    expected = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert float(cosine(ONE, OTHER)) == pytest.approx(expected)
    assert jnp.isnan(cosine(ONE, jax.tree.map(jnp.zeros_like, ONE)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_all_finite_sees_every_float_and_no_integer(bad):
    tree = {"a": jnp.ones(3), "count": jnp.arange(2), "key": jax.random.key(0)}
    assert all_finite(tree)
    assert all_finite({"count": jnp.arange(2)})
    assert not all_finite(tree | {"b": jnp.array([[0.0, bad]])})


@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 2, 2)])
def test_pad_rows(shape):
    rows = np.ones(shape, np.uint8)
    padded = pad_rows(rows, 5)
    assert padded.shape == (5, *shape[1:])
    assert padded.dtype == np.uint8
    assert padded[:3].all()
    assert not padded[3:].any()
    assert pad_rows(rows, 3) is rows
    assert (pad_rows(rows.astype(np.int32), 4, -1)[3:] == -1).all()
