"""Processes: the same bits whatever runs beside, and no seed takes another with it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from lamaml._records import to_json
from lamaml.errors import DataUnavailable, InvalidArgument, LamamlError, Mismatch
from lamaml.experiments.running.engines.local import (
    LocalProcesses,
    default_processes,
    worker_environment,
)
from lamaml.experiments.running.jobs import (
    Ended,
    Event,
    Job,
    Note,
    Progress,
    Ready,
    Refused,
    event_from_line,
    event_to_line,
)
from lamaml.experiments.running.plan import Plan
from lamaml.experiments.storing.environment import num_cores
from lamaml.experiments.storing.locks import locked
from lamaml.experiments.storing.records import SeedState, SeedStatus
from lamaml.experiments.storing.results import Run
from lamaml.training.checkpoint import Seconds
from plans import execute

SmallPlan = Callable[..., Plan]
BITS = ("accuracy.json", "diagnostics.jsonl", "facts.json")


def jobs_of(plan: Plan) -> list[Job]:
    settings = plan.settings
    return [Job(settings, seed, plan.folder / f"seed-{seed}") for seed in settings.seeds]


def run_jobs(jobs: list[Job]) -> Generator[tuple[Job, Event]]:
    """The events of jobs in one process; leaving early stops the engine."""
    engine = LocalProcesses(1)
    try:
        for job in jobs:
            engine.submit(job)
        yield from engine.events()
    finally:
        engine.stop()


def test_one_process_or_two_give_the_same_bits(
    small_run: Run, small_plan: SmallPlan, compiled: Path, tmp_path: Path
) -> None:
    execute([small_plan(tmp_path / "alone")], processes=1)
    for seed in ("seed-0", "seed-1"):
        for name in BITS:
            alone = (tmp_path / "alone" / seed / name).read_bytes()
            assert alone == (small_run.folder / seed / name).read_bytes(), (seed, name)
    beside = (small_run.folder / "seed-1" / "diagnostics.jsonl").read_bytes()
    assert (small_run.folder / "seed-0" / "diagnostics.jsonl").read_bytes() != beside


def test_events_tell_a_job_from_beginning_to_end(small_run: Run, events: list) -> None:
    for seed in (0, 1):
        ready, first, last, ended = [event for job, event in events if job.seed == seed]
        assert isinstance(first, Progress)
        assert ready.num_updates == last.updates == 30
        assert last.retained == small_run.seeds[seed].metrics.ra
        assert ended.status == small_run.seeds[seed].status


def test_a_killed_process_costs_one_seed(
    small_plan: SmallPlan, compiled: Path, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path / "run", "online", seeds=range(3))
    statuses = {}
    for job, event in run_jobs(jobs_of(plan)):
        if isinstance(event, Ready) and job.seed == 1:
            os.kill(event.pid, signal.SIGKILL)
        if isinstance(event, Ended):
            statuses[job.seed] = event.status
    assert [statuses[seed].state for seed in range(3)] == ["finished", "failed", "finished"]
    assert "signal 9" in statuses[1].message
    written = json.loads((tmp_path / "run/seed-1/status.json").read_text())
    assert written == to_json(statuses[1])


LONG = {"num_tasks": None, "num_samples": None, "seeds": [0]}


def begun(plan: Plan, *others: Job) -> tuple[Generator[tuple[Job, Event]], int]:
    """A run that learns, and the process that does."""
    events = run_jobs([*jobs_of(plan), *others])
    pid = next(event.pid for _, event in events if isinstance(event, Ready))
    next(event for _, event in events if isinstance(event, Progress))
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
    events, pid = begun(long, *jobs_of(short))
    os.kill(pid, signal.SIGTERM)
    endings = [event.status.state for _, event in events if isinstance(event, Ended)]
    assert endings == ["interrupted", "finished"]  # the second in another process
    assert_stopped_with_a_checkpoint(tmp_path / "run")


# Starts a run, and is gone without a word once it learns.
GONE = """
import os, sys
from pathlib import Path
from lamaml.experiments.recipes.load import recipe
from lamaml.experiments.running.jobs import Progress
from lamaml.experiments.running.plan import Plan, new_runs
from lamaml.experiments.storing.records import RunSettings
def leave(job, event):
    if isinstance(event, Progress):
        os._exit(0)
chosen = recipe("digits_rotations", "online", overrides={"epochs": 100})
with new_runs([Plan(RunSettings(chosen, [0]), Path(sys.argv[1]))]) as work:
    work.run(leave)
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
    for _, event in run_jobs(jobs_of(plan)):
        if isinstance(event, Ready):
            pid = event.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert json.loads((tmp_path / "run/seed-0/status.json").read_text())["status"] == "finished"


def test_refused_jobs_leave_no_folder(small_plan: SmallPlan, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="num_tasks = 11"):
        execute([small_plan(tmp_path / "run", num_tasks=11)])
    assert list(tmp_path.iterdir()) == []


def test_a_worker_has_the_threads_it_is_given() -> None:
    """JAX has other threads, too: only the difference is ours."""
    count = "import jax, psutil; jax.numpy.ones(3).block_until_ready();"
    count += "print(psutil.Process().num_threads())"
    command, found = [sys.executable, "-c", count], []
    for threads in (1, 9):
        variables = worker_environment(threads)
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        found.append(int(done.stdout))
    assert found[1] - found[0] >= 8


def test_no_more_processes_than_jobs_or_cores() -> None:
    assert default_processes(1, threads=1) == 1
    assert default_processes(1000, threads=1) == num_cores()
    assert default_processes(1000, threads=10_000) == 1


EVENTS = [
    Ready(num_tasks=2, num_updates=30, updates=0, pid=7),
    Progress(task=1, updates=15, retained=0.5),
    Note("a checkpoint was refused"),
    Ended(SeedStatus(SeedState.FINISHED, num_updates=30, seconds=Seconds(1.0, 2.0, 3.0), data="x")),
    Ended(SeedStatus(SeedState.DIVERGED, "the loss is nan", task=1, update=3)),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_the_same_behind_the_pipe(event: Event) -> None:
    assert event_from_line(event_to_line(event)) == event


class StrangersError(InvalidArgument):
    """Raised by someone else's learner."""


@pytest.mark.parametrize("kind", [InvalidArgument, DataUnavailable, Mismatch, StrangersError])
def test_an_error_keeps_its_class_behind_the_pipe(kind: type[LamamlError]) -> None:
    found = event_from_line(event_to_line(Refused(kind("no"))))
    assert isinstance(found, Refused)
    assert type(found.error) is (InvalidArgument if kind is StrangersError else kind)
    assert str(found.error) == "no"


def test_a_job_is_the_same_behind_the_pipe(small_plan: SmallPlan, tmp_path: Path) -> None:
    job = jobs_of(small_plan(tmp_path / "run"))[1]
    found = Job.from_line(job.to_line())
    assert to_json(found.settings) == json.loads(job.to_line())["settings"]
    assert (found.seed, found.folder) == (job.seed, job.folder)
