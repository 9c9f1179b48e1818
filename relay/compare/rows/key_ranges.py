"""Conditions for ranges of keys over one or more columns, in forms that every server's optimizer serves by the key."""

from collections.abc import Sequence
from typing import Any

from relay.compare.rows.column_forms import PairedColumn

Key = tuple[Any, ...]


def range_condition(columns: Sequence[PairedColumn], after: Key | None, upto: Key | None) -> str:
    """Return the condition of the rows with after < key <= upto; None: without this bound."""
    equal = 0
    if after is not None and upto is not None:
        while equal < len(columns) - 1 and after[equal] == upto[equal]:
            equal += 1
    parts = [_compared(one, "=", value) for one, value in zip(columns[:equal], (after or ())[:equal], strict=True)]
    if after is not None:
        parts.append(_bounded(columns[equal:], after[equal:], ">", ">"))
    if upto is not None:
        parts.append(_bounded(columns[equal:], upto[equal:], "<", "<="))
    return " AND ".join(parts) or "1"


def key_condition(columns: Sequence[PairedColumn], key: Key) -> str:
    """Return the condition of the row with this key."""
    return " AND ".join(_compared(one, "=", value) for one, value in zip(columns, key, strict=True))


def _bounded(columns: Sequence[PairedColumn], key: Key, sign: str, last_sign: str) -> str:
    """Return (a > x) OR (a = x AND b > y), with a >= x beside it: the first column alone bounds what is read."""
    if len(columns) == 1:
        return _compared(columns[0], last_sign, key[0])
    choices = []
    for number, one in enumerate(columns):
        same = [_compared(*pair) for pair in zip(columns[:number], "=" * number, key[:number], strict=True)]
        last = _compared(one, last_sign if number == len(columns) - 1 else sign, key[number])
        choices.append("(" + " AND ".join([*same, last]) + ")")
    return f"{_compared(columns[0], sign + '=', key[0])} AND ({' OR '.join(choices)})"


def _compared(column: PairedColumn, sign: str, value: Any) -> str:
    return f"{column.ordered} {sign} {column.compared_literal(value)}"
