"""What `learner="auto"`, the default, stands for."""

from lamaml.estimators._config import Builder

AUTO = "auto"
"""The default learner: the estimator chooses."""
_CHOSEN = "fast_and_slow"  # by "auto", on the panel's choosing half
CHOICE = (
    "auto: slow weights replay stored rows and keep the past, fast weights follow the newest rows, "
    "and a gate weighs their answers row by row; chosen on the streams of `lamaml panel` that are "
    "for choosing, to follow changes without losing much of the past"
)
"""What "auto" does and why, for the report."""
_MEMORY_SIZE, _AUTO_MEMORY_SIZE = 200, 1_000
_AUTO_MEMORY_BYTES = 16_000_000  # wider rows than fit: fewer of them


def chosen_learner(learner: str | Builder) -> str | Builder:
    """Return the learner, or that which "auto" stands for."""
    return _CHOSEN if learner == AUTO else learner


def default_memory_size(learner: str | Builder, row_bytes: int) -> int:
    """Return the number of rows stored where the user names none.

    It is 200, the paper's number; with "auto" 1,000, or as many as fit into 16 MB.
    """
    if learner != AUTO:
        return _MEMORY_SIZE
    return max(1, min(_AUTO_MEMORY_SIZE, _AUTO_MEMORY_BYTES // row_bytes))
