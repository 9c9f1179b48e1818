"""The SQL that makes the new server's tables those of the source. It is written as the differences are found."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TextIO

from relay.compare.rows.column_forms import PairedColumn, row_hash
from relay.compare.rows.key_ranges import Key, key_condition
from relay.compare.rows.table_side import TableSide
from relay.disk.file_calls import opened_named_text
from relay.upstream.schema.answer_text import quoted_name

_HEAD: Final = """\
-- Makes the new server equal to the source, as 'binlog-relay compare' has proven them different. Read it first.
-- It may run while the replica applies: a row is only changed as long as it is as it was seen, or still missing.
-- Run it at the new server, with the client mysql, and then 'binlog-relay compare' again.
-- It writes nothing to the binlog: servers that replicate from the new one need it, too.
SET SESSION sql_log_bin = 0;
SET NAMES utf8mb4;
SET SESSION time_zone = '+00:00', sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0;
"""


class RepairScript:
    """A script; without a path nothing is written. `with` closes it."""

    def __init__(self, path: Path | None, *, goes_on: bool = False) -> None:
        """Open the file. `goes_on`: what it contains stays. Raises: OSError."""
        self._file: TextIO | None = None
        if path is not None:
            self._file = opened_named_text(path, appends=goes_on)
            if not goes_on:
                self._file.write(_HEAD)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def is_wanted(self) -> bool:
        """True if there is a file."""
        return self._file is not None

    def add(self, text: str) -> None:
        """Write statements, each with its end."""
        if self._file is not None:
            self._file.write(text + "\n")

    def flush(self) -> None:
        """Hand all to the system, before a state says that it is written."""
        if self._file is not None:
            self._file.flush()

    # --- rows --------------------------------------------------------------------------------------------------------

    def rows(self, side: TableSide, changes: Sequence[tuple[Key, str | None, tuple[Any, ...] | None]]) -> None:
        """Write one transaction. `side` is the new server's. Of each row: the key, the checksum that the new server's row has
        (None: it has none), and the values of the source's (None: it has none)."""
        self.add("BEGIN;")
        for key, hashed, _values in changes:
            if hashed is not None:
                condition = key_condition(side.key, key)
                same = f"{row_hash(side.columns)} = '{hashed}'"
                self.add(f"DELETE FROM {side.shape.quoted} WHERE {condition} AND {same};")
        for key, _hashed, values in changes:
            if values is not None:
                missing = f"NOT EXISTS (SELECT 1 FROM {side.shape.quoted} WHERE {key_condition(side.key, key)})"
                self.add(f"{_insert(side)} SELECT {_literals(side, values)} FROM DUAL WHERE {missing};")
        self.add("COMMIT;")

    def keyless(self, side: TableSide, hashed: str, more: int, values: tuple[Any, ...] | None) -> None:
        """Write what makes so many more of a table's equal rows; fewer, if `more` is negative."""
        if more < 0:
            self.add(f"DELETE FROM {side.shape.quoted} WHERE {row_hash(side.columns)} = '{hashed}' LIMIT {-more};")
        elif values is not None:
            for _ in range(more):
                self.add(f"{_insert(side)} VALUES ({_literals(side, values)});")


def _written(columns: Sequence[PairedColumn]) -> list[tuple[int, PairedColumn]]:
    return [(place, one) for place, one in enumerate(columns) if not one.here.is_generated]


def _insert(side: TableSide) -> str:
    names = ", ".join(quoted_name(one.here.name) for _place, one in _written(side.columns))
    return f"INSERT INTO {side.shape.quoted} ({names})"


def _literals(side: TableSide, values: Sequence[Any]) -> str:
    return ", ".join(one.literal(values[place]) for place, one in _written(side.columns))
