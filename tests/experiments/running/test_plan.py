"""Going on with a run: the same bits, or a refusal that says why."""

import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lamaml._records import to_json
from lamaml.errors import InvalidArgument, Mismatch, Unwritable
from lamaml.experiments.running.jobs import Event, Job, Note, Progress, Ready
from lamaml.experiments.running.plan import Plan, existing_runs, missing_runs
from lamaml.experiments.storing.results import Run, read_run
from lamaml.experiments.storing.run_folder import created
from plans import execute, resume

FILES = ("accuracy.json", "diagnostics.jsonl", "facts.json")
MIDDLE, END = (f"checkpoint-0000{task}-000000000.safetensors" for task in (1, 2))


def rewound(run: Run, out: Path, *seeds: int) -> Path:
    """A copy of a run as if it had been killed as soon as its first task was learned.

    The files are ahead of the checkpoint, as they may be: they are written first.
    """
    shutil.copytree(run.folder, out)
    (out / "summary.json").unlink()
    for seed in seeds:
        folder = out / f"seed-{seed}"
        (folder / END).unlink()
        (folder / "status.json").write_text('{"status": "running", "message": ""}')
        (folder / "status.json.123.part").write_text("{")
    return out


def go_on(folder: Path) -> tuple[Run, list[str]]:
    """Resume a run; what it then is, and the notes."""
    events: list[Event] = []
    (run,) = resume([folder], lambda job, event: events.append(event), processes=1)
    return run, [event.message for event in events if isinstance(event, Note)]


def assert_same_bits(run: Run, reference: Run) -> None:
    for seed, expected in zip(run.seeds, reference.seeds, strict=True):
        assert seed.finished
        for name in FILES:
            found = (seed.folder / name).read_bytes()
            assert found == (expected.folder / name).read_bytes(), (seed.seed, name)
        assert not list(seed.folder.glob("*.part"))


@pytest.fixture(autouse=True)
def _compiled(compiled: Path) -> None:
    """What one test has compiled the next need not."""


def test_a_finished_seed_is_left_alone(small_run: Run, tmp_path: Path) -> None:
    folder = rewound(small_run, tmp_path / "run", 1)
    before = {path: path.stat().st_mtime_ns for path in (folder / "seed-0").iterdir()}
    run, notes = go_on(folder)
    assert_same_bits(run, small_run)
    assert {path: path.stat().st_mtime_ns for path in (folder / "seed-0").iterdir()} == before
    assert notes == []
    found, expected = (
        json.loads((path / "summary.json").read_text()) for path in (folder, small_run.folder)
    )
    assert found["ra"] == expected["ra"]


def test_damaged_checkpoints_cost_time_and_nothing_else(small_run: Run, tmp_path: Path) -> None:
    folder = rewound(small_run, tmp_path / "run", 0, 1)
    shutil.copy(folder / "seed-1" / MIDDLE, folder / "seed-1" / END)
    for damaged in (folder / "seed-0" / MIDDLE, folder / "seed-1" / END):
        damaged.write_bytes(damaged.read_bytes()[:-1])
    run, notes = go_on(folder)
    assert_same_bits(run, small_run)
    anew, instead = notes
    assert f"{folder}/seed-0/{MIDDLE} is not a whole checkpoint" in anew
    assert anew.endswith("; the seed starts again")
    assert instead.endswith(f"; {MIDDLE} is used instead")


def test_a_checkpoint_whose_log_is_lost_is_refused(small_run: Run, tmp_path: Path) -> None:
    folder = rewound(small_run, tmp_path / "run", 0)
    log = folder / "seed-0/diagnostics.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:14]))
    run, (note,) = go_on(folder)
    assert_same_bits(run, small_run)
    assert "diagnostics.jsonl has 14 of 15 lines; the seed starts again" in note


def test_a_run_stopped_before_its_last_word_is_finished(small_run: Run, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small_run.folder, tmp_path / "run"))
    (folder / "seed-0/status.json").write_text('{"status": "running", "message": ""}')
    (folder / "seed-0/accuracy.json").unlink()
    run, _ = go_on(folder)
    assert_same_bits(run, small_run)


