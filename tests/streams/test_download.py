import hashlib
from pathlib import Path

import numpy as np
import platformdirs
import pytest

from lamaml.errors import DataCorrupt, DataUnavailable, InvalidArgument
from lamaml.streams import _download
from lamaml.streams._download import ARCHIVES, Archive, data_folder, fetch

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


def part(folder: Path) -> Path:
    return folder / f"{NAME}.part"


def test_folder_is_the_variable_or_the_cache_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("LAMAML_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("LAMAML_DATA")
    assert data_folder() == Path(platformdirs.user_cache_dir("lamaml"))


def test_downloads_once(public, empty_folder):
    assert fetch(NAME) == empty_folder / NAME
    assert (empty_folder / NAME).read_bytes() == CONTENT
    assert fetch(NAME) == empty_folder / NAME
    assert public.requests == [None]
    assert not part(empty_folder).exists()


def test_cut_connection_is_made_again_from_where_it_broke(public, empty_folder):
    public.cuts = [400_000, 300_000]
    assert fetch(NAME).read_bytes() == CONTENT
    first, *others = public.requests
    assert first is None
    starts = [int(asked.removeprefix("bytes=").removesuffix("-")) for asked in others]
    assert len(starts) == 2
    assert 0 < starts[0] <= 400_000
    assert starts[0] < starts[1] <= starts[0] + 300_000


def test_next_process_goes_on_where_the_last_one_was_cut(public, empty_folder):
    public.cuts = [500_000, 0]
    with pytest.raises(DataUnavailable):
        fetch(NAME)
    have = part(empty_folder).stat().st_size
    assert 0 < have <= 500_000
    assert part(empty_folder).read_bytes() == CONTENT[:have]
    public.requests.clear()
    assert fetch(NAME).read_bytes() == CONTENT
    assert public.requests == [f"bytes={have}-"]


def test_server_that_cannot_resume_starts_again(public, empty_folder):
    public.ranges = False
    part(empty_folder).parent.mkdir()
    part(empty_folder).write_bytes(b"x" * 1000)
    assert fetch(NAME).read_bytes() == CONTENT
    assert public.requests == ["bytes=1000-"]


def test_part_that_is_already_whole_is_used(public, empty_folder):
    part(empty_folder).parent.mkdir()
    part(empty_folder).write_bytes(CONTENT)
    assert fetch(NAME).read_bytes() == CONTENT
    assert public.requests == [f"bytes={len(CONTENT)}-"]


def test_part_longer_than_the_file_is_thrown_away(public, empty_folder):
    part(empty_folder).parent.mkdir()
    part(empty_folder).write_bytes(CONTENT + b"more")
    assert fetch(NAME).read_bytes() == CONTENT
    assert public.requests[-1] is None


def test_wrong_download_is_never_kept(public, empty_folder):
    public.content = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    with pytest.raises(DataCorrupt, match="no longer has md5:"):
        fetch(NAME)
    assert not (empty_folder / NAME).exists()
    assert not part(empty_folder).exists()
    public.content = CONTENT
    assert fetch(NAME).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 503])
def test_refusal_is_unavailable_and_asked_once(public, status):
    public.status = status
    with pytest.raises(DataUnavailable, match=r"\(HTTPError\)"):
        fetch(NAME)
    assert len(public.requests) == 1


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
