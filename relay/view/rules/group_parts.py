"""A transaction of the source taken apart: its BEGIN, its statements with what belongs to each, and how it ends."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from protocol.binlog.fields import Fields
from protocol.kernel.codes import (
    ANONYMOUS_GTID_EVENT,
    DELETE_FILE_EVENT,
    DELETE_ROWS_EVENT,
    DELETE_ROWS_V1_EVENT,
    EXECUTE_LOAD_QUERY_EVENT,
    GTID_EVENT,
    GTID_TAGGED_EVENT,
    PARTIAL_UPDATE_ROWS_EVENT,
    QUERY_EVENT,
    ROWS_STATEMENT_END,
    TABLE_MAP_EVENT,
    TRANSACTION_PAYLOAD_EVENT,
    UPDATE_ROWS_EVENT,
    UPDATE_ROWS_V1_EVENT,
    WRITE_ROWS_EVENT,
    WRITE_ROWS_V1_EVENT,
    XA_PREPARE_EVENT,
    XID_EVENT,
)
from relay.view.rules.group import GroupEvent, SourceGroup
from relay.view.rules.statement.logged_query import LoggedQuery, read_logged_query

REAL_GTIDS: Final = frozenset((GTID_EVENT, GTID_TAGGED_EVENT))
_GTIDS: Final = REAL_GTIDS | {ANONYMOUS_GTID_EVENT}
_ROWS: Final = frozenset((
    WRITE_ROWS_V1_EVENT, UPDATE_ROWS_V1_EVENT, DELETE_ROWS_V1_EVENT, WRITE_ROWS_EVENT, UPDATE_ROWS_EVENT, DELETE_ROWS_EVENT,
    PARTIAL_UPDATE_ROWS_EVENT,
))  # fmt: skip
_GAP: Final = rb"(?>\s|/\*.*?\*/)++"
_ROLLBACK_TO: Final = re.compile(
    rb"ROLLBACK" + _GAP + rb"(?:WORK" + _GAP + rb")?TO" + _GAP + rb"(?:SAVEPOINT" + _GAP + rb")?(.*)",
    re.IGNORECASE | re.DOTALL,
)
_SAVEPOINT: Final = re.compile(rb"SAVEPOINT" + _GAP + rb"(.*)", re.IGNORECASE | re.DOTALL)
_RELEASE: Final = re.compile(rb"RELEASE" + _GAP + rb"SAVEPOINT" + _GAP + rb"(.*)", re.IGNORECASE | re.DOTALL)
_ROLLBACK: Final = re.compile(rb"ROLLBACK\b", re.IGNORECASE)
_XA: Final = re.compile(rb"XA" + _GAP + rb"(START|END|PREPARE|COMMIT|ROLLBACK)\b", re.IGNORECASE | re.DOTALL)


class PartKind(Enum):
    """What a part of a group is."""

    GTID = "gtid"
    BEGIN = "begin"
    STATEMENT = "statement"
    ROWS = "rows"
    SAVEPOINT = "savepoint"
    ROLLBACK_TO = "rollback to"
    RELEASE = "release savepoint"
    XA = "xa"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    PACKED = "packed"
    OTHER = "other"


class GroupPart(NamedTuple):
    """[start, stop) of the file: a statement with the events before it that it needs, the rows of one, or an event.

    event: its own, the last. tables: of rows, (schema, table) of their Table_map events. name: of a savepoint.
    """

    kind: PartKind
    start: int
    stop: int
    event: GroupEvent
    query: LoggedQuery | None = None
    tables: tuple[tuple[str, str], ...] = ()
    name: bytes = b""


def read_parts(group: SourceGroup) -> list[GroupPart]:
    """The parts of a whole group, in order; together they are all of it. Raises: Malformed, Truncated."""
    return list(_parts(group))


def _parts(group: SourceGroup) -> Iterator[GroupPart]:
    start: int | None = None
    tables: list[tuple[str, str]] = []
    last: GroupEvent | None = None
    for event in group.events:
        stop = event.offset + event.length
        begun = event.offset if start is None else start
        last = event
        if event.type == QUERY_EVENT:
            yield _of_query(group, event, begun)
        elif event.type == EXECUTE_LOAD_QUERY_EVENT:
            yield GroupPart(PartKind.STATEMENT, begun, stop, event, query_of(group, event))
        elif event.type in _GTIDS:
            yield GroupPart(PartKind.GTID, begun, stop, event)
        elif event.type in (XID_EVENT, XA_PREPARE_EVENT):
            yield GroupPart(PartKind.COMMIT, begun, stop, event)
        elif event.type == TRANSACTION_PAYLOAD_EVENT:
            yield GroupPart(PartKind.PACKED, begun, stop, event)
        elif event.type == DELETE_FILE_EVENT:
            yield GroupPart(PartKind.OTHER, begun, stop, event)
        elif event.type in _ROWS and _ends_statement(group, event):
            yield GroupPart(PartKind.ROWS, begun, stop, event, tables=tuple(tables))
            tables = []
        else:
            if event.type == TABLE_MAP_EVENT:
                tables.append(table_of_map(group.body(event), group.post_lengths))
            start = begun
            continue
        start = None
    if start is not None and last is not None:
        kind = PartKind.ROWS if tables else PartKind.OTHER
        yield GroupPart(kind, start, last.offset + last.length, last, tables=tuple(tables))


def query_of(group: SourceGroup, event: GroupEvent) -> LoggedQuery:
    """What a Query or Execute_load_query event says. Raises: Malformed."""
    return read_logged_query(event.type, group.body(event), group.post_lengths, group.server_version)


def _of_query(group: SourceGroup, event: GroupEvent, start: int) -> GroupPart:
    query = query_of(group, event)
    stop = event.offset + event.length
    kind, name = control_of(query.raw)
    return GroupPart(kind, start, stop, event, query, name=name)


def control_of(raw: bytes) -> tuple[PartKind, bytes]:
    """What a statement is to its transaction, and the name of the savepoint that it is about."""
    text = raw[:400].strip()
    upper = text.upper()
    if upper == b"BEGIN":
        return PartKind.BEGIN, b""
    if upper == b"COMMIT":
        return PartKind.COMMIT, b""
    if upper.startswith(b"ROLLBACK"):
        found = _ROLLBACK_TO.match(text)
        if found is not None:
            return PartKind.ROLLBACK_TO, _savepoint_name(found[1])
        if _ROLLBACK.match(text):
            return PartKind.ROLLBACK, b""
    if upper.startswith(b"SAVEPOINT"):
        found = _SAVEPOINT.match(text)
        if found is not None:
            return PartKind.SAVEPOINT, _savepoint_name(found[1])
    if upper.startswith(b"RELEASE"):
        found = _RELEASE.match(text)
        if found is not None:
            return PartKind.RELEASE, _savepoint_name(found[1])
    if upper.startswith(b"XA") and _XA.match(text):
        return PartKind.XA, b""
    return PartKind.STATEMENT, b""


def _savepoint_name(text: bytes) -> bytes:
    """Without quotes; servers compare names of savepoints without case.

    A connection with ANSI_QUOTES writes SAVEPOINT "s", and ROLLBACK TO `s` all the same (5.6.24).
    """
    name = text.strip().rstrip(b";").strip()
    quote = name[:1]
    if quote in (b"`", b'"') and name[-1:] == quote and len(name) > 1:
        name = name[1:-1].replace(quote * 2, quote)
    return name.lower()


def table_of_map(body: bytes, post_lengths: bytes) -> tuple[str, str]:
    """(schema, table) of a Table_map event. Raises: Truncated."""
    fields = Fields(body)
    fields.skip(4 if post_lengths[TABLE_MAP_EVENT] == 6 else 6)
    fields.skip(2)
    schema = fields.take(fields.lenenc_int())
    fields.skip(1)
    table = fields.take(fields.lenenc_int())
    return schema.decode("utf-8", "backslashreplace"), table.decode("utf-8", "backslashreplace")


def _ends_statement(group: SourceGroup, event: GroupEvent) -> bool:
    at = 4 if group.post_lengths[event.type] == 6 else 6
    return bool(int.from_bytes(group.body(event)[at : at + 2], "little") & ROWS_STATEMENT_END)
