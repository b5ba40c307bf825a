import inspect

import numpy as np
import pytest

import lamaml.streams
from lamaml.errors import InvalidArgument
from lamaml.streams import STREAMS, build, digits_rotations
from lamaml.streams._randomness import generator


def test_names_are_those_of_the_functions():
    for name, builder in STREAMS.items():
        if name != "joint":
            assert builder.__name__ == name
            assert getattr(lamaml.streams, name) is builder


def test_exported_names_are_exact():
    public = {name for name, value in vars(lamaml.streams).items() if inspect.isfunction(value)}
    own = {
        name for name in public if getattr(lamaml.streams, name).__module__.startswith("lamaml.s")
    }
    assert {name for name in own if name[0] != "_"} | {"STREAMS"} == set(lamaml.streams.__all__)


@pytest.mark.parametrize("name", STREAMS)
def test_every_builder_is_described_and_takes_a_seed(name):
    assert inspect.getdoc(STREAMS[name])
    seed = inspect.signature(STREAMS[name]).parameters["seed"]
    assert (seed.kind, seed.default) == (seed.KEYWORD_ONLY, seed.empty)


def test_build_passes_sizes_on():
    built = build("digits_rotations", seed=1, num_tasks=2, num_samples=9)
    expected = digits_rotations(seed=1, num_tasks=2, num_samples=9)
    assert len(built.tasks) == 2
    np.testing.assert_array_equal(built.tasks[1].train.x, expected.tasks[1].train.x)
    assert len(build("digits_rotations", seed=1).tasks) == 10


def test_unknown_stream():
    with pytest.raises(
        InvalidArgument, match="unknown stream 'mnist_rotation': did you mean 'mnist_r"
    ):
        build("mnist_rotation", seed=0)


def test_unknown_option():
    with pytest.raises(
        InvalidArgument, match="option of cifar100 'augment': did you mean 'augmenta"
    ):
        build("cifar100", seed=0, augment=False)
    with pytest.raises(InvalidArgument, match="option of digits_rotations 'foo'"):
        build("joint", seed=0, of="digits_rotations", foo=1)
    with pytest.raises(InvalidArgument, match="unknown stream"):
        build("joint", seed=0, of="digit")


def test_purposes_places_and_seeds_are_independent():
    draws = {
        tuple(generator(seed, purpose, *place).integers(0, 2**32, 4).tolist())
        for seed in (0, 1, 2**40)
        for purpose in ("angle", "rows")
        for place in ((), (0,), (1,), (0, 0))
    }
    assert len(draws) == 3 * 2 * 4
