"""The command line from end to end: what it prints, how it ends, what it leaves."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lamaml._records import to_json
from lamaml.bench import Measurements
from lamaml.cli import demo, main
from lamaml.cli.shared import print_table
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.storing.environment import Environment
from processes import children, is_alive

SMALL = ("--tasks", "2", "--samples", "30")
KEYS = {
    *("stream", "learner", "model", "protocol", "preset", "seeds", "statuses", "diverged_at"),
    *(
        "ra",
        "bti",
        "la",
        "fwt",
        "fm",
        "mf",
        "aaa",
        "published",
        "num_tasks",
        "num_samples",
        "num_updates",
        "ms_per_update",
        "seconds",
    ),
    *("settings", "changed", "threads", "facts_sha256", "data", "versions", "out", "split"),
    *("peak_memory", "class_accuracy"),
}


@pytest.fixture(autouse=True, scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory):
    """What one test has compiled the next need not."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.getbasetemp().parent / "compiled"  # for all of xdist's workers
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder))
        yield


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test in an empty folder."""
    monkeypatch.chdir(tmp_path)


class Lamaml:
    """Calls the command line in this process."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self.capfd = capfd

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ending:
            main(arguments)
        captured = self.capfd.readouterr()
        return int(ending.value.code or 0), captured.out, captured.err


@pytest.fixture
def lamaml(capfd: pytest.CaptureFixture[str]) -> Lamaml:
    return Lamaml(capfd)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lamaml", *arguments]


def complaint(outcome: tuple[int, str, str]) -> str:
    """The one line of a refusal."""
    code, out, error = outcome
    assert code == 2
    assert out == ""
    assert error.startswith("lamaml: ")
    assert error.count("\n") == 1
    assert error.endswith("\n")
    return error


def test_json_is_one_object_with_these_fields(lamaml: Lamaml) -> None:
    code, out, _ = lamaml(
        *("run", "digits_rotations", "er", "--seeds", "2", "--first-seed", "3", *SMALL),
        *("--set", "memory_size=20", "--set", "max_norm=none", "--json", "--out", "run"),
    )
    found = json.loads(out, parse_constant=lambda word: pytest.fail(word))
    assert code == 0
    assert set(found) == KEYS
    assert found["seeds"] == [3, 4]
    assert found["statuses"] == ["finished", "finished"]
    for metric in ("ra", "bti", "la", "fwt", "fm", "mf", "aaa"):
        assert set(found[metric]) == {"mean", "sd", "values"}
        assert len(found[metric]["values"]) == 2
    assert 10 < found["ra"]["mean"] < 100
    assert found["num_updates"] == 30
    assert set(found["seconds"]) == {"compile", "train", "evaluate"}
    assert found["settings"]["memory_size"] == 20
    assert found["settings"]["max_norm"] is None
    assert found["changed"] == ["memory_size", "max_norm"]
    assert {"lamaml", "jax", "jaxlib", "numpy", "python"} == set(found["versions"])
    assert json.loads(Path("run/summary.json").read_text()) == found


def test_run_prints_a_table_and_report_a_page(lamaml: Lamaml) -> None:
    code, out, _ = lamaml("run", "digits_rotations", "online", *SMALL)
    assert code == 0
    assert out.startswith("online on digits_rotations, preset authors, 1 seed, only 2 tasks")
    assert "RA    retained accuracy" in out
    (folder,) = Path("runs").iterdir()
    assert f"Run folder: {folder}" in out
    assert lamaml("report", "runs") == (0, "Report: report.html\n", "")
    assert "digits_rotations, single pass" in Path("report.html").read_text("utf-8")


DIVERGING = ("--set", "learning_rate=1e30", "--set", "max_norm=none")


