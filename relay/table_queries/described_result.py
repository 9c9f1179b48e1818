"""A result of SQLite's as a server would describe it: kinds of columns, and how numbers are written."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Final

from protocol.resultset import AnswerColumn, ColumnFlag, ColumnType, Rows, Value
from protocol.statements.translation.sqlite_text import ResultColumn
from relay.table_queries.bounded_sqlite import SelectedRows, SqliteValue

_BINARY: Final = ColumnFlag.BINARY
_DECIMALS_OF_AVERAGE: Final = 4
_NOT_FIXED: Final = 31
_LEAST_TEXT: Final = 64
_REALS: Final = (ColumnType.DOUBLE, ColumnType.NEWDECIMAL)


def described(
    selected: SelectedRows,
    asked: Sequence[ResultColumn] | None,
    defined: Mapping[str, AnswerColumn],
    own_names: Container[str],
) -> Rows:
    """Return the rows with columns. asked: what the statement says of them; None: only their names are known.

    defined: columns of the tables that were asked, by name in lower case. own_names: tables whose columns have the names of their
    definition, whatever the statement's spelling.
    """
    hints = asked if asked is not None else [ResultColumn(name, name.lower()) for name in selected.names]
    columns = []
    for index, hint in enumerate(hints):
        values = [row[index] for row in selected.rows]
        column = _column(hint, defined, values)
        is_own = _is_plain(hint, defined) and defined[hint.of].table in own_names
        columns.append(column.named(defined[hint.of].name if is_own else hint.label))
    rows = [tuple(_shown(value, column) for value, column in zip(row, columns, strict=True)) for row in selected.rows]
    return Rows(tuple(columns), tuple(rows))


def _is_plain(hint: ResultColumn, defined: Mapping[str, AnswerColumn]) -> bool:
    return not hint.function and not hint.has_alias and hint.of in defined


def _column(hint: ResultColumn, defined: Mapping[str, AnswerColumn], values: Sequence[SqliteValue]) -> AnswerColumn:
    known = defined.get(hint.of) if hint.of else None
    if hint.function == "COUNT":
        return AnswerColumn("", ColumnType.LONGLONG, 21, ColumnFlag.NOT_NULL | _BINARY, 0, is_text=False)
    if hint.function in ("SUM", "AVG"):
        if known is not None and known.kind is ColumnType.DOUBLE:
            return AnswerColumn("", ColumnType.DOUBLE, 23, _BINARY, _NOT_FIXED, is_text=False)
        decimals = _DECIMALS_OF_AVERAGE if hint.function == "AVG" else 0
        if hint.function == "SUM" and any(isinstance(value, float) and value % 1 for value in values):
            return AnswerColumn("", ColumnType.DOUBLE, 23, _BINARY, _NOT_FIXED, is_text=False)
        return AnswerColumn("", ColumnType.NEWDECIMAL, 42, _BINARY, decimals, is_text=False)
    if known is not None and hint.function in ("", "MAX", "MIN"):
        flags = known.flags & ~ColumnFlag.NOT_NULL if hint.function else known.flags
        return replace(known, flags=flags) if all(_fits(value, known) for value in values) else _inferred(values, hint)
    return _inferred(values, hint)


def _fits(value: SqliteValue, column: AnswerColumn) -> bool:
    """Return whether a client that goes by the column's kind can read the value."""
    return value is None or column.is_text or not isinstance(value, str) or column.kind in _TIMES


_TIMES: Final = (ColumnType.DATE, ColumnType.DATETIME, ColumnType.TIME, ColumnType.TIMESTAMP)


def _inferred(values: Sequence[SqliteValue], hint: ResultColumn) -> AnswerColumn:
    """Return the column for computed values: the kind that fits all of them."""
    known = [value for value in values if value is not None]
    is_number = all(isinstance(value, int | float) for value in known) and bool(known or hint.number)
    if is_number and hint.number == "decimal" and all(isinstance(value, int) for value in known):
        return AnswerColumn("", ColumnType.NEWDECIMAL, 42, _BINARY, 0, is_text=False)
    if is_number and hint.number not in ("decimal", "real") and all(isinstance(value, int) for value in known):
        return AnswerColumn("", ColumnType.LONGLONG, 21, _BINARY, 0, is_text=False)
    if is_number:
        return AnswerColumn("", ColumnType.DOUBLE, 23, _BINARY, _NOT_FIXED, is_text=False)
    return AnswerColumn("", length=max(map(len, map(str, known)), default=0) + _LEAST_TEXT)


def _shown(value: SqliteValue, column: AnswerColumn) -> Value:
    if not isinstance(value, float):
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if column.kind in _REALS and column.decimals is not None and column.decimals < _NOT_FIXED:
        return f"{value:.{column.decimals}f}"
    return f"{value:.15g}"
