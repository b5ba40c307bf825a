"""Grids: several learners and several values of their settings, as one point after the other."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from lamaml._io import fingerprint
from lamaml.experiments.recipes.load import check_names, setting_owners

LONGEST_NAME = 100  # characters; file systems allow 255


class Point(NamedTuple):
    """A learner with one value of each setting that is varied."""

    learner: str
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """A folder name.

        >>> Point("la_maml", {"hyper_rate": 0.3, "hidden_sizes": (50, 50)}).name
        'la_maml-hyper_rate=0.3-hidden_sizes=50,50'
        """
        words = [self.learner, *(f"{name}={_word(value)}" for name, value in self.settings.items())]
        name = re.sub(r"[^\w.,=+-]", ".", "-".join(words))
        if len(name) <= LONGEST_NAME:
            return name
        return f"{name[:LONGEST_NAME]}-{fingerprint([self.learner, dict(self.settings)])[:8]}"


def points(
    learners: Sequence[str],
    grid: Mapping[str, Sequence[Any]],
    owners: Mapping[str, Iterable[str]],
) -> list[Point]:
    """Every learner with every combination of the values of the settings that it has.

    Args:
      learners: in order, each once.
      grid: the values of each setting that is varied.
      owners: the names of each learner's settings.

    >>> [tuple(point) for point in points(["er"], {"a": [1, 2]}, {"er": ["a"]})]
    [('er', {'a': 1}), ('er', {'a': 2})]
    """
    return [
        Point(learner, dict(zip(names, values, strict=True)))
        for learner in dict.fromkeys(learners)
        for names in [[name for name in grid if name in owners[learner]]]
        for values in product(*(grid[name] for name in names))
    ]


def known_settings(
    stream: str, model: str, learners: Sequence[str], names: Iterable[str], benchmark: str
) -> dict[str, set[str]]:
    """The settings of each learner with its stream and network.

    Raises:
      InvalidArgument: none of the learners has one of the names.
    """
    owners = {learner: set(setting_owners(stream, model, learner)) for learner in learners}
    check_names(names, set().union(*owners.values()), f"{' or '.join(learners)} on {benchmark}")
    return owners


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_word, value))
    return "none" if value is None else str(value)
