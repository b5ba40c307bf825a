"""Runs that are killed again and again, and end as if nothing had happened.

A few seconds' work is done in a dozen lives and more. In most of them SIGKILL hits the process that
learns, in some the command and all it has started; sometimes while it still compiles, mostly while
it learns, evaluates or writes. `make soak` does the same with LAMAML_SOAK_KILLS=300.
"""

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from lamaml.experiments.recipes.load import recipe
from lamaml.experiments.recipes.overrides import read_settings
from lamaml.experiments.running.jobs import Event, Job, Progress, Ready
from lamaml.experiments.running.plan import Plan
from lamaml.experiments.storing.records import RunSettings
from lamaml.experiments.storing.results import read_run
from plans import execute, resume
from processes import kill_all

KILLS = int(os.environ.get("LAMAML_SOAK_KILLS", "12"))
SMALL = ("inner_steps=2", "first_order=false")
LEARNERS = {"la_maml": SMALL, "icarl": (), "meta_bgd": (*SMALL, "num_monte_carlo=1"), "gem": ()}
SHARES = (0.3, 0.6, 0.9, 1.0)  # of the kills, up to each learner; gem compiles anew in every life
FILES = ("accuracy.json", "diagnostics.jsonl", "facts.json")
TIMES = ("seconds", "ms_per_update", "peak_memory", "out")


@pytest.fixture(autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one life has compiled the next need not."""
    folder = tmp_path_factory.getbasetemp().parent / "compiled"
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder))


def plan(out: Path, learner: str, seed: int) -> Plan:
    """Four tasks of 24 updates each, in two epochs of six batches, two glances at each."""
    sets = ("epochs=2", "glances=2", "memory_size=24", "hidden_sizes=[20]", *LEARNERS[learner])
    overrides = read_settings("digits_rotations", learner, sets)
    chosen = recipe("digits_rotations", learner, overrides=overrides)
    settings = RunSettings(chosen, [seed], num_tasks=4, num_samples=60, checkpoint_every=3)
    return Plan(settings, out)


class Killer:
    """Has runs live through kills, and counts how they met them."""

    def __init__(self, seed: int) -> None:
        self.random, self.lives = random.Random(seed), 0  # noqa: S311
        self.met = Counter[str]()

    @property
    def kills(self) -> int:
        return self.met["kills"]

    def live(self, planned: Plan) -> None:
        """A life of a run: until it is killed, or has ended."""
        self.lives += 1
        if self.lives % 5 == 0 and (planned.folder / "settings.json").exists():
            killed = self._command_killed(planned)
        else:
            killed = self._worker_killed(planned)
        seed = planned.folder / f"seed-{planned.settings.seeds[0]}"
        self.met["kills"] += killed
        self.met["kills while a file was written"] += killed and any(seed.glob("*.part"))

    def _worker_killed(self, planned: Plan) -> bool:
        """The process that learns is killed after so many pieces of news."""
        left, killed = self.random.randrange(5), threading.Event()
        pids: list[int] = []

        def kill() -> None:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(pids[0], signal.SIGKILL)
                killed.set()

        def on_event(job: Job, event: Event) -> None:
            nonlocal left
            if isinstance(event, Ready):
                pids.append(event.pid)
                self._count(event.updates)
                if left == 0:
                    threading.Timer(self.random.uniform(0, 1.5), kill).start()
            elif isinstance(event, Progress):
                left -= 1
                if left == 0:
                    time.sleep(self.random.uniform(0, 0.02))
                    kill()

        if (planned.folder / "settings.json").exists():
            (run,) = resume([planned.folder], on_event)
        else:
            (run,) = execute([planned], on_event)
        return not run.seeds[0].finished and killed.is_set()

    def _command_killed(self, planned: Plan) -> bool:
        """The command is killed, with every process it has started, after so many updates."""
        log = planned.folder / f"seed-{planned.settings.seeds[0]}" / "diagnostics.jsonl"
        command = [sys.executable, "-m", "lamaml", "resume", str(planned.folder)]
        before, begin = log.read_bytes() if log.exists() else b"", time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        early = self.random.choice([None, self.random.uniform(0, 4)])
        while process.poll() is None:
            late = early is not None and time.monotonic() - begin > early
            if late or (log.exists() and log.read_bytes()[-2000:] != before[-2000:]):
                break
            time.sleep(0.01)
        time.sleep(self.random.uniform(0, 0.05))
        alive = process.poll() is None
        if alive:
            kill_all(process.pid)
        output, _ = process.communicate()
        assert b"Traceback" not in output, output.decode()
        self.met["commands killed"] += alive
        return alive

    def _count(self, updates: int) -> None:
        if updates:
            place = "in the middle of a task" if updates % 24 else "between tasks"
            self.met[f"went on {place}"] += 1
        else:
            self.met["began anew"] += 1


def assert_same_ending(run: Path, reference: Path, seed: int) -> None:
    """Every file and every tensor, but for the times."""
    for name in FILES:
        assert (run / f"seed-{seed}" / name).read_bytes() == (
            reference / f"seed-{seed}" / name
        ).read_bytes(), (run, name)
    last = f"seed-{seed}/checkpoint-00004-000000000.safetensors"
    tensors, expected = load_file(run / last), load_file(reference / last)
    assert tensors.keys() == expected.keys()
    for name, tensor in tensors.items():
        assert tensor.dtype == expected[name].dtype
        assert tensor.tobytes() == expected[name].tobytes(), (run, name)
    summaries = [json.loads((folder / "summary.json").read_text()) for folder in (run, reference)]
    for found in summaries:
        for name in TIMES:
            del found[name]
    assert summaries[0] == summaries[1]


def test_killed_again_and_again_a_run_ends_in_the_same_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killer = Killer(KILLS)
    for number in itertools.count():
        seed, place = divmod(number, len(LEARNERS))
        if seed and killer.kills >= KILLS:
            break
        learner = list(LEARNERS)[place]
        quota = KILLS if seed else round(KILLS * SHARES[place])
        reference = plan(tmp_path / f"{learner}-{seed}-reference", learner, seed)
        execute([reference])
        killed = plan(tmp_path / f"{learner}-{seed}", learner, seed)
        while killer.kills < quota and not ended(killed.folder):
            killer.live(killed)
        if not ended(killed.folder):
            resume([killed.folder])
        assert_same_ending(killed.folder, reference.folder, seed)
    with capsys.disabled():
        sys.stdout.write(f"\n{number} runs, the same bits: {dict(killer.met)}\n")
    if KILLS >= 100:  # fewer, or a busy machine, say little about how kills are met
        assert killer.met["went on in the middle of a task"] >= KILLS // 3
        assert killer.met["commands killed"] > 0


def ended(folder: Path) -> bool:
    return (folder / "settings.json").exists() and read_run(folder).seeds[0].ended
