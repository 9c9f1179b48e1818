"""Level changes: a table's changes in the terms of Delta's change data feed, with its own columns."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from relay.binlog_tables.decode.levels import read_split
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.read_finding import BinlogUnreadable, ReadRefused
from relay.binlog_tables.plan.schemas import CHANGES
from relay.binlog_tables.plan.splits import Split
from relay.binlog_tables.plan.store import Store
from relay.binlog_tables.plan.wanted import Wanted, keep_times
from relay.binlog_tables.typed.column_kinds import TypedColumn, arrow_type, column_names
from relay.binlog_tables.typed.newest_definition import named_table
from relay.binlog_tables.typed.older_kinds import OlderKinds
from relay.binlog_tables.typed.typed_values import exact_number, typed_array

OWN: Final = {
    "_change_type": "string",
    "_commit_version": "bigint",
    "_commit_timestamp": "timestamp",
    "_change_number": "bigint",
    "_missing": "array<string>",
    "_finding": "string",
}
"""Columns beside the table's own."""
OWN_ON_REQUEST: Final = {
    "_file": "string",
    "_transaction": "bigint",
    "_position": "bigint",
    "_gtid": "string",
    "_finding_text": "string",
}
_OF_ROWS: Final = {
    "_commit_version": "sequence",
    "_commit_timestamp": "time",
    "_file": "file",
    "_transaction": "transaction",
    "_position": "position",
    "_gtid": "gtid",
}
"""Columns of level rows under another name."""
_NEEDED: Final = ("file", "position", "row", "operation", "before", "after", "finding", "finding_text", "named")
_TYPES: Final = {
    "insert": (None, "insert"),
    "delete": ("delete", None),
    "update": ("update_preimage", "update_postimage"),
}
_NOBODY: Final = "none"
_UNNAMED: Final = "columns_unnamed"
_GUESSED: Final = "value_uncertain"
_NOT_OF_TYPE: Final = "value_not_of_type"
_TEXTS: Final = {
    _UNNAMED: "Nobody knows which columns this row's values are of: they are left out, and level rows shows them as @1, @2 ….",
    _NOT_OF_TYPE: "A value of this row is none of the column's type, such as a date with zero parts: it is NULL here, and level rows "
    "shows it.",
}
"""Findings that only this level has."""


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """The options: the table, its columns, the names of all returned columns in order, and whether a finding is an error."""

    table: tuple[str, str]
    columns: tuple[TypedColumn, ...]
    names: tuple[str, ...]
    failfast: bool


def change_kinds(columns: Sequence[TypedColumn]) -> dict[str, str]:
    """Return every column that the level has for a table with these columns, with its kind. Raises: ReadRefused if names clash."""
    own = OWN | OWN_ON_REQUEST
    for name in column_names(columns):
        if name in own:
            raise ReadRefused(f"the table has a column {name}, as level changes does; level rows shows it")
    return {column.name: column.kind for column in columns} | own


def change_options(
    columns: Sequence[TypedColumn], table: str, names: Sequence[str] | None, *, failfast: bool
) -> ChangeOptions:
    """Return the options for SCHEMA.TABLE with these columns; `names` are the returned columns (None: all but those on request).
    Raises: ReadRefused."""
    known = change_kinds(columns)
    found = tuple((*column_names(columns), *OWN) if names is None else names)
    for name in found:
        if name not in known:
            raise ReadRefused(f"level {CHANGES} of {table} has no column {name!r}; it has {', '.join(known)}")
    return ChangeOptions(named_table(table), tuple(columns), found, failfast)


def wanted_of_table(table: tuple[str, str], since: datetime | None = None, until: datetime | None = None) -> Wanted:
    """Return the filters of a read of one table."""
    wanted = Wanted()
    wanted.keep_names("schema", frozenset([table[0]]))
    wanted.keep_names("table", frozenset([table[1]]))
    keep_times("rows", since, until, wanted)
    return wanted


def changes_schema(options: ChangeOptions) -> pa.Schema:
    """Return the schema of the batches."""
    kinds = change_kinds(options.columns)
    return pa.schema([pa.field(name, arrow_type(kinds[name])) for name in options.names])


