"""Tables and rows of a newer source: column types that a target does not have, and the layouts that it reads.

5.6.24 skips the optional metadata of a Table_map (binlog_row_metadata FULL and MINIMAL), the partitions' numbers before rows, and the
flag 0x0010 of rows (foreign keys are the server's, 9.6 and later): all are unchanged.
"""

from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.table_map import decode_table_map
from protocol.columns.codes import column_codes as codes
from protocol.errors import ProtocolError
from relay.view.rules.targets.known.target import Target
from relay.view.stops import definition_stops, statement_stops

_NAMES: Final = {
    codes.FIELD_TIMESTAMP2: "TIMESTAMP", codes.FIELD_DATETIME2: "DATETIME", codes.FIELD_TIME2: "TIME",
    codes.FIELD_TYPED_ARRAY: "an array",
    codes.FIELD_VECTOR: "VECTOR", codes.FIELD_JSON: "JSON",
}  # fmt: skip
_TO_VERSION_1: Final = {
    EventType.WRITE_ROWS: EventType.WRITE_ROWS_V1,
    EventType.UPDATE_ROWS: EventType.UPDATE_ROWS_V1,
    EventType.DELETE_ROWS: EventType.DELETE_ROWS_V1,
}
_VERSION_1_FIXED: Final = 8


def check_columns(body: bytes, target: Target) -> None:
    """Check a Table_map for types that the target does not have. Raises: Untranslatable."""
    try:
        table = decode_table_map(body)
        types = table.types
    except ProtocolError as error:
        raise statement_stops.not_parsed(body[8:60], f"its Table_map is damaged ({error})") from error
    for column, kind in enumerate(types, 1):
        if kind not in target.column_types:
            raise definition_stops.column_type(column, table.name, _NAMES.get(kind, f"number {kind}"), target.title)


def rows_of_version_1(event_type: int, body: bytes) -> tuple[int, bytes]:
    """Return type and body of a row event as 5.5 reads it: without the extra data after the fixed part."""
    extra = int.from_bytes(body[_VERSION_1_FIXED : _VERSION_1_FIXED + 2], "little")
    return _TO_VERSION_1[EventType(event_type)], body[:_VERSION_1_FIXED] + body[_VERSION_1_FIXED + extra :]
