"""Learners, streams and models are found by name, by entry point, by module and as functions."""

from importlib.metadata import EntryPoint

import pytest

from lamaml import _registry
from lamaml._registry import entry_point_names, find_learner, find_model, find_stream, name_of
from lamaml.errors import InvalidArgument
from lamaml.learners import LEARNERS, er
from lamaml.models import MODELS
from lamaml.streams import STREAMS

FIND = {"learner": find_learner, "stream": find_stream, "model": find_model}
TABLES = {"learner": LEARNERS, "stream": STREAMS, "model": MODELS}
every_kind = pytest.mark.parametrize("kind", list(FIND))


@pytest.fixture
def entry(monkeypatch: pytest.MonkeyPatch):
    """Adds entry points for the time of a test."""
    added: list[EntryPoint] = []
    monkeypatch.setattr(
        _registry, "entry_points", lambda group: [e for e in added if e.group == group]
    )
    _registry._entry_points.cache_clear()
    yield lambda kind, name, value: added.append(EntryPoint(name, value, f"lamaml.{kind}s"))
    _registry._entry_points.cache_clear()


@every_kind
def test_the_package_finds_its_own(kind):
    for name, builder in TABLES[kind].items():
        assert FIND[kind](name) is builder
        assert name_of(builder) == name


@every_kind
def test_a_function_is_returned_as_it_is(kind):
    def mine():
        pass

    assert FIND[kind](mine) is mine


@every_kind
def test_an_entry_point_is_a_name(kind, entry):
    entry(kind, "mine", "lamaml.learners.er:er")
    assert FIND[kind]("mine") is er
    assert entry_point_names(kind) == {"mine": "lamaml.learners.er:er"}


@every_kind
def test_a_name_of_the_package_wins_with_a_warning(kind, entry):
    name = next(iter(TABLES[kind]))
    entry(kind, name, "elsewhere:builder")
    with pytest.warns(UserWarning, match=f"{name}.*lamaml is used.*elsewhere:builder"):
        assert FIND[kind](name) is TABLES[kind][name]
    assert entry_point_names(kind) == {}


def test_of_two_entry_points_with_one_name_the_first_wins(entry):
    entry("learner", "mine", "lamaml.learners.er:er")
    entry("learner", "mine", "lamaml.learners.online:online")
    with pytest.warns(UserWarning, match="two packages share a name"):
        assert find_learner("mine") is er


def test_entry_points_are_read_once(entry):
    entry("learner", "mine", "lamaml.learners.er:er")
    find_learner("mine")
    entry("learner", "late", "lamaml.learners.er:er")
    with pytest.raises(InvalidArgument, match="late"):
        find_learner("late")


def test_a_registered_learner_is_found_at_once(monkeypatch):
    monkeypatch.setitem(LEARNERS, "mine", find_stream)
    assert find_learner("mine") is find_stream


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("lamaml", "unknown learner 'lamaml': did you mean 'la_maml'?"),
        ("no_such_module:f", "'no_such_module' cannot be imported"),
        ("lamaml.learners.er:err", "unknown function of lamaml.learners.er 'err': did you mean"),
        ("lamaml.learners:LEARNERS", "must be a function"),
        (".er:er", "cannot be imported"),
        ("lamaml:", "must be module:function"),
        (3, 'learner = 3: must be a name, "module:function" or a function'),
    ],
)
def test_what_cannot_be_found_is_named(given, words):
    with pytest.raises(InvalidArgument) as error:
        find_learner(given)
    assert words in str(error.value)


def test_a_suggestion_may_be_an_entry_point(entry):
    entry("learner", "heavy_ball", "elsewhere:heavy_ball")
    with pytest.raises(InvalidArgument, match="did you mean 'heavy_ball'"):
        find_learner("heavyball")
    with pytest.raises(InvalidArgument, match=r"heavy_ball.*'elsewhere' cannot be imported"):
        find_learner("heavy_ball")


def test_the_name_of_a_function_finds_it_again():
    assert find_learner(name_of(find_model)) is find_model
    assert name_of("anything") == "anything"


def test_what_no_other_process_can_import_has_no_name():
    def local():
        pass

    for builder in (local, lambda: None):
        with pytest.raises(InvalidArgument, match="other processes"):
            name_of(builder)
