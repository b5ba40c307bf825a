"""Every setting of a recipe, and the names that a shell completes."""

import json
import os
import subprocess
import sys

import pytest

from lamaml.cli import main
from lamaml.experiments.recipes.load import cells, recipe, setting_owners
from lamaml.experiments.recipes.settings import search_space, settings_of
from lamaml.types import Choices, Range


def test_every_setting_has_a_value_and_a_meaning() -> None:
    for benchmark in ("mnist_rotations", "cifar100"):
        for protocol, learner in cells(benchmark):
            chosen, found = settings_of(benchmark, learner, protocol=protocol)
            owners = setting_owners(chosen.stream, chosen.model, learner)
            assert {setting.name: setting.owner for setting in found} == owners
            assert all(setting.meaning for setting in found), (learner, found)
            assert all(setting.source != "required" for setting in found), (learner, found)


def test_values_of_other_presets_are_the_defaults_where_they_say_nothing() -> None:
    _, found = settings_of("mnist_rotations", "la_maml")
    (clip,) = [setting for setting in found if setting.name == "clip_inner_rates"]
    assert clip.presets == {"authors": True, "paper": False, "tuned": True}


def test_rates_and_glances_are_searched_in_the_papers_ranges() -> None:
    assert search_space(recipe("digits_rotations", "la_maml")) == {
        "initial_rate": Range(1e-4, 0.3),
        "hyper_rate": Range(1e-4, 0.3),
        "glances": Choices((1, 2, 3, 5, 10)),
    }
    for _, learner in cells("digits_rotations"):
        assert len(search_space(recipe("digits_rotations", learner))) > 1, learner


def test_show_prints_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ((), ("--json",)):
        with pytest.raises(SystemExit) as ending:
            main(["show", "mnist_rotations", "la_maml", *arguments])
        assert ending.value.code == 0
    shown, last = capsys.readouterr().out.rstrip("\n").rsplit("\n", 1)
    assert "hyper_rate 0.3 0.15 0.1 [0.0001, 0.3] η ≥ 0, the learning" in " ".join(shown.split())
    found = json.loads(last)
    assert found["recipe"]["learner"] == "la_maml"
    assert found["settings"][0]["search"] == {"low": 0.0001, "high": 0.3}


def test_a_shell_completes_names_without_jax() -> None:
    code = "import sys; from lamaml.cli import main\ntry: main()\nfinally: "
    code += "sys.exit(bool({'jax', 'numpy'} & set(sys.modules)) and 7)"
    for words, expected in (
        ("lamaml run mnist_rot", ["mnist_rotations"]),
        ("lamaml run digits_rotations er dark", ["dark_la_maml"]),
        ("lamaml show digits_rotations mer_", ["mer_single"]),
    ):
        told = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        told |= {"_LAMAML_COMPLETE": "complete_bash"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | told, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout.split()) == (0, expected)