def test_other_settings_are_named(small_run: Run, tmp_path: Path) -> None:
    folder = rewound(small_run, tmp_path / "run", 0)
    settings = json.loads((folder / "settings.json").read_text())
    settings |= {"threads": 2, "num_samples": 40}
    settings["settings"]["hyper_rate"] = 0.5
    (folder / "settings.json").write_text(json.dumps(settings))
    with pytest.raises(Mismatch) as refusal:
        go_on(folder)
    for words in ("hyper_rate 0.3 there, 0.5 here", "threads 1 there, 2 here", "num_samples 30"):
        assert words in str(refusal.value)
    assert (folder / "seed-0" / MIDDLE).exists()
    assert json.loads((folder / "seed-0/status.json").read_text())["status"] == "running"


def test_changed_rows_are_noticed(tmp_path: Path, small_plan: Callable[..., Plan]) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "mine.npz"
    x, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    np.savez(path, x=x, y=y, task=np.arange(60) // 30)
    sizes = {"num_tasks": None, "num_samples": None, "seeds": [0], "benchmark": "arrays"}
    plan = small_plan(tmp_path / "run", "online", [f"path={path}"], **sizes)
    execute([plan])
    (plan.folder / "seed-0/status.json").write_text('{"status": "running", "message": ""}')
    x[-1, -1] += 1  # one number, of the last task
    np.savez(path, x=x, y=y, task=np.arange(60) // 30)
    with pytest.raises(Mismatch, match="rows have changed"):
        go_on(plan.folder)


def test_runs_with_different_threads_are_resumed_one_by_one(
    tmp_path: Path, small_plan: Callable[..., Plan]
) -> None:
    plans = [small_plan(tmp_path / str(threads), threads=threads) for threads in (1, 2)]
    for plan in plans:
        with created(plan.folder, plan.settings):
            pass
    with pytest.raises(InvalidArgument, match="one by one"):
        resume([plan.folder for plan in plans])


def test_settings_are_read_back_from_the_folder(small_run: Run) -> None:
    written = json.loads((small_run.folder / "settings.json").read_text())
    assert to_json(small_run.settings) == written
    assert written["checkpoint_every"] == 500
    with existing_runs([small_run.folder]) as work:
        assert work.jobs == []


def test_missing_runs_are_made_extended_or_left_closed(
    small_run: Run, small_plan: Callable[..., Plan], tmp_path: Path
) -> None:
    finished = small_plan(Path(shutil.copytree(small_run.folder, tmp_path / "finished")))
    more = small_plan(Path(shutil.copytree(small_run.folder, tmp_path / "more")), seeds=range(3))
    new = small_plan(tmp_path / "new", seeds=[0])
    with missing_runs([finished, more, new]) as work:
        assert [(job.folder.parent.name, job.seed) for job in work.jobs] == [
            ("new", 0),
            ("more", 2),
        ]
        assert not (finished.folder / "lock").exists()
    assert read_run(more.folder).settings.seeds == [0, 1, 2]
    assert to_json(read_run(new.folder).settings) == to_json(new.settings)


def test_a_full_disk_stops_a_run_that_then_goes_on(
    small_plan: Callable[..., Plan], tmp_path: Path
) -> None:
    """The disk is full from a moment in the second task on; checkpoints are five updates apart."""
    plan = small_plan(tmp_path / "run", seeds=[0, 1], checkpoint_every=5)
    reference = small_plan(tmp_path / "reference", seeds=[0, 1], checkpoint_every=5)
    (expected,) = execute([reference], processes=1)
    pids = []

    def fill(job: Job, event: Event) -> None:
        if isinstance(event, Ready):
            pids.append(event.pid)
        if isinstance(event, Progress) and event.updates == 20:
            resource.prlimit(pids[0], resource.RLIMIT_FSIZE, (1000, 1000))

    with pytest.raises(Unwritable, match="cannot be written"):
        execute([plan], fill, processes=1)
    seed = plan.folder / "seed-0"
    assert list(seed.glob("checkpoint-*.safetensors"))
    assert not list(seed.glob("*.part"))
    run, notes = go_on(plan.folder)
    assert_same_bits(run, expected)
    assert notes == []