def read_changes(
    store: Store, split: Split, options: ChangeOptions, wanted: Wanted, *, keeps: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of one split. Raises: BinlogUnreadable at the first finding with failfast; with `keeps`, FileLost."""
    needed = tuple(dict.fromkeys((*_NEEDED, *(_OF_ROWS[name] for name in options.names if name in _OF_ROWS))))
    schema = changes_schema(options)
    older = OlderKinds(store, split, options.table, options.columns)
    for batch in read_split(store, split, ReadOptions("rows", needed, failfast=False), wanted, keeps=keeps):
        yield _Batch(batch, options, split, older).made(schema)


class _Batch:
    """The changes of a batch of level rows: an update is two."""

    def __init__(self, rows: pa.RecordBatch, options: ChangeOptions, split: Split, older: OlderKinds) -> None:
        self._rows = rows
        self._options = options
        self._split = split
        self._taken: list[int] = []
        self._types: list[str | None] = []
        self._numbers: list[int | None] = []
        self._images: list[dict[str, Any]] = []
        self._older = older
        self._others: list[frozenset[str]] = []
        """For each image, these columns were of another kind then."""
        self._findings: list[str | None] = []
        self._texts: list[str | None] = []
        self._take()

    def _take(self) -> None:
        columns = {name: self._rows.column(name).to_pylist() for name in _NEEDED}
        operations = columns["operation"]
        at = [place for place, one in zip(columns["position"], operations, strict=True) if one is not None]
        others_of = iter(self._older.others(at))
        for row, operation in enumerate(operations):
            others = next(others_of) if operation is not None else frozenset()
            before, after = _TYPES.get(operation, (None, None))
            kept = [(kind, side) for kind, side in ((before, "before"), (after, "after")) if kind is not None]
            for number, (kind, side) in enumerate(kept or [(None, "before")]):
                text = columns[side][row]
                finding = columns["finding"][row]
                self._others.append(others)
                self._taken.append(row)
                self._types.append(kind)
                self._numbers.append(2 * columns["row"][row] + number if kind is not None else None)
                self._images.append({} if text is None or kind is None else json.loads(text, parse_float=exact_number))
                words = columns["finding_text"][row]
                if kind is not None and columns["named"][row] == _NOBODY and finding in (None, _GUESSED):
                    finding, words = _UNNAMED, _TEXTS[_UNNAMED]
                self._findings.append(finding)
                self._texts.append(words)

    def made(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return the batch. Raises: BinlogUnreadable."""
        options = self._options
        typed = {column.name: self._typed(column) for column in options.columns if column.name in options.names}
        if options.failfast:  # this covers level rows' findings too, with this level's own texts
            self._stop_at_first()
        taken = pa.array(self._taken, pa.int64())
        made: dict[str, pa.Array] = {
            "_change_type": pa.array(self._types, pa.string()),
            "_change_number": pa.array(self._numbers, pa.int64()),
            "_finding": pa.array(self._findings, pa.string()),
            "_finding_text": pa.array(self._texts, pa.string()),
        }
        if "_missing" in options.names:
            made["_missing"] = pa.array([*map(self._missing, range(len(self._taken)))], arrow_type("array<string>"))
        for name, of_rows in _OF_ROWS.items():
            if name in options.names:
                made[name] = self._rows.column(of_rows).take(taken)
        made |= typed
        return pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)

    def _typed(self, column: TypedColumn) -> pa.Array:
        name = column.name
        values = [image.get(name) for image in self._images]
        others = [n for n, of in enumerate(self._others) if name in of and values[n] is not None]
        for number in others:
            values[number] = None
        array, wrong = typed_array(values, column.kind)
        for number in (*wrong, *others):
            if self._findings[number] is None:
                self._findings[number] = _NOT_OF_TYPE
                self._texts[number] = f"{name}: {_TEXTS[_NOT_OF_TYPE]}"
        return array

    def _missing(self, number: int) -> list[str] | None:
        """Return columns that are missing from the image; None if it has all."""
        if self._types[number] is None:
            return None
        image = self._images[number]
        return [column.name for column in self._options.columns if column.name not in image] or None

    def _stop_at_first(self) -> None:
        for number, finding in enumerate(self._findings):
            if finding is not None:
                position = self._rows.column("position")[self._taken[number]].as_py()
                raise BinlogUnreadable(self._split.name, position or 0, finding, self._texts[number] or "")
