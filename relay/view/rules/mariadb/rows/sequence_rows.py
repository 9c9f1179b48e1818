"""Detects rows of a sequence, which MariaDB stores as a table of one row, and MySQL does not have."""

from collections.abc import Sequence
from typing import Final

from protocol.binlog.table_map import TableMap
from protocol.columns.codes import column_codes as codes

_VALUE_TYPES: Final = frozenset(
    (codes.FIELD_TINY, codes.FIELD_SHORT, codes.FIELD_LONG, codes.FIELD_LONGLONG, codes.FIELD_INT24)
)
_REST: Final = bytes((codes.FIELD_LONGLONG, codes.FIELD_LONGLONG, codes.FIELD_TINY, codes.FIELD_LONGLONG))
"""The types of increment, cache size, the flag of cycling, and the number of cycles."""
_VALUES: Final = 4
_NAMES: Final = [
    b"next_not_cached_value", b"minimum_value", b"maximum_value", b"start_value", b"increment", b"cache_size", b"cycle_option",
    b"cycle_count",
]  # fmt: skip


def may_be_sequence(table: TableMap, names: Sequence[bytes] | None) -> bool:
    """Return whether the columns are those of a sequence: four of one type of integers (BIGINT up to 11.4), then those that all have.
    `names` are those of the columns, where the event contains them."""
    types = table.types
    if len(types) != _VALUES + len(_REST) or any(table.nullable):
        return False
    if names is not None and list(names) != _NAMES:
        return False
    return len(set(types[:_VALUES])) == 1 and types[0] in _VALUE_TYPES and types[_VALUES:] == _REST
