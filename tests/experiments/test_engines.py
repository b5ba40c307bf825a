"""Processes: the same bits whatever runs beside, and no seed takes another with it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lamaml.errors import InvalidArgument
from lamaml.experiments.engines import default_processes, run_jobs, worker_environment
from lamaml.experiments.environment import num_cores
from lamaml.experiments.results import Run
from lamaml.experiments.runs import Plan, execute

SmallPlan = Callable[..., Plan]
BITS = ("accuracy.json", "diagnostics.jsonl", "facts.json")


def test_one_process_or_two_give_the_same_bits(
    small_run: Run, small_plan: SmallPlan, compiled: Path, tmp_path: Path
) -> None:
    execute([small_plan(tmp_path / "alone")], lambda event: None, processes=1)
    for seed in ("seed-0", "seed-1"):
        for name in BITS:
            alone = (tmp_path / "alone" / seed / name).read_bytes()
            assert alone == (small_run.folder / seed / name).read_bytes(), (seed, name)
    beside = (small_run.folder / "seed-1" / "diagnostics.jsonl").read_bytes()
    assert (small_run.folder / "seed-0" / "diagnostics.jsonl").read_bytes() != beside


def test_events_tell_a_job_from_beginning_to_end(small_run: Run, events: list) -> None:
    for seed in (0, 1):
        mine = [event for event in events if event.job.seed == seed]
        assert [event.kind for event in mine] == ["ready", "progress", "progress", "ended"]
        assert mine[0].data["num_updates"] == mine[2].data["updates"] == 30
        assert mine[2].data["retained"] == small_run.seeds[seed].metrics["ra"]
        assert mine[3].data["status"] == "finished"


def test_a_killed_process_costs_one_seed(
    small_plan: SmallPlan, compiled: Path, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path / "run", "online", seeds=range(3))
    statuses = {}
    for event in run_jobs(plan.jobs, processes=1):
        if event.kind == "ready" and event.job.seed == 1:
            os.kill(event.data["pid"], signal.SIGKILL)
        if event.kind == "ended":
            statuses[event.job.seed] = event.data
    assert [statuses[seed]["status"] for seed in range(3)] == ["finished", "failed", "finished"]
    assert "signal 9" in statuses[1]["message"]
    assert json.loads((tmp_path / "run/seed-1/status.json").read_text()) == statuses[1]


def test_leaving_early_ends_the_processes(
    small_plan: SmallPlan, compiled: Path, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path / "run", "online", num_tasks=None, num_samples=None)
    events = run_jobs(plan.jobs, processes=1)
    pid = next(event.data["pid"] for event in events if event.kind == "ready")
    events.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    status = json.loads((tmp_path / "run/seed-0/status.json").read_text())
    assert status["status"] == "interrupted"


def test_refused_jobs_leave_no_folder(small_plan: SmallPlan, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="num_tasks = 11"):
        execute([small_plan(tmp_path / "run", num_tasks=11)], lambda event: None)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_has_the_threads_it_is_given() -> None:
    count = (
        "import os, jax; jax.numpy.ones(3).block_until_ready();"
        "print(sum('XLAEigen' in open(f'/proc/self/task/{t}/comm').read()"
        " for t in os.listdir('/proc/self/task')))"
    )
    if not Path("/proc/self/task").exists():
        pytest.skip("counts threads in /proc")
    for threads in (1, 2):
        command = [sys.executable, "-c", count]
        done = subprocess.run(
            command, env=worker_environment(threads), capture_output=True, text=True, check=True
        )
        assert int(done.stdout) == threads


def test_no_more_processes_than_jobs_or_cores() -> None:
    assert default_processes(1, threads=1) == 1
    assert default_processes(1000, threads=1) == num_cores()
    assert default_processes(1000, threads=10_000) == 1
