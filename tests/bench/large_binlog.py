"""Large valid MariaDB binlogs made in a second: one block of equal events, repeated with the right positions.

No checksums. Every event's length is a multiple of 4, so that all positions of a block are patched as slices of 32-bit
integers, not one by one.
"""

import struct
from array import array
from pathlib import Path

from tests.support.binlog_builder import BinlogBuilder

_HEADER = struct.Struct("<IBIIIH")
_TIMESTAMP = 1_700_000_000


def write_small_transactions(path: Path, size: int) -> tuple[list[int], list[int]]:
    """About `size` bytes of transactions of 4 events; returns starts of some, spread over the file, and of their second events."""
    group = [(162, _gtid()), (19, _table_map()), (23, _rows(40)), (16, bytes(9))]
    start = _begin(path)
    unit = sum(19 + len(body) for _, body in group)
    repeats = (size - start) // unit
    with path.open("ab") as file:
        _repeat(file, group, start, repeats)
    starts = [start + unit * (repeats * k // 16) for k in range(1, 16)]
    return starts, [first + 19 + len(_gtid()) for first in starts]


def write_one_transaction(path: Path, size: int) -> tuple[int, int, list[int]]:
    """One transaction of about `size` bytes in rows events of 8 KiB, a small one behind it.

    Returns the start and end of the large one, and starts of events inside it.
    """
    start = _begin(path)
    rows = 8192 - 19
    unit = 19 + rows
    repeats = size // unit
    with path.open("ab") as file:
        inside = _repeat(file, [(162, _gtid()), (19, _table_map())], start, 1)
        end = _repeat(file, [(23, _rows(rows - 12))], inside, repeats)
        end = _repeat(file, [(16, bytes(9))], end, 1)
        _repeat(file, [(162, _gtid()), (19, _table_map()), (23, _rows(40)), (16, bytes(9))], end, 1)
    return start, end, [inside + unit * (repeats * k // 16) for k in range(1, 16)]


def _begin(path: Path) -> int:
    head = BinlogBuilder("mariadb", checksum=False)
    path.write_bytes(bytes(head.data))
    return head.size


# Bodies are of 4k + 1 bytes: with the header's 19 a multiple of 4.
def _gtid() -> bytes:
    return struct.pack("<QIB", 7, 0, 0x0C) + bytes(8)


def _table_map() -> bytes:
    return struct.pack("<IHH", 42, 0, 1) + b"\x04test\0\x01t\0" + b"\x01\xfc\x01\x02\x01" + bytes(3)


def _rows(size: int) -> bytes:
    body = struct.pack("<IHH", 42, 0, 1) + b"\x01\xff\xfe" + struct.pack("<H", size - 4)
    return body + b"r" * (size + 12 - len(body) - (size + 12 - 1) % 4)


def _repeat(file, group: list[tuple[int, bytes]], at: int, repeats: int) -> int:  # type: ignore[no-untyped-def]
    """Appends `group` `repeats` times from file offset `at`; returns the end."""
    unit = b""
    places = []
    for kind, body in group:
        size = 19 + len(body)
        assert size % 4 == 0, (kind, size)
        places.append((len(unit), len(unit) + size))
        unit += _HEADER.pack(_TIMESTAMP, kind, 1, size, 0, 8 if kind == 162 else 0) + body
    step = len(unit)
    at_once = max(1, (4 << 20) // step)
    block = array("I", bytes(3) + unit * at_once + bytes(1))
    while repeats:
        count = min(repeats, at_once)
        for start, end in places:
            ends = array("I", range(at + end, at + end + step * at_once, step))
            block[(start + 16) // 4 :: step // 4] = ends
        file.write(memoryview(block).cast("B")[3 : 3 + step * count])
        at += step * count
        repeats -= count
    return at