def test_a_run_that_diverges_is_recorded(lamaml: Lamaml) -> None:
    run = ("run", "digits_rotations", "online", *SMALL, *DIVERGING, "--out", "run")
    code, out, error = lamaml(*run, "--json")
    assert code == 3
    found = json.loads(out)
    assert found["ra"] == {"mean": None, "sd": None, "values": [None]}
    assert found["diverged_at"] == [{"task": 1, "update": 2}]
    assert error.startswith("lamaml: online, seed 0 diverged: the loss is ")
    status = json.loads(Path("run/seed-0/status.json").read_text())
    assert (status["status"], status["task"], status["update"]) == ("diverged", 1, 2)
    code, out, _ = lamaml("resume", "run")
    assert code == 3
    assert out.startswith("online * on digits_rotations")
    assert "* online, seed 0: diverged at task 1, update 2" in out


def test_in_a_sweep_divergence_is_a_result(lamaml: Lamaml) -> None:
    run = ("run", "digits_rotations", "online", *SMALL, *DIVERGING, "--seeds", "2", "--json")
    code, out, error = lamaml(*run)
    assert code == 0
    assert json.loads(out)["statuses"] == ["diverged", "diverged"]
    assert error.count(" diverged: ") == 2


def test_an_existing_run_is_refused_and_then_overwritten(lamaml: Lamaml) -> None:
    run = ("run", "digits_rotations", "online", *SMALL, "--out", "run")
    assert lamaml(*run)[0] == 0
    before = Path("run/environment.json").stat().st_mtime_ns
    refusal = complaint(lamaml(*run))
    assert "`lamaml resume run` continues it, --overwrite replaces it" in refusal
    assert Path("run/environment.json").stat().st_mtime_ns == before
    for wrong, words in (("memory_size=1", "memory"), ("initializer=kaiming", "initializer")):
        assert words in complaint(lamaml(*run, "--overwrite", "--set", wrong))
        assert Path("run/environment.json").stat().st_mtime_ns == before
    assert lamaml(*run, "--overwrite")[0] == 0
    assert Path("run/environment.json").stat().st_mtime_ns > before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("run mnist_rotation la_maml", "did you mean 'mnist_rotations'?"),
        ("run digits_rotations lamaml", "did you mean 'la_maml'?"),
        ("run digits_rotations", "Missing argument 'learners'"),
        ("run digits_rotations la_maml --sedes 3", "No such option: --sedes"),
        ("run digits_rotations la_maml --preset author", "did you mean 'authors'?"),
        ("run digits_rotations la_maml --protocol multiple", "unknown protocol"),
        ("run digits_rotations la_maml --seeds 0", "--seeds"),
        ("run digits_rotations la_maml --seeds many", "--seeds"),
        ("run digits_rotations la_maml --first-seed -1", "--first-seed"),
        ("run digits_rotations la_maml --first-seed 4294967296", "seed = 4294967296: must be from"),
        ("run digits_rotations la_maml --out .", "is the current folder"),
        ("reproduce figure-robustness --scale quick --rate 0", "rate = 0.0: must be positive"),
        ("run digits_rotations la_maml --tasks -1", "--tasks"),
        ("run digits_rotations la_maml --samples -5", "--samples"),
        ("run digits_rotations la_maml --processes 0", "--processes"),
        ("run digits_rotations la_maml --threads 0", "--threads"),
        ("run digits_rotations la_maml --set memory=5", "did you mean 'memory_size'?"),
        ("run digits_rotations la_maml --set memory_size=abc", "must be a whole number"),
        ("run digits_rotations la_maml --set memory_size", "must be name=value"),
        ("run digits_rotations la_maml --checkpoint-every -1", "--checkpoint-every"),
        ("resume nowhere", "nowhere is not a run folder"),
        ("resume", "Missing argument 'runs'"),
        ("report nowhere", "nowhere is not a run folder"),
        ("report", "Missing argument 'runs'"),
        ("rum", "run"),
    ],
)
def test_mistakes_are_one_line(lamaml: Lamaml, arguments: str, words: str) -> None:
    assert words in complaint(lamaml(*arguments.split()))
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--tasks 11", "num_tasks = 11: must be a whole number from 1 to 10"),
        ("--samples 100000", "num_samples = 100000"),
        ("--set memory_size=0 --seeds 2", "memory_size = 0: must be at least 1"),
    ],
)
def test_sizes_out_of_range_are_one_line(lamaml: Lamaml, arguments: str, words: str) -> None:
    refused = lamaml("run", "digits_rotations", "la_maml", "--out", "run", *arguments.split())
    assert words in complaint(refused)
    assert not Path("run").exists()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("LAMAML_DATA", str(folder))
    return folder


