"""Points of a grid: which there are, and the names of their folders."""

from lamaml.experiments.recipes.grids import LONGEST_NAME, Point, points
from lamaml.experiments.recipes.overrides import assignment, read_grid, read_settings


def test_a_learner_is_run_without_what_it_lacks() -> None:
    grid = {"memory_size": [5, 10], "glances": [1, 2]}
    owners = {"er": {"memory_size", "glances"}, "online": {"glances"}}
    found = points(["online", "er", "online"], grid, owners)
    assert [point.name for point in found] == [
        *("online-glances=1", "online-glances=2"),
        *("er-memory_size=5-glances=1", "er-memory_size=5-glances=2"),
        *("er-memory_size=10-glances=1", "er-memory_size=10-glances=2"),
    ]


def test_names_are_folder_names_and_differ() -> None:
    odd = [Point("my.module:er", {"path": f"/data/{'x' * 200}{n}"}).name for n in range(2)]
    assert odd[0] != odd[1]
    assert all("/" not in name and ":" not in name for name in odd)
    assert max(map(len, odd)) < LONGEST_NAME + 20


def test_values_are_split_at_commas_outside_of_brackets() -> None:
    given = ["hidden_sizes=[9,9],[5]", "max_norm=none,2", "initializer=a, b"]
    assert read_grid("digits_rotations", ["er"], given) == {
        "hidden_sizes": [(9, 9), (5,)],
        "max_norm": [None, 2.0],
        "initializer": ["a", "b"],
    }
    (path,) = read_grid("arrays", ["er"], ["path=/data/a,b.npz"])["path"]
    assert str(path) == "/data/a,b.npz"


def test_an_assignment_is_read_back() -> None:
    settings = {"hidden_sizes": (9, 9), "max_norm": None, "learning_rate": 1e-05}
    words = [assignment(name, value) for name, value in settings.items()]
    assert read_settings("digits_rotations", "er", words) == settings
