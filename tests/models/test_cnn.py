"""The paper's CNNs: their sizes and their function."""

import jax
import numpy as np
import pytest

from lamaml.errors import InvalidArgument
from lamaml.models import cnn

KEY = jax.random.key(0)

CIFAR = {
    "convolution_1": (27, 160),
    "convolution_2": (1440, 160),
    "convolution_3": (1440, 160),
    "hidden_1": (2560, 320),
    "hidden_2": (320, 320),
    "head": (320, 100),
}
TINY = {
    "convolution_1": (27, 160),
    "convolution_2": (1440, 160),
    "convolution_3": (1440, 160),
    "convolution_4": (1440, 160),
    "hidden_1": (2560, 640),
    "hidden_2": (640, 640),
    "head": (640, 200),
}


@pytest.mark.parametrize(
    ("arguments", "settings", "sizes", "num_weights"),
    [
        (((32, 32, 3), 100), {}, CIFAR, 1_419_940),
        (
            ((64, 64, 3), 200),
            {"num_convolutions": 4, "hidden_sizes": (640, 640)},
            TINY,
            2_873_640,
        ),
    ],
    ids=["cifar100", "tiny_imagenet"],
)
def test_sizes_are_the_papers(arguments, settings, sizes, num_weights):
    params = jax.eval_shape(cnn(*arguments, **settings).init, KEY)
    assert {name: layer["weight"].shape[::-1] for name, layer in params.items()} == sizes
    assert {name: layer["bias"].shape for name, layer in params.items()} == {
        name: (outputs,) for name, (_, outputs) in sizes.items()
    }
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == num_weights


@pytest.mark.parametrize("shape", [(8, 8, 3), (7, 10, 1)])
def test_it_is_the_native_convolutions_then_the_full_layers(shape):
    model = cnn(shape, 6, num_convolutions=2, num_filters=4, hidden_sizes=(5,))

    def by_hand(params, x):
        for name in ("convolution_1", "convolution_2"):
            kernel = params[name]["weight"].T.reshape(3, 3, x.shape[-1], 4)
            x = jax.lax.conv_general_dilated(
                x, kernel, (2, 2), ((1, 1), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = jax.nn.relu(x + params[name]["bias"])
        x = x.reshape(len(x), -1)
        x = jax.nn.relu(x @ params["hidden_1"]["weight"].T + params["hidden_1"]["bias"])
        return x @ params["head"]["weight"].T + params["head"]["bias"]

    @jax.jit
    def both():
        params = jax.tree.map(lambda p: p + 0.05, model.init(KEY))
        images = jax.random.normal(jax.random.key(1), (3, *shape))
        return model.apply(params, images), by_hand(params, images)

    ours, theirs = both()
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_convolutions_start_with_kaiming_variance_of_their_nine_neighbours():
    params = jax.jit(cnn((8, 8, 3), 10, num_filters=160, hidden_sizes=(8,)).init)(KEY)
    weight = np.asarray(params["convolution_2"]["weight"])
    assert weight.var() == pytest.approx(2 / (9 * 160), rel=0.02)


@pytest.mark.parametrize(
    ("shape", "settings", "message"),
    [
        ((32, 32), {}, r"image_shape = \(32, 32\): must be \(height, width, channels\)"),
        ((32, 32, 3), {"num_convolutions": 0}, "num_convolutions = 0: must be at least 1"),
    ],
)
def test_nonsense_is_refused(shape, settings, message):
    with pytest.raises(InvalidArgument, match=message):
        cnn(shape, 10, **settings)


def test_rows_do_not_see_each_other():
    model = cnn((8, 8, 1), 3, num_convolutions=1, num_filters=2, hidden_sizes=())
    apply, params = jax.jit(model.apply), jax.jit(model.init)(KEY)
    images = np.random.default_rng(0).normal(size=(2, 4, 8, 8, 1)).astype(np.float32)
    changed = images[0].copy()
    changed[1:] = images[1][1:]
    one, other = apply(params, images[0]), apply(params, changed)
    np.testing.assert_array_equal(one[0], other[0])
    assert (one[1:] != other[1:]).all()
