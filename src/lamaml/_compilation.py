"""Compiling for interactive use: programs that compile quickly, and the cache of them on disk.

LAMAML_COMPILATION_CACHE is "off", or a folder for the cache instead of the user's cache folder. A
cache that the user has configured for JAX itself takes precedence.
"""

import contextlib
import functools
import gc
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import filelock
import jax

MAX_CACHE_BYTES = 500_000_000
"""Beyond this size the programs that were used least recently are deleted from the cache.

It is the size for one kind of processor and one number of threads."""
_VARIABLE = "LAMAML_COMPILATION_CACHE"
# An update compiles in less than half the time. It takes a sixth longer to run with la_maml and a
# third longer with the default learner. With wide rows it takes half as long again: Adam's loop,
# which overwrites its input, is not vectorised.
_QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class QuickJit(Generic[Arguments, Result]):
    """A function that is compiled when it is first called, quickly rather than for speed.

    Args:
      function: a pure function.
      static: the positions of arguments that are part of the program.
      donated: the positions of arguments that a call overwrites.
    """

    def __init__(
        self,
        function: Callable[Arguments, Result],
        *,
        static: tuple[int, ...] = (0,),
        donated: tuple[int, ...] = (),
    ) -> None:
        self.function, self._static, self._donated = function, static, donated

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Return what the function returns."""
        with _no_garbage_collection():
            return self._compiled(*args, **kwargs)

    @functools.cached_property
    def _compiled(self) -> Any:
        use_compilation_cache()
        return jax.jit(
            self.function,
            static_argnums=self._static,
            donate_argnums=self._donated,
            compiler_options=quick_options(),
        )


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Collecting garbage would take 0.1 s: tracing makes objects by the thousand."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def quick_options() -> dict[str, bool | int] | None:
    """Return the options of a quick compilation on a CPU, without those that XLA_FLAGS sets."""
    if jax.default_backend() != "cpu":
        return None
    flags = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in _QUICK.items() if f"--{name}=" not in flags} or None


@functools.cache
def use_compilation_cache() -> Path | None:
    """Keep compiled programs on disk from now on; returns the folder, None if it is not ours.

    A folder that cannot be written to is not used.
    """
    setting = os.environ.get(_VARIABLE, "")
    if setting.lower() == "off" or jax.config.values["jax_compilation_cache_dir"]:
        return None
    folder = (Path(setting) if setting else _user_cache_folder()) / f"{_processor()}-{_threads()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(folder)
    except (OSError, NotImplementedError, filelock.Timeout):  # no folder, or no locks in it
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", MAX_CACHE_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return folder


def _remove_unfinished(folder: Path) -> None:
    """Remove programs that a killed process left half written: JAX would never replace them.

    JAX writes a program, then the time of its last use, and holds this lock meanwhile.
    """
    with filelock.FileLock(folder / ".lockfile", timeout=1):
        for program in folder.glob("*-cache"):
            if not program.with_name(program.name.removesuffix("cache") + "atime").exists():
                program.unlink()


def _threads() -> str:
    """Return the number of threads that XLA compiles for, as it finds it itself."""
    chosen = os.environ.get("PJRT_NPROC") or os.environ.get("NPROC")
    if chosen:
        return chosen
    can_tell = hasattr(os, "sched_getaffinity")
    return str(len(os.sched_getaffinity(0)) if can_tell else os.cpu_count())


def _user_cache_folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("lamaml")) / "compiled"


def _processor() -> str:
    """Return a digest of the processor: machines may share a home, but not machine code."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    facts = sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    return hashlib.sha256("\n".join([*os.uname()[4:], *facts]).encode()).hexdigest()[:16]
