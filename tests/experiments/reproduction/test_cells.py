"""What is run for each table and figure, and under which name it is found again."""

from dataclasses import replace
from pathlib import Path

import pytest

from lamaml._io import write_json
from lamaml._records import to_json
from lamaml.errors import LamamlError
from lamaml.experiments.recipes.load import PROTOCOLS, benchmarks, cells, recipe
from lamaml.experiments.recipes.probes import PROBE_VERSIONS
from lamaml.experiments.reproduction import cells as cells_module
from lamaml.experiments.reproduction.cells import Cell, cell
from lamaml.experiments.reproduction.request import Request
from lamaml.experiments.reproduction.run import seconds_per_seed
from lamaml.experiments.reproduction.scales import FULL, QUICK, SCALES, scale_named
from lamaml.experiments.reproduction.targets import TARGETS, targets_named
from lamaml.learners import RESULTS_VERSIONS


@pytest.fixture
def one() -> Cell:
    return cell(FULL, "La-MAML", "Rotations", "mnist_rotations", "la_maml")


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_every_target_has_cells_at_every_scale(target, scale) -> None:
    found = target.cells(scale)
    assert len({(c.row, c.column, *c.changed.values()) for c in found}) == len(found) > 0
    assert all(seconds_per_seed(c, {}) > 0 for c in found)


def test_the_paper_is_whole() -> None:
    """Every published cell of the recipes is in Table 1 or Table 3."""
    published = {
        (benchmark, protocol, learner)
        for benchmark in benchmarks()
        for protocol, learner in cells(benchmark)
        if recipe(benchmark, learner, protocol=protocol).published
    }
    shown = {
        (c.recipe.benchmark, c.recipe.protocol, c.recipe.learner)
        for name in ("table1", "table3")
        for c in TARGETS[name].cells(FULL)
    }
    assert published <= shown
    assert shown - published == {("tiny_imagenet", "multiple", "meta_bgd")}  # the paper's *


def test_full_is_the_papers_protocol() -> None:
    for target in TARGETS.values():
        for c in target.cells(FULL):
            assert not c.cut
            assert c.settings.num_samples is None
            assert c.recipe.protocol in PROTOCOLS
            own = recipe(
                c.recipe.benchmark,
                c.recipe.learner,
                protocol=c.recipe.protocol,
                preset=c.recipe.preset,
            )
            assert c.recipe.settings == dict(own.settings) | dict(c.changed)


def test_quick_needs_no_file() -> None:
    for target in TARGETS.values():
        assert all("digits" in c.recipe.benchmark for c in target.cells(QUICK))


def test_a_name_is_of_settings_size_data_and_version(one: Cell, monkeypatch) -> None:
    names = [
        one.name,
        one.with_recipe(settings={**one.recipe.settings, "hyper_rate": 0.2}).name,
        one.sized(num_tasks=5).name,
        one.sized(num_samples=5).name,
        one.with_recipe(model="resnet18").name,
        one.with_recipe(probes=("alignment",)).name,
    ]
    assert len(set(names)) == len(names)
    assert replace(one, row="x", column="y").sized(num_seeds=3, threads=2).name == one.name
    assert one.with_recipe(published={}, preset="paper").name == one.name
    with monkeypatch.context() as patch:
        patch.setitem(RESULTS_VERSIONS, "la_maml", 2)
        assert one.name not in names
    with monkeypatch.context() as patch:
        patch.setitem(RESULTS_VERSIONS, "er", 2)
        assert one.name == names[0]
    with monkeypatch.context() as patch:
        patch.setattr(cells_module, "data_fingerprint", lambda name, of: "other rows")
        assert one.name not in names
    with monkeypatch.context() as patch:
        patch.setitem(PROBE_VERSIONS, "alignment", 2)
        probed = one.with_recipe(probes=("alignment",))
        assert probed.name != names[-1]
        assert probed.training == one.training


def test_a_name_knows_nothing_of_the_source() -> None:
    """Stored once: a module that moves or a sentence that is reworded must leave it as it is."""
    one = cell(QUICK, "La-MAML", "Rotations", "mnist_rotations", "la_maml")
    settings = dict(one.recipe.settings) | {"glances": 1, "epochs": 1, "batch_size": 10}
    cell_of_digits = one.with_recipe(settings=settings).sized(num_tasks=3, num_samples=60)
    assert cell_of_digits.name == "digits_rotations-single-la_maml-c096cbbc00d1"


