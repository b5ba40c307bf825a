"""Networks of other libraries give their own logits, learn, and keep the caller's weights."""

import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.errors import InvalidArgument
from lamaml.learners import la_maml
from lamaml.models import cross_entropy, from_equinox, from_flax, from_keras, from_torch
from lamaml.types import Batch, Model

os.environ["KERAS_BACKEND"] = "jax"  # before anything imports keras
nn = pytest.importorskip("flax.linen")
nnx = pytest.importorskip("flax.nnx")
eqx = pytest.importorskip("equinox")
keras = pytest.importorskip("keras")

KEY = jax.random.key(0)
X = jax.random.normal(KEY, (12, 4))
Y = jnp.argmax(X[:, :3], axis=1)
STATE = "mutable state"


class Linen(nn.Module):
    batch_norm: bool = False
    dropout: bool = False
    frozen: bool = False

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(8)(x)
        if self.batch_norm:
            x = nn.BatchNorm(use_running_average=self.frozen)(x)
        if self.dropout:
            x = nn.Dropout(0.5, deterministic=self.frozen)(x)
        return nn.Dense(3)(nn.relu(x))


class LinenTable(nn.Module):
    """A weight and a table of whole numbers, both kept among the params."""

    @nn.compact
    def __call__(self, x):
        order = self.param("order", lambda key: jnp.array([3, 1, 0, 2]))
        return nn.Dense(3)(x[:, order])


class NNX(nnx.Module):
    def __init__(self, middle=None):
        self.first = nnx.Linear(4, 8, rngs=nnx.Rngs(0))
        self.middle = middle
        self.last = nnx.Linear(8, 3, rngs=nnx.Rngs(1))

    def __call__(self, x):
        x = self.first(x)
        x = x if self.middle is None else self.middle(x)
        return self.last(nnx.relu(x))


class Equinox(eqx.Module):
    order: jax.Array  # whole numbers: not trained
    first: eqx.nn.Linear
    middle: eqx.Module | None
    last: eqx.nn.Linear

    def __init__(self, middle=None):
        self.order = jnp.array([3, 1, 0, 2])
        self.first = eqx.nn.Linear(4, 8, key=jax.random.key(1))
        self.middle = middle
        self.last = eqx.nn.Linear(8, 3, key=jax.random.key(2))

    def __call__(self, x):
        x = self.first(x[self.order])
        x = x if self.middle is None else self.middle(x)
        return self.last(jax.nn.relu(x))


class KerasSubclass(keras.Model):
    def __init__(self, middle=None):
        super().__init__()
        self.middle, self.last = middle, keras.layers.Dense(3)

    def call(self, x):
        return self.last(x if self.middle is None else self.middle(x))


def keras_network(*middle):
    first, last = keras.layers.Dense(8, activation="relu"), keras.layers.Dense(3)
    return keras.Sequential([keras.Input((4,)), first, *middle, last])


def linen_with_variables():
    variables = Linen().init(jax.random.key(5), X)
    return (
        from_flax(Linen(), X, variables=variables),
        lambda x: Linen().apply(variables, x),
        lambda: variables,
    )


def linen_frozen_statistics():
    module = Linen(batch_norm=True, dropout=True, frozen=True)
    variables = module.init(jax.random.key(5), X)
    variables["batch_stats"] = jax.tree.map(lambda s: s + 0.5, variables["batch_stats"])
    model = from_flax(module, X, variables=variables)
    return model, lambda x: module.apply(variables, x), lambda: variables


def linen_whole_numbers():
    variables = LinenTable().init(jax.random.key(5), X)
    model = from_flax(LinenTable(), X, variables=variables)
    return model, lambda x: LinenTable().apply(variables, x), lambda: variables


def nnx_plain():
    module = NNX()
    return from_flax(module, X), module, lambda: nnx.state(module)


def nnx_frozen_statistics():
    module = NNX(nnx.BatchNorm(8, rngs=nnx.Rngs(2)))
    module.eval()
    return from_flax(module, X), module, lambda: nnx.state(module)


