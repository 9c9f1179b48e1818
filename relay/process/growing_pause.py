"""Pauses between attempts that fail."""

import random


def growing_pause(failures: int, first_s: float, longest_s: float, random_source: random.Random) -> float:
    """Return the seconds to wait after so many failures in a row, from 1: doubled with each up to `longest_s`, the upper half of it
    random, so that not all waiters come at once."""
    pause = min(longest_s, first_s * float(1 << min(failures - 1, 20)))
    return pause * (0.5 + 0.5 * random_source.random())
