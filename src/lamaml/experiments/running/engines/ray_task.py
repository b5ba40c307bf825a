"""What runs on the nodes of a Ray cluster. Imports nothing slow: the worker processes have JAX."""

import json
import signal
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from lamaml.experiments.running.engines.process import (
    STOP_SECONDS,
    WorkerProcess,
    worker_environment,
)
from lamaml.experiments.storing.environment import versions


class WorkerKilled(Exception):
    """A worker process has ended without a last word."""


def look(path: str) -> tuple[str | None, str | None, Mapping[str, str]]:
    """On a node: what the file says, the name of an answer written beside it, and versions."""
    mark = Path(path)
    try:
        seen = mark.read_text()
        answer = mark.with_name(f"{mark.name.removesuffix('.part')}-{uuid.uuid4().hex}.part")
        answer.write_text(seen)
    except OSError:
        return None, None, versions()
    return seen, str(answer), versions()


class Mailbox:
    """An actor on this machine that keeps events until they are read."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str]] = []

    def put(self, folder: str, line: str) -> None:
        """Add an event of the job in a folder."""
        self.messages.append((folder, line))

    def take(self) -> list[tuple[str, str]]:
        """The events since the last call, each with the folder of its job."""
        taken, self.messages = self.messages, []
        return taken


_processes: list[WorkerProcess] = []  # of this Ray worker: it is kept for the next task


def run_job(
    line: str, threads: int, variables: Mapping[str, str], folder: str, mailbox: Any
) -> str:
    """On a node: run a job in a worker process; returns its last event.

    Raises:
      WorkerKilled: the process has ended without a last word; Ray tries again.
    """
    import ray

    # Ray cancels a task by SIGINT, which processes ignore that a script started in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    messages: SimpleQueue[str | int] = SimpleQueue()
    environment = worker_environment(threads) | dict(variables)
    if not _processes:
        _processes.append(WorkerProcess(environment))
    process = _processes[0]
    threading.Thread(target=_read_job, args=(process, messages), daemon=True).start()
    process.send(line)
    sent: Any = []
    try:
        while True:
            message = _next(messages)
            if isinstance(message, int):
                raise WorkerKilled(f"its process ended with code {message}")
            if _is_last(message):
                ray.get(sent)  # an event must not come after the last
                return message
            sent = mailbox.put.remote(folder, message)
    except BaseException:  # cancelled, killed, or the command that started it is gone
        _processes.clear()
        process.finish(STOP_SECONDS)
        raise


def _read_job(process: WorkerProcess, messages: "SimpleQueue[str | int]") -> None:
    """Pass the events of one job on; an exit code if the process ends before the job."""
    for line in process.lines():
        messages.put(line)
        if _is_last(line):
            return
    messages.put(process.process.wait())


def _is_last(line: str) -> bool:
    """Whether an event is the last of its job; only its name is read here."""
    return json.loads(line)["event"] in ("Ended", "Refused")


def _next(messages: "SimpleQueue[str | int]") -> str | int:
    """The next message; a cancellation is noticed while waiting."""
    while True:
        try:
            return messages.get(timeout=0.2)
        except Empty:
            continue
