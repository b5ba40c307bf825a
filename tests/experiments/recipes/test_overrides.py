"""`--set`: text to values, checked against the annotation."""

from collections.abc import Sequence
from typing import Any

import pytest

from lamaml.errors import InvalidArgument
from lamaml.experiments.recipes.load import recipe
from lamaml.experiments.recipes.overrides import read_settings, read_value, split_assignment


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ("5", int, 5),
        ("5", float, 5.0),
        (".5", float, 0.5),
        ("1e-3", float, 0.001),
        ("none", float | None, None),
        ("None", int | None, None),
        ("true", bool, True),
        ("False", bool, False),
        ("sum", str, "sum"),
        ('"sum"', str, "sum"),
        ("7", str, "7"),
        ("~/my data.npz", str | None, "~/my data.npz"),
        ("[5, 5]", Sequence[int], (5, 5)),
        ("[]", tuple[int, ...], ()),
        ("0.1", Any, 0.1),
    ],
)
def test_values(text: str, annotation: Any, value: object) -> None:
    found = read_value("setting", text, annotation)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "annotation", "allowed"),
    [
        ("abc", int, "a whole number"),
        ("5.0", int, "a whole number"),
        ("true", int, "a whole number"),
        ("true", float, "a finite number"),
        ("nan", float, "a finite number"),
        ("inf", float | None, "a finite number or none"),
        ("none", int, "a whole number"),
        ("1", bool, "true or false"),
        ("5", Sequence[int], "a list, each a whole number"),
        ("[5, 0.5]", tuple[int, ...], "a list, each a whole number"),
        ("[5,", tuple[int, ...], "a list, each a whole number"),
    ],
)
def test_refused_values(text: str, annotation: Any, allowed: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^setting = .*: must be {allowed}$"):
        read_value("setting", text, annotation)


@pytest.mark.parametrize("text", ["memory_size", "=5", "memory_size=", " = "])
def test_an_assignment_has_a_name_and_a_value(text: str) -> None:
    with pytest.raises(InvalidArgument, match="must be name=value"):
        split_assignment(text)


def test_a_value_may_hold_equals_signs() -> None:
    assert split_assignment("path=a=b") == ("path", "a=b")


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(InvalidArgument, match="did you mean 'memory_size'"):
        read_settings("digits_rotations", "la_maml", ["memory=5"])


def test_every_owner_can_be_set() -> None:
    names = ("digits_rotations", "la_maml")
    sets = ["glances=2", "hidden_sizes=[9]", "max_norm=none"]
    found = recipe(*names, overrides=read_settings(*names, sets))
    assert found.settings["glances"] == 2
    assert found.settings["hidden_sizes"] == (9,)
    assert found.settings["max_norm"] is None
    assert found.settings["hyper_rate"] == 0.3
