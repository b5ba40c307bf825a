"""`--model`: a network by name, with its settings, stored with the run."""

import json
from pathlib import Path

import numpy as np
import pytest

from lamaml.cli import main
from lamaml.experiments.recipes.settings import settings_of

SMALL = {
    "cnn": {"num_convolutions": 1, "num_filters": 2, "hidden_sizes": [3]},
    "resnet18": {"num_filters": 2, "num_groups": 1},
}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ending:
        main(["run", "arrays", "la_maml", "--set", "path=images.npz", *words])
    captured = capsys.readouterr()
    return int(ending.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize("name", SMALL)
def test_a_network_is_chosen_by_name_and_stored(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).integers(0, 255, (40, 8, 8, 1), np.uint8)
    np.savez("images.npz", x=images, y=np.arange(40) % 2)
    settings = SMALL[name] | {"glances": 1, "inner_steps": 1}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    code, out, error = run(capsys, "--model", name, *words, "--out", "run", "--json")
    assert code == 0, error
    found, stored = json.loads(out), json.loads(Path("run/settings.json").read_text())
    assert found["model"] == stored["model"] == name
    assert {key: found["settings"][key] for key in settings} == settings
    code, _, error = run(capsys, "--set", "glances=1", "--out", "run", "--seeds", "2")
    assert code == 2
    assert f"model {name} there, mlp here" in error


def test_rows_that_are_no_images_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("images.npz", x=np.zeros((40, 64)), y=np.arange(40) % 2)
    code, _, error = run(capsys, "--model", "resnet18")
    assert code == 2
    assert "image_shape = (64,): must be (height, width, channels)" in error


def test_show_has_the_settings_of_the_network() -> None:
    _, found = settings_of("arrays", "la_maml", model="resnet18")
    known = {setting.name: setting.value for setting in found if setting.owner == "model"}
    assert known == {"num_filters": 64, "num_groups": 32, "initializer": "kaiming_normal"}
    assert all(setting.meaning for setting in found if setting.owner == "model")
