"""A package of someone else's adds a learner, a stream and a model; all of it runs by name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = '''
"""Someone else's learner, stream and network."""

from lamaml import learners, models, streams


def doubled(loss, *, learning_rate=0.05, max_norm=2.0):
    """SGD with twice the learning rate."""
    return learners.online(loss, learning_rate=2 * learning_rate, max_norm=max_norm)


def turned(*, seed, num_tasks=2, num_samples=30):
    """Rotated digits, two tasks of them."""
    return streams.digits_rotations(seed=seed, num_tasks=num_tasks, num_samples=num_samples)


def narrow(input_shape, num_outputs, *, width=20):
    """A network with one hidden layer."""
    return models.mlp(input_shape, num_outputs, hidden_sizes=(width,))
'''
ENTRY_POINTS = """
[lamaml.learners]
doubled = stranger:doubled
[lamaml.streams]
turned = stranger:turned
[lamaml.models]
narrow = stranger:narrow
"""
CLASSIFIER = """
from sklearn.datasets import load_digits
from lamaml import LaMAMLClassifier
x, y = load_digits(return_X_y=True)
import stranger
for learner in ("doubled", "stranger:doubled", stranger.doubled):
    model = LaMAMLClassifier(learner=learner, random_state=0)
    print(model.partial_fit(x[:600], y[:600]).score(x[:600], y[:600]) > 0.5)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder on the path with the package and what an installer leaves beside it."""
    folder = tmp_path / "site"
    facts = folder / "stranger-1.0.dist-info"
    facts.mkdir(parents=True)
    (folder / "stranger.py").write_text(MODULE)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
    monkeypatch.chdir(tmp_path)


def lamaml(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lamaml", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("prefix", ["", "stranger:"])
def test_the_command_line_runs_and_resumes_all_three(prefix: str) -> None:
    names = [f"{prefix}{word}" for word in ("turned", "doubled", "narrow")]
    sets = ("--set", "learning_rate=0.1", "--set", "width=30", "--json", "--out", "run")
    done = lamaml("run", *names[:2], "--model", names[2], *sets)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["stream"], found["learner"], found["statuses"]) == (*names[:2], ["finished"])
    assert (found["settings"]["learning_rate"], found["settings"]["width"]) == (0.1, 30)
    if prefix:
        return  # it is resumed by the same names
    Path("run/seed-0/status.json").write_text('{"status": "running", "message": ""}')
    again = lamaml("resume", "run", "--json")
    assert json.loads(again.stdout)["ra"] == found["ra"]


@pytest.mark.usefixtures("installed")
def test_the_classifier_takes_the_learner_by_name() -> None:
    done = subprocess.run([sys.executable, "-c", CLASSIFIER], capture_output=True, text=True)
    assert done.stdout.split() == ["True"] * 3, done.stderr


@pytest.mark.usefixtures("installed")
def test_a_module_in_the_current_folder_is_found() -> None:
    Path("mine.py").write_text(MODULE)
    sizes = ("--tasks", "1", "--samples", "20", "--json", "--out", "run")
    done = lamaml("run", "digits_rotations", "mine:doubled", *sizes)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("installed")
def test_a_misspelt_entry_point_is_suggested() -> None:
    done = lamaml("run", "turned", "doubbled")
    assert done.returncode == 2
    assert "did you mean 'doubled'?" in done.stderr


@pytest.mark.usefixtures("installed")
def test_the_list_has_what_other_packages_add() -> None:
    found = json.loads(lamaml("list", "--json").stdout)
    assert found["learners"]["doubled"] == "from stranger:doubled"
    assert found["models"]["narrow"] == "from stranger:narrow"
    assert {"mlp", "cnn", "resnet18"} <= set(found["models"])
    assert "turned" in [stream["name"] for stream in found["streams"]]
    assert "from stranger:turned" in lamaml("list").stdout
