"""Binlog events of every type, their packets, and a walk through the kernel in any cuts, for tests of the kernel.

Everything here is plain and slow, and uses only `struct` and `zlib`.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from protocol.kernel import codes
from tests.support.binlog_builder import MARIADB_LENGTHS, MYSQL_56_LENGTHS

HEADER: Final = struct.Struct("<IBIIIH")
MAX_PAYLOAD: Final = 0xFFFFFF


def raw_event(
    kind: int,
    body: bytes = b"",
    *,
    offset: int | None = None,
    checksum: bool = True,
    flags: int = 0,
    timestamp: int = 1_700_000_000,
    server_id: int = 1,
    log_pos: int | None = None,
    length: int | None = None,
) -> bytes:
    """Return one event that starts at `offset` of its file; `log_pos` and `length` override the true values."""
    size = HEADER.size + len(body) + (4 if checksum else 0)
    if log_pos is None:
        log_pos = 0 if offset is None else (offset + size) & 0xFFFFFFFF
    event = HEADER.pack(timestamp, kind, server_id, size if length is None else length, log_pos, flags) + body
    return event + struct.pack("<I", zlib.crc32(event)) if checksum else event


def format_body(
    version: str = "5.6.24-log",
    lengths: bytes = MYSQL_56_LENGTHS,
    algorithm: int | None = 1,
    *,
    created: int = 1_700_000_000,
    header_length: int = 19,
) -> bytes:
    """Return a format description's body without its CRC32. `algorithm` None: a server before checksums."""
    body = struct.pack("<H50sIB", 4, version.encode(), created, header_length) + lengths
    return body if algorithm is None else body + bytes([algorithm])


def query_body(text: str | bytes, schema: bytes = b"test", status: bytes = b"", post: int = 13) -> bytes:
    """Return a Query's body; `post` 11: of a server before 5.0, without status variables."""
    data = text.encode("latin-1") if isinstance(text, str) else text
    head = struct.pack("<IIBH", 7, 0, len(schema), 0)
    if post >= 13:
        head += struct.pack("<H", len(status)) + status
    return head + schema + b"\0" + data


def rotate_body(name: bytes, position: int = 4) -> bytes:
    """Return a Rotate's body."""
    return struct.pack("<Q", position) + name


def rows_body(last: bool = True, data: bytes = b"\x01\xff\0\x01") -> bytes:
    """Return a rows event's body, V1: table id 6, flags 2."""
    return struct.pack("<IHH", 42, 0, int(last)) + data


@dataclass
class EventStream:
    """Events of one file, in order, with true positions and checksums."""

    checksum: bool = True
    version: str = "5.6.24-log"
    offset: int = 4
    events: list[bytes] = field(default_factory=list)
    with_format: bool = True

    def __post_init__(self) -> None:
        if self.with_format:
            lengths = MARIADB_LENGTHS if "MariaDB" in self.version else MYSQL_56_LENGTHS
            self.add_raw(raw_event(15, format_body(self.version, lengths, int(self.checksum)), offset=self.offset))

    def add_raw(self, event: bytes) -> "EventStream":
        self.events.append(event)
        self.offset += len(event)
        return self

    def add(self, kind: int, body: bytes = b"", **fields: Any) -> "EventStream":
        """Append an event; `fields` as `raw_event`'s."""
        return self.add_raw(raw_event(kind, body, offset=self.offset, checksum=self.checksum, **fields))

    def query(self, text: str, **fields: Any) -> "EventStream":
        return self.add(2, query_body(text), **fields)

    @property
    def data(self) -> bytes:
        return b"".join(self.events)


def artificial_rotate(name: bytes = b"mysql-bin.000001", position: int = 4, checksum: bool = True) -> bytes:
    """Return what a source sends before each file; it is stored nowhere."""
    return raw_event(4, rotate_body(name, position), checksum=checksum, flags=0x20, timestamp=0, log_pos=0)


def heartbeat(position: int, checksum: bool = True, name: bytes = b"mysql-bin.000001") -> bytes:
    """Return a heartbeat of a source that waits at `position`."""
    return raw_event(27, name, checksum=checksum, timestamp=0, log_pos=position)


