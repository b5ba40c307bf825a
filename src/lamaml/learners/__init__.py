"""The learners, one file per algorithm, and the table `LEARNERS` that finds them by name."""

from collections.abc import Callable

from lamaml.learners.a_gem import a_gem
from lamaml.learners.averaged import averaged
from lamaml.learners.c_maml import c_maml
from lamaml.learners.dark_la_maml import dark_la_maml
from lamaml.learners.der import der
from lamaml.learners.er import er
from lamaml.learners.er_ace import er_ace
from lamaml.learners.ewc import ewc
from lamaml.learners.fast_and_slow import fast_and_slow
from lamaml.learners.gem import gem
from lamaml.learners.icarl import icarl
from lamaml.learners.independent import independent
from lamaml.learners.la_er import la_er
from lamaml.learners.la_maml import la_maml
from lamaml.learners.mer import mer
from lamaml.learners.mer_single import mer_single
from lamaml.learners.meta_bgd import meta_bgd
from lamaml.learners.online import online
from lamaml.learners.sync_la_maml import sync_la_maml
from lamaml.types import Learner

BASELINES = (independent, ewc, gem, a_gem, mer, mer_single, icarl, meta_bgd)
LEARNERS: dict[str, Callable[..., Learner]] = {
    builder.__name__: builder
    for builder in (
        online,
        er,
        *BASELINES,
        c_maml,
        sync_la_maml,
        la_er,
        la_maml,
        dark_la_maml,
        der,
        er_ace,
        fast_and_slow,
    )
}

RESULTS_VERSIONS = {
    "online": 1,
    "er": 1,
    "independent": 1,
    "ewc": 1,
    "gem": 1,
    "a_gem": 1,
    "mer": 1,
    "mer_single": 1,
    "icarl": 1,
    "meta_bgd": 1,
    "c_maml": 1,
    "sync_la_maml": 1,
    "la_er": 1,
    "la_maml": 1,
    "dark_la_maml": 1,
    "der": 1,
    "er_ace": 1,
    "fast_and_slow": 2,
}
"""Raised by hand when a learner's numbers change: a stored result belongs to one version."""

__all__ = [
    "LEARNERS",
    "RESULTS_VERSIONS",
    "a_gem",
    "averaged",
    "c_maml",
    "dark_la_maml",
    "der",
    "er",
    "er_ace",
    "ewc",
    "fast_and_slow",
    "gem",
    "icarl",
    "independent",
    "la_er",
    "la_maml",
    "mer",
    "mer_single",
    "meta_bgd",
    "online",
    "sync_la_maml",
]
