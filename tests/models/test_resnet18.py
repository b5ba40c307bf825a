"""ResNet-18 with group norm: its sizes, its function by other libraries' layers, its refusals."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.errors import InvalidArgument
from lamaml.models import layers, resnet18

KEY = jax.random.key(0)
SMALL = {"num_filters": 4, "num_groups": 2}


@pytest.mark.parametrize(("num_outputs", "num_weights"), [(10, 11_173_962), (100, 11_220_132)])
def test_it_has_the_weights_of_resnet_18_for_cifar(num_outputs, num_weights):
    params = jax.eval_shape(resnet18((32, 32, 3), num_outputs).init, KEY)
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == num_weights
    convolutions = [name for name, layer in params.items() if "bias" not in layer]
    assert len([name for name in convolutions if "shortcut" not in name]) == 17
    assert params["head"]["weight"].shape == (num_outputs, 512)


def by_hand(params, x, num_groups=2):
    """The same network, of XLA's convolution and flax's group norm."""

    def layer(x, name, norm, stride):
        weight = params[name]["weight"]
        side = 1 if "shortcut" in name else 3
        kernel = weight.T.reshape(side, side, x.shape[-1], -1)
        padding = ((side // 2, side // 2),) * 2
        x = jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        weights = {"scale": params[norm]["weight"], "bias": params[norm]["bias"]}
        return nn.GroupNorm(num_groups, epsilon=1e-5).apply({"params": weights}, x)

    x = jax.nn.relu(layer(x, "convolution_1", "norm_1", 1))
    for number, stride in enumerate((1, 1, 2, 1, 2, 1, 2, 1), 1):
        name = f"block_{number}"
        y = jax.nn.relu(layer(x, f"{name}_convolution_1", f"{name}_norm_1", stride))
        y = layer(y, f"{name}_convolution_2", f"{name}_norm_2", 1)
        x = layer(x, f"{name}_shortcut", f"{name}_shortcut_norm", 2) if stride == 2 else x
        x = jax.nn.relu(y + x)
    return x.mean((1, 2)) @ params["head"]["weight"].T + params["head"]["bias"]


@pytest.mark.parametrize("shape", [(8, 8, 3), (9, 11, 1)])
def test_it_is_the_network_of_other_libraries_layers(shape):
    model = resnet18(shape, 6, **SMALL)
    params = jax.tree.map(lambda p: p + 0.05, jax.jit(model.init)(KEY))
    images = jax.random.normal(jax.random.key(1), (3, *shape))
    ours, theirs = jax.jit(lambda p, x: (model.apply(p, x), by_hand(p, x)))(params, images)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_rows_do_not_see_each_other():
    model = resnet18((8, 8, 1), 3, **SMALL)
    apply, params = jax.jit(model.apply), jax.jit(model.init)(KEY)
    images = np.random.default_rng(0).normal(size=(2, 4, 8, 8, 1)).astype(np.float32)
    changed = images[0].copy()
    changed[1:] = images[1][1:]
    one, other = apply(params, images[0]), apply(params, changed)
    np.testing.assert_array_equal(one[0], other[0])
    assert (one[1:] != other[1:]).any(axis=1).all()


@pytest.mark.parametrize(
    ("shape", "settings", "message"),
    [
        ((32, 32), {}, r"image_shape = \(32, 32\): must be \(height, width, channels\)"),
        ((7, 32, 3), {}, r"image_shape = \(7, 32, 3\): must be at least 8 × 8"),
        ((32, 32, 3), {"num_filters": 16}, "num_groups = 32: .* divides num_filters = 16"),
        ((32, 32, 3), {"num_groups": 0}, "num_groups = 0"),
        ((32, 32, 3), {"initializer": "kaiming"}, "did you mean 'kaiming_normal'"),
    ],
)
def test_nonsense_is_refused(shape, settings, message):
    with pytest.raises(InvalidArgument, match=message):
        resnet18(shape, 10, **settings)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (1, 1), (1, 2), (5, 3)])
def test_any_kernel_and_stride_is_the_native_operation(kernel, stride, backend, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        weight = jnp.asarray(rng.normal(size=(4, kernel * kernel * 2)))
        images = jnp.asarray(rng.normal(size=(2, 7, 10, 2)))
        native = jax.lax.conv_general_dilated(
            images,
            weight.T.reshape(kernel, kernel, 2, 4),
            (stride, stride),
            ((kernel // 2, kernel // 2),) * 2,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        found = layers.convolve({"weight": weight}, images, kernel=kernel, stride=stride)
        np.testing.assert_allclose(found, native, rtol=1e-11)
