"""Reference lines of accuracy plots: chance, and joint training on all tasks at once."""

from collections.abc import Sequence

from lamaml.experiments.reporting.canvas import Level
from lamaml.experiments.storing.results import Run

_JOINT = "joint_"
_CLASSES = {
    "digits_rotations": 10,
    "digits_permutations": 10,
    "mnist_rotations": 10,
    "mnist_permutations": 10,
    "mnist_many_permutations": 10,
    "cifar100": 5,
    "tiny_imagenet": 5,
}
"""Classes that compete for a row, by benchmark: all, or those of its task."""


def chance(benchmark: str) -> list[Level]:
    """Returns the accuracy of guessing; [] where the number of classes is not known.

    >>> chance("cifar100"), chance("arrays")
    ([Level(label='chance', y=0.2, dashes=':')], [])
    """
    known = _CLASSES.get(benchmark.removeprefix(_JOINT))
    return [Level("chance", 1 / known)] if known else []


def joint_level(percent: float | None) -> list[Level]:
    """Returns the line of joint training from its RA in percent; [] without one."""
    return [] if percent is None else [Level("joint training", percent / 100, "--")]


def is_joint(run: Run) -> bool:
    """Whether a run learned all tasks at once."""
    return run.settings.recipe.benchmark.startswith(_JOINT)


def joint_runs(benchmark: str, split: str, runs: Sequence[Run]) -> list[Run]:
    """Returns the runs that learned all tasks of a benchmark at once, at full size."""
    return [
        run
        for run in runs
        if run.settings.recipe.benchmark == _JOINT + benchmark
        and run.settings.split == split
        and run.settings.num_tasks is run.settings.num_samples is None
    ]
