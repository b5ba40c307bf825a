import threading

import pytest

from lamaml._io import one_at_a_time, written_whole


def test_file_appears_whole(tmp_path):
    path = tmp_path / "deep" / "file"
    with written_whole(path) as file:
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
        with written_whole(path) as file:
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
        with one_at_a_time(path):
            events.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with one_at_a_time(path):
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
    with one_at_a_time(path):
        assert not leftover.exists()
        assert download.exists()
