"""A builder of small valid binlogs, MySQL-5.6-like and MariaDB-like, which remembers where its transactions begin and end.

The caller says what each event does to its group; the builder infers nothing, so it can judge code that infers.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.kernel.ingest import Ingest
from relay.archive.write.run import Run

MAGIC: Final = b"\xfebin"
HEADER: Final = struct.Struct("<IBIIIH")
MYSQL_56_LENGTHS: Final = bytes(
    [56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 92, 0, 4, 26, 8, 0, 0, 0, 8, 8, 8, 2, 0, 0, 0, 10, 10, 10, 25, 25, 0]
)
MARIADB_LENGTHS: Final = (
    MYSQL_56_LENGTHS[:14] + bytes([228]) + MYSQL_56_LENGTHS[15:28] + bytes(131) + bytes([0, 4, 19, 4]) + bytes(8)
)
OPENS, INSIDE, CLOSES, ALONE, NEUTRAL = "opens", "inside", "closes", "alone", "neutral"


@dataclass(frozen=True, slots=True)
class BuiltEvent:
    """An event's place in the file, its type, and the start of the group it belongs to (None: to none, or alone)."""

    start: int
    end: int
    kind: int
    group_start: int | None


@dataclass
class BinlogBuilder:
    """A binlog file in the making. `flavour` "mysql" or "mariadb"; `version` as the format description says it."""

    flavour: str = "mysql"
    checksum: bool = True
    server_id: int = 1
    timestamp: int = 1_700_000_000
    version: str = ""
    started: bool = True
    """True if the file is a server's first one since it was started."""
    header: bool = True
    data: bytearray = field(default_factory=lambda: bytearray(MAGIC))
    events: list[BuiltEvent] = field(default_factory=list)
    boundaries: list[int] = field(default_factory=lambda: [4])
    """Offsets where a replica may start, the first event's included."""
    groups: dict[int, int | None] = field(default_factory=dict)
    """Start of each group of several events, to its end (None: not ended)."""

    def __post_init__(self) -> None:
        self._open: int | None = None
        self._xid = 0
        if self.header:
            self.format_description()

    def event(self, kind: int, body: bytes, effect: str, *, flags: int = 0, crc: bool | None = None) -> "BinlogBuilder":
        """Append any event. `effect` is its effect on the group, one of OPENS, INSIDE, CLOSES, ALONE, NEUTRAL."""
        with_crc = self.checksum if crc is None else crc
        start = len(self.data)
        size = HEADER.size + len(body) + (4 if with_crc else 0)
        raw = HEADER.pack(self.timestamp, kind, self.server_id, size, (start + size) & 0xFFFFFFFF, flags) + body
        if with_crc:
            raw += struct.pack("<I", zlib.crc32(raw))
        self.data += raw
        if effect == OPENS:
            assert self._open is None
            self._open = start
            self.groups[start] = None
        self.events.append(BuiltEvent(start, start + size, kind, self._open))
        if effect == CLOSES:
            assert self._open is not None
            self.groups[self._open] = start + size
            self._open = None
        if self._open is None:
            self.boundaries.append(start + size)
        return self

    def format_description(self, flags: int = 0) -> "BinlogBuilder":
        """Append the first event; it has a CRC whatever the algorithm (0 none, 1 CRC32)."""
        version = self.version or ("5.6.24-log" if self.flavour == "mysql" else "10.11.19-MariaDB-log")
        lengths = MYSQL_56_LENGTHS if self.flavour == "mysql" else MARIADB_LENGTHS
        body = (
            struct.pack("<H50sIB", 4, version.encode(), self.timestamp * self.started, 19)
            + lengths
            + bytes([int(self.checksum)])
        )
        self.event(EventType.FORMAT_DESCRIPTION, body, NEUTRAL, flags=flags, crc=True)
        if self.flavour == "mariadb":
            self.event(EventType.GTID_LIST, struct.pack("<I", 0), ALONE)
            name = b"mysql-bin.000001"
            self.event(EventType.BINLOG_CHECKPOINT, struct.pack("<I", len(name)) + name, NEUTRAL)
        return self

    def query(self, text: str, effect: str = ALONE, status: bytes = b"") -> "BinlogBuilder":
        """Append a statement in schema `test`, with these status variables."""
        body = struct.pack("<IIBHH", 7, 0, 4, 0, len(status)) + status + b"test\0" + text.encode()
        return self.event(EventType.QUERY, body, effect)

    def begin(self) -> "BinlogBuilder":
        """Append the opening of a transaction: Query BEGIN, or MariaDB's Gtid event."""
        if self.flavour == "mysql":
            return self.query("BEGIN", OPENS)
        return self.mariadb_gtid(standalone=False)

    def mariadb_gtid(self, *, standalone: bool) -> "BinlogBuilder":
        """Append MariaDB's Gtid event in its plain form of 19 bytes."""
        self._xid += 1
        body = struct.pack("<QIB6x", self._xid, 0, 1 if standalone else 0x0C)
        return self.event(EventType.MARIADB_GTID, body, OPENS, flags=8)

    def table_map(self, effect: str = INSIDE) -> "BinlogBuilder":
        """Append a Table_map: table 42 is test.t with one BLOB column."""
        body = struct.pack("<IHH", 42, 0, 1) + b"\x04test\0\x01t\0" + b"\x01\xfc\x01\x02\x01"
        return self.event(EventType.TABLE_MAP, body, effect)

    def rows(self, size: int = 20, *, last: bool = True, effect: str = INSIDE) -> "BinlogBuilder":
        """Append one inserted row of `size` bytes; `last` is STMT_END_F."""
        mysql = self.flavour == "mysql"
        body = struct.pack("<IHH", 42, 0, int(last)) + (b"\x02\0" if mysql else b"") + b"\x01\xff\0"
        body += struct.pack("<H", size & 0xFFFF) + bytes(i * 31 & 0xFF for i in range(min(size, 251))) * (
            size // 251 + 1
        )
        body = body[: 20 + size]
        return self.event(EventType.WRITE_ROWS if mysql else EventType.WRITE_ROWS_V1, body, effect)

    def xid(self) -> "BinlogBuilder":
        """Append the commit of a transactional group."""
        self._xid += 1
        return self.event(EventType.XID, struct.pack("<Q", self._xid), CLOSES)

    def transaction(self, *row_sizes: int) -> "BinlogBuilder":
        """Append a whole row transaction."""
        self.begin().table_map()
        for number, size in enumerate(row_sizes or (20,)):
            self.rows(size, last=number == len(row_sizes) - 1)
        return self.xid()

    def ddl(self, text: str = "CREATE TABLE t (a BLOB)") -> "BinlogBuilder":
        """Append a statement that is a group by itself."""
        if self.flavour == "mariadb":
            return self.mariadb_gtid(standalone=True).query(text, CLOSES)
        return self.query(text)

    def rotate(self, name: str) -> "BinlogBuilder":
        """Append the last event of a file that the server finished."""
        return self.event(EventType.ROTATE, struct.pack("<Q", 4) + name.encode(), ALONE)

    def stop(self) -> "BinlogBuilder":
        """Append the last event of a file that a shutdown finished."""
        return self.event(EventType.STOP, b"", ALONE)

    @property
    def size(self) -> int:
        """The number of bytes so far, including the magic."""
        return len(self.data)

    @property
    def last_boundary(self) -> int:
        """The end of the last whole group."""
        return self.boundaries[-1]

    def boundary_at_or_before(self, offset: int) -> int:
        """Return the end of the last whole group that ends at or before `offset` (4 at least)."""
        return max((b for b in self.boundaries if b <= offset), default=4)

    def events_before(self, offset: int) -> int:
        """Return how many events end at or before `offset`."""
        return sum(event.end <= offset for event in self.events)


