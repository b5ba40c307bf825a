"""PyTorch modules give torch's own logits and gradients, learn, and take their weights back."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml import LaMAMLClassifier
from lamaml.errors import InvalidArgument
from lamaml.learners import la_maml
from lamaml.models import cross_entropy, from_torch, resnet18, to_torch, torch_modules
from lamaml.types import Batch

if not (find_spec("torch") and find_spec("torchax")):
    pytest.skip(f"torch and torchax are not installed: {torch_modules.INSTALL}", True)

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

KEY = jax.random.key(0)
RATE = 0.5


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.GroupNorm(4, 8), nn.GroupNorm(4, 8)
        self.conv = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = functional.relu(self.norm1(self.stem(x)))
        x = functional.relu(x + self.norm2(self.conv(x)))
        return self.head(x.mean((2, 3)))


class Transformer(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(1, 1, 16))
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=dropout, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.layer(x + self.start).mean(1))


class Scaled(nn.Module):
    """One weight used twice, a tensor that is no buffer, a frozen layer."""

    def __init__(self):
        super().__init__()
        self.scale = torch.arange(1.0, 5.0)
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
        self.other.weight = self.one.weight
        self.head = nn.Linear(4, 3)
        self.other.bias.requires_grad_(False)

    def forward(self, x):
        return self.head(self.other(functional.relu(self.one(x * self.scale))))


def mlp(*middle):
    return nn.Sequential(nn.Linear(4, 8), *middle, nn.ReLU(), nn.Linear(8, 3))


def cnn():
    convolution = nn.Conv2d(3, 8, 3, stride=2, padding=1)
    return nn.Sequential(
        convolution, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 2 * 2, 3)
    )


NETWORKS = {
    "mlp": (mlp, (4,)),
    "cnn": (cnn, (3, 8, 8)),
    "residual": (Residual, (3, 8, 8)),
    "transformer": (Transformer, (5, 16)),
    "transformer, eval": (lambda: Transformer(dropout=0.1).eval(), (5, 16)),
    "shared weights": (Scaled, (4,)),
    "frozen batch norm": (lambda: mlp(nn.BatchNorm1d(8)).eval(), (4,)),
}


def problem(name):
    torch.manual_seed(0)
    build, shape = NETWORKS[name]
    module = build()
    return module, torch.randn(6, *shape), torch.randint(0, 3, (6,))


def batch_of(x, y):
    x, y = jnp.asarray(x.numpy()), jnp.asarray(y.numpy())
    return Batch(x, y, jnp.zeros(len(y), int), jnp.ones(len(y)))


def torch_gradient(module, x, y, order):
    """∇L(θ − a·∇ℓ(θ)) of torch; the inner gradient is a constant in first order."""
    weights = {name: p for name, p in module.named_parameters() if p.requires_grad}

    def loss(weights):
        return functional.cross_entropy(torch.func.functional_call(module, weights, (x,)), y)

    with sdpa_kernel(SDPBackend.MATH):  # the others have no second derivative
        second = order == "second"
        inner = torch.autograd.grad(loss(weights), list(weights.values()), create_graph=second)
        fast = {n: p - RATE * g for (n, p), g in zip(weights.items(), inner, strict=True)}
        found = torch.autograd.grad(loss(fast), list(weights.values()))
    return dict(zip(weights, found, strict=True))


def our_gradient(model, batch, order):
    loss = cross_entropy(model.apply)

    def objective(params):
        inner = jax.grad(loss)(params, batch)
        inner = inner if order == "second" else jax.lax.stop_gradient(inner)
        return loss(jax.tree.map(lambda p, g: p - RATE * g, params, inner), batch)

    return jax.jit(jax.grad(objective))(model.init(KEY))


@pytest.mark.parametrize("name", NETWORKS)
def test_logits_and_gradients_are_those_of_torch(name):
    module, x, y = problem(name)
    model = from_torch(module, x)
    params = model.init(KEY)
    with torch.no_grad():
        logits = module(x).numpy()
    batch = batch_of(x, y)
    np.testing.assert_allclose(jax.jit(model.apply)(params, batch.x), logits, atol=1e-5)
    for order in ("first", "second"):
        theirs = torch_gradient(module, x, y, order)
        ours = torch_modules._by_full_name(our_gradient(model, batch, order))
        assert ours.keys() == theirs.keys()
        for weight, gradient in ours.items():
            np.testing.assert_allclose(gradient, theirs[weight], atol=1e-5, err_msg=weight)


def trained(model, batch, num_updates, **settings):
    learner = la_maml(
        cross_entropy(model), initial_rate=0.1, hyper_rate=0.1, memory_size=6, **settings
    )
    state, losses = learner.init(model.init(KEY), batch), []
    update = jax.jit(learner.update, donate_argnums=0)
    for step in range(num_updates):
        state, info = update(state, batch, jax.random.key(step))
        losses.append(float(info["loss"]))
    return state, losses


def test_la_maml_trains_it_in_second_order_and_torch_gets_the_weights():
    module, x, y = problem("residual")
    before = {name: value.clone() for name, value in module.state_dict().items()}
    model = from_torch(module, x)
    state, losses = trained(model, batch_of(x, y), 10, inner_steps=2, first_order=False)
    assert losses[-1] < 0.8 * losses[0]
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert to_torch(state.params, module) is module
    assert all(not torch.equal(before[name], value) for name, value in module.named_parameters())
    with torch.no_grad():
        logits = module(x).numpy()
    np.testing.assert_allclose(model.apply(state.params, batch_of(x, y).x), logits, atol=1e-5)
    again = from_torch(module, x)
    jax.tree.map(np.testing.assert_array_equal, again.init(jax.random.key(7)), state.params)


def test_only_what_requires_a_gradient_is_trained():
    module, x, y = problem("frozen batch norm")
    module[0].weight.requires_grad_(False)
    model = from_torch(module, x)
    assert {name: sorted(layer) for name, layer in model.init(KEY).items()} == {
        **{"0": ["bias"], "1": ["bias", "weight"], "3": ["bias", "weight"]}
    }
    assert model.first_layer is None
    state, _ = trained(model, batch_of(x, y), 2, inner_steps=1, first_order=True)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    after = to_torch(state.params, module).state_dict()
    kept = {name for name, value in before.items() if torch.equal(value, after[name])}
    assert kept == {"0.weight", "1.running_mean", "1.running_var", "1.num_batches_tracked"}


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_the_first_layer_of_a_sequential_is_declared(shape):
    torch.manual_seed(0)
    rectifier = nn.ReLU()  # one object in two places
    parts = nn.Linear(4, 8), rectifier, nn.Linear(8, 8), rectifier, nn.Linear(8, 3)
    module = nn.Sequential(*([] if len(shape) == 1 else [nn.Flatten()]), *parts)
    x, y = torch.randn(6, *shape), torch.randint(0, 3, (6,))
    model = from_torch(module, x)
    batch = batch_of(x, y)
    assert model.first_layer.name == ("0" if len(shape) == 1 else "1")
    settings = {"inner_steps": 3, "first_order": False}
    fast, _ = trained(model, batch, 3, **settings)
    general, _ = trained(model._replace(first_layer=None), batch, 3, **settings)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), fast.params, general.params
    )


class FunctionalDropout(nn.Linear):
    def forward(self, x):
        return functional.dropout(super().forward(x), 0.5, self.training)


class Counter(nn.Linear):
    def __init__(self):
        super().__init__(4, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (mlp(nn.BatchNorm1d(8)), r"batch norm in training mode \(1\).*mix.*GroupNorm.*eval\(\)"),
        (mlp(nn.BatchNorm1d(8, track_running_stats=False)).eval(), r"batch norm .*GroupNorm"),
        (mlp(nn.Dropout(0.5)), r"dropout in training mode \(1\).*module\.eval\(\)"),
        (FunctionalDropout(4, 3), r"mutable state \(random numbers\)"),
        (Counter(), r"mutable state \(calls\)"),
        (nn.Linear(5, 3), r"torchax cannot run Linear on rows of shape \(4,\)"),
        (nn.ReLU(), "no parameter with requires_grad=True"),
        (nn.Sequential(nn.Linear(4, 3), nn.Flatten(0)), "outputs of module = "),
        (torch.relu, "must be a torch.nn.Module"),
    ],
)
def test_what_is_no_function_of_its_weights_is_refused(module, message):
    with pytest.raises(InvalidArgument, match=message):
        from_torch(module, torch.zeros(2, 4))


def test_dropout_within_attention_is_refused():
    with pytest.raises(InvalidArgument, match=r"dropout in training mode \(layer\.self_attn"):
        from_torch(Transformer(dropout=0.1), torch.zeros(2, 5, 16))


def test_weights_that_do_not_fit_are_refused():
    params = from_torch(mlp(), torch.zeros(2, 4)).init(KEY)
    with pytest.raises(InvalidArgument, match=r"params = '0.bias': must be named like"):
        to_torch(params, nn.Linear(4, 3))
    with pytest.raises(InvalidArgument, match=r"params\['0.bias'\] = \(8,\): .*\(9,\)"):
        to_torch(params, nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 3)))


def test_an_old_torchax_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(torch_modules, "version", lambda name: "0.0.13")
    with pytest.raises(InvalidArgument, match=r"torchax 0\.0\.13 does not import with torch 2\.13"):
        from_torch(mlp(), torch.zeros(2, 4))


def torch_resnet18(params, num_groups):
    """Our ResNet-18 written in torch, with our weights."""

    def layer(name, norm, inputs, stride):
        weight = np.asarray(params[name]["weight"])
        side = 1 if "shortcut" in name else 3
        kernel = weight.reshape(len(weight), side, side, inputs).transpose(0, 3, 1, 2)
        pair = nn.Sequential(
            nn.Conv2d(inputs, len(weight), side, stride, side // 2, bias=False),
            nn.GroupNorm(num_groups, len(weight)),
        )
        values = (kernel, params[norm]["weight"], params[norm]["bias"])
        names = ("0.weight", "1.weight", "1.bias")
        pair.load_state_dict(
            {n: torch.tensor(np.asarray(v)) for n, v in zip(names, values, strict=True)}
        )
        return pair

    def forward(x):
        x = functional.relu(layer("convolution_1", "norm_1", x.shape[1], 1)(x))
        for number, stride in enumerate((1, 1, 2, 1, 2, 1, 2, 1), 1):
            name, inputs = f"block_{number}", x.shape[1]
            y = functional.relu(layer(f"{name}_convolution_1", f"{name}_norm_1", inputs, stride)(x))
            y = layer(f"{name}_convolution_2", f"{name}_norm_2", y.shape[1], 1)(y)
            if stride == 2:
                x = layer(f"{name}_shortcut", f"{name}_shortcut_norm", inputs, 2)(x)
            x = functional.relu(x + y)
        head = {name: torch.tensor(np.asarray(v)) for name, v in params["head"].items()}
        return functional.linear(x.mean((2, 3)), head["weight"], head["bias"])

    return forward


def test_our_resnet18_is_that_of_torch():
    model = resnet18((9, 8, 3), 5, num_filters=4, num_groups=2)
    params = jax.tree.map(lambda p: p + 0.05, jax.jit(model.init)(KEY))
    x = np.random.default_rng(0).normal(size=(2, 9, 8, 3)).astype(np.float32)
    with torch.no_grad():
        theirs = torch_resnet18(params, 2)(torch.from_numpy(x.transpose(0, 3, 1, 2)))
    np.testing.assert_allclose(jax.jit(model.apply)(params, x), theirs, atol=1e-5)


def test_the_classifier_learns_with_it_and_gives_the_weights_back():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = (rng.normal(size=(120, 8, 8, 3)) + y[:, None, None, None]).astype(np.float32)
    module = cnn()
    model = from_torch(module, X[:1], channels_last=True)
    classifier = LaMAMLClassifier("er", model=model, scale=False, random_state=0)
    classifier.partial_fit(X[:90], y[:90])
    assert classifier.score(X[90:], y[90:]) > 0.8
    to_torch(classifier.params_, module)
    with torch.no_grad():
        logits = module(torch.from_numpy(X.transpose(0, 3, 1, 2))).numpy()
    np.testing.assert_array_equal(classifier.predict(X), logits.argmax(axis=1))


MODULE = '''
import torch
from lamaml.models import from_torch


def small(input_shape, num_outputs, *, width: int = 8):
    """A network of torch."""
    torch.manual_seed(0)
    nn = torch.nn
    module = nn.Sequential(nn.Linear(*input_shape, width), nn.ReLU(), nn.Linear(width, num_outputs))
    return from_torch(module, torch.zeros(1, *input_shape))
'''


def test_the_command_line_takes_a_module_with_its_settings(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE)
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "rows.npz", x=rng.normal(size=(60, 4)), y=np.arange(60) % 3)
    command = [sys.executable, "-m", "lamaml", "run", "arrays", "la_maml", "--set", "path=rows.npz"]
    command += ["--model", "mine:small", "--set", "width=5", "--out", "run", "--json"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["model"], found["settings"]["width"]) == ("mine:small", 5)
    rates = json.loads(Path(tmp_path, "run/seed-0/rates/task-1.json").read_text())
    assert sorted(rates) == ["0", "2"]
