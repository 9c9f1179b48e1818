"""What of a split is read: planned in the driver, done in executors."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a split is read: the level, its columns in order, and whether the first finding is an error.

    values: of level rows, also each value of the images in a column of its own, behind the others (see value_columns).
    """

    level: str
    columns: tuple[str, ...]
    failfast: bool
    values: bool = False
