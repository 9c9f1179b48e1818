"""A transaction of the source in parts: its BEGIN, its statements with the events of each, and its end."""

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from protocol.binlog.table_map import decode_table_map, table_id_bytes
from protocol.binlog.xa_prepare import decode_xa_prepare
from protocol.errors import Malformed
from protocol.kernel.codes import (
    ANONYMOUS_GTID_EVENT,
    DELETE_FILE_EVENT,
    DELETE_ROWS_EVENT,
    DELETE_ROWS_V1_EVENT,
    EXECUTE_LOAD_QUERY_EVENT,
    GTID_EVENT,
    GTID_TAGGED_EVENT,
    INTVAR_EVENT,
    PARTIAL_UPDATE_ROWS_EVENT,
    QUERY_EVENT,
    ROWS_STATEMENT_END,
    TABLE_MAP_EVENT,
    TRANSACTION_PAYLOAD_EVENT,
    UPDATE_ROWS_EVENT,
    UPDATE_ROWS_V1_EVENT,
    USER_VAR_EVENT,
    WRITE_ROWS_EVENT,
    WRITE_ROWS_V1_EVENT,
    XA_PREPARE_EVENT,
    XID_EVENT,
)
from protocol.sql.control import Control, control_of
from relay.view.rules.group import GroupEvent, SourceGroup
from relay.view.rules.statement.logged_query import LoggedQuery, read_logged_query

REAL_GTIDS: Final = frozenset((GTID_EVENT, GTID_TAGGED_EVENT))
_GTIDS: Final = REAL_GTIDS | {ANONYMOUS_GTID_EVENT}
_ROWS: Final = frozenset((
    WRITE_ROWS_V1_EVENT, UPDATE_ROWS_V1_EVENT, DELETE_ROWS_V1_EVENT, WRITE_ROWS_EVENT, UPDATE_ROWS_EVENT, DELETE_ROWS_EVENT,
    PARTIAL_UPDATE_ROWS_EVENT,
))  # fmt: skip
_INSERT_ID: Final = b"\2"
"""The first byte of an Intvar event that assigns a number to AUTO_INCREMENT."""
_TABLE_MAP_HEAD: Final = 8 + 2 * (1 + 255 + 1)
"""The number of bytes up to the end of its names."""


class PartKind(Enum):
    """The kind of a part of a group."""

    GTID = "gtid"
    BEGIN = "begin"
    STATEMENT = "statement"
    ROWS = "rows"
    SAVEPOINT = "savepoint"
    ROLLBACK_TO = "rollback to"
    RELEASE = "release savepoint"
    XA_START = "xa start"
    XA_END = "xa end"
    XA_COMMIT = "xa commit"
    XA_ROLLBACK = "xa rollback"
    PREPARED = "xa prepare"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    PACKED = "packed"
    OTHER = "other"


_KINDS: Final = {control: PartKind[control.name] for control in Control if control is not Control.XA_PREPARE}
"""The kinds of control statements; XA PREPARE is no statement of a binary log, but an event."""


class GroupPart(NamedTuple):
    """[start, stop) of the file: a statement with the events before it that it needs, the rows of one, or an event.

    `event` is its own, the last. `tables` of rows are (schema, table) of their Table_map events. `name` is that of a savepoint or an XA
    transaction. `makes_numbers`: the statement assigns AUTO_INCREMENT values. `variables` are the events with the user
    variables that it reads.
    """

    kind: PartKind
    start: int
    stop: int
    event: GroupEvent
    query: LoggedQuery | None = None
    tables: tuple[tuple[str, str], ...] = ()
    name: bytes = b""
    makes_numbers: bool = False
    variables: tuple[GroupEvent, ...] = ()


class GroupParts:
    """The parts of a group in order, together all of it, for any number of iterations; those of a long group are not kept in memory.

    The first iteration raises Malformed and Truncated.
    """

    def __init__(self, group: SourceGroup) -> None:
        self._group = group
        self._held = read_parts(group) if group.is_held else None

    def __iter__(self) -> Iterator[GroupPart]:
        """Iterate from the first part on."""
        return iter(self._held) if self._held is not None else _parts(self._group)


def read_parts(group: SourceGroup) -> list[GroupPart]:
    """Return the parts of a group, in order; together they are all of it. Raises: Malformed, Truncated."""
    return list(_parts(group))


