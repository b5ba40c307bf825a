"""One command at a time on a folder, and no lock that outlives its owner."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamaml.errors import InUse, Unwritable
from lamaml.experiments.storing import locks
from lamaml.experiments.storing.locks import locked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such locks")

# Takes the lock, has a process inherit it until a file is gone, and is gone without a word.
LEAVING = """
import os, subprocess, sys
from pathlib import Path
from lamaml.experiments.storing.locks import locked
WAITING = "import os, sys, time\\nwhile os.path.exists(sys.argv[1]): time.sleep(0.02)"
with locked(Path(sys.argv[1])) as lock:
    command = [sys.executable, "-c", WAITING, sys.argv[2]]
    subprocess.Popen(command, pass_fds=[lock.descriptor], stdout=subprocess.DEVNULL)
    os._exit(0)
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """The file that a left process waits for."""
    path = tmp_path / "held"
    path.touch()
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def left(tmp_path: Path, held: Path) -> Path:
    """A folder whose command is gone, but not the process it has started."""
    folder = tmp_path / "run"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", LEAVING, str(folder), str(held)], check=True)
    return folder


def test_the_lock_says_whose_it_is_and_goes_with_the_block(tmp_path: Path) -> None:
    with locked(tmp_path) as lock:
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()
        assert lock.taken_over == ""
    assert list(tmp_path.iterdir()) == []


def test_a_second_owner_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    with locked(tmp_path):
        before = (tmp_path / "lock").read_bytes()
        words = (
            rf"{tmp_path} is in use by process {os.getpid()} on .+, which began 0\.\d minutes ago"
        )
        with pytest.raises(InUse, match=words), locked(tmp_path):
            pass
        assert (tmp_path / "lock").read_bytes() == before
    with locked(tmp_path) as lock:
        assert lock.taken_over == ""


def test_a_lock_of_processes_that_are_gone_is_taken_over(left: Path, held: Path) -> None:
    held.unlink()
    with locked(left) as lock:
        assert lock.taken_over.startswith("process ")
    assert not (left / "lock").exists()


def test_what_a_gone_command_has_started_is_waited_for(
    left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.2)
    with pytest.raises(InUse), locked(left):
        pass


def test_an_owner_on_another_machine_counts_as_alive(left: Path) -> None:
    owner = json.loads((left / "lock").read_text())
    (left / "lock").write_text(json.dumps(owner | {"host": "elsewhere"}))
    with pytest.raises(InUse, match="on elsewhere"), locked(left):
        pass


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff"])
def test_a_lock_file_that_says_nothing_is_taken(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lock").write_bytes(content)
    with locked(tmp_path) as lock:
        assert lock.taken_over == ""


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unwritable, match="lock cannot be written"), locked(tmp_path / "nowhere"):
        pass


def test_what_goes_wrong_in_the_block_is_not_the_locks(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), locked(tmp_path):
        (tmp_path / "nothing").read_bytes()
