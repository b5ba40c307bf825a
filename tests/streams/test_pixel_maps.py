import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lamaml.streams._pixel_maps import FILL, rotation, take


def random_images(side: int, count: int = 8) -> np.ndarray:
    # From 1: a zero could hide a pixel that should have been filled.
    return np.random.default_rng(side).integers(1, 256, (count, side * side), np.uint8)


def rotated_by_pillow(images: np.ndarray, side: int, angle: float) -> np.ndarray:
    pictures = (Image.fromarray(image.reshape(side, side)) for image in images)
    return np.stack([np.asarray(picture.rotate(angle)).reshape(-1) for picture in pictures])


@pytest.mark.parametrize("side", [8, 28])
@pytest.mark.parametrize("angle", [0, 1e-9, 0.5, 9, 45, 89.999, 90, 133.7, 179.99, 180, 270])
def test_gather_is_pillows_rotation(side, angle):
    images = random_images(side)
    expected = rotated_by_pillow(images, side, angle)
    np.testing.assert_array_equal(take(images, rotation(side, angle)), expected)


@settings(max_examples=200, deadline=None)
@given(angle=st.floats(0, 180), side=st.sampled_from([8, 28]))
def test_gather_is_pillows_rotation_at_any_angle(angle, side):
    images = random_images(side, 2)
    expected = rotated_by_pillow(images, side, angle)
    np.testing.assert_array_equal(take(images, rotation(side, angle)), expected)


def test_rotation_is_counter_clockwise():
    right_edge = np.zeros((1, 64), np.uint8)
    right_edge[0, 7::8] = 1
    top_edge = np.zeros((1, 64), np.uint8)
    top_edge[0, :8] = 1
    np.testing.assert_array_equal(take(right_edge, rotation(8, 90)), top_edge)


def test_corners_are_filled_with_black():
    source = rotation(28, 45)
    assert source[0] == source[27] == source[-1] == FILL
    assert (take(random_images(28), source)[:, source == FILL] == 0).all()


def test_permutation_is_undone_by_its_inverse():
    images = random_images(28)
    order = np.random.default_rng(0).permutation(784)
    moved = take(images, order)
    np.testing.assert_array_equal(moved[:, 5], images[:, order[5]])
    np.testing.assert_array_equal(take(moved, np.argsort(order)), images)
