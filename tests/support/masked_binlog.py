"""Binlog files compared as the relay promises them: equal but for the marker bits and the CRC32 that covers them."""

import struct
import zlib
from pathlib import Path

_HEADER = struct.Struct("<IBIIIH")
_MARKER_BITS = 0x3C00
_IN_USE = 0x0001
_FORMAT_DESCRIPTION = 15
_MAGIC = b"\xfebin"


def masked(data: bytes) -> bytes:
    """`data`, a whole binlog file, with marker bits, CRCs and the format description's in-use bit set to zero.

    A cut event at the end is left away. Raises: AssertionError for a wrong CRC or an event that cannot be.
    """
    assert data[:4] == _MAGIC
    out = bytearray(data)
    at, checksum = 4, True
    while at + _HEADER.size <= len(data):
        _, kind, _, size, _, flags = _HEADER.unpack_from(data, at)
        assert size >= _HEADER.size, f"an event of {size} bytes at {at}"
        if at + size > len(data):
            break
        flags &= ~_MARKER_BITS
        # A format description always has room for a CRC and says before it whether the other events have one.
        has_crc = checksum
        if kind == _FORMAT_DESCRIPTION:
            checksum = data[at + size - 5] == 1
            # A server does not compute the CRC again when it clears the in-use bit: it counts it as not set.
            has_crc = True
            event = bytearray(data[at : at + size - 4])
            struct.pack_into("<H", event, 17, _HEADER.unpack_from(data, at)[5] & ~_IN_USE)
            good = zlib.crc32(event) == int.from_bytes(data[at + size - 4 : at + size], "little")
            flags &= ~_IN_USE
        else:
            good = not has_crc or zlib.crc32(memoryview(data)[at : at + size - 4]) == int.from_bytes(
                data[at + size - 4 : at + size], "little"
            )
        assert good or (kind == _FORMAT_DESCRIPTION and not checksum), f"a wrong CRC at {at}, event type {kind}"
        struct.pack_into("<H", out, at + 17, flags)
        if has_crc:
            out[at + size - 4 : at + size] = bytes(4)
        at += size
    return bytes(out[:at])


def differences(source_files: list[Path], archive: Path) -> list[str]:
    """What differs between a source's binlogs and the archived ones of the same names; empty: nothing does."""
    found = []
    for path in source_files:
        held = archive / path.name
        if not held.exists():
            found.append(f"{path.name} is not in the archive")
            continue
        ours, theirs = masked(held.read_bytes()), masked(path.read_bytes())
        if ours != theirs:
            shorter = min(len(ours), len(theirs))
            at = next((i for i in range(shorter) if ours[i] != theirs[i]), shorter)
            found.append(f"{path.name}: archived {len(ours)} bytes, source {len(theirs)}, first difference at {at}")
    return found
