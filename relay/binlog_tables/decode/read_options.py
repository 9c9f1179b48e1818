"""The options for reading a split: planned in the driver, executed in executors."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options: the level, its columns in order, and whether the first finding is an error.

    For level rows, `values` adds each value of the images in a column of its own, after the others (see value_columns), and
    `statement_characters` limits a row's statement (None: all of it).
    """

    level: str
    columns: tuple[str, ...]
    failfast: bool
    values: bool = False
    statement_characters: int | None = None
