import inspect

import numpy as np
import pytest

import lamaml.streams
from lamaml.errors import InvalidArgument
from lamaml.streams import STREAMS, data_fingerprint, digits_rotations, load_stream
from lamaml.streams._tasks import generator


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
    own = {name for name in own if name[0] != "_" and not name.endswith("_digest")}
    assert own | {"STREAMS"} == set(lamaml.streams.__all__)


@pytest.mark.parametrize("name", STREAMS)
def test_every_builder_is_described_and_takes_a_seed(name):
    assert inspect.getdoc(STREAMS[name])
    seed = inspect.signature(STREAMS[name]).parameters["seed"]
    assert (seed.kind, seed.default) == (seed.KEYWORD_ONLY, seed.empty)


def test_load_stream_passes_sizes_on():
    built = load_stream("digits_rotations", seed=1, num_tasks=2, num_samples=9)
    expected = digits_rotations(seed=1, num_tasks=2, num_samples=9)
    assert len(built.tasks) == 2
    np.testing.assert_array_equal(built.tasks[1].train.x, expected.tasks[1].train.x)
    assert len(load_stream("digits_rotations", seed=1).tasks) == 10


def test_unknown_stream():
    with pytest.raises(
        InvalidArgument, match="unknown stream 'mnist_rotation': did you mean 'mnist_r"
    ):
        load_stream("mnist_rotation", seed=0)


def test_unknown_option():
    with pytest.raises(
        InvalidArgument, match="option of cifar100 'augment': did you mean 'augmenta"
    ):
        load_stream("cifar100", seed=0, augment=False)
    with pytest.raises(InvalidArgument, match="option of digits_rotations 'foo'"):
        load_stream("joint", seed=0, of="digits_rotations", foo=1)
    with pytest.raises(InvalidArgument, match="unknown stream"):
        load_stream("joint", seed=0, of="digit")


def test_seed_is_0_by_default():
    expected = digits_rotations(seed=0, num_tasks=1)
    assert load_stream("digits_rotations", num_tasks=1).facts == expected.facts


def test_data_fingerprint():
    digest = data_fingerprint("digits_rotations")
    assert len(digest) == 64
    assert data_fingerprint("digits_permutations") == digest
    assert data_fingerprint("joint", of="digits_rotations") == digest
    with pytest.raises(InvalidArgument, match="no data files"):
        data_fingerprint("arrays")
    with pytest.raises(InvalidArgument, match="unknown stream"):
        data_fingerprint("digit")


def test_purposes_indices_and_seeds_are_independent():
    draws = {
        tuple(generator(seed, purpose, *index).integers(0, 2**32, 4).tolist())
        for seed in (0, 1, 2**40)
        for purpose in ("angle", "rows")
        for index in ((), (0,), (1,), (0, 0))
    }
    assert len(draws) == 3 * 2 * 4
