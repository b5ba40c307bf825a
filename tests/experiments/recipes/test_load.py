"""Every cell of the paper's tables, against the signatures it is made for."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

from lamaml.errors import DataCorrupt, DataUnavailable, InvalidArgument
from lamaml.experiments.recipes.load import (
    PRESETS,
    benchmarks,
    cells,
    presets,
    realize,
    recipe,
    setting_owners,
)
from lamaml.learners import LEARNERS
from lamaml.models import MODELS, task_heads
from lamaml.training import Schedule
from lamaml.types import Learner

CELLS = [
    pytest.param(
        benchmark, protocol, learner, preset, id=f"{benchmark}-{protocol}-{learner}-{preset}"
    )
    for benchmark in benchmarks()
    for protocol, learner in cells(benchmark)
    for preset in presets(benchmark, protocol, learner)
]
FACTS = {
    "apply": lambda params, x: x,
    "num_tasks": 20,
    "num_classes": 100,
    "heads": task_heads(100, 5),
    "task_size": 100,
}


@pytest.mark.parametrize(("benchmark", "protocol", "learner", "preset"), CELLS)
def test_a_cell_makes_a_learner_a_network_and_a_schedule(benchmark, protocol, learner, preset):
    made = recipe(benchmark, learner, protocol=protocol, preset=preset)
    owners = setting_owners(made.stream, made.model, learner)
    parts: dict[str, dict] = {"learner": {}, "model": {}, "schedule": {}, "stream": {}}
    for name, value in made.settings.items():
        parts[owners[name]][name] = value
    builder = LEARNERS[learner]
    facts = {name: value for name, value in FACTS.items() if name in builder.__annotations__}
    built = builder(lambda params, batch: jnp.zeros(()), **facts, **parts["learner"])
    assert isinstance(built, Learner)
    assert Schedule(**parts["schedule"]).batch_size >= 1
    shape = 784 if made.model == "mlp" else (32, 32, 3)
    assert MODELS[made.model](shape, 10, **parts["model"]).apply


def test_the_papers_tables_are_complete():
    mnist = {"online", "ewc", "gem", "mer", "c_maml", "sync_la_maml", "la_maml"}
    for benchmark in ("mnist_rotations", "mnist_permutations", "mnist_many_permutations"):
        found = {
            learner
            for protocol, learner in cells(benchmark)
            if recipe(benchmark, learner, protocol=protocol).published
        }
        assert found == mnist
    images = {
        "er",
        "icarl",
        "gem",
        "a_gem",
        "meta_bgd",
        "c_maml",
        "la_er",
        "sync_la_maml",
        "la_maml",
    }
    for benchmark in ("cifar100", "tiny_imagenet"):
        by_protocol: dict[str, set] = {"single": set(), "multiple": set()}
        for protocol, learner in cells(benchmark):
            by_protocol[protocol].add(learner)
        assert by_protocol["single"] >= images | {"mer"}
        assert by_protocol["multiple"] >= images


def test_a_preset_a_cell_has_not_is_refused():
    with pytest.raises(InvalidArgument, match="preset"):
        recipe("mnist_rotations", "gem", preset="tuned")
    assert PRESETS == ("authors", "paper", "tuned")
    assert recipe("mnist_rotations", "sync_la_maml").preset == "tuned"


def test_seeds_share_a_learner_and_settings_do_not():
    """What is compiled for one seed serves the next."""
    made = recipe("digits_rotations", "la_maml")
    small = {"num_tasks": 2, "num_samples": 20}
    first, second = (realize(made, seed, **small) for seed in (0, 1))
    assert first.model is second.model
    assert first.learner is second.learner
    other = replace(made, settings={**made.settings, "hyper_rate": 0.01})
    assert realize(other, 0, **small).learner is not first.learner


def test_a_learner_from_elsewhere_has_the_shared_settings():
    made = recipe("digits_rotations", "lamaml.learners.er:er", overrides={"learning_rate": 0.1})
    assert made.preset == "defaults"
    assert made.settings["memory_size"] == recipe("digits_rotations", "er").settings["memory_size"]
    assert realize(made, 0, num_tasks=1, num_samples=20).learner.update
    with pytest.raises(InvalidArgument, match="preset"):
        recipe("digits_rotations", "lamaml.learners.er:er", preset="paper")


def test_a_stream_from_elsewhere_has_the_settings_of_arrays():
    made = recipe("lamaml.streams.digits:digits_rotations", "er")
    assert made.settings == recipe("arrays", "er").settings
    assert len(realize(made, 0, num_tasks=2, num_samples=20).stream.tasks) == 2


def test_another_model_has_its_own_settings_and_no_published_result():
    made = recipe("cifar100", "la_maml", model="mlp", overrides={"hidden_sizes": (20,)})
    assert made.model == "mlp"
    assert "num_filters" not in made.settings
    assert not made.published
    with pytest.raises(InvalidArgument, match="num_filters"):
        recipe("cifar100", "la_maml", model="mlp", overrides={"num_filters": 3})


@pytest.mark.parametrize("benchmark", [name for name in benchmarks() if "joint" not in name])
def test_the_successor_has_the_settings_of_la_maml(benchmark) -> None:
    for protocol, learner in cells(benchmark):
        if learner == "la_maml":
            ours = recipe(benchmark, "dark_la_maml", protocol=protocol)
            theirs = dict(recipe(benchmark, "la_maml", protocol=protocol).settings)
            if ours.model == "cnn":  # one limit on a fast update takes the place of another
                theirs |= {"inner_clamp": None, "inner_max_norm": theirs["inner_clamp"]}
                theirs |= {"fresh_augmentation": True}
            assert ours.settings == theirs
            assert not ours.published


SPLITS = ("split_digits", "split_mnist", "split_cifar10", "split_cifar100")


@pytest.mark.parametrize("benchmark", SPLITS)
def test_a_split_stream_has_a_recipe_for_every_learner(benchmark):
    assert {learner for _, learner in cells(benchmark)} == set(LEARNERS)


def test_independent_networks_need_the_task_of_a_row():
    small = {"num_tasks": 2, "num_samples": 10}
    made = recipe("split_digits", "independent", overrides={"scenario": "task"})
    assert realize(made, 0, **small).stream.scenario == "task"
    with pytest.raises(InvalidArgument, match=r"scenario = 'class': .*every row's task"):
        realize(recipe("split_digits", "independent"), 0, **small)


def test_a_drift_refuses_learners_that_wait_for_a_task_end():
    made = replace(recipe("digits_rotations", "ewc"), stream="digits_drift")
    with pytest.raises(InvalidArgument, match="this stream has no tasks"):
        realize(made, 0, num_tasks=2, num_samples=10)


def test_a_recipe_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'stream = "digits_rotations"\nmodel = "mlp"\nbenchmark = "digits_rotations"\n'
        '[single.er]\ntuned = { learning_rate = 0.2 }\ndefault = "tuned"\n'
    )
    found = recipe(str(path), "er")
    assert (found.benchmark, found.preset, found.settings["learning_rate"]) == (
        *("digits_rotations", "tuned", 0.2),
    )
    with pytest.raises(DataUnavailable, match="cannot be read"):
        recipe(str(tmp_path / "none.toml"), "er")
    for text, words in (("x = ", "not a TOML file"), ('stream = "arrays"', "has no model")):
        (broken := tmp_path / f"{len(text)}.toml").write_text(text)
        with pytest.raises(DataCorrupt, match=words):
            recipe(str(broken), "er")
