"""What of a split is read: planned in the driver, done in executors."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a split is read: the level, its columns in order, and whether the first finding is an error.

    Of level rows: `values`, also each value of the images in a column of its own, behind the others (see value_columns);
    `statement_characters`, so many of a row's statement, None: all.
    """

    level: str
    columns: tuple[str, ...]
    failfast: bool
    values: bool = False
    statement_characters: int | None = None
