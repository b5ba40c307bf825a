"""The Python blocks of the README run, and its commands have the options that they name."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from sklearn.datasets import load_digits

from lamaml.cli.app import app
from lamaml.testing import check_learner

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMAND = re.compile(r"(?:^|`)lamaml ([a-z][^`#\n]*)", re.MULTILINE)
COMMANDS = COMMAND.findall(README)
MANY_RUNS = [
    command.replace("$SLURM_ARRAY_TASK_ID", "7")
    for command in COMMAND.findall((ROOT / "docs/many_runs.md").read_text("utf-8"))
    if "…" not in command and len(command.split()) > 1
]


def test_the_readme_has_blocks_and_commands():
    assert len(BLOCKS) == 3
    assert {"run", "resume", "report", "predict", "reproduce", "list"} <= {
        command.split()[0] for command in COMMANDS
    }
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split("\n")[0])
def test_a_python_block_runs(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x, y = load_digits(return_X_y=True)
    calls = zip(np.split(x[:600], 60), np.split(y[:600], 60), strict=True)
    page = {"stream": list(calls), "X_test": x[600:605]}
    exec(compile(block, "README.md", "exec"), page)  # noqa: S102
    assert capsys.readouterr().out


def test_the_learner_of_contributing_keeps_the_contract():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    page: dict[str, Any] = {"__name__": "my_module"}
    exec(compile(block, "CONTRIBUTING.md", "exec"), page)  # noqa: S102
    check_learner(page["my_learner"], learning_rate=0.1)


@pytest.mark.parametrize("command", COMMANDS + MANY_RUNS)
def test_a_command_is_understood(command):
    name, *words = shlex.split(command)
    typer.main.get_command(app).commands[name].make_context(name, words)