def _parts(group: SourceGroup) -> Iterator[GroupPart]:
    start: int | None = None
    tables: list[tuple[str, str]] = []
    last: GroupEvent | None = None
    makes_numbers = False
    variables: tuple[GroupEvent, ...] = ()
    for event in group.events:
        stop = event.offset + event.length
        begun = event.offset if start is None else start
        last = event
        if event.type == QUERY_EVENT:
            yield _of_query(group, event, begun, makes_numbers, variables)
        elif event.type == EXECUTE_LOAD_QUERY_EVENT:
            yield GroupPart(PartKind.STATEMENT, begun, stop, event, query_of(group, event), variables=variables)
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
            if event.type == INTVAR_EVENT:
                makes_numbers = makes_numbers or group.body(event, 1) == _INSERT_ID
            elif event.type == USER_VAR_EVENT:
                variables = (*variables, event)
            elif event.type == TABLE_MAP_EVENT:
                id_size = table_id_bytes(group.post_lengths[TABLE_MAP_EVENT])
                tables.append(decode_table_map(group.body(event, _TABLE_MAP_HEAD), id_size).name)
            start = begun
            continue
        start, makes_numbers, variables = None, False, ()
    if start is not None and last is not None:
        kind = PartKind.ROWS if tables else PartKind.OTHER
        yield GroupPart(kind, start, last.offset + last.length, last, tables=tuple(tables))


def as_transaction(
    group: SourceGroup, first: GroupPart, before: GroupPart, last: GroupPart
) -> tuple[GroupPart, GroupPart]:
    """Return the ends of an XA transaction: XA START as BEGIN, and XA END (`before` the last part) with what follows it as one part:
    COMMIT, ROLLBACK or PREPARED.

    Raises: Malformed, Truncated.
    """
    if last.event.type == XA_PREPARE_EVENT:
        one_phase = decode_xa_prepare(group.body(last.event)).one_phase
        kind = PartKind.COMMIT if one_phase else PartKind.PREPARED
    elif last.kind in (PartKind.ROLLBACK, PartKind.XA_ROLLBACK):
        kind = PartKind.ROLLBACK
    elif last.kind is PartKind.COMMIT:
        kind = PartKind.COMMIT
    else:
        raise Malformed("an XA transaction without an end")
    start = before.start if before.kind is PartKind.XA_END else last.start
    return first._replace(kind=PartKind.BEGIN), last._replace(kind=kind, start=start)


class GroupEnds(NamedTuple):
    """The source's GTID event, if there is one, the first part after it, and the last. `is_packed`: some events are compressed."""

    head: GroupPart | None
    first: GroupPart | None
    last: GroupPart | None
    is_packed: bool


def ends_of(group: SourceGroup, parts: GroupParts) -> GroupEnds:
    """Return the ends of a group; those of an XA transaction look like another's."""
    head = first = before = last = None
    is_packed = False
    for part in parts:
        is_packed = is_packed or part.kind is PartKind.PACKED
        if last is None and head is None and part.kind is PartKind.GTID:
            head = part
        else:
            first, before, last = first or part, last, part
    if first is not None and before is not None and last is not None and first.kind is PartKind.XA_START:
        first, last = as_transaction(group, first, before, last)
    return GroupEnds(head, first, last, is_packed)


def query_of(group: SourceGroup, event: GroupEvent) -> LoggedQuery:
    """Decode a Query or Execute_load_query event. Raises: Malformed."""
    return read_logged_query(event.type, group.body(event), group.post_lengths, group.server_version)


def _of_query(
    group: SourceGroup, event: GroupEvent, start: int, makes_numbers: bool, variables: tuple[GroupEvent, ...]
) -> GroupPart:
    query = query_of(group, event)
    stop = event.offset + event.length
    kind, name = control_part(query)
    return GroupPart(kind, start, stop, event, query, (), name, makes_numbers, variables)


def control_part(query: LoggedQuery) -> tuple[PartKind, bytes]:
    """Return the role of a statement in its transaction, and the name of the savepoint or XA transaction that it is about."""
    found = control_of(query.raw, query.server_version)
    if found is None or found.control is Control.XA_PREPARE:
        return PartKind.STATEMENT, b""
    return _KINDS[found.control], found.name


def _ends_statement(group: SourceGroup, event: GroupEvent) -> bool:
    at = table_id_bytes(group.post_lengths[event.type])
    return bool(int.from_bytes(group.body(event, at + 2)[at:], "little") & ROWS_STATEMENT_END)
