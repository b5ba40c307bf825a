"""Every learner still learns what it learned when its results were stored."""

from pathlib import Path

import golden
import pytest
from golden import difference, trajectories

from lamaml.learners import LEARNERS, RESULTS_VERSIONS


def test_every_learner_has_a_results_version() -> None:
    assert RESULTS_VERSIONS.keys() == LEARNERS.keys()


@pytest.mark.parametrize("name", LEARNERS)
def test_trajectories_are_the_stored_ones(name: str) -> None:
    assert difference(name, trajectories(name)) is None


def test_a_changed_update_is_found_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    changed = trajectories("er", learning_rate=0.102)
    assert "raise er's results_version, or find out why" in str(difference("er", changed))
    same = trajectories("er")
    monkeypatch.setattr(golden, "environment", lambda: "stored")
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    golden.store("er")
    same["split"]["digest"] = "0" * 64
    assert "bits" in str(difference("er", same))
    monkeypatch.setitem(RESULTS_VERSIONS, "er", 2)
    assert "stores anew" in str(difference("er", changed))
