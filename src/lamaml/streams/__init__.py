"""Streams: data sets turned into sequences of tasks, found by name with `load_stream`."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from lamaml.errors import InvalidArgument, unknown_name
from lamaml.streams._download import data_folder, fetch
from lamaml.streams.arrays import arrays
from lamaml.streams.boundaries import blurred, recurring
from lamaml.streams.building import stream_from_arrays
from lamaml.streams.cifar10 import cifar10_digest, split_cifar10
from lamaml.streams.cifar100 import cifar100, cifar100_digest, split_cifar100
from lamaml.streams.digits import (
    digits_digest,
    digits_drift,
    digits_permutations,
    digits_rotations,
    split_digits,
)
from lamaml.streams.joint import joint
from lamaml.streams.mnist import (
    mnist_digest,
    mnist_drift,
    mnist_many_permutations,
    mnist_permutations,
    mnist_rotations,
    split_mnist,
)
from lamaml.streams.tiny_imagenet import tiny_imagenet, tiny_imagenet_digest
from lamaml.types import Stream

__all__ = [
    "STREAMS",
    "arrays",
    "blurred",
    "cifar100",
    "data_fingerprint",
    "data_folder",
    "digits_drift",
    "digits_permutations",
    "digits_rotations",
    "fetch",
    "joint",
    "load_stream",
    "mnist_drift",
    "mnist_many_permutations",
    "mnist_permutations",
    "mnist_rotations",
    "recurring",
    "split_cifar10",
    "split_cifar100",
    "split_digits",
    "split_mnist",
    "stream_from_arrays",
    "tiny_imagenet",
]


def _joint_by_name(*, seed: int, of: str = "digits_rotations", **options: Any) -> Stream:
    """All tasks of the stream named `of` as one shuffled task: the IID upper bound."""
    return joint(load_stream(of, seed=seed, **options), seed=seed)


class _BuiltIn(NamedTuple):
    build: Callable[..., Stream]
    data_digest: Callable[[], str] | None = None  # None: the data are the user's


_BUILT_IN = {
    "digits_rotations": _BuiltIn(digits_rotations, digits_digest),
    "digits_permutations": _BuiltIn(digits_permutations, digits_digest),
    "mnist_rotations": _BuiltIn(mnist_rotations, mnist_digest),
    "mnist_permutations": _BuiltIn(mnist_permutations, mnist_digest),
    "mnist_many_permutations": _BuiltIn(mnist_many_permutations, mnist_digest),
    "cifar100": _BuiltIn(cifar100, cifar100_digest),
    "tiny_imagenet": _BuiltIn(tiny_imagenet, tiny_imagenet_digest),
    "split_digits": _BuiltIn(split_digits, digits_digest),
    "split_mnist": _BuiltIn(split_mnist, mnist_digest),
    "split_cifar10": _BuiltIn(split_cifar10, cifar10_digest),
    "split_cifar100": _BuiltIn(split_cifar100, cifar100_digest),
    "digits_drift": _BuiltIn(digits_drift, digits_digest),
    "mnist_drift": _BuiltIn(mnist_drift, mnist_digest),
    "arrays": _BuiltIn(arrays),
    "joint": _BuiltIn(_joint_by_name),
}
STREAMS = {name: stream.build for name, stream in _BUILT_IN.items()}


def load_stream(
    name: str,
    *,
    seed: int = 0,
    num_tasks: int | None = None,
    num_samples: int | None = None,
    **options: Any,
) -> Stream:
    """Return a stream by its name, downloading its data if necessary.

    Args:
      name: one of `STREAMS`.
      seed: seed of everything random in the stream, 0 or more.
      num_tasks: number of tasks, the first ones of the stream; None for all.
      num_samples: number of training rows per task; None for the benchmark's own number.
      **options: other arguments of the stream, such as `augmentation` or `path`.

    Examples:
      >>> stream = load_stream("digits_rotations", num_tasks=3)
      >>> [task.name for task in stream.tasks]
      ['rotated 0.2°', 'rotated 28.1°', 'rotated 53.7°']
      >>> load_stream("digits_rotation")
      Traceback (most recent call last):
      lamaml.errors.InvalidArgument: unknown stream 'digits_rotation': did you mean
      'digits_rotations'? (arrays, cifar100, digits_drift, digits_permutations, digits_rotations,
      joint, mnist_drift, mnist_many_permutations, mnist_permutations, mnist_rotations,
      split_cifar10, split_cifar100, split_digits, split_mnist, tiny_imagenet)
    """
    if name not in STREAMS:
        raise unknown_name("stream", name, STREAMS)
    builder = STREAMS[name]
    arguments = inspect.signature(builder).parameters
    takes_any = any(argument.kind is argument.VAR_KEYWORD for argument in arguments.values())
    for option in options:
        if option not in arguments and not takes_any:
            raise unknown_name(f"option of {name}", option, arguments)
    sizes = {"num_tasks": num_tasks, "num_samples": num_samples}
    given = {argument: value for argument, value in sizes.items() if value is not None}
    return builder(seed=seed, **given, **options)


def data_fingerprint(name: str, *, of: str = "") -> str:
    """Return a digest of the data files of a built-in stream, downloading them if necessary.

    Args:
      name: one of `STREAMS`.
      of: name of the stream that "joint" joins.
    """
    name = of if name == "joint" else name
    if name not in _BUILT_IN:
        raise unknown_name("stream", name, _BUILT_IN)
    digest = _BUILT_IN[name].data_digest
    if digest is None:
        raise InvalidArgument(f"stream {name!r} has no data files of its own")
    return digest()
