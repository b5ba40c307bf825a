"""Several learners, values and seeds in one command."""

import json
from pathlib import Path

import pytest

from lamaml import load_run, load_runs
from lamaml.cli import main

SMALL = ("--tasks", "2", "--samples", "20", "--set", "glances=1")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test in an empty folder."""
    monkeypatch.chdir(tmp_path)


def lamaml(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ending:
        main(arguments)
    captured = capfd.readouterr()
    return int(ending.value.code or 0), captured.out, captured.err


def test_learners_and_values_are_one_table_the_best_first(
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = ("run", "digits_rotations", "online", "er", *SMALL, "--out", "sweep")
    code, out, _ = lamaml(capfd, *words, "--set", "memory_size=5,10")
    assert code == 0
    folders = ["er-memory_size=10", "er-memory_size=5", "online"]
    assert sorted(path.name for path in Path("sweep").iterdir()) == folders
    assert out.startswith("digits_rotations, 1 seed, only 2 tasks, only 20 samples per task, on v")
    runs = load_runs("sweep")
    assert {run.settings.split for run in runs} == {"validation"}
    shown = [line.split() for line in out.splitlines() if line.startswith((" er", " online"))]
    best = max(runs, key=lambda run: run.summary.ra.mean)
    assert shown[0][2] == f"{best.summary.ra.mean:.1f}"
    accuracies = [float(line[2]) for line in shown]
    assert accuracies == sorted(accuracies, reverse=True)
    assert "Best on validation rows: " in out
    told = next(line for line in out.splitlines() if line.startswith("  lamaml run "))
    assert "--tasks 2 --samples 20" in told

    # The same command with more seeds adds them, and leaves the others alone.
    before = Path("sweep/online/seed-0/status.json").stat().st_mtime_ns
    code, out, _ = lamaml(capfd, *words, "--set", "memory_size=5,10", "--seeds", "2", "--json")
    assert code == 0
    assert [json.loads(line)["seeds"] for line in out.splitlines()] == [[0, 1]] * 3
    assert Path("sweep/online/seed-0/status.json").stat().st_mtime_ns == before
    code, _, error = lamaml(capfd, *words, "--set", "memory_size=5,10", "--seeds", "2")
    assert code == 2
    assert "holds these runs already; `lamaml resume sweep` continues them" in error


def test_seeds_are_added_to_a_run_or_given_one_by_one(capfd: pytest.CaptureFixture[str]) -> None:
    words = ("run", "digits_rotations", "online", *SMALL, "--json")
    assert lamaml(capfd, *words, "--out", "run")[0] == 0
    code, out, _ = lamaml(capfd, *words, "--out", "run", "--seeds", "3")
    assert code == 0
    whole = json.loads(out)
    assert whole["seeds"] == [0, 1, 2]
    for name in ("2", "1"):
        assert lamaml(capfd, *words, "--seed", name, "--out", f"apart/{name}")[0] == 0
    apart = load_run("apart").summary
    assert apart.seeds == [1, 2]
    assert apart.ra.values == whole["ra"]["values"][1:]
    code, _, error = lamaml(capfd, *words, "--out", "run", "--seeds", "4", "--set", "batch_size=5")
    assert code == 2
    assert "holds another run (batch_size 10 there, 5 here)" in error
    assert json.loads(Path("run/settings.json").read_text())["seeds"] == [0, 1, 2]
    code, _, error = lamaml(capfd, "resume", "run")
    assert (code, error) == (0, "Every seed has ended: nothing is run again.\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("er online --set memory=5", "unknown setting 'memory' of er or online on digits"),
        ("er --set memory_size=5,", "has no value before or after a comma"),
        ("er --set memory_size=5,x", "memory_size = 'x': must be a whole number"),
        ("er --set num_tasks=3", "give it as --tasks (from Python: num_tasks=)"),
        ("er --seed 3 --seeds 2", "--seed and --seeds or --first-seed: give one of them"),
        ("er --split train", "split = 'train': must be test or validation"),
        ("er onlin", "did you mean 'online'?"),
    ],
)
def test_mistakes(capfd: pytest.CaptureFixture[str], arguments: str, words: str) -> None:
    code, out, error = lamaml(capfd, "run", "digits_rotations", *arguments.split())
    assert (code, out) == (2, "")
    assert words in error
    assert list(Path().iterdir()) == []
