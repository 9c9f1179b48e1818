"""A MariaDB's binlogs in MySQL's envelope and nothing else translated: a replica gets the source's rows and statements without a view's
rules. It is for tests that show why there is a rule.

Binlogs are read and written by the events' lengths alone, without the product. Files are written whole, in memory.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID, uuid5

from tests.support.binlog_comparison import CRC_BYTES, HEADER_BYTES, MAGIC, RawEvent, events_of, has_checksums

BASE: Final = UUID("6f0f3cb2-6d0c-5a43-9c63-000000000018")
_QUERY, _STOP, _ROTATE, _FORMAT, _XID = 2, 3, 4, 15, 16
_ROWS_QUERY, _GTID, _PREVIOUS_GTIDS, _XA_PREPARE = 29, 33, 35, 38
_ANNOTATE, _CHECKPOINT, _MARIADB_GTID, _GTID_LIST, _START_ENCRYPTION = 160, 161, 162, 163, 164
_TO_V2: Final = {23: 30, 24: 31, 25: 32}
_LEFT_OUT: Final = frozenset((_STOP, _CHECKPOINT, _GTID_LIST, _START_ENCRYPTION))
_STANDALONE: Final = 0x01
_IGNORABLE: Final = 0x80
_POST_HEADERS: Final = bytes.fromhex(
    "000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000"
)


def domain_uuid(base: UUID, domain: int) -> UUID:
    """Return the uuid of a domain's transactions."""
    return uuid5(base, f"mariadb {domain}")


class _File:
    """One file in the making."""

    def __init__(self) -> None:
        self.data = bytearray(MAGIC)

    def put(self, like: RawEvent, kind: int, flags: int, body: bytes) -> None:
        """Append an event with this one's time and server_id."""
        timestamp, server_id = struct.unpack_from("<IxI", like.data)
        size = HEADER_BYTES + len(body) + CRC_BYTES
        event = struct.pack("<IBIIIH", timestamp, kind, server_id, size, len(self.data) + size, flags) + body
        self.data += event + struct.pack("<I", zlib.crc32(event))


def write_envelopes(binlogs: Sequence[Path], directory: Path, as_is: Mapping[str, int] | None = None) -> str:
    """Write a file for each of these, of the same name, and return the GTIDs of them all. Events have checksums, none is compressed.
    `as_is` maps a file's name to a type of event that stays unchanged in it."""
    directory.mkdir(exist_ok=True)
    seen: dict[UUID, list[int]] = {}
    for path in binlogs:
        (directory / path.name).write_bytes(_envelope(path.read_bytes(), seen, (as_is or {}).get(path.name, 0)))
    return ",".join(f"{uuid}:{':'.join(map(str, sorted(set(numbers))))}" for uuid, numbers in sorted(seen.items()))


def _envelope(source: bytes, seen: dict[UUID, list[int]], as_is: int) -> bytes:
    made = _File()
    checksum = 0
    number = 0
    group: list[tuple[RawEvent, int, int, bytes]] = []
    head: tuple[RawEvent, UUID, int] | None = None

    def end_group() -> None:
        nonlocal number, head
        if head is None:
            return
        like, uuid, gno = head
        number += 1
        seen.setdefault(uuid, []).append(gno)
        size = sum(HEADER_BYTES + len(body) + CRC_BYTES for *_, body in group)
        made.put(like, _GTID, 0, _gtid(like, uuid, gno, number, size))
        for one, kind, flags, body in group:
            made.put(one, kind, flags, body)
        group.clear()
        head = None

    for event in events_of(source):
        if event.kind == _FORMAT:
            checksum = CRC_BYTES if has_checksums(event.data) else 0
            made.put(event, _FORMAT, 0, _format())
            made.put(event, _PREVIOUS_GTIDS, _IGNORABLE, _previous_gtids(seen))
            continue
        body = event.data[HEADER_BYTES : len(event.data) - checksum]
        if event.kind == _MARIADB_GTID:
            end_group()
            gno, domain, flags = struct.unpack_from("<QIB", body)
            head = (event, domain_uuid(BASE, domain), gno)
            if not flags & _STANDALONE:
                # thread 0, no time, no schema, no error, no status variables
                group.append((event, _QUERY, 0x08, bytes(13) + b"\0BEGIN"))
        elif event.kind == _ROTATE:
            end_group()
            made.put(event, _ROTATE, event.flags, body)
        elif event.kind == as_is:
            group.append((event, event.kind, event.flags, body))
        elif event.kind not in _LEFT_OUT:
            group.append((event, *_translated(event, body)))
    end_group()
    return bytes(made.data)


def _translated(event: RawEvent, body: bytes) -> tuple[int, int, bytes]:
    if event.kind in _TO_V2:
        return _TO_V2[event.kind], event.flags, body[:8] + b"\x02\x00" + body[8:]
    if event.kind == _ANNOTATE:
        return _ROWS_QUERY, _IGNORABLE, bytes([min(255, len(body))]) + body
    return event.kind, event.flags, body


def _format() -> bytes:
    return bytes(struct.pack("<H50sIB", 4, b"8.4.0-envelope", 0, HEADER_BYTES)) + _POST_HEADERS + b"\x01"


def _previous_gtids(seen: dict[UUID, list[int]]) -> bytes:
    parts = [struct.pack("<Q", len(seen))]
    for uuid, numbers in sorted(seen.items(), key=lambda item: item[0].bytes):
        runs: list[list[int]] = []
        for number in sorted(set(numbers)):
            if runs and runs[-1][1] == number:
                runs[-1][1] += 1
            else:
                runs.append([number, number + 1])
        parts.append(uuid.bytes + struct.pack("<Q", len(runs)) + b"".join(struct.pack("<QQ", *run) for run in runs))
    return b"".join(parts)


def _gtid(event: RawEvent, uuid: UUID, gno: int, number: int, size: int) -> bytes:
    """Return the body of a GTID event that waits for the one before it."""
    (timestamp,) = struct.unpack_from("<I", event.data)
    first = b"\x01" + uuid.bytes + struct.pack("<QBQQ", gno, 2, number - 1, number)
    first += (timestamp * 1_000_000).to_bytes(7, "little")
    last = struct.pack("<I", 80400)
    bare = HEADER_BYTES + len(first) + len(last) + CRC_BYTES + size
    length = next(packed for width in (1, 3, 4, 9) if len(packed := _packed(bare + width)) == width)
    return bytes(first + length + last)


def _packed(value: int) -> bytes:
    if value < 251:
        return bytes([value])
    for mark, width in ((252, 2), (253, 3)):
        if value < 1 << 8 * width:
            return bytes([mark]) + value.to_bytes(width, "little")
    return b"\xfe" + value.to_bytes(8, "little")
