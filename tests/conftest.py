"""What tests of several folders share."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import platformdirs
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

from lamaml._io import one_at_a_time  # noqa: E402

UNPACK = Path(__file__).resolve().parents[2] / "shared" / "data" / "unpack"
NEEDED = ("mnist/train-images-idx3-ubyte.gz", "cifar-100-binary/train.bin", "tiny-imagenet-200.zip")


LONGEST = ("test_survival", "test_reproduce", "test_scikit_learn", "test_cli", "test_tutorial")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that two workers end together."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)


@pytest.fixture(scope="session")
def real_data_folder() -> Path | None:
    """LAMAML_DATA, or the data that lies beside the project, unpacked once a machine."""
    if given := os.environ.get("LAMAML_DATA"):
        return Path(given)
    if not UNPACK.is_file():
        return None
    version = hashlib.sha256(UNPACK.read_bytes()).hexdigest()[:8]
    folder = Path(platformdirs.user_cache_dir("lamaml-tests")) / f"data-{version}"
    with one_at_a_time(folder):
        if not folder.exists():
            unfinished = folder.with_name(f"{folder.name}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            subprocess.run([sys.executable, UNPACK, unfinished], check=True)
            unfinished.rename(folder)
    return folder


@pytest.fixture
def real_data(real_data_folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the real archives, as LAMAML_DATA; the test is skipped where there is none."""
    if real_data_folder is None or not all((real_data_folder / name).exists() for name in NEEDED):
        pytest.skip("needs the real MNIST, CIFAR-100 and TinyImagenet files in LAMAML_DATA")
    monkeypatch.setenv("LAMAML_DATA", str(real_data_folder))
    return real_data_folder
