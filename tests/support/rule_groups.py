"""Groups of a MySQL 5.6 source for tests of rules, written as a list of statements and rows."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import pytest

from protocol.binlog.event_type import EventType
from relay.view.rules.group import Copy, GroupEvent, New, OutGroup, SourceGroup
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.settings import ViewSettings
from relay.view.stops.stop_reason import StopReason, Untranslatable
from tests.support.binlog_builder import ALONE, BinlogBuilder
from tests.support.event_stream import query_body
from tests.support.view_writer import groups_of

# Flags, sql_mode, catalog `std`, latin1 as the client's character set.
STATUS: Final = b"\0\0\0\0\0\x01" + struct.pack("<Q", 0) + b"\x06\x03std\x04\x08\0\x08\0\x08\0"


def settings(**changes: Any) -> ViewSettings:
    """Return a view's settings, the defaults but for `changes`."""
    given: dict[str, Any] = {"name": "v", "gtids": "assign", "uuid": UUID(int=16), **changes}
    return ViewSettings(**given)


@dataclass(frozen=True)
class Rows:
    """Inserted rows: Table_map events of tables of the schema `d` and a Write_rows event for each."""

    tables: Sequence[str]
    schema: str = "d"


@dataclass(frozen=True)
class Statement:
    """A statement with other than the usual setting. `seeds` are types of events before it. `options` are flags of its session, as in
    the event, such as 1 << 26 if it does not check foreign keys."""

    text: str | bytes
    thread: int = 7
    schema: str = "d"
    error: int = 0
    mode: int = 0
    client: int = 8
    seeds: Sequence[int] = ()
    options: int = 0


@dataclass(frozen=True)
class Other:
    """Any event."""

    type: int
    body: bytes = b""


Item = str | Statement | Rows | Other
XID: Final = Other(EventType.XID, bytes(8))
INTVAR: Final = b"\x02" + bytes(8)


@dataclass(frozen=True)
class _ReadAnew:
    """Events that can only be iterated."""

    events: Iterable[GroupEvent]

    def __iter__(self) -> Iterator[GroupEvent]:
        return iter(self.events)


@dataclass
class RuleRun:
    """Groups through rules, one after the other. `told` are all their plans as texts."""

    settings: ViewSettings = field(default_factory=settings)
    version: str = "5.6.24-log"

    def __post_init__(self) -> None:
        self.rules = MysqlRules(self.settings)
        self.group: SourceGroup | None = None
        self.data = b""

    def plan(self, *items: Item) -> list[list[str]]:
        """Return the plan of one group, as texts: statements, `rows of t`, `(type)`; `+` precedes what is not the source's."""
        groups = list(self.groups(*items))
        assert len(groups) == 1, [group.events for group in groups]
        self.group = groups[0]
        known = self.rules.state()
        try:
            made = self.rules.plan(self.group)
        except Untranslatable as stopped:
            with pytest.raises(Untranslatable) as raised:
                self._read_anew(known, self.group)
            assert raised.value.reason == stopped.reason
            raise
        assert self._read_anew(known, self.group) == (made, self.rules.state())
        return [self._shown(out) for out in made]

    def _read_anew(self, known: bytes, group: SourceGroup) -> tuple[list[OutGroup], bytes]:
        """Return the plan of the same group if it is so long that its events are not held."""
        rules = MysqlRules(self.settings)
        rules.before = self.rules.before
        rules.restore(known)
        return rules.plan(group._replace(events=_ReadAnew(group.events))), rules.state()

    def groups(self, *items: Item) -> list[SourceGroup]:
        """Return the groups that these events are."""
        binlog = BinlogBuilder(version=self.version, checksum=self.version >= "5.6")
        for item in items:
            self._add(binlog, Statement(item) if isinstance(item, str) else item)
        self.data = bytes(binlog.data)
        return list(groups_of("mysql-bin.000001", self.data))

    def _add(self, binlog: BinlogBuilder, item: Statement | Rows | Other) -> None:
        if isinstance(item, Other):
            binlog.event(item.type, item.body, ALONE)
        elif isinstance(item, Rows):
            for number, name in enumerate(item.tables):
                body = struct.pack("<IHH", 42 + number, 0, 1) + bytes([len(item.schema)]) + item.schema.encode() + b"\0"
                body += bytes([len(name)]) + name.encode() + b"\0\x01\x03\0\x01"
                binlog.event(EventType.TABLE_MAP, body, ALONE)
            for number in range(len(item.tables)):
                last = number == len(item.tables) - 1
                body = struct.pack("<IHH", 42 + number, 0, last) + b"\x02\0\x01\xff\0\x01\0\0\0"
                binlog.event(EventType.WRITE_ROWS, body, ALONE)
        else:
            for kind in item.seeds:
                binlog.event(kind, INTVAR if kind == EventType.INTVAR else bytes(16), ALONE)
            options = int.from_bytes(STATUS[1:5], "little") | item.options
            status = (
                STATUS[:1] + struct.pack("<I", options) + STATUS[5:6] + struct.pack("<Q", item.mode) + STATUS[14:20]
            )
            status += struct.pack("<HHH", item.client, 8, 8)
            query = bytearray(query_body(item.text, item.schema.encode(), status))
            query[0:4], query[9:11] = item.thread.to_bytes(4, "little"), item.error.to_bytes(2, "little")
            binlog.event(EventType.QUERY, bytes(query), ALONE, flags=8 if item.text in ("BEGIN", "COMMIT") else 0)

    def _shown(self, out: OutGroup) -> list[str]:
        assert self.group is not None
        shown = []
        for piece in out.pieces:
            if isinstance(piece, New):
                shown.append("+" + text_of(piece.body))
                continue
            assert isinstance(piece, Copy)
            tables: list[str] = []
            for event in self.group.events:
                if not piece.start <= event.offset < piece.stop:
                    continue
                body = self.group.body(event)
                if event.type == EventType.QUERY:
                    shown.append(text_of(body))
                elif event.type == EventType.TABLE_MAP:
                    tables.append(body[9 + body[8] + 2 :].split(b"\0")[0].decode())
                elif event.type == EventType.WRITE_ROWS:
                    shown += [f"rows of {', '.join(tables)}"] if tables else []
                    tables = []
                else:
                    shown.append(f"({event.type})")
        return shown


def stopped(rules: RuleRun, *items: Item) -> StopReason:
    """Return why a group stops the view."""
    with pytest.raises(Untranslatable) as raised:
        rules.plan(*items)
    return raised.value.reason


def text_of(body: bytes) -> str:
    """Return the statement of a Query event's body."""
    status = int.from_bytes(body[11:13], "little")
    return body[13 + status + body[8] + 1 :].decode("utf-8", "backslashreplace")
