"""What `import lamaml` offers: exactly these names, imported lazily, each with an example."""

import doctest
import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import lamaml

PACKAGES = {"evaluation", "learners", "memory", "models", "streams", "testing"}
FUNCTIONS = {
    *("LaMAMLClassifier", "LaMAMLRegressor", "Schedule", "compare", "evaluate_prequential"),
    "load_run",
    *("load_runs", "load_stream", "plot_forgetting", "plot_rates", "run", "sweep", "train"),
}


def test_all_is_exact():
    assert set(lamaml.__all__) == PACKAGES | FUNCTIONS | {"__version__"}
    assert list(lamaml.__all__) == sorted(lamaml.__all__)
    assert dir(lamaml) == lamaml.__all__


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_a_package_says_what_is_in_it(name):
    package = getattr(lamaml, name)
    assert isinstance(package, ModuleType)
    assert package.__doc__


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_has_a_runnable_example(name):
    thing = getattr(lamaml, name)
    assert callable(thing)
    assert doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")


def test_the_package_alone_loads_nothing():
    code = "import sys, lamaml; lamaml.__version__; "
    code += "sys.exit(any(name in sys.modules for name in ('jax', 'numpy', 'sklearn', 'typer')))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'lamaml_classifier'"):
        lamaml.lamaml_classifier  # noqa: B018
