"""Data becomes tasks. Every stream is built by its name, from a seed."""

import inspect
from collections.abc import Callable
from typing import Any

from lamaml.errors import unknown_name
from lamaml.streams._download import data_folder, fetch
from lamaml.streams.arrays import arrays
from lamaml.streams.cifar100 import cifar100
from lamaml.streams.cifar100 import data_digest as _cifar100_digest
from lamaml.streams.digits import data_digest as _digits_digest
from lamaml.streams.digits import digits_permutations, digits_rotations
from lamaml.streams.joint import joint
from lamaml.streams.mnist import data_digest as _mnist_digest
from lamaml.streams.mnist import mnist_many_permutations, mnist_permutations, mnist_rotations
from lamaml.streams.tiny_imagenet import data_digest as _tiny_imagenet_digest
from lamaml.streams.tiny_imagenet import tiny_imagenet
from lamaml.types import Stream

__all__ = [
    "STREAMS",
    "arrays",
    "build",
    "cifar100",
    "data_fingerprint",
    "data_folder",
    "digits_permutations",
    "digits_rotations",
    "fetch",
    "joint",
    "mnist_many_permutations",
    "mnist_permutations",
    "mnist_rotations",
    "tiny_imagenet",
]


def _joint_of(*, seed: int, of: str = "digits_rotations", **options: Any) -> Stream:
    """Any other stream, by its name, as one shuffled task: the IID upper bound."""
    return joint(build(of, seed=seed, **options), seed=seed)


STREAMS: dict[str, Callable[..., Stream]] = {
    "digits_rotations": digits_rotations,
    "digits_permutations": digits_permutations,
    "mnist_rotations": mnist_rotations,
    "mnist_permutations": mnist_permutations,
    "mnist_many_permutations": mnist_many_permutations,
    "cifar100": cifar100,
    "tiny_imagenet": tiny_imagenet,
    "arrays": arrays,
    "joint": _joint_of,
}
_DIGESTS: dict[str, Callable[[], str]] = {
    "digits_rotations": _digits_digest,
    "digits_permutations": _digits_digest,
    "mnist_rotations": _mnist_digest,
    "mnist_permutations": _mnist_digest,
    "mnist_many_permutations": _mnist_digest,
    "cifar100": _cifar100_digest,
    "tiny_imagenet": _tiny_imagenet_digest,
}


def data_fingerprint(name: str, *, of: str = "") -> str:
    """A digest of the data a built-in stream is read from, which is fetched if it is missing.

    Args:
      name: one of `STREAMS`.
      of: the stream that "joint" joins.
    """
    return _DIGESTS[of if name == "joint" else name]()


def build(
    name: str,
    *,
    seed: int,
    num_tasks: int | None = None,
    num_samples: int | None = None,
    **options: Any,
) -> Stream:
    """The stream of that name.

    Args:
      name: one of `STREAMS`.
      seed: decides everything random in it.
      num_tasks: the first so many tasks; None for the benchmark's own number.
      num_samples: training rows a task; None for the benchmark's own number.
      **options: the stream's other arguments, such as `augmentation` or `path`.

    Example:
      >>> build("digits_rotation", seed=0)
      Traceback (most recent call last):
      lamaml.errors.InvalidArgument: unknown stream 'digits_rotation': did you mean
      'digits_rotations'? (arrays, cifar100, digits_permutations, digits_rotations, joint,
      mnist_many_permutations, mnist_permutations, mnist_rotations, tiny_imagenet)
    """
    if name not in STREAMS:
        raise unknown_name("stream", name, STREAMS)
    arguments = inspect.signature(STREAMS[name]).parameters
    takes_any = any(argument.kind is argument.VAR_KEYWORD for argument in arguments.values())
    for option in options:
        if option not in arguments and not takes_any:
            raise unknown_name(f"option of {name}", option, arguments)
    sizes = {"num_tasks": num_tasks, "num_samples": num_samples}
    given = {argument: value for argument, value in sizes.items() if value is not None}
    return STREAMS[name](seed=seed, **given, **options)