def test_other_data_is_another_cell(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LAMAML_DATA", str(tmp_path))
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    (folder / "test.bin").write_bytes(b"test")
    names = []
    for content in (b"one", b"two"):
        (folder / "train.bin").write_bytes(content)
        names.append(cell(FULL, "ER", "CIFAR-100, single", "cifar100", "er").name)
        joint = cell(FULL, "IID", "x", "joint_cifar100", "online", protocol="multiple")
        names.append(joint.name)
    assert len(set(names)) == 4


def test_a_run_that_measured_more_is_found(one: Cell, tmp_path: Path) -> None:
    def probed(*names: str) -> Cell:
        return one.with_recipe(probes=names)

    assert one.folder(tmp_path).name == one.name
    more = probed("alignment", "inter_task")
    (tmp_path / more.name).mkdir()
    assert one.folder(tmp_path).name == more.name
    assert probed("inter_task").folder(tmp_path).name == more.name
    assert probed("look_ahead").folder(tmp_path).name == probed("look_ahead").name
    assert one.sized(num_tasks=5).folder(tmp_path).name == one.sized(num_tasks=5).name
    (tmp_path / one.name).mkdir()
    assert one.folder(tmp_path).name == one.name
    ended = {"status": "diverged", "message": ""}
    for run, statuses in ((one, [ended]), (more, [ended, ended])):
        folder = tmp_path / run.name
        write_json(folder / "environment.json", {"versions": {}})
        write_json(folder / "settings.json", to_json(run.plan(tmp_path).settings))
        for number, status in enumerate(statuses):
            (folder / f"seed-{number}").mkdir()
            write_json(folder / f"seed-{number}" / "status.json", status)
    assert one.folder(tmp_path).name == more.name  # it has more seeds


def test_a_training_is_asked_for_once() -> None:
    request = Request(targets_named(["all"]), QUICK)
    cells = request.all_cells()
    assert len({cell.training for cell in cells}) == len(cells)
    probes = {c.recipe.probes for c in cells if c.recipe.learner == "la_maml"}
    assert ("alignment", "look_ahead", "inter_task") in probes
    asked = {cell.training for target in request.targets for cell in request.cells(target)}
    assert {cell.training for cell in cells} == asked


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (["La-MAML cifar-100, single"], {("La-MAML", "CIFAR-100, single")}),
        (
            ["joint_cifar100", "mer tiny"],
            {("IID", "CIFAR-100, multiple"), ("MER", "TinyImagenet, single")},
        ),
        (["er joint"], set()),
        (["er cifar-100, single"], {("ER", "CIFAR-100, single")}),
        (["gem tiny_imagenet multi"], {("GEM", "TinyImagenet, multiple")}),
    ],
)
def test_only_some_cells(only, expected) -> None:
    (table,) = targets_named(["table3"])
    found = Request([table], FULL, only=only).cells(table)
    assert {(cell.row, cell.column) for cell in found} == expected


def test_rates_in_place_of_the_scales() -> None:
    line, grid = targets_named(["figure-robustness", "figure-robustness-grid"])
    few = Request([line, grid], FULL, rates=[0.003, 0.3], only=["la-maml"])
    columns = {target.name: [cell.column for cell in few.cells(target)] for target in (line, grid)}
    assert columns["figure-robustness"] == ["α₀ = 0.003", "α₀ = 0.3", "η = 0.003", "η = 0.3"]
    assert len(columns["figure-robustness-grid"]) == 4
    assert "--rate 0.003 --rate 0.3 --only la-maml" in few.command(line)
    trainings = [cell.identity for cell in few._replace(rates=()).cells(line)]
    assert all(cell.identity in trainings for cell in few.cells(line))
    assert len(few.cells(line)) < len(trainings)


def test_figures_share_the_runs_of_the_tables() -> None:
    names = ["table3", "table4", "figure-lookahead", "figure-intertask"]
    request = Request(targets_named(names), FULL, only=["la-maml cifar-100 single"])
    probed = Request(targets_named(names), FULL, only=["la-maml cifar-100"]).all_cells()
    assert [len(c.recipe.probes) for c in request.all_cells()] == [0]
    single = [c for c in probed if c.recipe.protocol == "single"]
    assert [c.recipe.probes for c in single] == [("alignment", "look_ahead", "inter_task")]


def test_wrong_words_are_refused() -> None:
    with pytest.raises(LamamlError, match="table1"):
        targets_named(["tabel1"])
    with pytest.raises(LamamlError, match="quick"):
        scale_named("quik")
    assert [t.name for t in targets_named(["all"])] == [n for n, t in TARGETS.items() if t.of_paper]
    assert [t.name for t in targets_named(["table3", "table1"])] == ["table1", "table3"]
