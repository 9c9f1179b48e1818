"""Packets of the MySQL protocol: header, sequence numbers, split and join at 16 MiB. Not for the dump stream.

A packet is: payload length u24 | sequence u8 | payload. A payload of 0xFFFFFF bytes or more goes in several packets;
the last one is shorter than 0xFFFFFF, possibly empty.
"""

from dataclasses import dataclass
from typing import Final

from protocol.errors import Malformed

HEADER_BYTES: Final = 4
MAX_CHUNK_BYTES: Final = 0xFFFFFF


class PacketTooLarge(Malformed):
    """A packet that is larger than what this peer may send at this stage."""


class OutOfOrder(Malformed):
    """A packet whose sequence number is not the one that must come next."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A joined payload; `sequence` is the number of its last packet: the answer continues after it."""

    sequence: int
    payload: bytes


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

        Raises: PacketTooLarge, OutOfOrder. Nothing is consumed then.
        """
        offset = 0
        payload = b""
        while len(self._data) - offset >= HEADER_BYTES:
            size = int.from_bytes(self._data[offset : offset + 3], "little")
            got = self._data[offset + 3]
            if got != sequence:
                raise OutOfOrder(f"packet number {got}, expected {sequence}")
            start = offset + HEADER_BYTES
            if len(payload) + size > self.limit_bytes:
                first = payload[:1] or self._data[start : start + 1]
                if not first and self.wide_limits:
                    return None
                limit_bytes = self.wide_limits.get(first[0], self.limit_bytes) if first else self.limit_bytes
                if len(payload) + size > limit_bytes:
                    raise PacketTooLarge(f"packet of {len(payload) + size} bytes, at most {limit_bytes} are taken here")
            if len(self._data) - start < size:
                return None
            payload += bytes(self._data[start : start + size])
            offset = start + size
            if size < MAX_CHUNK_BYTES:
                del self._data[:offset]
                return Packet(sequence, payload)
            sequence = (sequence + 1) & 0xFF
        return None


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
