import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lamaml.errors import InvalidArgument
from lamaml.streams.transforms import (
    CropFlip,
    Scale,
    Standardise,
    permute,
    rotate,
    shift_and_mirror,
)

PLAIN = Standardise(mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
KEY = jax.random.key(0)


def images(count: int, side: int = 8) -> np.ndarray:
    # From 1: a zero is then always padding.
    draw = np.random.default_rng(0)
    return draw.integers(1, 256, (count, side, side, 3), np.uint8)


@pytest.mark.parametrize("mirrored", [False, True])
def test_shift_is_a_crop_of_the_padded_image_at_every_offset(mirrored):
    x = images(81)
    offset = np.stack(np.meshgrid(range(-4, 5), range(-4, 5), indexing="ij"), -1).reshape(81, 2)
    padded = np.pad(x, ((0, 0), (4, 4), (4, 4), (0, 0)))
    windows = zip(padded, offset + 4, strict=True)
    expected = np.stack([image[r : r + 8, c : c + 8] for image, (r, c) in windows])
    out = shift_and_mirror(jnp.asarray(x), jnp.asarray(offset), jnp.full(81, mirrored))
    assert out.dtype == jnp.uint8
    np.testing.assert_array_equal(out, expected[:, :, ::-1] if mirrored else expected)


def test_each_image_is_mirrored_on_its_own():
    x = images(2)
    out = shift_and_mirror(jnp.asarray(x), jnp.zeros((2, 2), int), jnp.array([True, False]))
    np.testing.assert_array_equal(out[0], x[0, :, ::-1])
    np.testing.assert_array_equal(out[1], x[1])


def test_every_image_is_a_crop_of_itself_and_all_are_equally_likely():
    count = 20_000
    x = np.zeros((count, 9, 9, 3), np.uint8)
    x[:, 4, 4] = 255  # one lit pixel in the middle shows where the image went
    x[:, 4, 3] = 100  # and its dimmer neighbour on which side left is
    out = np.asarray(jax.jit(CropFlip(PLAIN))(jnp.asarray(x), KEY))
    lit = out[..., 0] == 1
    assert (lit.sum((1, 2)) == 1).all()
    _, row, column = np.nonzero(lit)
    shifts = np.bincount(row * 9 + column, minlength=81) / count
    np.testing.assert_allclose(shifts, 1 / 81, atol=0.004)
    inside = column > 0
    left = out[np.flatnonzero(inside), row[inside], column[inside] - 1, 0] > 0
    np.testing.assert_allclose(1 - left.mean(), 0.5, atol=0.02)


def test_border_is_black_before_standardising():
    standardise = Standardise(mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.5))
    out = np.asarray(jax.jit(CropFlip(standardise))(jnp.full((50, 8, 8, 3), 255, jnp.uint8), KEY))
    black, white = np.array([-2.5, -1.6, -0.6]), np.array([2.5, 2.4, 1.4])
    is_black = np.isclose(out, black, atol=1e-5).all(-1)
    is_white = np.isclose(out, white, atol=1e-5).all(-1)
    assert (is_black | is_white).all()
    assert is_black.any()
    assert is_white.any()


def test_brightness_factor_is_uniform_and_one_an_image():
    x = jnp.full((5000, 4, 4, 3), 100, jnp.uint8)
    out = np.asarray(jax.jit(CropFlip(PLAIN, padding=0, brightness=0.25))(x, KEY)) * 255 / 100
    factor = out[:, 0, 0, 0]
    np.testing.assert_allclose(out, np.broadcast_to(factor[:, None, None, None], out.shape))
    assert factor.min() >= 0.75 - 1e-6
    assert factor.max() <= 1.25 + 1e-6
    np.testing.assert_allclose(np.quantile(factor, [0.25, 0.5, 0.75]), [0.875, 1, 1.125], atol=0.02)


def test_brightness_is_clipped():
    x = jnp.full((1000, 2, 2, 3), 250, jnp.uint8)
    out = np.asarray(jax.jit(CropFlip(PLAIN, padding=0, brightness=0.25))(x, KEY))
    assert out.max() == 1
    assert 0.3 < (out == 1).mean() < 0.6