def nnx_frozen_dropout():
    module = NNX(nnx.Dropout(0.5, rngs=nnx.Rngs(2)))
    module.eval()
    return from_flax(module, X), module, lambda: nnx.state(module, nnx.Param)


def equinox_plain():
    module = Equinox()
    return from_equinox(module), jax.vmap(module), lambda: module


def equinox_inference():
    module = eqx.nn.inference_mode(Equinox(eqx.nn.Dropout(0.5)))
    return from_equinox(module), jax.vmap(module), lambda: module


def keras_plain():
    network = keras_network()
    return from_keras(network), network, lambda: [v.value for v in network.variables]


def keras_frozen_layers():
    frozen = keras.layers.Dense(8, trainable=False), keras.layers.BatchNormalization()
    network = keras_network(*frozen)
    frozen[1].trainable = False
    return from_keras(network), network, lambda: [v.value for v in network.variables]


def keras_subclass():
    network = KerasSubclass()
    network(X)
    return from_keras(network, X), network, lambda: [v.value for v in network.variables]


ADAPTED = [
    linen_with_variables,
    linen_frozen_statistics,
    linen_whole_numbers,
    nnx_plain,
    nnx_frozen_statistics,
    nnx_frozen_dropout,
    equinox_plain,
    equinox_inference,
    keras_plain,
    keras_frozen_layers,
    keras_subclass,
]


def arrays(tree):
    """The arrays of a tree, copied to the host."""
    return [np.array(leaf) for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]


@pytest.mark.parametrize("adapted", ADAPTED)
def test_logits_are_the_librarys_own_whatever_the_key(adapted):
    model, call, _ = adapted()
    np.testing.assert_allclose(model.apply(model.init(KEY), X), call(X), rtol=1e-6, atol=1e-6)
    for one, other in zip(*(arrays(model.init(jax.random.key(k))) for k in (1, 2)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "adapted",
    [linen_with_variables, linen_frozen_statistics, nnx_plain, equinox_plain, keras_frozen_layers],
)
def test_it_learns_and_the_network_given_stays_as_it_was(adapted):
    model, call, contents = adapted()
    before, logits = arrays(contents()), np.array(call(X))
    losses = train(model)
    assert losses[-1] < 0.9 * losses[0]
    # Reading them back also shows that no buffer was given away to the donating update.
    for old, new in zip(before, arrays(contents()), strict=True):
        np.testing.assert_array_equal(old, new)
    np.testing.assert_array_equal(call(X), logits)
    np.testing.assert_allclose(model.apply(model.init(KEY), X), logits, rtol=1e-6, atol=1e-6)


def train(model: Model) -> list[float]:
    """Losses of a few updates that reuse the buffers they are given, as training does."""
    learner = la_maml(
        cross_entropy(model.apply),
        initial_rate=0.2,
        hyper_rate=0.2,
        inner_steps=1,
        memory_size=5,
        first_order=True,
    )
    batch = Batch(X, Y, jnp.zeros(12, jnp.int32), jnp.ones(12))
    state, losses = learner.init(model.init(KEY), batch), []
    update = jax.jit(learner.update, donate_argnums=0)
    for step in range(15):
        state, info = update(state, batch, jax.random.key(step))
        losses.append(float(info["loss"]))
    return losses


def test_linen_draws_its_weights_from_the_key():
    model = from_flax(Linen(), X)
    params = model.init(jax.random.key(3))
    own = Linen().init(jax.random.key(3), X)
    jax.tree.map(np.testing.assert_array_equal, params, own["params"])
    np.testing.assert_array_equal(model.apply(params, X), Linen().apply(own, X))
    with pytest.raises(AssertionError):
        jax.tree.map(np.testing.assert_array_equal, params, model.init(jax.random.key(4)))
    assert train(model)[-1] < 1.0


@pytest.mark.parametrize(
    ("adapted", "num_weights"),
    [
        (linen_frozen_statistics, 4 * 8 + 8 + 16 + 8 * 3 + 3),
        (linen_whole_numbers, 4 * 3 + 3),
        (equinox_plain, 4 * 8 + 8 + 8 * 3 + 3),
        (keras_frozen_layers, 4 * 8 + 8 + 8 * 3 + 3),
    ],
)
def test_only_what_is_trained_is_in_the_params(adapted, num_weights):
    model, _, _ = adapted()
    leaves = jax.tree.leaves(model.init(KEY))
    assert all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves)
    assert sum(leaf.size for leaf in leaves) == num_weights


