"""How many tasks and rows may be asked for."""

import numpy as np

from lamaml.errors import require


def check_count(argument: str, value: int, largest: int) -> None:
    """Refuse a number of tasks or rows that the data cannot give.

    >>> check_count("num_tasks", 21, 20)
    Traceback (most recent call last):
    lamaml.errors.InvalidArgument: num_tasks = 21: must be a whole number from 1 to 20
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(whole and 1 <= value <= largest, argument, value, f"a whole number from 1 to {largest}")
