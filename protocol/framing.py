"""Packets of the MySQL protocol: header, sequence numbers, split and join at 16 MiB. Not for the dump stream.

A packet is: payload length u24 | sequence u8 | payload. A payload of 0xFFFFFF bytes or more goes in several packets;
the last one is shorter than 0xFFFFFF, possibly empty.
"""

from dataclasses import dataclass
from typing import Final

from protocol.errors import Malformed

HEADER_BYTES: Final = 4
MAX_CHUNK_BYTES: Final = 0xFFFFFF
_GIVEN_AWAY_BYTES: Final = (1 << 20) + HEADER_BYTES + 1


class PacketTooLarge(Malformed):
    """A packet that is larger than what this peer may send at this stage."""


class OutOfOrder(Malformed):
    """A packet whose sequence number is not the one that must come next."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A joined payload, a view only of more than a megabyte; `sequence` is the number of its last packet: the answer
    continues after it."""

    sequence: int
    payload: bytes | memoryview


class PacketBuffer:
    """Input that was received and not used yet.

    Memory is bounded by `limit_bytes` plus one read: a header that announces more is refused before its payload comes.
    `wide_limits`: another limit for packets that begin with this byte.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.wide_limits: dict[int, int] = {}
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._data)

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Adds received bytes."""
        self._data += data

    def take(self) -> bytes:
        """All input that is left, which is then forgotten here."""
        data = bytes(self._data)
        self._data.clear()
        return data

    def clear(self) -> None:
        """Forgets all input."""
        self._data.clear()

    def next_packet(self, sequence: int) -> Packet | None:
        """The next payload, or None until the rest of it arrives. `sequence`: the number its first packet must have.

        A large payload with nothing behind it is given away as it was received: no copy of 16 MB holds up an event loop.
        Raises: PacketTooLarge, OutOfOrder. Nothing is consumed then.
        """
        data = self._data
        pieces: list[slice] = []
        offset = total = 0
        while len(data) - offset >= HEADER_BYTES:
            size = int.from_bytes(data[offset : offset + 3], "little")
            got = data[offset + 3]
            if got != sequence:
                raise OutOfOrder(f"packet number {got}, expected {sequence}")
            start = offset + HEADER_BYTES
            total += size
            if total > self.limit_bytes:
                # Of a payload in several packets the first byte is the first one's.
                first = data[HEADER_BYTES : HEADER_BYTES + 1]
                if not first and self.wide_limits:
                    return None
                limit_bytes = self.wide_limits.get(first[0], self.limit_bytes) if first else self.limit_bytes
                if total > limit_bytes:
                    raise PacketTooLarge(f"packet of {total} bytes, at most {limit_bytes} are taken here")
            if len(data) - start < size:
                return None
            offset = start + size
            pieces.append(slice(start, offset))
            if size < MAX_CHUNK_BYTES:
                return Packet(sequence, self._taken(pieces, offset))
            sequence = (sequence + 1) & 0xFF
        return None

    def _taken(self, pieces: list[slice], stop: int) -> bytes | memoryview:
        data = self._data
        if len(pieces) == 1 and stop == len(data) >= _GIVEN_AWAY_BYTES:
            self._data = bytearray()
            return memoryview(data).toreadonly()[pieces[0]]
        with memoryview(data) as view:
            payload = b"".join([view[piece] for piece in pieces])
        del data[:stop]
        return payload


def frame_payload(payload: bytes, sequence: int) -> bytes:
    """`payload` as packets; the first has number `sequence` (taken modulo 256)."""
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
    """How many packets a payload of that many bytes takes."""
    return payload_bytes // MAX_CHUNK_BYTES + 1