def stateful():
    linen = [Linen(batch_norm=True), Linen(dropout=True)]
    for module in linen:
        rngs = {"params": KEY, "dropout": KEY}
        yield f"{module}, new", lambda m=module: from_flax(m, X)
        given = module.init(rngs, X)
        yield f"{module}, given", lambda m=module, v=given: from_flax(m, X, variables=v)
    yield "nnx batch norm", lambda: from_flax(NNX(nnx.BatchNorm(8, rngs=nnx.Rngs(2))), X)
    yield "nnx dropout", lambda: from_flax(NNX(nnx.Dropout(0.5, rngs=nnx.Rngs(2))), X)
    normalised = eqx.nn.BatchNorm(8, axis_name="rows", mode="batch")
    yield "equinox batch norm", lambda: from_equinox(Equinox(normalised))
    yield "equinox dropout", lambda: from_equinox(Equinox(eqx.nn.Dropout(0.5)))
    yield "keras batch norm", lambda: from_keras(keras_network(keras.layers.BatchNormalization()))
    yield "keras dropout", lambda: from_keras(keras_network(keras.layers.Dropout(0.5)))
    subclass = KerasSubclass(keras.layers.BatchNormalization())
    subclass(X)
    yield "keras subclass", lambda: from_keras(subclass, X)


@pytest.mark.parametrize("adapt", [pytest.param(adapt, id=name) for name, adapt in stateful()])
def test_mutable_state_is_refused(adapt):
    with pytest.raises(InvalidArgument, match=STATE):
        adapt()


def test_what_init_cannot_draw_must_be_given():
    with pytest.raises(InvalidArgument, match="variables = None"):
        from_flax(Linen(batch_norm=True, frozen=True), X)
    with pytest.raises(InvalidArgument, match="variables = None"):
        from_flax(LinenTable(), X)


def test_arguments_that_make_no_sense():
    with pytest.raises(InvalidArgument, match="variables"):
        from_flax(NNX(), X, variables={"params": {}})
    with pytest.raises(InvalidArgument, match="variables = \\[\\]"):
        from_flax(Linen(), X, variables={})
    with pytest.raises(InvalidArgument, match="call it once"):
        from_keras(KerasSubclass())
    built = KerasSubclass()
    built(X)
    with pytest.raises(InvalidArgument, match="pass example="):
        from_keras(built)


def test_keras_on_another_backend_is_refused(monkeypatch):
    network = keras_network()
    monkeypatch.setattr(keras.config, "backend", lambda: "torch")
    with pytest.raises(InvalidArgument, match="keras runs on torch: set KERAS_BACKEND=jax"):
        from_keras(network)


@pytest.mark.parametrize(
    ("package", "adapt"),
    [
        ("flax", lambda: from_flax(None, X)),
        ("equinox", lambda: from_equinox(None)),
        ("keras", lambda: from_keras(None)),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(package, adapt, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"{package} is not installed: pip install lamaml\[networks\]"
    with pytest.raises(InvalidArgument, match=message):
        adapt()


def test_without_torch_the_two_commands_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    commands = r'pip install torch==2\.13\.0, then pip install "lamaml\[torch\]"'
    with pytest.raises(InvalidArgument, match=f"torch is not installed: {commands}"):
        from_torch(None, X)


def test_keras_without_its_default_backend_says_which_one_to_set(monkeypatch):
    def no_tensorflow(name):
        raise ModuleNotFoundError("No module named 'tensorflow'", name="tensorflow")

    monkeypatch.setattr("importlib.import_module", no_tensorflow)
    with pytest.raises(InvalidArgument, match="keras needs tensorflow: set KERAS_BACKEND=jax"):
        from_keras(None)


def test_any_pair_of_functions_is_a_model():
    model = Model(lambda key: jax.random.normal(key, (4, 3)), lambda params, x: x @ params)
    losses = train(model)
    assert losses[-1] < losses[0]
