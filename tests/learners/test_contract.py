"""What every learner keeps to. To add one: register it in `LEARNERS`, give it a line in `CASES`.

Arguments that describe the problem and not the method (`FACTS`) are filled in by name.
"""

import inspect
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from problems import assert_same_bits

from lamaml.errors import InvalidArgument
from lamaml.evaluation import metrics
from lamaml.experiments.storing.checkpoints import read_checkpoint, write_checkpoint
from lamaml.experiments.storing.origin import Origin
from lamaml.learners import LEARNERS
from lamaml.testing import checks_of
from lamaml.testing._subject import Subject
from lamaml.training import Checkpoint
from lamaml.training.checkpoint import Seconds


class Case(NamedTuple):
    """Sensible settings of a learner for small problems, and what it may do otherwise."""

    settings: dict[str, Any]
    beats_online: bool = True  # retains more of a stream than plain SGD does


MEMORY = {"memory_size": 150}
META = {**MEMORY, "inner_steps": 2, "first_order": True}

CASES = {
    "online": Case({"learning_rate": 0.1}, beats_online=False),
    "er": Case({"learning_rate": 0.1, **MEMORY}),
    "c_maml": Case({"inner_rate": 0.1, "outer_rate": 0.1, **META}),
    "sync_la_maml": Case({"initial_rate": 0.1, "outer_rate": 0.1, "hyper_rate": 0.1, **META}),
    "la_er": Case({"initial_rate": 0.1, "hyper_rate": 0.1, "inner_steps": 2, **MEMORY}),
    "la_maml": Case({"initial_rate": 0.1, "hyper_rate": 0.1, **META}),
    "dark_la_maml": Case({"initial_rate": 0.1, "hyper_rate": 0.1, **META}),
    "der": Case({"learning_rate": 0.1, **MEMORY}),
    "er_ace": Case({"learning_rate": 0.1, **MEMORY}),
    "fast_and_slow": Case(MEMORY),
    "independent": Case({"learning_rate": 0.1}),
    "ewc": Case({"learning_rate": 0.1, "penalty": 10.0, "max_norm": 2.0}),
    "gem": Case({"learning_rate": 0.1, **MEMORY}),
    "a_gem": Case({"learning_rate": 0.1, **MEMORY}),
    "mer": Case({"inner_rate": 0.1, "within_rate": 0.1, "num_batches": 2, **MEMORY}),
    "mer_single": Case({"inner_rate": 0.1, "across_rate": 0.1, **MEMORY}),
    "icarl": Case({"learning_rate": 0.1, "task_size": 145, **MEMORY}),
    "meta_bgd": Case({"learning_rate": 50.0, "initial_std": 0.02, "num_monte_carlo": 1, **META}),
}

FACTS = ("apply", "heads", "num_tasks", "augment")

NONSENSE: dict[str, tuple[Any, ...]] = {
    "num_steps": (0,),
    "decay": (-0.1, 1.0),
    "weight_decay": (-0.1, math.nan),
    "average_decay": (-0.1, 1.0),
    "gate_decay": (-0.1, math.nan),
    "share_decay": (-0.1, 1.0),
    "gate_weight": (-0.1, math.nan),
    "slow_bias": (-0.1, math.nan),
    "memory_size": (0, -1),
    "replay_size": (-1,),
    "inner_steps": (0, -1),
    "max_norm": (0.0, -1.0, math.nan),
    "inner_clamp": (0.0, -1.0, math.nan),
    "inner_max_norm": (0.0, -1.0, math.nan),
    "meta_loss": ("median",),
    "penalty": (-1.0, math.nan),
    "margin": (-1.0, math.nan),
    "ridge": (-1.0, math.nan),
    "distillation": (-1.0, math.nan),
    "initial_std": (0.0, -1.0, math.nan),
    "num_batches": (0, -1),
    "dark_weight": (-1.0, math.nan),
    "num_monte_carlo": (0, -1),
    "ref_size": (0, -1),
    "task_size": (0, -1),
    "scenario": ("class",),
}
"""What an argument must refuse, by its name; rates need no line, nor do `FACTS` and flags."""

every_learner = pytest.mark.parametrize("name", [name for name in LEARNERS if name in CASES])


def test_every_learner_has_a_case():
    missing, unknown = LEARNERS.keys() - CASES.keys(), CASES.keys() - LEARNERS.keys()
    assert not missing, f"give {sorted(missing)} a line in CASES of {__file__}"
    assert not unknown, f"CASES has {sorted(unknown)}, which LEARNERS has not"


SUBJECTS = {
    name: Subject(LEARNERS[name], CASES[name].settings) for name in LEARNERS if name in CASES
}
CHECKS = [check for subject in SUBJECTS.values() for check in checks_of(subject)]


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_contract(check):
    check()


@every_learner
def test_a_builder_has_the_name_it_is_found_by(name):
    assert LEARNERS[name].__name__ == name


# In another process: loads what was saved after three steps, and writes what it is after the last.
ELSEWHERE = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import test_contract as contract
for folder in Path(sys.argv[2]).iterdir():
    state = contract.loaded(folder)
    *_, (state, _) = contract.SUBJECTS[folder.name].follow(state=state, first_step=3)
    contract.write_checkpoint(folder, contract.at_step(6, state), contract.ORIGIN)
"""
ORIGIN = Origin({}, {}, "", None)


def at_step(step, state) -> Checkpoint:
    return Checkpoint(0, step, state, np.zeros((1, 1)), np.zeros(1), {}, Seconds())


def loaded(folder):
    """The last state saved there."""
    like = SUBJECTS[folder.name].start()
    return read_checkpoint(max(folder.iterdir()), like, 1, ORIGIN)[0].state


def test_every_learner_continues_identically_in_another_process(tmp_path):
    for name, subject in SUBJECTS.items():
        folder = tmp_path / name
        folder.mkdir()
        write_checkpoint(folder, at_step(3, subject.steps[2][0]), ORIGIN)
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", ELSEWHERE, here, str(tmp_path)], check=True)
    for name, subject in SUBJECTS.items():
        assert_same_bits(loaded(tmp_path / name), subject.steps[-1][0])


@every_learner
def test_it_retains_more_than_chance_and_than_online(name):
    last = SUBJECTS[name].trained
    retained = metrics(last.matrix, last.baseline).ra
    assert retained > 0.3  # of ten classes
    if CASES[name].beats_online:
        online = SUBJECTS["online"].trained
        assert retained > metrics(online.matrix, online.baseline).ra + 0.05


# Nonsense


def nonsense():
    for name in sorted(CASES.keys() & LEARNERS.keys()):
        for argument in inspect.signature(LEARNERS[name]).parameters.values():
            if argument.name in ("loss", *FACTS) or argument.annotation is bool:
                continue
            yield pytest.param(name, argument.name, id=f"{name}-{argument.name}")


@pytest.mark.parametrize(("name", "argument"), list(nonsense()))
def test_nonsense_is_refused_by_name(name, argument):
    is_rate = argument.endswith("_rate")
    values = NONSENSE.get(argument, (-0.1, math.nan) if is_rate else None)
    assert values is not None, f"say in NONSENSE of {__file__} what {argument} must not be"
    for value in values:
        with pytest.raises(InvalidArgument, match=argument):
            Subject(LEARNERS[name], CASES[name].settings).small(**{argument: value})