def test_a_wrong_checksum_is_one_line(lamaml: Lamaml, data: Path) -> None:
    (data / "mnist").mkdir()
    (data / "mnist/train-images-idx3-ubyte.gz").write_bytes(b"not the original")
    error = complaint(lamaml("run", "mnist_rotations", "la_maml", *SMALL))
    assert "train-images-idx3-ubyte.gz is truncated or altered" in error


def test_a_truncated_file_is_one_line(lamaml: Lamaml, data: Path) -> None:
    (data / "cifar-100-binary").mkdir()
    for name in ("train.bin", "test.bin"):
        (data / "cifar-100-binary" / name).write_bytes(bytes(3074 * 10 - 1))
    assert "train.bin" in complaint(lamaml("run", "cifar100", "la_maml", *SMALL))


def test_a_truncated_npz_is_one_line(lamaml: Lamaml) -> None:
    np.savez("mine.npz", x=np.zeros((50, 4)), y=np.arange(50) % 2)
    whole = Path("mine.npz").read_bytes()
    Path("mine.npz").write_bytes(whole[: len(whole) // 2])
    error = complaint(lamaml("run", "arrays", "er", "--set", "path=mine.npz"))
    assert "mine.npz cannot be read" in error


def test_a_mistake_seen_from_outside() -> None:
    done = subprocess.run(
        command("run", "digits_rotations", "nope"), capture_output=True, text=True, check=False
    )
    assert complaint((done.returncode, done.stdout, done.stderr)).startswith("lamaml: unknown ")


def test_a_run_is_found_from_wherever_one_is(
    lamaml: Lamaml, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its folder, by two names at once, and with its data in the folder it was started in."""
    np.savez("mine.npz", x=np.eye(40), y=np.arange(40) % 2)
    path = ("--set", "path=none.npz", "--set", "path=mine.npz")
    run = lamaml("run", "arrays", "online", *path, "--out", "run", "--json")
    assert json.loads(run[1])["changed"] == ["path"]
    monkeypatch.chdir("run")
    again = lamaml("resume", ".", "../run", "--json")
    assert again[0] == 0
    assert json.loads(again[1])["ra"] == json.loads(run[1])["ra"]
    Path("seed-0/status.json").write_text('{"status": "running", "message": ""}')
    assert json.loads(lamaml("resume", ".", "--json")[1])["ra"] == json.loads(run[1])["ra"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("seeds", 3, "settings.json is missing or damaged"),
        ("threads", "x", "settings.json is missing or damaged"),
        ("model", "mpl", "unknown model 'mpl': did you mean 'mlp'?"),
        ("learner", "onlin", "unknown learner 'onlin': did you mean 'online'?"),
        ("settings", {"learning_rat": 0.1}, "did you mean 'learning_rate'?"),
    ],
)
def test_settings_that_were_edited_are_one_line(
    lamaml: Lamaml, name: str, value: object, words: str
) -> None:
    assert lamaml("run", "digits_rotations", "online", *SMALL, "--out", "run")[0] == 0
    settings = json.loads(Path("run/settings.json").read_text())
    Path("run/settings.json").write_text(json.dumps(settings | {name: value}))
    Path("run/seed-0/status.json").write_text('{"status": "running", "message": ""}')
    assert words in complaint(lamaml("resume", "run"))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_knows_few_letters_is_no_error(encoding: str) -> None:
    told = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run(command("list"), capture_output=True, env=told, check=True)
    assert b"la_maml" in done.stdout
    assert done.stderr == b""


def test_in_a_pipe_a_table_is_as_wide_as_it_is(
    lamaml: Lamaml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    table = Table("wide", "", ["name", "data"], [["n" * 150, "d" * 150]])
    print_table(table.terminal)
    assert f"{'n' * 150}  {'d' * 150}" in lamaml.capfd.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    print_table(table.terminal)
    told = lamaml.capfd.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    assert told.count("n") - 1 == told.count("d") - 1 == 150  # folded, and nothing cut off


def test_standard_output_that_is_full_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command("list", "--json"), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    words = "standard output cannot be written (No space left on device)"
    assert words in complaint((done.returncode, "", done.stderr))


LONG = ("run", "digits_rotations", "online", "--set", "epochs=500", "--out", "run")


def test_ctrl_c_ends_everything_and_says_how_to_go_on() -> None:
    process = subprocess.Popen(heeding_ctrl_c(command(*LONG)), stderr=subprocess.PIPE, text=True)
    wait_for("run/seed-0/diagnostics.jsonl", process)
    workers = children(process.pid)
    assert workers
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert error.splitlines()[-1] == (
        "lamaml: stopped; 0 of 1 seeds are finished; `lamaml resume run` continues"
    )
    status = json.loads(Path("run/seed-0/status.json").read_text())
    assert status["status"] == "interrupted"
    assert list(Path("run/seed-0").glob("checkpoint-*.safetensors"))
    assert {path.name for path in Path("run").iterdir()} == {
        *("seed-0", "settings.json", "environment.json")
    }
    assert not any(map(is_alive, workers))


def test_a_run_whose_command_was_killed_is_taken_over(lamaml: Lamaml) -> None:
    assert lamaml("run", "digits_rotations", "online", *SMALL, "--out", "run")[0] == 0
    before = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True
    )
    owner = {"pid": int(done.stdout), "host": socket.gethostname(), "started": time.time() - 90}
    Path("run/lock").write_text(json.dumps(owner))
    Path("run/summary.json.1.part").touch()
    Path("run/summary.json").unlink()
    code, out, error = lamaml("resume", "run", "--json")
    assert code == 0
    idle, note = error.splitlines()
    assert idle == "Every seed has ended: nothing is run again."
    assert note.startswith(f"run is taken over from process {owner['pid']} on {owner['host']}, ")
    assert note.endswith(" minutes ago, and is gone")
    assert json.loads(out)["statuses"] == ["finished"]
    after = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize("reason", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_is_one_line(
    lamaml: Lamaml, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    Path("run").mkdir()
    shown = {"settings": {}, "published": {}, "changed": []}
    words = dict.fromkeys(("benchmark", "learner", "protocol", "preset", "stream"), "word")
    sizes = {"num_tasks": None, "num_samples": None, "threads": 1, "checkpoint_every": 0}
    plan = shown | words | sizes | {"model": "mlp", "seeds": [0]}
    Path("run/settings.json").write_text(json.dumps(plan))
    Path("run/environment.json").write_text('{"versions": {}}')
    original = os.open

    def refuse(path: str | Path, *arguments: int, **options: int) -> int:
        if Path(path).name == "lock":
            raise OSError(reason, os.strerror(reason))
        return original(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    assert complaint(lamaml("resume", "run")) == (
        f"lamaml: run/lock cannot be written ({os.strerror(reason)}); what was written before is "
        "intact: 0 of 1 seeds are finished; `lamaml resume run` continues\n"
    )


def test_a_second_command_on_a_run_is_refused(lamaml: Lamaml) -> None:
    process = subprocess.Popen(command(*LONG), stderr=subprocess.PIPE, text=True)
    wait_for("run/seed-0/diagnostics.jsonl", process)
    for second in (("resume", "run"), LONG, (*LONG, "--overwrite")):
        error = complaint(lamaml(*second))
        assert f"lamaml: run is in use by process {process.pid} on " in error
        assert error.endswith(" minutes ago\n")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 130


def wait_for(name: str, process: subprocess.Popen) -> None:
    """Until a file is there, or the process that was to write it is gone."""
    while not Path(name).exists():
        assert process.poll() is None
        time.sleep(0.05)


def heeding_ctrl_c(words: list[str]) -> list[str]:
    """The command, for tests started in the background of a script: SIGINT is ignored there."""
    heed = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    return [sys.executable, "-c", heed + "os.execv(sys.argv[1], sys.argv[1:])", *words]


def test_help_has_examples_and_loads_quickly(lamaml: Lamaml) -> None:
    for words in (
        (),
        ("list",),
        ("run",),
        ("resume",),
        ("demo",),
        ("bench",),
        ("report",),
        ("predict",),
        ("show",),
        ("compare",),
        ("tune",),
    ):
        code, out, error = lamaml(*words, "--help")
        assert (code, error) == (0, "")
        assert "Examples" in out
        assert f"lamaml {' '.join(words)}".strip() in out
    code = "import sys; from lamaml.cli import main\n"
    code += "try: main(sys.argv[1:])\nexcept SystemExit: sys.exit('jax' in sys.modules)"
    for words in (("--help",), ("run", "--help"), ("--version",)):
        subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)


def test_list(lamaml: Lamaml) -> None:
    code, out, _ = lamaml("list")
    assert code == 0
    assert "digits_rotations" in out
    found = json.loads(lamaml("list", "--json")[1])
    assert found["learners"]["la_maml"].startswith("La-MAML (Gupta")
    names = [stream["name"] for stream in found["streams"]]
    cells = found["streams"][names.index("mnist_rotations")]["cells"]
    (cell,) = [cell for cell in cells if cell["learner"] == "la_maml"]
    assert cell["published"]["ra"] == [77.42, 0.65]


def test_version_and_no_arguments(lamaml: Lamaml) -> None:
    assert lamaml("--version")[1].startswith("lamaml ")
    assert "Usage: lamaml" in lamaml()[1]


def test_a_probe_is_among_the_diagnostics(lamaml: Lamaml) -> None:
    code, _, _ = lamaml(
        "run", "digits_rotations", "er", *SMALL, "--probe", "alignment", "--out", "p"
    )
    assert code == 0
    lines = Path("p/seed-0/diagnostics.jsonl").read_text().splitlines()
    found = [json.loads(line)["alignment"] for line in lines]
    assert found[0] is None  # in the first task there is nothing to compare with
    assert -1 <= next(value for value in found if value is not None) <= 1


def test_all_probes_at_once_measure_what_each_does_alone(lamaml: Lamaml) -> None:
    probes = ("inter_task", "look_ahead", "alignment")
    together = [word for probe in probes for word in ("--probe", probe)]
    logs = {}
    for name, words in {"all": together, **{p: ["--probe", p] for p in probes}, "none": []}.items():
        tiny = ("--tasks", "3", "--samples", "20", "--set", "glances=1")
        code, _, _ = lamaml("run", "digits_rotations", "la_maml", *tiny, *words, "--out", name)
        assert code == 0
        lines = Path(name, "seed-0/diagnostics.jsonl").read_text().splitlines()
        logs[name] = [json.loads(line) for line in lines]
    for name in (*probes, "none"):
        for found, alone in zip(logs["all"], logs[name], strict=True):
            assert alone.items() <= found.items()
    assert {*logs["all"][0]} == {key for name in probes for key in logs[name][0]}
    rates = [Path(name, "seed-0/rates/task-3.json").read_bytes() for name in ("all", "none")]
    assert rates[0] == rates[1]


@pytest.mark.parametrize(
    ("learner", "probe", "words"),
    [
        ("er", "alignmnt", "alignment"),
        ("online", "alignment", "has no replay_size"),
        ("c_maml", "look_ahead", "has no initial_rate"),
    ],
)
def test_a_probe_that_cannot_be(lamaml: Lamaml, learner: str, probe: str, words: str) -> None:
    code, _, said = lamaml("run", "digits_rotations", learner, *SMALL, "--probe", probe)
    assert code == 2
    assert words in said
    assert said.count("\n") == 1


def test_bench_prints_what_was_measured(lamaml: Lamaml, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {
        "gemm_gflops": {"1": 50.0},
        "updates": [],
        "mer": [{"threads": 1, "ms": 30.0, "la_maml_ms": 3.0, "ratio": 10.0}],
        "gem": [{"threads": 1, "tasks_seen": 10, "ms": 5.0}],
        "checkpoints": [
            {
                "threads": 1,
                "seconds": 10.11,
                "seconds_without": 10.0,
                "slower": 0.011,
                "cifar_ms": 90.0,
            }
        ],
        "estimator": [
            {
                "threads": 1,
                "partial_fit_ms": 3.0,
                "bare_update_ms": 2.5,
                "ratio": 1.2,
                "predict_one_ms": 0.3,
                "programs_compiled": 7,
                "num_sizes": 200,
                "learner": "auto",
                "num_columns": 50,
                "program_ms": 2.6,
                "partial_fit_frame_ms": None,
            }
        ],
        "stalls": [
            {"case": "9th class", "cache": "off", "seconds": 0.25, "resident_mb": 400.0},
            {"case": "9th class", "cache": "warm", "seconds": 0.05, "resident_mb": 390.0},
        ],
        "environment": to_json(Environment({})),
        "serving": [],
    }
    found = Measurements.from_json(measured)
    monkeypatch.setattr("lamaml.bench.measure", lambda quick, on_progress: found)
    assert json.loads(lamaml("bench", "--json")[1]) == measured
    shown = lamaml("bench")[1]
    assert "50 GFLOP/s" in shown
    assert "10.0 times a first-order glance" in shown
    assert "by 1.1 %" in shown
    assert "9th class 0.25 400 0.05 390" in " ".join(shown.split())
    assert "1.20 times the bare update" in " ".join(shown.split())


def test_demo_compares_four_learners(lamaml: Lamaml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SEEDS", 1)
    monkeypatch.setattr(demo, "LEARNERS", ("online", "er"))
    code, out, _ = lamaml("demo", "--report", "pages/demo.html", "--out", "demo")
    assert code == 0
    assert "er classifies" in out
    assert "points more than online" in out
    assert {path.name for path in Path("demo").iterdir()} == {"online", "er", "joint"}
    assert "Trained on all tasks at once" in " ".join(out.split())
    page = Path("pages/demo.html").read_text("utf-8")
    assert "digits_rotations, single pass" in page
    assert page.count("<section ") == 1  # joint training is a row of it
    assert "joint training" in page


def test_predict_answers_with_the_labels_of_the_data(lamaml: Lamaml) -> None:
    x, y = np.eye(2)[np.arange(60) % 2], np.array(["cat", "dog"])[np.arange(60) % 2]
    np.savez("mine.npz", x=x, y=y)
    made = lamaml(
        "run", "arrays", "er", "--set", "path=mine.npz", "--set", "epochs=5", "--out", "r"
    )
    assert made[0] == 0
    np.savez("new.npz", x=np.eye(2))
    assert lamaml("predict", "r", "new.npz") == (0, "cat\ndog\n", "")
    assert lamaml("predict", "r", "new.npz", "--out", "a.csv")[1] == "Predictions: a.csv\n"
    assert Path("a.csv").read_text() == "y\ncat\ndog\n"
    assert lamaml("predict", "r", "new.npz", "--seed", "0", "--out", "a.npz")[0] == 0
    with np.load("a.npz") as answers:
        assert answers["y"].tolist() == ["cat", "dog"]
    np.savez("other.npz", z=np.eye(2))
    Path("text.npz").write_text("no archive")
    for arguments, words in {
        "r none.npz": "does not exist",
        "r other.npz": "array x",
        "r text.npz": "NPZ",
        "r new.npz --seed 7": "seed = 7",
        "r new.npz --task 5": "task = 5",
        "r new.npz --out a.txt": "must be a file that ends in .npz or .csv",
        "nowhere new.npz": "not a run folder",
    }.items():
        assert words in complaint(lamaml("predict", *arguments.split()))
