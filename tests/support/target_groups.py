"""Groups of a MySQL 9.7 source for tests of the rules for older targets, and their results, event by event."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from protocol.binlog.event_type import EventType
from protocol.binlog.gtid_event import Gtid, encode_gtid
from protocol.binlog.layout import HEADER, HEADER_SIZE
from protocol.binlog.query import Query, read_query
from protocol.binlog.status_variables import SQL_MODE, decode_status, encode_status
from relay.view.rules.group import Copy, GroupEvent, GroupRules, New, OutGroup, SourceGroup
from relay.view.rules.settings import ViewSettings
from relay.view.rules.targets.target_rules import TargetRules
from relay.view.stops.stop_reason import StopReason, Untranslatable

UUID_OF_SOURCE: Final = UUID("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
STRICT: Final = 0x45A00020
"""ONLY_FULL_GROUP_BY, STRICT_TRANS_TABLES, NO_ZERO_IN_DATE, NO_ZERO_DATE and the rest of 9.7's default."""
_VERSION: Final = "9.7.4-2"


class Event(NamedTuple):
    """A type and a body."""

    type: int
    body: bytes


def settings(target: str = "mysql-5.6", **changes: Any) -> ViewSettings:
    """Return a view's settings, for an older target."""
    changes.setdefault("gtids", "anonymous")
    return ViewSettings("v", uuid=UUID(int=16), target=target, **changes)


def statement(
    text: str | bytes,
    *,
    collations: tuple[int, int, int] = (255, 255, 255),
    mode: int = STRICT,
    default: int | None = 255,
    explicit: int | None = None,
    more: Sequence[tuple[int, bytes]] = (),
    load: bytes = b"",
) -> Event:
    """Return a Query event as 9.7.4 writes it; with `load` the part of an Execute_load_query."""
    variables = [
        (0, bytes(4)), (1, struct.pack("<Q", mode)), (6, b"\x03std"), (4, struct.pack("<HHH", *collations)), (12, b"\x01d\0"),
    ]  # fmt: skip
    if explicit is not None:
        variables.append((16, bytes((explicit,))))
    if default is not None:
        variables.append((18, struct.pack("<H", default)))
    variables += [(19, b"\0"), *more]
    raw = text.encode() if isinstance(text, str) else text
    body = Query(7, 0, 0, encode_status(dict(variables)), b"d", raw, load).encode()
    return Event(EventType.EXECUTE_LOAD_QUERY if load else EventType.QUERY, body)


BEGIN: Final = statement("BEGIN")
COMMIT: Final = statement("COMMIT")
XID: Final = Event(EventType.XID, bytes(8))
ANONYMOUS: Final = Event(
    EventType.ANONYMOUS_GTID, encode_gtid(Gtid(1, UUID(int=0), 0, "", 4, 5, 1_795_423_210_000_000, None, 300, 90704))
)
GTID: Final = Event(
    EventType.GTID, encode_gtid(Gtid(0, UUID_OF_SOURCE, 77, "", 4, 5, 1_795_423_210_000_000, None, 300, 90704))
)


def table_map(*types: int, name: bytes = b"t", optional: bytes = b"") -> Event:
    """Return a Table_map of d.t, or of d.`name`."""
    body = struct.pack("<IHH", 42, 0, 1) + b"\x01d\0" + bytes((len(name),)) + name + b"\0"
    body += bytes((len(types), *types)) + b"\0" + bytes((len(types) + 7) // 8)
    return Event(EventType.TABLE_MAP, body + optional)


def rows(event_type: int = EventType.WRITE_ROWS, extra: bytes = b"\x02\0") -> Event:
    """Return one row of one INT."""
    return Event(event_type, struct.pack("<IHH", 42, 0, 1) + extra + b"\x01\xff\0\x01\0\0\0")


def group_of(*events: Event, version: str = _VERSION) -> SourceGroup:
    """Return the group."""
    at = 1000
    found: list[GroupEvent] = []
    bodies = {}
    for event_type, body in events:
        length = HEADER_SIZE + len(body) + 4
        found.append(GroupEvent(at, length, event_type, 0, 1_795_423_210, 1))
        bodies[at] = body
        at += length

    def body_of(event: GroupEvent, most: int | None = None) -> bytes:
        return bodies[event.offset][:most]

    return SourceGroup("mysql-bin.000001", 1000, at, found, body_of, bytes(256), version)


def made_of(group: SourceGroup, outgroup: OutGroup) -> list[Event]:
    """Return the events of one group of the view."""
    made = []
    for piece in outgroup.pieces:
        if isinstance(piece, Copy):
            inside = [event for event in group.events if piece.start <= event.offset < piece.stop]
            made += [Event(event.type, group.body(event)) for event in inside]
        else:
            assert isinstance(piece, New)
            made.append(Event(piece.type, piece.body))
    return made


def plan(rules: GroupRules, *events: Event, version: str = _VERSION) -> list[list[Event]]:
    """Return the groups of the view that result from one."""
    group = group_of(*events, version=version)
    return [made_of(group, outgroup) for outgroup in rules.plan(group)]


def made_for(target: str, *events: Event, **changes: Any) -> list[list[Event]]:
    """Return the same, by new rules for a view of that target."""
    return plan(TargetRules(settings(target, **changes)), *events)


def text_made(
    text: str | bytes, target: str = "mysql-5.6", collations: Mapping[int, int] | None = None, **of: Any
) -> str:
    """Return the resulting text of a statement."""
    ((event,),) = made_for(target, statement(text, **of), collations=collations or {})
    return read_query(event.type, event.body, 0).text.decode()


def query_made(event: Event, target: str = "mysql-5.6", **changes: Any) -> Query:
    """Return the result of a Query event, in parts."""
    ((made,),) = made_for(target, event, **changes)
    return read_query(made.type, made.body, 0)


def status_made(event: Event, target: str = "mysql-5.6", **changes: Any) -> dict[int, bytes]:
    """Return the status variables of the result of a Query event."""
    return decode_status(query_made(event, target, **changes).status_variables)


def mode_made(event: Event, target: str = "mysql-5.6") -> int:
    """Return the sql_mode of the result of a Query event."""
    return int.from_bytes(status_made(event, target)[SQL_MODE], "little")


def stop_of(*events: Event, target: str = "mysql-5.6", **changes: Any) -> StopReason:
    """Return why the view stops before the group. Raises: AssertionError if it does not."""
    try:
        made = made_for(target, *events, **changes)
    except Untranslatable as error:
        return error.reason
    raise AssertionError(f"it was kept: {made}")


def payload(*events: Event, compression: int = 0) -> Event:
    """Return a compressed transaction."""
    import zstandard

    inside = b"".join(
        HEADER.pack(1_795_423_210, event_type, 1, HEADER_SIZE + len(body), 0, 0) + body for event_type, body in events
    )
    packed = zstandard.ZstdCompressor().compress(inside) if compression == 0 else inside
    fields = b"".join(
        bytes((code,)) + bytes((len(value),)) + value
        for code, value in (
            (2, _packed(compression)), (3, _packed(len(inside))), (1, _packed(len(packed))),
        )
    )  # fmt: skip
    return Event(EventType.TRANSACTION_PAYLOAD, fields + b"\0" + packed)


def _packed(number: int) -> bytes:
    if number < 251:
        return bytes((number,))
    return b"\xfc" + struct.pack("<H", number) if number < 1 << 16 else b"\xfe" + struct.pack("<Q", number)
