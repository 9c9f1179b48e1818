"""Rows that a MariaDB logs incompletely where REPLACE changes a row in its place."""

from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields
from protocol.sql.kind import kind_of
from protocol.sql.tables.source_table import TableName
from relay.view.stops import definition_stops

_HEAD_BYTES: Final = 8
"""The size of table id and flags."""
_VERSION_2: Final = frozenset((EventType.UPDATE_ROWS, EventType.UPDATE_ROWS_COMPRESSED))
UPDATES: Final = _VERSION_2 | {EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS_COMPRESSED_V1}
"""The events with rows before and after a change."""
_REPLACES_NOTHING: Final = frozenset(("INSERT", "UPDATE", "DELETE"))


def may_replace(text: bytes, server_version: str) -> bool:
    """Return whether the first word may be that of REPLACE or LOAD DATA … REPLACE; `text` is that of an Annotate_rows event."""
    return kind_of(text, server_version).verb not in _REPLACES_NOTHING


def check_replaced(name: TableName, event_type: int, body: bytes) -> None:
    """Check rows of a statement that may be a REPLACE; `body` is that of the event, packed or not.

    A REPLACE that meets one row may be logged as an update of it. The source gives the columns that the statement does not name their
    defaults; with binlog_row_image = MINIMAL, and for BLOB and TEXT with NOBLOB, they are missing in the row after the change, and
    replicas, MariaDB's own too, keep their old values (seen with 10.11.19 and 11.8.9).
    Raises: Untranslatable where a column is missing; Malformed, Truncated.
    """
    if event_type not in UPDATES:
        return
    fields = Fields(body)
    fields.skip(_HEAD_BYTES)
    if event_type in _VERSION_2:
        fields.skip(max(fields.u16() - 2, 0))
    columns = fields.lenenc_int()
    size = (columns + 7) // 8
    fields.skip(size)
    after = int.from_bytes(fields.take(size), "little")
    missing = columns - (after & ((1 << columns) - 1)).bit_count()
    if missing:
        raise definition_stops.partial_replace_image(name, missing)
