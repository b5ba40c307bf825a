"""Programs of the estimators compiled in a third of the time: these tests wait for the compiler."""

from collections.abc import Iterator

import jax
import pytest

from lamaml.estimators import holdings, programs, report

QUICKLY = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
PLACES = [(programs, name) for name in ("begin", "learn", "outputs", "answers", "conclude")]
PLACES += [(holdings, "begin"), (report, "_compare")]
PROGRAMS = [
    jax.jit(getattr(module, name).__wrapped__, static_argnums=0, compiler_options=QUICKLY)
    for module, name in PLACES
]


@pytest.fixture(scope="module", autouse=True)
def quick_compilation() -> Iterator[None]:
    """The same programs, hardly optimised."""
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), program in zip(PLACES, PROGRAMS, strict=True):
            patch.setattr(module, name, program)
        yield