def test_same_key_same_images_and_jit_changes_nothing():
    augment, x = CropFlip(PLAIN, brightness=0.2), jnp.asarray(images(10))
    once, again = augment(x, KEY), jax.jit(augment)(x, KEY)
    np.testing.assert_allclose(once, again, rtol=1e-6)
    assert (np.asarray(once) != np.asarray(augment(x, jax.random.key(1)))).any()
    assert once.dtype == jnp.float32


def test_nothing_to_change():
    x = images(20)
    out = np.asarray(jax.jit(CropFlip(PLAIN, padding=0))(jnp.asarray(x), KEY)) * 255
    same = np.isclose(out, x, atol=1e-3).all((1, 2, 3))
    flipped = np.isclose(out, x[:, :, ::-1], atol=1e-3).all((1, 2, 3))
    assert (same ^ flipped).all()
    assert same.any()
    assert flipped.any()


@pytest.mark.parametrize(("argument", "value"), [("padding", -1), ("brightness", 1.5)])
def test_bad_arguments(argument, value):
    with pytest.raises(InvalidArgument, match=f"^{argument} = {value}"):
        CropFlip(PLAIN, **{argument: value})


def test_standardise():
    standardise = Standardise(mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.5))
    x = np.array([[[[0, 51, 255]]]], np.uint8)
    np.testing.assert_allclose(standardise(x)[0, 0, 0], [-2.5, -0.8, 1.4], rtol=1e-6)


def test_equal_ones_compile_once():
    assert CropFlip(PLAIN) == CropFlip(Standardise((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    assert hash(Scale(255)) == hash(Scale(255))
    assert Scale(255) != Scale(16)


def random_images(side: int, count: int = 8) -> np.ndarray:
    # From 1: a zero could hide a pixel that should have been filled.
    return np.random.default_rng(side).integers(1, 256, (count, side * side), np.uint8)


def rotated_by_pillow(images: np.ndarray, side: int, angle: float) -> np.ndarray:
    pictures = (Image.fromarray(image.reshape(side, side)) for image in images)
    return np.stack([np.asarray(picture.rotate(angle)).reshape(-1) for picture in pictures])


@pytest.mark.parametrize("side", [8, 28])
@pytest.mark.parametrize("angle", [0, 1e-9, 0.5, 9, 45, 89.999, 90, 133.7, 179.99, 180, 270])
def test_rotate_equals_pillow(side, angle):
    images = random_images(side)
    expected = rotated_by_pillow(images, side, angle)
    np.testing.assert_array_equal(rotate(images, angle), expected)


@settings(max_examples=200, deadline=None)
@given(angle=st.floats(0, 180), side=st.sampled_from([8, 28]))
def test_rotate_equals_pillow_at_any_angle(angle, side):
    images = random_images(side, 2)
    expected = rotated_by_pillow(images, side, angle)
    np.testing.assert_array_equal(rotate(images, angle), expected)


def test_rotation_is_counter_clockwise():
    right_edge = np.zeros((1, 64), np.uint8)
    right_edge[0, 7::8] = 1
    top_edge = np.zeros((1, 64), np.uint8)
    top_edge[0, :8] = 1
    np.testing.assert_array_equal(rotate(right_edge, 90), top_edge)


def test_corners_are_black():
    rotated = rotate(random_images(28), 45).reshape(-1, 28, 28)
    assert (rotated[:, [0, 0, -1, -1], [0, -1, 0, -1]] == 0).all()
    assert (rotated[:, 7:21, 7:21] > 0).all()


def test_images_that_are_not_square():
    with pytest.raises(InvalidArgument, match="shape of images"):
        rotate(np.zeros((2, 63)), 10)


def test_permutation_is_undone_by_its_inverse():
    images = random_images(28)
    order = np.random.default_rng(0).permutation(784)
    moved = permute(images, order)
    np.testing.assert_array_equal(moved[:, 5], images[:, order[5]])
    np.testing.assert_array_equal(permute(moved, np.argsort(order)), images)
