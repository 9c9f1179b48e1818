"""The content of an export's files, read without the product: events without the fields that their place in a file decides."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList, decode_gtid_list
from tests.support.binlog_comparison import (
    CRC_BYTES,
    FORMAT_DESCRIPTION,
    HEADER_BYTES,
    IN_USE_BIT,
    MARKER_BITS,
    RawEvent,
    check_crc,
    events_of,
    has_checksums,
)

PREVIOUS_GTIDS, GTID_LIST = 35, 163
HEADS = frozenset((FORMAT_DESCRIPTION, PREVIOUS_GTIDS, GTID_LIST, 161, 164))


class Told(NamedTuple):
    """An event without its place: type, time, server, flags, body."""

    kind: int
    timestamp: int
    server_id: int
    flags: int
    body: bytes


def told(event: RawEvent, *, checksum: bool) -> Told:
    timestamp, kind, server_id, _size, _end, flags = struct.unpack_from("<IBIIIH", event.data)
    body = event.data[HEADER_BYTES : -CRC_BYTES if checksum else None]
    return Told(kind, timestamp, server_id, flags & ~(MARKER_BITS | 0x2000 | IN_USE_BIT), body)


def told_events(data: bytes) -> list[tuple[int, Told]]:
    """Return offset and event, without those of the head."""
    events = list(events_of(bytes(data)))
    checksum = has_checksums(events[0].data)
    return [(event.offset, told(event, checksum=checksum)) for event in events if event.kind not in HEADS]


def checked_events(path: Path, *, positions: bool = True) -> list[Told]:
    """Return the same for a file in which every position and checksum must be right and no marker is left."""
    data = path.read_bytes()
    events = list(events_of(data, path.name))
    assert events[0].kind == FORMAT_DESCRIPTION
    checksum = has_checksums(events[0].data)
    for event in events:
        (end,) = struct.unpack_from("<I", event.data, 13)
        assert not positions or end in (0, event.end), f"{path.name}:{event.offset}: end_log_pos {end}"
        assert not event.flags & (MARKER_BITS | 0x2000)
        # Before 5.6.1 it has none either.
        if checksum or (event.kind == FORMAT_DESCRIPTION and not event.data[21:].startswith(b"5.1")):
            check_crc(event, path.name)
    assert not events[0].flags & IN_USE_BIT
    return [told(event, checksum=checksum) for event in events if event.kind not in HEADS]


def executed_before(path: Path) -> GtidSet | GtidList | None:
    """Return what the file's head says."""
    events = list(events_of(path.read_bytes()))
    checksum = has_checksums(events[0].data)
    for event in events:
        body = told(event, checksum=checksum).body
        if event.kind == PREVIOUS_GTIDS:
            return decode_gtid_set(body)
        if event.kind == GTID_LIST:
            return decode_gtid_list(body)
    return None


def binlogs(directory: Path) -> Sequence[Path]:
    """Return the binlogs in the order in which a shell names them."""
    return sorted(directory.iterdir())
