"""Convolution by slices and a matrix product is convolution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.models import layers

SIDES = [(8, 8), (7, 7), (5, 6), (1, 2), (1, 1)]


def problem(height, width, channels=2, filters=3):
    rng = np.random.default_rng(0)
    layer = {
        "weight": jnp.asarray(rng.normal(size=(filters, 9 * channels))),
        "bias": jnp.asarray(rng.normal(size=filters)),
    }
    return layer, jnp.asarray(rng.normal(size=(2, height, width, channels)))


def native(layer, images):
    kernel = layer["weight"].T.reshape(3, 3, images.shape[-1], -1)
    layout = ("NHWC", "HWIO", "NHWC")
    out = jax.lax.conv_general_dilated(
        images, kernel, (2, 2), ((1, 1), (1, 1)), dimension_numbers=layout
    )
    return out + layer["bias"]


@pytest.mark.parametrize("sides", SIDES)
def test_convolve_on_a_cpu_equals_the_native_operation_with_its_gradients(sides, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    with jax.enable_x64(True):
        layer, images = problem(*sides)
        np.testing.assert_allclose(
            layers.convolve(layer, images), native(layer, images), rtol=1e-12
        )

        def total(convolve):  # a function of the outputs in which every one of them counts
            return jax.jit(
                jax.grad(lambda l, x: jnp.sum(jnp.sin(convolve(l, x))), argnums=(0, 1))  # noqa: E741
            )(layer, images)

        ours, theirs = total(layers.convolve), total(native)
        assert jax.tree.leaves(ours)[0].dtype == jnp.float64
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), ours, theirs)


@pytest.mark.parametrize("sides", SIDES)
def test_convolve_on_an_accelerator_is_the_same_function(sides, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with jax.enable_x64(True):
        layer, images = problem(*sides)
        np.testing.assert_allclose(
            layers.convolve(layer, images), native(layer, images), rtol=1e-12
        )


def test_a_cpu_does_not_run_the_native_operation(monkeypatch):
    layer, images = problem(8, 8)
    for backend, is_native in (("cpu", False), ("gpu", True)):
        monkeypatch.setattr(jax, "default_backend", lambda name=backend: name)
        traced = str(jax.make_jaxpr(lambda *given: layers.convolve(*given))(layer, images))
        assert ("conv_general_dilated" in traced) is is_native


@pytest.mark.parametrize("side", range(1, 9))
def test_convolved_size(side):
    assert layers.convolved_size(side) == (side + 1) // 2
    assert layers.neighbourhoods(jnp.zeros((1, side, side, 1))).shape[1:3] == ((side + 1) // 2,) * 2
