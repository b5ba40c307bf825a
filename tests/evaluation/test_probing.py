from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.evaluation import Probe, inter_task, look_ahead, probe_rows, with_probes
from lamaml.evaluation.probing import after, every
from lamaml.learners import la_maml
from lamaml.models import cross_entropy, mlp
from lamaml.types import Batch, Examples

MODEL = mlp(3, 4, hidden_sizes=(5,))
LOSS = cross_entropy(MODEL.apply)
LEARNER = la_maml(
    LOSS, initial_rate=0.3, hyper_rate=0.1, inner_steps=3, memory_size=10, first_order=True
)


def examples(seed: int, count: int = 7) -> Examples:
    generator = np.random.default_rng(seed)
    return Examples(
        generator.normal(size=(count, 3)).astype(np.float32), generator.integers(0, 4, count)
    )


SETS = [examples(seed) for seed in (1, 2, 3, 4)]
ROWS = probe_rows(SETS, 6)


MEASURE = look_ahead(
    LOSS,
    MODEL,
    lambda x: x,
    heads=None,
    inner_steps=3,
    inner_clamp=None,
    clip_inner_rates=False,
    num_tasks=5,
)


def batch(task: int, seed: int) -> Batch:
    found = examples(seed, 6)
    return Batch(jnp.array(found.x), jnp.array(found.y), jnp.full(6, task), jnp.ones(6))


def accuracy(params: object, sets: list[Examples]) -> float:
    shares = [np.mean(np.argmax(MODEL.apply(params, s.x[:6]), axis=1) == s.y[:6]) for s in sets]
    return float(np.mean(shares))


def run(learner, tasks):  # type: ignore[no-untyped-def]
    state = learner.init(MODEL.init(jax.random.key(0)), batch(0, 0))
    states, infos = [state], []
    for number, task in enumerate(tasks):
        state, info = learner.update(state, batch(task, number), jax.random.key(number))
        states.append(state)
        infos.append({name: float(value) for name, value in info.items()})
    return states, infos


def test_a_probe_every_so_many_updates_changes_nothing() -> None:
    plain, _ = run(LEARNER, [0, 0, 1, 1])
    states, infos = run(with_probes(LEARNER, ROWS, [Probe(MEASURE, every(2, 100))]), [0, 0, 1, 1])
    assert [np.isnan(info["accuracy_after"]) for info in infos] == [True, False, True, False]
    assert infos[1]["accuracy_after"] == pytest.approx(accuracy(plain[2].params, SETS[:1]))
    assert infos[3]["accuracy_after"] == pytest.approx(accuracy(plain[4].params, SETS[:2]))
    assert all(
        np.array_equal(a, b)
        for a, b in zip(
            jax.tree.leaves(plain[-1]), jax.tree.leaves(states[-1].learned), strict=True
        )
    )


def test_the_inner_accuracy_is_that_of_the_fast_weights() -> None:
    states, infos = run(with_probes(LEARNER, ROWS, [Probe(MEASURE, every(1, 100))]), [0, 0, 1])
    before, rows = states[2].learned, batch(1, 2)
    fast = before.params
    for step in range(3):
        chunk = Batch(*(part[2 * step : 2 * step + 2] for part in rows[:4]))
        gradient = jax.grad(LOSS)(fast, chunk)
        fast = jax.tree.map(lambda w, r, g: w - r * g, fast, before.rates, gradient)
    assert infos[2]["accuracy_inner"] == pytest.approx(accuracy(fast, SETS[:2]))


def test_alignment_among_old_tasks() -> None:
    states, infos = run(
        with_probes(
            LEARNER, ROWS, [Probe(inter_task(LOSS, lambda x: x, num_tasks=11), every(1, 100))]
        ),
        [0, 1, 2, 3],
    )
    assert all(np.isnan(info["inter_task_cosine"]) for info in infos[:2])  # there is no pair yet
    params = states[4].params
    flat = []
    for s in SETS[:3]:
        rows = Batch(s.x[:6], s.y[:6], jnp.zeros(6, int), jnp.ones(6))
        leaves = jax.tree.leaves(jax.grad(LOSS)(params, rows))
        flat.append(np.concatenate([np.ravel(leaf) for leaf in leaves]))
    dots = [float(a @ b) for a, b in combinations(flat, 2)]
    cosines = [
        float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in combinations(flat, 2)
    ]
    assert infos[3]["inter_task_dot"] == pytest.approx(np.mean(dots), rel=1e-4)
    assert infos[3]["inter_task_cosine"] == pytest.approx(np.mean(cosines), abs=1e-5)


def test_a_probe_ends_with_the_last_update_it_is_due_after() -> None:
    due = every(2, 5)
    assert [number for number in range(1, 9) if due(jnp.array(number))] == [2, 4]


def test_rows_of_the_first_tasks() -> None:
    assert ROWS.of_first(2).y.shape == (2, *ROWS.y.shape[1:])
    np.testing.assert_array_equal(ROWS.of_first(2).x, ROWS.x[:2])


def test_a_probe_after_some_updates() -> None:
    due = after([2, 5])
    assert [number for number in range(1, 8) if due(jnp.array(number))] == [2, 5]
