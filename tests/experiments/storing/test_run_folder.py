"""Making room for a run: nothing is lost that was there before."""

from dataclasses import replace
from pathlib import Path

import pytest

from lamaml._records import to_json
from lamaml.errors import DataUnavailable, InUse, InvalidArgument, Unwritable
from lamaml.experiments.recipes.load import recipe
from lamaml.experiments.storing.records import RunSettings
from lamaml.experiments.storing.results import find_runs
from lamaml.experiments.storing.run_folder import clear_leftovers, created, extended, opened

SETTINGS = RunSettings(recipe("digits_rotations", "online"), [0])
NEW = {"environment.json", "lock", "settings.json"}


def a_run(folder: Path) -> Path:
    folder.mkdir()
    (folder / "settings.json").write_text("old")
    return folder


def test_an_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "run")
    words = f"`lamaml resume {folder}` continues it, --overwrite replaces it"
    with pytest.raises(InvalidArgument, match=words), created(folder, SETTINGS):
        pass
    assert (folder / "settings.json").read_text() == "old"


def test_overwriting_begins_with_an_empty_folder(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "run")
    (folder / "seed-0").mkdir()
    with created(folder, SETTINGS, overwrite=True) as (run, _):
        assert {path.name for path in folder.iterdir()} == NEW
        assert to_json(run.settings) == to_json(SETTINGS)
    assert list(tmp_path.iterdir()) == [folder]


def leave_half_a_run(
    folder: Path, error: BaseException, *, overwrite: bool = False, half: str = "half"
) -> None:
    with created(folder, SETTINGS, overwrite=overwrite):
        (folder / half).touch()
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


def test_what_was_learned_is_kept_whatever_is_refused_later(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "run")
    with pytest.raises(Unwritable):
        leave_half_a_run(folder, Unwritable("full"), overwrite=True, half="seed-0")
    assert (folder / "seed-0").exists()
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_another_command_has_just_made_is_not_removed(tmp_path: Path) -> None:
    with pytest.raises(InUse), created(tmp_path / "run", SETTINGS):
        raise InUse("by another")
    assert (tmp_path / "run").exists()


def test_what_a_command_leaves_that_was_killed_as_it_began_is_no_run(tmp_path: Path) -> None:
    for name in ("lock", "environment.json", "settings.json.12.part"):
        (tmp_path / name).touch()
    with created(tmp_path, SETTINGS) as (run, _):
        assert run.folder == tmp_path


def test_other_folders_are_never_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InvalidArgument, match="not a run folder"):
        created(tmp_path, SETTINGS, overwrite=True).__enter__()
    assert (tmp_path / "thesis.tex").exists()


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(InvalidArgument, match="out = "), created(folder, SETTINGS):
            pass


def test_what_a_killed_command_has_set_aside_goes_once_the_new_run_has_begun(
    tmp_path: Path,
) -> None:
    folder, aside = tmp_path / "run", tmp_path / ".run.replaced"
    for place in (folder, aside):
        place.mkdir()
        (place / "settings.json").write_text("{}")
    assert find_runs(tmp_path) == [folder]
    clear_leftovers(folder)
    assert aside.exists()
    (folder / "seed-0").mkdir()
    clear_leftovers(folder)
    assert not aside.exists()


def test_a_run_is_extended_and_never_cut(tmp_path: Path) -> None:
    folder = tmp_path / "store" / "run"
    for seeds, expected in (([0], [0]), ([0, 1, 2], [0, 1, 2]), ([0], [0, 1, 2])):
        with extended(folder, replace(SETTINGS, seeds=seeds)) as (run, _):
            assert run.settings.seeds == expected
    with opened(folder) as (run, _):
        assert run.settings.seeds == [0, 1, 2]


def test_only_a_run_folder_is_opened(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable), opened(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
