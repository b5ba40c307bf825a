"""Runs plans, or continues run folders, without a console."""

from collections.abc import Sequence
from pathlib import Path

from lamaml.experiments.running.engines import Workers
from lamaml.experiments.running.plan import OnEvent, Plan, existing_runs, new_runs
from lamaml.experiments.storing.results import Run


def execute(
    plans: Sequence[Plan],
    on_event: OnEvent = lambda job, event: None,
    processes: int | None = None,
) -> list[Run]:
    """Runs plans side by side; returns what is then in their folders."""
    with new_runs(plans) as work:
        return work.run(on_event, Workers(processes))


def resume(
    folders: Sequence[Path],
    on_event: OnEvent = lambda job, event: None,
    processes: int | None = None,
) -> list[Run]:
    """Continues runs; returns what is then in their folders."""
    with existing_runs(folders) as work:
        return work.run(on_event, Workers(processes))