def packets_of(payload: bytes, sequence: int) -> tuple[bytes, int]:
    """Return the packets of one payload, and the sequence number after them."""
    out = bytearray()
    at = 0
    while True:
        chunk = payload[at : at + MAX_PAYLOAD]
        out += len(chunk).to_bytes(3, "little") + bytes([sequence]) + chunk
        sequence = (sequence + 1) & 255
        at += len(chunk)
        if len(chunk) < MAX_PAYLOAD:
            return bytes(out), sequence


def packetise(events: Iterable[bytes], prefix: bytes = b"\0", sequence: int = 1) -> bytes:
    """Return the packet stream of these events."""
    out = []
    for event in events:
        data, sequence = packets_of(prefix + event, sequence)
        out.append(data)
    return b"".join(out)


@dataclass
class Walk:
    """The result of a walk through the kernel. It is equal for equal input, whatever the cuts and the build."""

    produced: bytes = b""
    status: int = 0
    position: int = 0
    boundary: int = 0
    group_start: int = 0
    in_group: bool = False
    events: int = 0
    groups: int = 0
    heartbeats: int = 0
    unknown: int = 0
    entries: bytes = b""
    violations: list[tuple[int, ...]] = field(default_factory=list)
    unknown_types: list[tuple[int, int]] = field(default_factory=list)
    rotates: list[tuple[int, bytes, int]] = field(default_factory=list)
    timestamp: int = 0
    checksum: int = -1
    sequence: int = 0
    bad_type: int = 0
    error_text: str = ""
    left: int = 0


def walk(
    build: Any,
    data: bytes,
    cuts: Sequence[int] = (),
    *,
    packets: bool = True,
    stamp: bool = True,
    prefix: int = 1,
    start: int = 4,
    ingest: Any = None,
    announced: bool = True,
    make_buffer: Callable[[bytes], Any] = bytearray,
) -> Walk:
    """Feed `data` as reads that end at `cuts` would, keeping what was not consumed, as the upstream does.

    It stops at an error, an ERR or EOF packet. An artificial Rotate to offset 4 of another file than the first begins a file.
    """
    if ingest is None:
        ingest = build.ingest.Ingest(packets=packets, stamp=stamp, prefix=prefix)
        ingest.announced_checksum = announced
        ingest.begin_file(start)
    result = Walk()
    held = b""
    ended = False
    at = 0
    out = bytearray()
    named: bytes | None = None
    for cut in [*sorted({c for c in cuts if 0 < c < len(data)}), len(data)]:
        buffer = make_buffer(held + data[at:cut])
        at = cut
        used = 0
        while True:
            status = ingest.feed(buffer, used, len(buffer))
            out += bytes(buffer[used : ingest.produced])
            assert used <= ingest.produced <= ingest.consumed <= len(buffer)
            used = ingest.consumed
            result.entries += ingest.take_entries()
            result.violations += ingest.take_violations()
            result.unknown_types += ingest.take_unknown_types()
            result.status = status
            if status in (codes.ROTATE, codes.STORED_ROTATE):
                result.rotates.append((status, bytes(ingest.rotate_name), ingest.rotate_position))
                if status == codes.ROTATE:
                    if named is not None and named != ingest.rotate_name:
                        ingest.begin_file(ingest.rotate_position)
                    named = bytes(ingest.rotate_name)
                continue
            if status != codes.TABLE_FULL:
                break
        held = bytes(buffer[used:])
        ended = status >= 16 or status in (codes.PACKET_ERR, codes.PACKET_EOF)
        if ended:
            break
    result.produced = bytes(out)
    for name in ("position", "boundary", "group_start", "in_group", "events", "groups", "heartbeats", "unknown"):
        setattr(result, name, getattr(ingest, name))
    for name in ("timestamp", "checksum", "sequence"):
        setattr(result, name, getattr(ingest, name))
    if result.status >= 16:
        result.error_text = ingest.error_text
        result.bad_type = ingest.bad_type
    result.left = 0 if ended else len(held)
    return result
