"""How far many runs are, for a person and for a log."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from lamaml.experiments.recipes.load import recipe
from lamaml.experiments.running.jobs import Ended, Job, Progress, Ready
from lamaml.experiments.running.progress import MOST_BARS, shown_progress
from lamaml.experiments.storing.records import RunSettings, SeedState, SeedStatus


def jobs(count: int) -> list[Job]:
    learners = ("online", "er")
    settings = [RunSettings(recipe("digits_rotations", learner), [0]) for learner in learners]
    return [Job(settings[n % 2], n // 2, Path(f"job-{n}")) for n in range(count)]


def lived_through(count: int, *, is_terminal: bool) -> str:
    """All jobs but the last two end; what is on the screen, or in the log, then."""
    screen, given = io.StringIO(), jobs(count)
    console = Console(file=screen, force_terminal=is_terminal, width=100, color_system=None)
    with shown_progress(given, console) as on_event:
        for job in given[:-1]:
            on_event(job, Ready(num_tasks=3, num_updates=90, updates=0, pid=1))
            on_event(job, Progress(task=1, updates=45, retained=0.5))
            if job is not given[-2]:
                on_event(job, Ended(SeedStatus(SeedState.FINISHED)))
    return screen.getvalue()


def test_of_many_runs_only_those_at_work_have_a_bar() -> None:
    shown = lived_through(MOST_BARS + 2, is_terminal=True)
    last = shown[shown.rindex("all runs") :]
    assert f"{MOST_BARS} of {MOST_BARS + 2}" in last
    assert "task 2/3" in last
    assert last.count("online") + last.count("er ") == 1
    assert "waiting" not in last


def test_few_runs_have_a_bar_each_from_the_beginning() -> None:
    shown = lived_through(4, is_terminal=True)
    assert "all runs" not in shown
    assert "waiting" in shown


@pytest.mark.parametrize(("count", "told"), [(4, 0), (MOST_BARS + 2, MOST_BARS)])
def test_a_log_counts_many_runs(count: int, told: int) -> None:
    shown = lived_through(count, is_terminal=False)
    assert shown.count("runs ended, about") == told
    if told:
        assert f"{MOST_BARS} of {count} runs ended" in shown
        assert "online 0 finished" in shown