def runs_of(data: bytes | bytearray, cuts: Iterable[int] = (), *, start: int = 4) -> Iterator[Run]:
    """Yield runs as upstream makes them when reads end at the offsets `cuts`; `start` is 4 or a boundary in the file `data`."""
    ingest = Ingest(packets=False, stamp=False)
    ingest.begin_file(4)
    if start != 4:
        head = bytearray(data[4 : 4 + HEADER.unpack_from(data, 4)[3]])
        assert ingest.read_format(head, 0, len(head))
        ingest.begin_file(start)
    left = b""
    at = start
    for cut in [*sorted({cut for cut in cuts if start < cut < len(data)}), len(data)]:
        buffer = bytearray(left + data[at:cut])
        at = cut
        while buffer:
            events, groups = ingest.events, ingest.groups
            status = ingest.feed(buffer, 0, len(buffer))
            assert status < 16, f"status {status} at {ingest.position}"
            produced, consumed = ingest.produced, ingest.consumed
            if produced:
                yield Run(
                    memoryview(bytes(buffer[:produced])),
                    max(ingest.boundary, start),
                    ingest.position,
                    ingest.take_entries(),
                    ingest.events - events,
                    ingest.groups - groups,
                    ingest.timestamp,
                )
            buffer = buffer[consumed:]
            if not consumed:
                break
        left = bytes(buffer)
    assert not left, f"{len(left)} bytes at the end are not a whole event"
