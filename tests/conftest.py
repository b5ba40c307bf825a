"""What tests of several folders share."""

import os
from pathlib import Path

import pytest

# What jax, here and in the processes that tests start, is told. Tests wait for the compiler: it
# optimises little, which halves their time (`XLA_FLAGS= make test`: as users have it), and what one
# test, or one run of them, has compiled, the next need not.
HARDLY_OPTIMISED = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1"
)
os.environ.setdefault("XLA_FLAGS", HARDLY_OPTIMISED)
COMPILED = Path(__file__).resolve().parents[1] / ".pytest_cache" / "compiled"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(COMPILED))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")

REAL_DATA = os.environ.get("LAMAML_DATA")  # before a test sets it to a folder of its own
NEEDED = ("mnist/train-images-idx3-ubyte.gz", "cifar-100-binary/train.bin", "tiny-imagenet-200.zip")
LONGEST = ("test_survival", "test_reproduce", "test_scikit_learn", "test_cli", "test_tutorial")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that two workers end together."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder of the real archives; without one, the test is skipped."""
    if not REAL_DATA:
        pytest.skip(f"set LAMAML_DATA to a folder that has {', '.join(NEEDED)}")
    folder = Path(REAL_DATA).resolve()
    if missing := [name for name in NEEDED if not (folder / name).exists()]:
        pytest.skip(f"put {', '.join(missing)} into LAMAML_DATA ({folder})")
    monkeypatch.setenv("LAMAML_DATA", str(folder))
    return folder
