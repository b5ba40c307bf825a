"""Making room for a run, and JSON that every reader can read."""

from pathlib import Path

import pytest

from lamaml.errors import InUse, InvalidArgument, Unwritable
from lamaml.experiments.storing.folders import clear_leftovers, new_folder
from lamaml.experiments.storing.results import find_runs


def a_run(folder: Path) -> Path:
    folder.mkdir()
    (folder / "settings.json").write_text("old")
    return folder


def test_an_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "run")
    words = f"`lamaml resume {folder}` goes on with it, --overwrite replaces it"
    with pytest.raises(InvalidArgument, match=words), new_folder(folder):
        pass
    assert (folder / "settings.json").read_text() == "old"


def test_overwriting_begins_with_an_empty_folder(tmp_path: Path) -> None:
    with new_folder(a_run(tmp_path / "run"), overwrite=True) as folder:
        assert list(folder.iterdir()) == []
    assert list(tmp_path.iterdir()) == [folder]


def leave_half_a_run(
    folder: Path, error: BaseException, *, overwrite: bool = False, half: str = "half"
) -> None:
    with new_folder(folder, overwrite=overwrite):
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
    with pytest.raises(InUse), new_folder(tmp_path / "run"):
        raise InUse("by another")
    assert (tmp_path / "run").exists()


def test_what_a_command_leaves_that_was_killed_as_it_began_is_no_run(tmp_path: Path) -> None:
    for name in ("lock", "environment.json", "settings.json.12.part"):
        (tmp_path / name).touch()
    with new_folder(tmp_path) as folder:
        assert folder == tmp_path


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
