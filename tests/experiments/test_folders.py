"""Making room for a run, and JSON that every reader can read."""

import json
from pathlib import Path

import numpy as np
import pytest

from lamaml.errors import InvalidArgument
from lamaml.experiments.folders import append_json, fingerprint, new_folder, plain, write_json


def a_run(folder: Path) -> Path:
    folder.mkdir()
    (folder / "settings.json").write_text("old")
    return folder


def test_an_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "run")
    with pytest.raises(InvalidArgument, match="--overwrite"), new_folder(folder):
        pass
    assert (folder / "settings.json").read_text() == "old"


def test_overwriting_begins_with_an_empty_folder(tmp_path: Path) -> None:
    with new_folder(a_run(tmp_path / "run"), overwrite=True) as folder:
        assert list(folder.iterdir()) == []
    assert list(tmp_path.iterdir()) == [folder]


def leave_half_a_run(folder: Path, error: BaseException, *, overwrite: bool = False) -> None:
    with new_folder(folder, overwrite=overwrite):
        (folder / "half").touch()
        raise error


def test_a_refused_run_gives_the_old_one_back(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "run")
    with pytest.raises(InvalidArgument):
        leave_half_a_run(folder, InvalidArgument("no"), overwrite=True)
    assert (folder / "settings.json").read_text() == "old"
    assert list(tmp_path.iterdir()) == [folder]


def test_an_interrupted_run_is_kept(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        leave_half_a_run(tmp_path / "run", KeyboardInterrupt())
    assert (tmp_path / "run/half").exists()


def test_other_folders_are_never_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InvalidArgument, match="not a run folder"):
        new_folder(tmp_path, overwrite=True).__enter__()
    assert (tmp_path / "thesis.tex").exists()


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(InvalidArgument, match="--out"), new_folder(folder):
            pass


def test_float32_keeps_its_bits(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=100).astype(np.float32)
    write_json(tmp_path / "x.json", values)
    again = np.array(json.loads((tmp_path / "x.json").read_text()), np.float32)
    assert np.array_equal(values, again)


def test_nan_becomes_null(tmp_path: Path) -> None:
    append_json(tmp_path / "x.jsonl", {"loss": [np.float32("nan"), float("inf"), 1.0]})
    append_json(tmp_path / "x.jsonl", {"loss": []})
    first, second = (tmp_path / "x.jsonl").read_text().splitlines()
    assert (first, second) == ('{"loss":[null,null,1.0]}', '{"loss":[]}')


def test_a_fingerprint_depends_on_content_alone() -> None:
    assert fingerprint({"a": 1, "b": (2,)}) == fingerprint({"b": [np.int64(2)], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert plain(Path("a")) == "a"
