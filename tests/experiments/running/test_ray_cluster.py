"""A real Ray cluster of two nodes on this machine: killed processes and nodes change no bit."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from lamaml.errors import InvalidArgument
from lamaml.experiments.running.engines import Workers
from lamaml.experiments.running.engines.ray_cluster import check_nodes
from lamaml.experiments.running.jobs import Ended, Event, Job, Progress, Ready
from lamaml.experiments.running.plan import Plan, new_runs
from lamaml.experiments.storing.records import SeedState
from lamaml.experiments.storing.results import Run
from plans import execute

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'lamaml[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

BITS = ("accuracy.json", "diagnostics.jsonl", "facts.json")
LONG = {"num_tasks": 3, "num_samples": 200, "seeds": range(4), "checkpoint_every": 50}
SLOW = ["glances=10", "epochs=6"]


@pytest.fixture(scope="module")
def cluster(compiled: Path) -> Iterator[object]:
    """Two nodes of two CPUs; the second one's processes can be killed together."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # else a busy machine starves them
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a script
        started = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
        started.add_node(num_cpus=2)
        started.wait_for_nodes()
        signal.signal(signal.SIGINT, before)
        ray.init(address=started.address, log_to_driver=False)
        yield started
        ray.shutdown()
        started.shutdown()


def run_on(plan: Plan, on_event: Callable[[Job, Event], None] = lambda job, event: None) -> Run:
    with new_runs([plan]) as work:
        return work.run(on_event, Workers(engine="ray"))[0]


def test_a_killed_worker_and_a_killed_node_cost_time_only(
    cluster, small_plan: Callable[..., Plan], tmp_path: Path
) -> None:
    (expected,) = execute([small_plan(tmp_path / "local", "er", SLOW, **LONG)], processes=2)
    head, second = cluster.list_all_nodes()
    raylets = {node: node.all_processes["raylet"][0].process.pid for node in (head, second)}
    ready: dict[int, list[Ready]] = {}
    killed: list[str] = []

    def kill(job: Job, event: Event) -> None:
        if isinstance(event, Ready):
            ready.setdefault(job.seed, []).append(event)
        if not isinstance(event, Progress) or event.updates < 100 or len(killed) == 2:
            return
        pid = ready[job.seed][-1].pid
        if not psutil.pid_exists(pid):
            return
        on_second = raylets[second] in {p.pid for p in psutil.Process(pid).parents()}
        if not killed:  # first the process that trains, wherever it is
            killed.append(f"process of seed {job.seed}")
            os.kill(pid, signal.SIGKILL)
        elif len(killed) == 1 and on_second:
            killed.append("node")
            family = psutil.Process(raylets[second]).children(recursive=True)
            for process in [psutil.Process(raylets[second]), *family]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()

    found = run_on(small_plan(tmp_path / "ray", "er", SLOW, **LONG), kill)
    assert len(killed) == 2, killed
    again = {seed: events[-1] for seed, events in ready.items() if len(events) > 1}
    assert len(again) >= 2
    assert any(event.updates > 0 for event in again.values())  # resumed, not restarted
    assert [seed.status.state for seed in found.seeds] == [SeedState.FINISHED] * 4
    for seed, other in zip(found.seeds, expected.seeds, strict=True):
        for name in BITS:
            assert (seed.folder / name).read_bytes() == (other.folder / name).read_bytes()
    assert not list(found.folder.glob("*.lock"))


def test_a_refused_job_leaves_no_folder(
    cluster, small_plan: Callable[..., Plan], tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgument, match="num_tasks = 11"):
        run_on(small_plan(tmp_path / "run", num_tasks=11))
    assert list(tmp_path.iterdir()) == []


def test_leaving_early_ends_the_job_with_a_checkpoint(
    cluster, small_plan: Callable[..., Plan], tmp_path: Path
) -> None:
    plan = small_plan(tmp_path / "run", "er", ["epochs=100"], **(LONG | {"seeds": [0]}))
    pids: list[int] = []

    def leave(job: Job, event: Event) -> None:
        if isinstance(event, Ready):
            pids.append(event.pid)
        if isinstance(event, Progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_on(plan, leave)
    status = json.loads((plan.folder / "seed-0/status.json").read_text())
    assert status == {"status": "interrupted", "message": "stopped by a signal"}
    last = max(path.name for path in (plan.folder / "seed-0").glob("checkpoint-*"))
    lines = (plan.folder / "seed-0/diagnostics.jsonl").read_text().splitlines()
    update = int(last.removesuffix(".safetensors").rpartition("-")[2])
    assert json.loads(lines[-1])["update"] == update > 0
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pids[0]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(pids[0])


def test_a_cancelled_job_ends_as_interrupted(
    cluster, small_plan: Callable[..., Plan], tmp_path: Path
) -> None:
    plan = small_plan(tmp_path / "run", "er", ["epochs=100"], **(LONG | {"seeds": [0]}))
    plan.folder.mkdir()
    job = Job(plan.settings, 0, plan.folder / "seed-0")
    engine = Workers(engine="ray").start(1, 1)
    try:
        engine.submit(job)
        for _, event in engine.events():
            if isinstance(event, Progress):
                engine.cancel(job)
        assert isinstance(event, Ended)
        assert event.status.state is SeedState.INTERRUPTED
    finally:
        engine.stop()


def test_a_folder_that_nodes_do_not_see_is_refused(
    cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Blind:
        """Ray, whose nodes look for the folder under another path."""

        def __getattr__(self, name: str) -> object:
            return getattr(ray, name)

        def remote(self, function: Callable[[str], object]) -> object:
            return ray.remote(lambda path: (None, None, {}))

    with pytest.raises(InvalidArgument, match="does not see this folder"):
        check_nodes(Blind(), tmp_path)
    check_nodes(ray, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_cluster_at_the_address_is_one_line(tmp_path: Path) -> None:
    words = ["run", "digits_rotations", "online", "--engine", "ray", "--address", "127.0.0.1:1"]
    done = subprocess.run(
        [sys.executable, "-m", "lamaml", *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("lamaml: --address 127.0.0.1:1: no Ray cluster there")
    assert list(tmp_path.rglob("settings.json")) == []
