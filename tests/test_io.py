import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from lamaml._io import (
    append_json,
    atomic_write,
    exclusive,
    file_digest,
    fingerprint,
    keep_lines,
    plain,
    write_json,
)
from lamaml.errors import DataCorrupt, Unwritable


def test_file_appears_whole(tmp_path):
    path = tmp_path / "deep" / "file"
    with atomic_write(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
        file.write(b" and half")
    assert path.read_bytes() == b"half and half"
    assert list(path.parent.iterdir()) == [path]


def test_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with atomic_write(path) as file:
            file.write(b"new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_second_waits_for_the_first(tmp_path):
    path, events, entered = tmp_path / "file", [], threading.Event()

    def second() -> None:
        entered.wait()
        with exclusive(path):
            events.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with exclusive(path):
        entered.set()
        thread.join(timeout=0.2)
        events.append("first")
    thread.join()
    assert events == ["first", "second"]


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    path = tmp_path / "file"
    leftover, download = tmp_path / "file.123.part", tmp_path / "file.part"
    leftover.write_bytes(b"half")
    download.write_bytes(b"half")
    with exclusive(path):
        assert not leftover.exists()
        assert download.exists()


def test_float32_keeps_its_bits(tmp_path):
    values = np.random.default_rng(0).normal(size=100).astype(np.float32)
    write_json(tmp_path / "x.json", values)
    again = np.array(json.loads((tmp_path / "x.json").read_text()), np.float32)
    assert np.array_equal(values, again)


def test_nan_becomes_null(tmp_path):
    append_json(tmp_path / "x.jsonl", [{"loss": [np.float32("nan"), float("inf")]}, {"loss": 1.0}])
    append_json(tmp_path / "x.jsonl", [{"loss": []}])
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    assert lines == ['{"loss":[null,null]}', '{"loss":1.0}', '{"loss":[]}']


def test_lines_are_cut_back(tmp_path):
    path = tmp_path / "x.jsonl"
    for torn in (b"", b"3\n", b"3\n4"):
        path.write_bytes(b"1\n2\n" + torn)
        keep_lines(path, 2)
        assert path.read_bytes() == b"1\n2\n"
    path.write_bytes(b"1\n2")
    with pytest.raises(DataCorrupt, match=r"x\.jsonl has 1 of 2 lines"):
        keep_lines(path, 2)
    assert path.read_bytes() == b"1\n2"


def test_what_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    for write in (write_json, append_json):
        with pytest.raises(Unwritable, match=r"x\.json cannot be written \(.+\)"):
            write(tmp_path / "file" / "x.json", [])


def test_a_fingerprint_depends_on_content_alone():
    assert fingerprint({"a": 1, "b": (2,)}) == fingerprint({"b": [np.int64(2)], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert plain(Path("a")) == "a"


def test_killed_process_leaves_no_lock(tmp_path):
    path = tmp_path / "file"
    script = (
        "import os, sys; from pathlib import Path; from lamaml._io import exclusive\n"
        "with exclusive(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, path]).returncode == -9
    with exclusive(path):
        pass


def test_file_digest_follows_the_content(tmp_path):
    path = tmp_path / "file"
    for content in (b"old", b"new"):
        path.write_bytes(content)
        os.utime(path, ns=(0, content[0]))
        assert file_digest(path) == hashlib.sha256(content).hexdigest()
