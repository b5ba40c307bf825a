"""The colours of pages and figures, in light and dark, and the colour of each learner."""

from typing import NamedTuple


class Palette(NamedTuple):
    """The colours of a page and of the figures in it."""

    page: str
    card: str
    ink: str  # text
    soft: str  # labels and notes
    line: str  # axes and borders
    warn: str
    series: tuple[str, ...]  # lines and learners

    @property
    def css(self) -> str:
        """Returns the declarations of `--page`, ..., `--series-0`, ...."""
        names = {name: value for name, value in self._asdict().items() if name != "series"}
        names |= {f"series-{number}": colour for number, colour in enumerate(self.series)}
        return " ".join(f"--{name}: {colour};" for name, colour in names.items())


LIGHT = Palette(
    *("#f6f7f9", "#ffffff", "#18212f", "#5a6675", "#e1e5ea", "#9a5b00"),
    series=(
        *("#2f5fd0", "#16906b", "#8b4fc7", "#0d8ba1", "#dc7a1c", "#7d8797"),
        *("#cb3a4f", "#8f6b3a", "#7c8a1f", "#c74a94", "#1b2f7d", "#b58900"),
        *("#ee6a4c", "#5d4a9c", "#4f7d2b", "#93304a", "#4a5260", "#1a9fd8"),
    ),
)
DARK = Palette(
    *("#11151b", "#191f27", "#e8ecf2", "#9aa7b7", "#2c3541", "#f0b45c"),
    series=(
        *("#7ea4ff", "#4fcfa2", "#c39bff", "#56cbe0", "#ffa75c", "#98a4b6"),
        *("#ff7d8f", "#d4b07a", "#c3d15b", "#ff8fcc", "#bccaff", "#e6c84f"),
        *("#ff9a84", "#a79bf0", "#93cf6b", "#e0708c", "#cdd4de", "#46b8f5"),
    ),
)

_LEARNERS = (
    *("la_maml", "c_maml", "sync_la_maml", "la_er", "er", "online"),
    *("mer", "gem", "a_gem", "ewc", "dark_la_maml", "der"),
    *("er_ace", "icarl", "meta_bgd", "mer_single", "independent", "fast_and_slow"),
)


def colour_of(learner: str) -> int:
    """Returns the number of a learner's colour in `Palette.series`, the same in every picture.

    >>> colour_of("la_maml"), colour_of("er"), colour_of("my_module:my_learner")
    (0, 4, 11)
    """
    if learner in _LEARNERS:
        return _LEARNERS.index(learner)
    return sum(map(ord, learner)) % len(_LEARNERS)  # of another package: always the same one
