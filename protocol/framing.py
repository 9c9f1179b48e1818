"""Packets of the MySQL protocol: header, sequence numbers, split and join at 16 MiB. Not for the dump stream.

A packet is: payload length u24 | sequence u8 | payload. A payload of 0xFFFFFF bytes or more goes in several packets;
the last one is shorter than 0xFFFFFF, possibly empty.
"""

from dataclasses import dataclass
from typing import Final

from protocol.errors import Malformed
from protocol.pieces import Pieces

HEADER_BYTES: Final = 4
MAX_CHUNK_BYTES: Final = 0xFFFFFF
_LARGE_BYTES: Final = (1 << 20) + 1
_PIECE_BYTES: Final = 1 << 16


class BadPacket(Malformed):
    """A packet is refused by its header, whose number is `sequence`: the answer's is the next one."""

    def __init__(self, message: str, sequence: int) -> None:
        super().__init__(message)
        self.sequence = sequence


class PacketTooLarge(BadPacket):
    """A packet is larger than what this peer may send at this stage."""


class OutOfOrder(BadPacket):
    """A packet's sequence number is not the one that must come next."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A joined payload, in pieces if it has more than a megabyte; `sequence` is the number of its last packet: the answer continues
    after it.
    """

    sequence: int
    payload: bytes | Pieces


@dataclass(slots=True)
class _Large:
    """A large incoming payload. `left` is the missing bytes of the last packet; `is_last`: no packet follows it."""

    pieces: list[bytes]
    total: int
    left: int
    is_last: bool
    sequence: int

    @property
    def received(self) -> int:
        return self.total - self.left


class PacketBuffer:
    """The input that was received and not used yet.

    Memory is bounded by `limit_bytes` plus one read: a header that announces more is refused before its payload comes. `wide_limits`
    are other limits for packets that begin with this byte.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.wide_limits: dict[int, int] = {}
        self._data = bytearray()
        self._large: _Large | None = None

    def __len__(self) -> int:
        return len(self._data) + (self._large.received if self._large is not None else 0)

    @property
    def first_byte(self) -> int | None:
        """The first byte of the next packet; None: it has not arrived."""
        if self._large is not None and self._large.pieces:
            return self._large.pieces[0][0]
        at = HEADER_BYTES if self._large is None else 0
        return self._data[at] if len(self._data) > at else None

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Add received bytes."""
        large = self._large
        if large is not None and not self._data and _PIECE_BYTES // 2 <= len(data) <= large.left:
            large.pieces.append(bytes(data))
            large.left -= len(data)
        else:
            self._data += data

    def take(self) -> bytes:
        """Return all remaining input, which is then forgotten here. Not while a large payload comes."""
        data = bytes(self._data)
        self._data.clear()
        return data

    def clear(self) -> None:
        """Forget all input."""
        self._data.clear()
        self._large = None

    def next_packet(self, sequence: int) -> Packet | None:
        """Return the next payload, or None until the rest of it arrives. `sequence` is the number that its first packet must have.

        A large payload is kept in the pieces in which it came: one that grows would be copied again and again.
        Raises: PacketTooLarge, OutOfOrder; a connection does not survive these.
        """
        if self._large is not None:
            return self._next_large(self._large)
        data = self._data
        if len(data) < HEADER_BYTES:
            return None
        size = int.from_bytes(data[:3], "little")
        _check_order(data[3], sequence)
        if size > self.limit_bytes and self.wide_limits and len(data) == HEADER_BYTES:
            return None
        self._check_size(size, data[HEADER_BYTES : HEADER_BYTES + 1], sequence)
        if size >= _LARGE_BYTES:
            del data[:HEADER_BYTES]
            self._large = _Large([], size, size, size < MAX_CHUNK_BYTES, sequence)
            return self._next_large(self._large)
        stop = HEADER_BYTES + size
        if len(data) < stop:
            return None
        with memoryview(data) as view:
            payload = bytes(view[HEADER_BYTES:stop])
        del data[:stop]
        return Packet(sequence, payload)

    def _next_large(self, large: _Large) -> Packet | None:
        data = self._data
        while True:
            while large.left:
                size = min(large.left, _PIECE_BYTES)
                if len(data) < size:
                    return None
                with memoryview(data) as view:
                    large.pieces.append(bytes(view[:size]))
                del data[:size]
                large.left -= size
            if large.is_last:
                self._large = None
                return Packet(large.sequence, Pieces(large.pieces))
            if len(data) < HEADER_BYTES:
                return None
            size = int.from_bytes(data[:3], "little")
            large.sequence = (large.sequence + 1) & 0xFF
            _check_order(data[3], large.sequence)
            # The first byte is that of the payload's first packet.
            self._check_size(large.total + size, large.pieces[0][:1], large.sequence)
            del data[:HEADER_BYTES]
            large.total += size
            large.left, large.is_last = size, size < MAX_CHUNK_BYTES

    def _check_size(self, total: int, first: bytes | bytearray, sequence: int) -> None:
        """Check a payload of `total` bytes that begins with `first`. Raises: PacketTooLarge."""
        limit_bytes = self.wide_limits.get(first[0], self.limit_bytes) if first else self.limit_bytes
        if total > limit_bytes:
            raise PacketTooLarge(f"packet of {total} bytes, at most {limit_bytes} are taken here", sequence)


def _check_order(got: int, expected: int) -> None:
    if got != expected:
        raise OutOfOrder(f"packet number {got}, expected {expected}", got)


def frame_payload(payload: bytes, sequence: int) -> bytes:
    """Return `payload` as packets; the first has number `sequence` (taken modulo 256)."""
    framed = bytearray()
    offset = 0
    while True:
        chunk = payload[offset : offset + MAX_CHUNK_BYTES]
        framed += len(chunk).to_bytes(3, "little")
        framed.append(sequence & 0xFF)
        framed += chunk
        offset += len(chunk)
        sequence += 1
        if len(chunk) < MAX_CHUNK_BYTES:
            return bytes(framed)


def packet_count(payload_bytes: int) -> int:
    """Return how many packets a payload of that many bytes takes."""
    return payload_bytes // MAX_CHUNK_BYTES + 1
