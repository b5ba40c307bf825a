"""Paired differences: over shared seeds, of runs of one size only."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy import stats

from lamaml import compare
from lamaml.cli import main
from lamaml.errors import InvalidArgument
from lamaml.experiments.reporting.comparison import comparisons
from lamaml.experiments.storing.results import Run, read_run

Variant = Callable[..., Run]


@pytest.fixture
def variant(small_run: Run, tmp_path: Path) -> Variant:
    """Returns a function that copies the small run with other settings and accuracies."""

    def make(name: str, *points: float, **changes: object) -> Run:
        """`points`: how much lower the RA of each seed is."""
        folder = Path(shutil.copytree(small_run.folder, tmp_path / name))
        settings = json.loads((folder / "settings.json").read_text()) | changes
        (folder / "settings.json").write_text(json.dumps(settings))
        for seed, lower in enumerate(points):
            path = folder / f"seed-{seed}/accuracy.json"
            found = json.loads(path.read_text())
            path.write_text(json.dumps(found | {"ra": found["ra"] - lower / 100}))
        return read_run(folder)

    return make


def test_the_best_run_against_the_others(small_run: Run, variant: Variant) -> None:
    er = variant("er", 2.0, 1.0, learner="er")
    (found,) = comparisons([er, small_run])
    assert (found.learner, found.baseline, found.seeds) == ("la_maml", "er", 2)
    assert found.difference == pytest.approx(1.5)
    assert (found.low, found.high) == pytest.approx((-4.853, 7.853), abs=1e-3)
    expected = stats.ttest_rel(small_run.summary.ra.values, er.summary.ra.values).pvalue
    assert found.p == pytest.approx(expected)
    (turned,) = comparisons([er, small_run], baseline="la_maml")
    assert turned.difference == pytest.approx(-1.5)
    (other,) = comparisons([er, small_run], metric="bti")
    assert other.difference == 0
    assert other.p == 1


def test_runs_of_other_sizes_are_not_ranked(small_run: Run, variant: Variant) -> None:
    shorter = variant("short", learner="er", num_tasks=1)
    with pytest.raises(InvalidArgument, match=r"protocol and size: there are .*; "):
        comparisons([small_run, shorter])
    twice = comparisons([small_run, shorter, variant("e", 1, 1, learner="er")])
    assert [pair.baseline for pair in twice] == ["er"]
    rows = comparisons(
        [
            small_run,
            variant("v", learner="er", split="validation"),
            shorter,
            *[variant("w", 1, 1, learner="c_maml")],
        ]
    )
    assert [(pair.learner, pair.baseline) for pair in rows] == [("la_maml", "c_maml")]


def test_without_two_shared_seeds_there_is_no_interval(small_run: Run, variant: Variant) -> None:
    one = variant("one", 1.0, learner="er", seeds=[0])
    (found,) = comparisons([small_run, one])
    assert found.seeds == 1
    assert found.difference == pytest.approx(1.0)
    assert math.isnan(found.low)
    assert "two shared seeds" in found.note


def test_equal_learners_are_told_apart(small_run: Run, variant: Variant) -> None:
    settings = dict(small_run.settings.recipe.settings) | {"hyper_rate": 0.5}
    varied = variant("varied", 1.0, 1.0, settings=settings, changed=["hyper_rate"])
    again = variant("again", 2.0, 2.0)
    pairs = comparisons([small_run, varied, again])
    assert [pair.baseline for pair in pairs] == [
        "la_maml hyper_rate=0.5",
        "la_maml hyper_rate=0.3 (again)",
    ]
    (pair, *_) = comparisons([small_run, varied, again], baseline="again")
    assert pair.difference == pytest.approx(2.0)


def test_in_the_terminal_as_json_and_as_a_frame(
    small_run: Run, variant: Variant, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [str(small_run.folder), str(variant("er", 2.0, 1.0, learner="er").folder)]
    for arguments in ((), ("--json",)):
        with pytest.raises(SystemExit) as ending:
            main(["compare", *folders, *arguments])
        assert ending.value.code == 0
    shown, last = capsys.readouterr().out.rstrip("\n").rsplit("\n", 1)
    assert "la_maml er 2 +1.50 −4.85 to +7.85 0.205" in " ".join(shown.split())
    assert json.loads(last)["seeds"] == 2
    with pytest.raises(SystemExit) as ending:
        main(["compare", *folders, "--baseline", "gem"])
    assert ending.value.code == 2
    assert "unknown baseline 'gem'" in capsys.readouterr().err
    pytest.importorskip("pandas")
    frame = compare(*folders)
    assert frame["difference"].tolist() == pytest.approx([1.5])
    assert frame.columns.is_unique
