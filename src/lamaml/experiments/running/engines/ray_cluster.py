"""The engine of a Ray cluster: every job is a task that feeds the same worker process as here.

A task has a worker process of its own on its node, so bits, signals and checkpoints are those of
local processes. Results and checkpoints are on storage that every node sees: when a worker process,
a Ray worker or a whole node is killed, Ray runs the task again, which resumes from the last
checkpoint.
"""

import contextlib
import logging
import os
import signal
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from lamaml._io import write_json, writing
from lamaml._records import to_json
from lamaml.errors import InvalidArgument
from lamaml.experiments.running.engines.local import mark_interrupted
from lamaml.experiments.running.engines.process import STOP_SECONDS
from lamaml.experiments.running.engines.ray_task import Mailbox, WorkerKilled, look, run_job
from lamaml.experiments.running.jobs import Ended, Event, Job, Refused, event_from_line
from lamaml.experiments.storing.environment import PACKAGES, versions
from lamaml.experiments.storing.records import SeedState, SeedStatus, read_record

RETRIES = 5  # of a job whose worker or node was killed; each resumes from the last checkpoint
POLL = 0.5  # seconds between two looks at the cluster
ANSWER_SECONDS = 120.0  # for every node to start a Ray worker and import lamaml
_PASSED_ON = ("JAX_", "XLA_", "LAMAML_")  # variables that decide bits, or where data is


class RayCluster:
    """An engine that runs jobs on a Ray cluster, as many at a time as it has CPUs for.

    Args:
      threads: CPUs per job.
      address: HOST:PORT of a cluster; None for the one in RAY_ADDRESS, or a new one on this
        machine.
      processes: the largest number of jobs at a time; None for no limit.

    Raises:
      InvalidArgument: Ray is not installed, or there is no cluster at the address.
    """

    def __init__(self, threads: int, address: str | None, processes: int | None = None) -> None:
        self._ray, self._connected_here = connect(address)
        self._threads, self._processes = threads, processes
        self._variables = {
            name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)
        }
        self._waiting = deque[Job]()
        self._running: dict[Any, Job] = {}
        self._mailbox: Any = None
        self._task: Any = None

    def submit(self, job: Job) -> None:
        """Have a job run as soon as there is room for it."""
        if self._mailbox is None:
            self._open(job.folder.parent)
        if self._processes is not None and len(self._running) >= self._processes:
            self._waiting.append(job)
            return
        folder = job.folder.absolute()
        line = replace(job, folder=folder, is_exclusive=True).to_line()
        where = (str(folder), self._mailbox)
        task = self._task.remote(line, self._threads, self._variables, *where)
        self._running[task] = job

    def events(self) -> Iterator[tuple[Job, Event]]:
        """The events of the submitted jobs, until the last of them has ended."""
        while self._running:
            done, _ = self._ray.wait(list(self._running), timeout=POLL)
            jobs = {str(job.folder.absolute()): job for job in self._running.values()}
            for folder, line in self._ray.get(self._mailbox.take.remote()):
                event = event_from_line(line)
                if folder in jobs and not isinstance(event, Refused):
                    yield jobs[folder], event
            for task in done:
                job = self._running.pop(task)
                if self._waiting:
                    self.submit(self._waiting.popleft())
                yield job, self._ended(task, job)

    def cancel(self, job: Job) -> None:
        """End a job; it writes a checkpoint first, and ends as interrupted."""
        self._waiting = deque(other for other in self._waiting if other is not job)
        for task, other in self._running.items():
            if other is job:
                self._ray.cancel(task)

    def stop(self) -> None:
        """End the jobs: each finishes its update and writes a checkpoint, or is killed."""
        self._waiting.clear()
        with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C does not wait
            for task in self._running:
                self._ray.cancel(task)
            tasks = list(self._running)
            if tasks:
                self._ray.wait(tasks, num_returns=len(tasks), timeout=STOP_SECONDS)
            _wait_for_locks([job.folder for job in self._running.values()])
        for task, job in self._running.items():
            self._ray.cancel(task, force=True)
            mark_interrupted(job.folder / "status.json")
        if self._mailbox is not None:
            self._ray.kill(self._mailbox)
        if self._connected_here:
            self._ray.shutdown()

    def _open(self, folder: Path) -> None:
        """Check that every node sees the folder, and start what the jobs need."""
        ray, here = self._ray, self._ray.get_runtime_context().get_node_id()
        check_nodes(ray, folder.absolute())
        self._mailbox = _on_node(ray, ray.remote(Mailbox), here).remote()
        self._task = ray.remote(run_job).options(
            num_cpus=self._threads,
            max_retries=RETRIES,
            retry_exceptions=[WorkerKilled],
            scheduling_strategy="SPREAD",
        )

    def _ended(self, task: Any, job: Job) -> Event:
        ray = self._ray
        path = job.folder / "status.json"
        try:
            event = event_from_line(ray.get(task))
        except ray.exceptions.TaskCancelledError:
            mark_interrupted(path)
            known = path.exists()
            status = read_record(path, SeedStatus) if known else SeedStatus(SeedState.INTERRUPTED)
            return Ended(status)
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            status = SeedStatus(SeedState.FAILED, f"Ray gave it up: {reason}")
            write_json(path, to_json(status))
            return Ended(status)
        if isinstance(event, Refused):
            raise event.error
        return event


