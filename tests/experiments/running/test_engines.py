"""Processes: the same bits whatever runs beside, and no seed takes another with it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from lamaml.errors import InvalidArgument
from lamaml.experiments.running.engines import (
    Event,
    Job,
    default_processes,
    run_jobs,
    worker_environment,
)
from lamaml.experiments.running.plan import Plan, execute
from lamaml.experiments.storing.environment import num_cores
from lamaml.experiments.storing.locks import locked
from lamaml.experiments.storing.results import Run

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


LONG = {"num_tasks": None, "num_samples": None, "seeds": [0]}


def begun(plan: Plan, *others: Job) -> tuple[Generator[Event], int]:
    """A run that learns, and the process that does."""
    events = run_jobs([*plan.jobs, *others], processes=1)
    pid = next(event.data["pid"] for event in events if event.kind == "ready")
    next(event for event in events if event.kind == "progress")
    return events, pid


def assert_stopped_with_a_checkpoint(folder: Path) -> None:
    """It ended by itself, in the middle of a task, and everything up to there is written."""
    status = json.loads((folder / "seed-0/status.json").read_text())
    assert status == {"status": "interrupted", "message": "stopped by a signal"}
    last = max(path.name for path in (folder / "seed-0").glob("checkpoint-*"))
    update = int(last.removesuffix(".safetensors").rpartition("-")[2])
    assert update > 0
    lines = (folder / "seed-0/diagnostics.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["update"] == update


def test_leaving_early_ends_the_processes_with_a_checkpoint(
    small_plan: SmallPlan, compiled: Path, tmp_path: Path
) -> None:
    events, pid = begun(small_plan(tmp_path / "run", "online", ["epochs=100"], **LONG))
    events.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert_stopped_with_a_checkpoint(tmp_path / "run")


def test_sigterm_to_a_process_ends_it_with_a_checkpoint(
    small_plan: SmallPlan, compiled: Path, tmp_path: Path
) -> None:
    long = small_plan(tmp_path / "run", "online", ["epochs=100"], **LONG)
    short = small_plan(tmp_path / "short", "online", seeds=[0])
    events, pid = begun(long, *short.jobs)
    os.kill(pid, signal.SIGTERM)
    endings = [event.data["status"] for event in events if event.kind == "ended"]
    assert endings == ["interrupted", "finished"]  # the second in another process
    assert_stopped_with_a_checkpoint(tmp_path / "run")


# Starts a run, and is gone without a word once it learns.
GONE = """
import os, sys
from pathlib import Path
from lamaml.experiments.recipes.overrides import recipe_with
from lamaml.experiments.running.plan import Plan, execute
def leave(event):
    if event.kind == "progress":
        os._exit(0)
recipe = recipe_with("digits_rotations", "online", ["epochs=100"])
execute([Plan(recipe, [0], Path(sys.argv[1]))], leave)
"""


def test_a_process_whose_command_is_gone_ends_with_a_checkpoint(
    compiled: Path, tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-c", GONE, str(tmp_path / "run")], check=True)
    with locked(tmp_path / "run") as lock:  # waits until the last process has let it go
        assert lock.taken_over
        assert_stopped_with_a_checkpoint(tmp_path / "run")


def test_an_idle_process_ends_at_once(
    small_plan: SmallPlan, compiled: Path, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path / "run", "online", seeds=[0])
    for event in run_jobs(plan.jobs, processes=1):
        if event.kind == "ready":
            pid = event.data["pid"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert json.loads((tmp_path / "run/seed-0/status.json").read_text())["status"] == "finished"


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
