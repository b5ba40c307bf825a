import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import platformdirs
import pytest

from lamaml.errors import DataCorrupt, DataUnavailable, InvalidArgument
from lamaml.streams import _download
from lamaml.streams._download import ARCHIVES, NUM_RETRIES, Archive, data_folder, fetch

NAME = "mnist/train-images-idx3-ubyte.gz"
CONTENT = np.random.default_rng(0).bytes(1_000_000)


@pytest.fixture
def public(server, empty_folder, monkeypatch):
    """One archive that the local server has."""
    server.content = CONTENT
    checksum = f"md5:{hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()}"
    archive = Archive(f"{server.address}/{NAME}", checksum)
    monkeypatch.setattr(_download, "ARCHIVES", {NAME: archive})
    return server


def test_folder_is_the_variable_or_the_cache_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("LAMAML_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("LAMAML_DATA")
    assert data_folder() == Path(platformdirs.user_cache_dir("lamaml"))


def files(folder: Path) -> list[str]:
    """Everything in the folder but locks."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return [str(path.relative_to(folder)) for path in found]


def test_downloads_once(public, empty_folder):
    assert fetch(NAME) == empty_folder / NAME
    assert (empty_folder / NAME).read_bytes() == CONTENT
    assert fetch(NAME) == empty_folder / NAME
    assert public.num_requests == 1
    assert files(empty_folder) == [NAME]


def test_failed_attempts_are_repeated(public, empty_folder):
    public.statuses = [503]
    public.cuts = [400_000]
    assert fetch(NAME).read_bytes() == CONTENT
    assert public.num_requests == 3
    assert files(empty_folder) == [NAME]


def test_truncated_download_is_never_kept(public, empty_folder):
    public.cuts = [400_000] * (1 + NUM_RETRIES)
    with pytest.raises(DataUnavailable, match=NAME):
        fetch(NAME)
    assert public.num_requests == 1 + NUM_RETRIES
    assert files(empty_folder) == []
    assert fetch(NAME).read_bytes() == CONTENT


def test_wrong_download_is_never_kept(public, empty_folder):
    public.content = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    with pytest.raises(DataCorrupt) as caught:
        fetch(NAME)
    message = str(caught.value)
    assert "\n" not in message
    assert "does not match md5:" in message
    assert str(empty_folder / NAME) in message
    assert f"{public.address}/{NAME}" in message
    assert files(empty_folder) == []
    public.content = CONTENT
    assert fetch(NAME).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 503])
def test_refusal_is_unavailable(public, status):
    public.statuses = [status] * (1 + NUM_RETRIES)
    with pytest.raises(DataUnavailable, match=r"\(HTTPError\)"):
        fetch(NAME)
    assert public.num_requests == 1 + NUM_RETRIES


def test_two_processes_download_once(public, empty_folder):
    public.seconds = 0.5
    script = (
        "import sys; from lamaml.streams import _download\n"
        "name, *archive = sys.argv[1:]\n"
        "_download.ARCHIVES = {name: _download.Archive(*archive)}\n"
        "sys.stdin.read()\n"
        "print(_download.fetch(name))"
    )
    archive = _download.ARCHIVES[NAME]
    command = [sys.executable, "-c", script, NAME, archive.address, archive.checksum]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for process in processes:
        process.stdin.close()
    for process in processes:
        with process:
            assert process.stdout.read().strip() == str(empty_folder / NAME)
        assert process.returncode == 0
    assert public.num_requests == 1
    assert (empty_folder / NAME).read_bytes() == CONTENT


def test_progress_is_shown_on_a_terminal(public, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    public.cuts = [600_000]
    fetch(NAME)
    written = capsys.readouterr()
    assert f"downloading {Path(NAME).name}" in written.err
    assert "100%" in written.err
    assert written.out == ""


def test_nothing_is_written_elsewhere(public, capsys, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    fetch(NAME)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", ARCHIVES)
def test_offline_names_file_folder_and_address(empty_folder, name):
    with pytest.raises(DataUnavailable) as caught:
        fetch(name)
    message = str(caught.value)
    assert "\n" not in message
    assert name in message
    assert str(empty_folder) in message
    assert _download.ARCHIVES[name].address in message
    assert "LAMAML_DATA" in message


def test_folder_that_cannot_be_made(empty_folder, monkeypatch):
    (empty_folder / "file").write_bytes(b"in the way")
    monkeypatch.setenv("LAMAML_DATA", str(empty_folder / "file" / "data"))
    with pytest.raises(DataUnavailable, match="NotADirectoryError"):
        fetch(NAME)


def test_local_file_with_another_checksum_is_refused(empty_folder):
    (empty_folder / "mnist").mkdir()
    (empty_folder / NAME).write_bytes(CONTENT)
    with pytest.raises(DataCorrupt, match="truncated or altered") as caught:
        fetch(NAME)
    message = str(caught.value)
    assert "\n" not in message
    assert str(empty_folder / NAME) in message
    assert "delete it" in message


def test_other_tiny_imagenet_archive_is_left_to_its_reader(empty_folder):
    (empty_folder / "tiny-imagenet-200.zip").write_bytes(b"a smaller one")
    assert fetch("tiny-imagenet-200.zip").read_bytes() == b"a smaller one"


def test_unknown_archive():
    with pytest.raises(InvalidArgument, match=r"did you mean 'tiny-imagenet-200.zip'"):
        fetch("tiny-imagenet.zip")


def test_addresses_and_checksums_are_the_public_ones():
    assert ARCHIVES["cifar-100-binary.tar.gz"] == Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "md5:03b5dce01913d631647c71ecec9e9cb8",
    )
    assert ARCHIVES["tiny-imagenet-200.zip"].address == (
        "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
    )
    assert sum(name.startswith("mnist/") for name in ARCHIVES) == 4
