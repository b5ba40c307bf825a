"""The pages of docs: Python blocks run, commands are understood, links resolve."""

import ast
import re
import shlex
import tomllib
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import typer

from lamaml.cli.app import app
from lamaml.learners import LEARNERS
from lamaml.models.torch_modules import INSTALL

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
ELSEWHERE = {
    "tutorial.md",
    "speed.md",
    "many_runs.md",
    "serving.md",
    "panel.md",
}  # tests of their own run them
OURS = {name: text for name, text in PAGES.items() if name not in ELSEWHERE}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(([^)\s]+)\)")


def blocks(text, language):
    return [body for word, body in FENCE.findall(text) if word == language]


RUNNABLE = sorted(name for name, text in OURS.items() if blocks(text, "python"))
COMMANDS = sorted(
    {
        line.strip()
        for text in OURS.values()
        for body in blocks(text, "")
        for line in body.splitlines()
        if line.startswith("lamaml ")
    }
)
NAV = re.findall(r"([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)


def test_there_are_pages_and_commands():
    assert len(RUNNABLE) >= 12
    assert {"run", "resume", "report", "compare", "predict", "reproduce", "list"} <= {
        command.split()[1] for command in COMMANDS
    }


def run_blocks(name, needs_torch):
    mpl.use("Agg")
    page = {"__name__": "page"}
    for number, block in enumerate(blocks(OURS[name], "python"), 1):
        if needs_torch or "torch" not in block:
            exec(compile(block, f"docs/{name}, block {number}", "exec"), page)  # noqa: S102
    plt.close("all")


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_blocks_of_a_page_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks(name, needs_torch=False)
    assert capsys.readouterr().out


@pytest.mark.skipif(not find_spec("torchax"), reason=f"torchax is not installed: {INSTALL}")
@pytest.mark.parametrize("name", [name for name in RUNNABLE if "import torch\n" in OURS[name]])
def test_the_blocks_of_a_page_run_with_torch(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(name, needs_torch=True)
    assert (tmp_path / "learned.pt").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_a_page_is_understood(command):
    _, name, *words = shlex.split(command)
    typer.main.get_command(app).commands[name].make_context(name, words)


def test_make_targets_exist():
    targets = re.findall(r"^make (\w+)", "\n".join(OURS.values()), re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert targets
    assert all(f"\n{target}:" in makefile for target in targets)


def test_the_learner_is_that_of_contributing():
    """Whose contract `test_readme` checks."""
    first = blocks(PAGES["guides/own_learner.md"], "python")[0]
    assert first in (ROOT / "CONTRIBUTING.md").read_text("utf-8")


# Links


def slug(heading):
    """The anchor that Markdown's `toc` extension gives a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def anchors(text):
    outside = FENCE.sub("", text)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", outside, re.MULTILINE)}


def broken(folder, text):
    """Links of a text in a folder of docs that lead nowhere."""
    for target in LINK.findall(FENCE.sub("", text)):
        path, _, anchor = target.partition("#")
        file = (DOCS / folder / path).resolve()
        is_there = not path or (file.exists() and file.is_relative_to(DOCS))
        if re.match(r"https?://", target) or (is_there and not anchor):
            continue
        if not is_there or anchor not in anchors(file.read_text("utf-8") if path else text):
            yield target


@pytest.mark.parametrize("name", sorted(PAGES))
def test_internal_links_resolve(name):
    assert not list(broken(Path(name).parent, PAGES[name]))


def test_a_broken_link_is_found():
    text = "# One\n[a](nowhere.md) [b](#two) [c](#one) [d](speed.md#no-such) [e](../README.md)"
    assert list(broken(".", text)) == ["nowhere.md", "#two", "speed.md#no-such", "../README.md"]


# Nothing drifts


def test_the_navigation_has_every_page_once():
    assert len(NAV) == len(set(NAV))
    assert set(NAV) <= set(PAGES)
    assert set(OURS) <= set(NAV)


def test_every_learner_has_a_page():
    for name in LEARNERS:
        assert f"::: lamaml.learners.{name}\n" in PAGES[f"algorithms/{name}.md"]
        assert f"]({name}.md)" in PAGES["algorithms/index.md"]


def test_llms_txt_lists_every_page():
    text = (DOCS / "llms.txt").read_text("utf-8")
    assert not list(broken(".", text))
    assert [target for target in LINK.findall(text) if target.endswith(".md")] == NAV


def test_the_picture_of_the_rooms_is_the_contract():
    (contract, *_) = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    rooms = re.findall(r"lamaml\.(\w+)", " ".join(contract["layers"]))
    picture = blocks(PAGES["architecture.md"], "text")[0]
    drawn = [word for word in re.findall(r"\w+", picture) if word in rooms]
    public = [room for room in rooms if not room.startswith("_") or room == "_registry"]
    assert [word for word in drawn if word in public] == public


def templates():
    """All string literals of the package, with … for what is filled in."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(part, "value", None) for part in node.values)
                yield "".join(part if isinstance(part, str) else "…" for part in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_the_errors_are_quoted_exactly():
    messages = [" ".join(body.split()) for body in blocks(PAGES["faq.md"], "text")]
    source = re.sub("…+", "…", "\0".join(templates()))
    assert len(messages) > 15
    assert not [message for message in messages if message.strip("… ") not in source]
