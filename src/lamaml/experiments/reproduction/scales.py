"""The scales of a reproduction: how much of the paper's protocol is run.

`full` is the paper's protocol. `small` keeps the data, with fewer tasks, rows, glances, epochs and
seeds; its numbers are of another experiment than the paper's. `quick` runs on the embedded digits
at the size of `lamaml demo`: learners learn and forget, but no claim of the paper is judged.
"""

from collections.abc import Mapping
from typing import NamedTuple

from lamaml.errors import unknown_name


class Size(NamedTuple):
    """The size of a benchmark's runs; None for the benchmark's own number."""

    seeds: int
    num_tasks: int | None = None
    num_samples: int | None = None


class Scale(NamedTuple):
    """How much of the paper's protocol is run.

    Attributes:
      name: its name on the command line.
      about: its description in a few words.
      sizes: by benchmark.
      stand_ins: the benchmark that replaces another.
      most_glances: upper limit of a recipe's glances; None for no limit.
      most_epochs: upper limit of a recipe's epochs; None for no limit.
      rates: the learning rates of the robustness figures.
    """

    name: str
    about: str
    sizes: Mapping[str, Size]
    stand_ins: Mapping[str, str] = {}
    most_glances: int | None = None
    most_epochs: int | None = None
    rates: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


MNIST = ("mnist_rotations", "mnist_permutations", "mnist_many_permutations")
SPLITS = ("split_mnist", "split_cifar100")
IMAGES = ("cifar100", "tiny_imagenet", "joint_cifar100", "joint_tiny_imagenet")

FULL = Scale(
    "full",
    "the paper's protocol",
    dict.fromkeys(MNIST, Size(seeds=5)) | dict.fromkeys((*IMAGES, *SPLITS), Size(seeds=3)),
)
SMALL = Scale(
    "small",
    "10 MNIST tasks, or 3 image tasks of 500 rows; at most 2 glances and epochs; 2 seeds",
    dict.fromkeys(MNIST, Size(seeds=2, num_tasks=10))
    | dict.fromkeys((*IMAGES, *SPLITS), Size(seeds=2, num_tasks=3, num_samples=500)),
    most_glances=2,
    most_epochs=2,
    rates=(0.003, 0.03, 0.3),
)
QUICK = Scale(
    "quick",
    "scikit-learn's digits in place of every benchmark; 10 tasks of 300 rows, 1 or 2 seeds",
    dict.fromkeys(MNIST, Size(seeds=2)) | dict.fromkeys((*IMAGES, *SPLITS), Size(seeds=1)),
    stand_ins={
        "mnist_rotations": "digits_rotations",
        "mnist_permutations": "digits_permutations",
        "mnist_many_permutations": "digits_permutations",
        "cifar100": "digits_rotations",
        "tiny_imagenet": "digits_permutations",
        **dict.fromkeys(SPLITS, "split_digits"),
        "joint_cifar100": "joint_digits_rotations",
        "joint_tiny_imagenet": "joint_digits_permutations",
    },
    most_epochs=3,
    rates=(0.03, 0.1, 0.3),
)
SCALES = {scale.name: scale for scale in (QUICK, SMALL, FULL)}


def is_stand_in(benchmark: str) -> bool:
    """Whether a benchmark stands in for one of the paper's.

    >>> is_stand_in("joint_digits_rotations"), is_stand_in("mnist_rotations")
    (True, False)
    """
    return benchmark in QUICK.stand_ins.values()


def scale_named(name: str) -> Scale:
    """Returns one of `SCALES`."""
    if name not in SCALES:
        raise unknown_name("scale", name, SCALES)
    return SCALES[name]
