"""The stalls of `lamaml bench`: real processes on the cheapest cases, no time is judged."""

import os

import pytest

from lamaml.bench import stalls as room
from lamaml.bench.stalls import CALLS, IMPORTS, stalls


def test_imports_and_a_later_call_are_timed_in_fresh_processes():
    found = list(stalls(rounds=1, calls=("second partial_fit",)))
    assert [row.case for row in found[:2]] == list(IMPORTS)
    assert [row.cache for row in found[2:]] == ["off", "warm"]
    assert all(row.seconds > 0 and row.resident_mb > 10 for row in found)
    assert found[0].resident_mb < found[1].resident_mb


def test_a_call_is_timed_without_and_with_a_filled_cache(monkeypatch):
    asked = []

    def fresh(case, setting, bytecode):
        assert os.path.isdir(bytecode)
        asked.append((case, setting == "off" or os.path.isdir(setting)))
        return float(len(asked)), 100.0

    monkeypatch.setattr(room, "_in_fresh_process", fresh)
    found = list(stalls(rounds=2, calls=CALLS[:1]))
    assert len(asked) == 1 + 4 + 5  # bytecode, imports, the call
    assert asked[-5:] == [(CALLS[0], True)] * 5  # two without, one to fill, two with
    assert [(row.cache, row.seconds) for row in found[-2:]] == [("off", 6.0), ("warm", 9.0)]


def test_bytecode_is_written_once_whatever_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    room._in_fresh_process(IMPORTS[0], "off", str(tmp_path))
    assert list(tmp_path.rglob("__init__.cpython-*.pyc"))


def test_a_case_that_fails_is_named(tmp_path):
    with pytest.raises(RuntimeError, match="'no such case' failed"):
        room._in_fresh_process("no such case", "off", str(tmp_path))
