"""A comparison of a relayed binlog with the source's own, byte for byte except what the relay may change.

It is independent of `protocol`: it walks the events by their length fields alone and computes each CRC32 with zlib, so a mistake in the
product cannot hide itself here.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAGIC: Final = b"\xfebin"
HEADER_BYTES: Final = 19
CRC_BYTES: Final = 4
MARKER_BITS: Final = 0x1C00
IN_USE_BIT: Final = 0x0001
FORMAT_DESCRIPTION: Final = 15
_FLAGS_AT: Final = 17


class Difference(AssertionError):
    """Two binlogs differ, or one is no sound binlog; the text says where."""


@dataclass(frozen=True, slots=True)
class RawEvent:
    """One event of a file: where it starts, and its fields as the header has them."""

    offset: int
    kind: int
    flags: int
    data: bytes

    @property
    def marker(self) -> int:
        """The boundary type in the marker bits, 0 to 7."""
        return (self.flags & MARKER_BITS) >> 10

    @property
    def end(self) -> int:
        """The offset after it."""
        return self.offset + len(self.data)


def events_of(binlog: bytes, name: str = "binlog") -> Iterator[RawEvent]:
    """Yield the events of a whole file. Raises: Difference if lengths do not add up."""
    if binlog[:4] != MAGIC:
        raise Difference(f"{name} starts with {binlog[:4].hex()}, not with a binlog's magic number")
    offset = 4
    while offset < len(binlog):
        if offset + HEADER_BYTES > len(binlog):
            raise Difference(f"{name}:{offset}: {len(binlog) - offset} bytes are left, too few for a header")
        kind, _, length, _, flags = struct.unpack_from("<xxxxBIIIH", binlog, offset)
        if length < HEADER_BYTES or offset + length > len(binlog):
            raise Difference(f"{name}:{offset}: an event of {length} bytes does not fit into {len(binlog)} bytes")
        yield RawEvent(offset, kind, flags, binlog[offset : offset + length])
        offset += length


def has_checksums(format_description: bytes) -> bool:
    """Return whether the events of a file carry CRC32, by its format description (5.6.1 and later): the algorithm byte."""
    return format_description[-CRC_BYTES - 1] == 1


def masked(event: RawEvent, *, checksum: bool) -> bytes:
    """Return the event without marker bits, in-use bit (format description only) and CRC32."""
    flags = event.flags & ~MARKER_BITS
    if event.kind == FORMAT_DESCRIPTION:
        flags &= ~IN_USE_BIT
    data = bytearray(event.data)
    struct.pack_into("<H", data, _FLAGS_AT, flags)
    if checksum:
        data[-CRC_BYTES:] = bytes(CRC_BYTES)
    return bytes(data)


def check_crc(event: RawEvent, name: str) -> None:
    """Raise Difference unless the CRC32 at the event's end is right. The in-use bit is not covered by it."""
    data = bytearray(event.data)
    if event.kind == FORMAT_DESCRIPTION:
        data[_FLAGS_AT] &= ~IN_USE_BIT & 0xFF
    wanted = zlib.crc32(memoryview(data)[:-CRC_BYTES])
    got = int.from_bytes(data[-CRC_BYTES:], "little")
    if wanted != got:
        raise Difference(f"{name}:{event.offset}: event type {event.kind} has CRC32 {got:08x}, not {wanted:08x}")


def check_relayed(relayed: bytes, original: bytes, name: str, *, crc_of_both: bool = False) -> int:
    """Compare a relayed binlog with the original; return the number of events. Raises: Difference.

    Each relayed event's CRC32 is recomputed. `masked` defines what is masked on both sides.
    """
    if len(relayed) != len(original):
        raise Difference(f"{name} has {len(relayed)} bytes, the source's {len(original)}")
    checksum: bool | None = None
    count = 0
    for ours, theirs in zip(events_of(relayed, name), events_of(original, f"the source's {name}"), strict=True):
        if checksum is None:
            checksum = has_checksums(ours.data)
        # The format description carries its CRC32 in any case, algorithm NONE included.
        with_crc = checksum or ours.kind == FORMAT_DESCRIPTION
        if with_crc:
            check_crc(ours, name)
            if crc_of_both:
                check_crc(theirs, f"the source's {name}")
        if masked(ours, checksum=with_crc) != masked(theirs, checksum=with_crc):
            raise Difference(
                f"{name}:{ours.offset}: event type {ours.kind} of {len(ours.data)} bytes differs from the source's,"
                f" type {theirs.kind} of {len(theirs.data)} bytes"
            )
        count += 1
    return count


def check_archive(archive: Path, originals: list[Path]) -> int:
    """Compare every archived file with the source's of the same name; return the number of events. Raises: Difference."""
    count = 0
    for original in originals:
        relayed = archive / original.name
        if not relayed.exists():
            raise Difference(f"{original.name} is not in the archive")
        count += check_relayed(relayed.read_bytes(), original.read_bytes(), original.name)
    return count


def differences(originals: list[Path], archive: Path) -> list[str]:
    """Return the differences between a source's binlogs and the archived ones of the same names.

    A cut event at a file's end is left out: it comes from a source or a relay that was killed.
    """
    found = []
    for original in originals:
        relayed = archive / original.name
        if not relayed.exists():
            found.append(f"{original.name} is not in the archive")
            continue
        try:
            ours, theirs = (_whole_events(path.read_bytes(), path.name) for path in (relayed, original))
            check_relayed(ours, theirs, original.name, crc_of_both=True)
        except Difference as difference:
            found.append(str(difference))
    return found


def _whole_events(binlog: bytes, name: str) -> bytes:
    offset = 4
    while offset + HEADER_BYTES <= len(binlog):
        length = int.from_bytes(binlog[offset + 9 : offset + 13], "little")
        if length < HEADER_BYTES:
            raise Difference(f"{name}:{offset}: an event of {length} bytes")
        if offset + length > len(binlog):
            break
        offset += length
    return binlog[:offset]