def connect(address: str | None) -> tuple[Any, bool]:
    """Returns Ray's module, connected to a cluster, and whether this call has connected it.

    Raises:
      InvalidArgument: Ray is not installed, or there is no cluster at the address.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise InvalidArgument("--engine ray: needs Ray: pip install 'lamaml[ray]'") from error
    if ray.is_initialized():
        return ray, False
    if address is not None:
        _check_reachable(address)
    main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        where = address or os.environ.get("RAY_ADDRESS") or "this machine"
        raise InvalidArgument(f"--address {where}: no Ray cluster there: {reason}") from error
    if main:  # Ray has replaced them
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return ray, True


def _check_reachable(address: str) -> None:
    """Raise InvalidArgument if nothing answers at HOST:PORT: Ray itself waits for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):  # "auto"
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidArgument(f"--address {address}: no Ray cluster there: {reason}") from error


def cluster_cpus(address: str | None) -> int:
    """The number of CPUs of a cluster."""
    ray, _ = connect(address)
    return int(ray.cluster_resources().get("CPU", 1))


def check_nodes(ray: Any, folder: Path) -> None:
    """Raise InvalidArgument unless every node sees the folder and has the same versions.

    A file is written here and read there, and the other way round.
    """
    token = uuid.uuid4().hex
    mark = folder / f".shared-{token}.part"  # removed with half-written files if this is killed
    with writing(mark):
        mark.write_text(token)
    task, nodes = ray.remote(look), [node for node in ray.nodes() if node["Alive"]]
    asked = {
        _on_node(ray, task, node["NodeID"]).remote(str(mark)): node["NodeManagerAddress"]
        for node in nodes
    }
    try:
        done, late = ray.wait(list(asked), num_returns=len(asked), timeout=ANSWER_SECONDS)
        for answer in late:
            raise InvalidArgument(f"the node {asked[answer]} does not answer; remove it, or wait")
        for answer in done:
            _check_answer(ray, answer, asked[answer], mark, token)
    finally:
        for path in folder.glob(f".shared-{token}*"):
            path.unlink(missing_ok=True)


def _check_answer(ray: Any, task: Any, node: str, mark: Path, token: str) -> None:
    try:
        seen, answer, there = ray.get(task)
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[-1]
        message = f"the node {node} cannot run lamaml: {reason}; install the same version there"
        raise InvalidArgument(message) from error
    written = Path(answer).exists() if answer else False
    if seen != token or not written:
        raise InvalidArgument(
            f"out = {str(mark.parent)!r}: the node {node} does not see this folder, or cannot "
            "write to it; give --out on storage that every node sees under the same path"
        )
    here = versions()
    other = [f"{name} {there[name]}" for name in PACKAGES if there[name] != here[name]]
    if other:
        mine = ", ".join(f"{name} {here[name]}" for name in PACKAGES)
        raise InvalidArgument(
            f"the node {node} has {', '.join(other)}, and this process {mine}: bits would differ; "
            "install the same versions"
        )


def _on_node(ray: Any, what: Any, node: str) -> Any:
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    return what.options(num_cpus=0, scheduling_strategy=strategy)


def _wait_for_locks(folders: list[Path]) -> None:
    """Until no process holds a seed any more, or time is up."""
    deadline = time.monotonic() + STOP_SECONDS
    locks = [folder.with_name(f"{folder.name}.lock") for folder in folders]
    while any(lock.exists() for lock in locks) and time.monotonic() < deadline:
        time.sleep(POLL)
