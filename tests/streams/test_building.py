"""Streams from arrays of tasks: what is built, and what is refused with which words."""

import numpy as np
import pytest

from lamaml.errors import InvalidArgument
from lamaml.streams import stream_from_arrays
from lamaml.types import Stream


def rows(labels, dtype=np.float32, width=3):
    return np.full((len(labels), width), 2, dtype), np.array(labels)


FIRST, SECOND = rows([0, 1, 0]), rows([2, 3])


def build(train=(FIRST, SECOND), test=(FIRST, SECOND), scenario="class", **options):
    return stream_from_arrays(train, test, scenario=scenario, **options)


def test_tasks_are_as_given():
    stream = build(validation=(SECOND, FIRST), names=["one", "two"], name="mine", shuffled=False)
    assert (stream.name, stream.num_classes, stream.scenario) == ("mine", 4, "class")
    assert [task.name for task in stream.tasks] == ["one", "two"]
    assert not stream.shuffled
    assert [task.validation.y.tolist() for task in stream.tasks] == [[2, 3], [0, 1, 0]]
    assert len(build().tasks[0].validation) == 0
    assert (stream.preprocess(stream.tasks[0].train.x) == 2).all()
    images = rows([0, 1], np.uint8)
    scaled = build([images], [images])
    assert np.allclose(scaled.preprocess(scaled.tasks[0].train.x), 2 / 255)


def test_heads_of_the_task_scenario():
    stream = build(scenario="task", classes_per_task=2)
    assert (stream.classes_per_task, stream.scenario) == (2, "task")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"train": ()}, "train = .*at least one task"),
        ({"test": (FIRST,)}, "number of tasks in test = 1: must be 2"),
        ({"validation": (FIRST,)}, "number of tasks in validation = 1"),
        ({"train": (FIRST, rows([]))}, "number of train rows of task 2 = 0: must be at least 1"),
        ({"train": (FIRST, (SECOND[0], SECOND[1][:1]))}, r"shape of y in train rows of task 2"),
        ({"train": (FIRST, rows([2.0, 3.0]))}, "dtype of y in train rows of task 2"),
        ({"train": (FIRST, rows([2, -1]))}, r"labels of train rows of task 2 = \[-1\]"),
        ({"num_classes": 3}, r"labels of train rows of task 2 = \[3\]: .*from 0 to 2"),
        ({"test": (FIRST, rows([2], width=4))}, "shape of a row of x in test rows of task 2"),
        ({"test": (FIRST, rows([2], np.uint8))}, "dtype of x in test rows of task 2"),
        ({"train": (FIRST, (SECOND[0] * np.nan, SECOND[1]))}, r"task 2 is not finite in rows"),
        ({"scenario": "tasks"}, "scenario = 'tasks': must be one of"),
        ({"scenario": "task"}, "classes_per_task = None"),
        ({"classes_per_task": 2}, "classes_per_task = 2: .*None without"),
        ({"scenario": "task", "classes_per_task": 3}, r"labels of train rows of task 2 = \[2\]"),
        ({"names": ["one"]}, "number of names = 1"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arguments, words):
    with pytest.raises(InvalidArgument, match=words):
        build(**arguments)


@pytest.mark.parametrize(
    ("scenario", "classes_per_task"), [("class", 2), ("task", None), ("tasks", None)]
)
def test_a_stream_refuses_a_scenario_that_its_heads_contradict(scenario, classes_per_task):
    with pytest.raises(InvalidArgument, match="scenario"):
        Stream("toy", (), 4, classes_per_task, lambda x: x, scenario=scenario)
    assert Stream("toy", (), 4, 2, lambda x: x).scenario == "task"
