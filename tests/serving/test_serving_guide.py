"""docs/serving.md: its shell blocks run as they stand, and so does its Python."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lamaml.serving.config import read_config

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "serving.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_shell_blocks(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    commands = f'lamaml() {{ exec {sys.executable} -m lamaml "$@"; }}\n'
    commands += f'python() {{ {sys.executable} "$@"; }}\n'
    commands += "\n".join(blocks("sh")).replace("8765", port)
    script = f"set -e\ntrap 'kill $! 2>/dev/null' EXIT\n{commands}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '{"rows":900,"entry":4,"learned":true}' in done.stdout
    assert re.search(r"901 rows learned, 0 waiting|900 rows learned, 1 waiting", done.stdout)
    assert '"rows":896,' in done.stdout
    assert '"rows_learned": 1797' in done.stdout
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert answer["classes"] == list(range(10))


def test_the_python_block(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("python")
    exec(compile(block, "serving.md", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out.startswith("['ant'] 1")


def test_the_configuration(tmp_path):
    path = tmp_path / "serve.toml"
    (text,) = blocks("toml")
    path.write_text(text)
    config = read_config(path)
    assert config.service.name == "digits"
    commented = re.sub(r"^# (?=certificate|private)", "", text, flags=re.MULTILINE)
    path.write_text(commented)
    assert str(read_config(path).server.certificate) == "cert.pem"
