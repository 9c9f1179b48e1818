"""What a view's file is to be, by the book: an event after the other, with `struct` and `zlib` only."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tests.support.event_stream import HEADER

IGNORE, ALONE, OPENS, INSIDE, CLOSES = 1, 2, 3, 4, 5
_IGNORED: Final = (15, 28)
_GTIDS: Final = (33, 34, 42)


_UUID: Final = UUID(int=5)


@dataclass(frozen=True, slots=True)
class OracleSettings:
    """policy: keep, assign or anonymous; layout: 0 as of 5.6, 1 of 5.7, 2 of 8.0; explicit: -1: no status variable is added.
    checksum: the source has them; strips: and the view does not."""

    policy: str = "assign"
    layout: int = 2
    explicit: int = 0
    uuid: UUID = _UUID
    server_version: int = 50624
    checksum: bool = True
    new_rows: bool = True
    strips: bool = False


def events_of(data: bytes) -> Iterator[bytes]:
    """The events of `data`, one after the other."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        yield data[at : at + size]
        at += size


def groups_of(data: bytes) -> list[list[bytes]]:
    """The events of `data`, which is whole groups, by group: markers say where one ends."""
    found: list[list[bytes]] = [[]]
    for event in events_of(data):
        found[-1].append(event)
        if event[18] >> 2 & 7 in (ALONE, CLOSES):
            found.append([])
    assert not found.pop(), "the last group has no end"
    return found


class ViewOracle:
    """Makes plain groups the view's."""

    def __init__(self, settings: OracleSettings, position: int = 4, gno: int = 1, sequence: int = 1) -> None:
        self.settings = settings
        self.position = position
        self.gno = gno
        self.sequence = sequence

    def view_of(self, groups: Iterable[list[bytes]]) -> bytes:
        """The view's bytes of these groups, in order."""
        return b"".join(self._group(group) for group in groups)

    def _group(self, group: list[bytes]) -> bytes:
        first = group[0][4]
        bodies = [self._changed(event) for event in group]
        if self.settings.policy != "keep" and first not in _GTIDS:
            bodies.insert(0, self._gtid(group, sum(19 + len(body) + self._trailer for _, body in bodies)))
        elif first in _GTIDS:
            body = bodies[0][1]
            if len(body) >= 42 and body[25] == 2:
                self.sequence = struct.unpack_from("<q", body, 34)[0]
            self.sequence += 1
        elif self.settings.policy == "keep":
            self.sequence += 1
        if first == 34 and self.settings.policy == "assign":
            header, body = bodies[0]
            body = body[:1] + self.settings.uuid.bytes + struct.pack("<q", self.gno) + body[25:]
            bodies[0] = ((*header[:1], 33, *header[2:]), body)
            self.gno += 1
        return b"".join(self._placed(header, body, number, len(bodies)) for number, (header, body) in enumerate(bodies))

    @property
    def _trailer(self) -> int:
        return 4 if self.settings.checksum and not self.settings.strips else 0

    def _changed(self, event: bytes) -> tuple[tuple[int, ...], bytes]:
        timestamp, kind, server_id, _, _, flags = HEADER.unpack_from(event)
        body = event[19 : len(event) - (4 if self.settings.checksum else 0)]
        if kind in (23, 24, 25) and self.settings.new_rows:
            kind, body = kind + 7, body[:8] + b"\2\0" + body[8:]
        elif kind == 2 and self.settings.explicit >= 0 and self._is_statement(body):
            length = int.from_bytes(body[11:13], "little") + 2
            body = body[:11] + struct.pack("<H", length) + bytes((16, self.settings.explicit)) + body[13:]
        return (timestamp, kind, server_id, flags), body

    @staticmethod
    def _is_statement(body: bytes) -> bool:
        text = body[13 + int.from_bytes(body[11:13], "little") + body[8] + 1 :].decode("latin-1").upper()
        if text.startswith(("ROLLBACK TO", "SAVEPOINT ")):
            return False
        return text not in ("BEGIN", "COMMIT", "ROLLBACK")

    def _gtid(self, group: list[bytes], rest: int) -> tuple[tuple[int, ...], bytes]:
        settings = self.settings
        assigned = settings.policy == "assign"
        body = struct.pack("<B16sq", 1, settings.uuid.bytes if assigned else bytes(16), self.gno if assigned else 0)
        time, server_id = HEADER.unpack_from(group[-1])[0], HEADER.unpack_from(group[0])[2]
        if settings.layout >= 1:
            body += struct.pack("<Bqq", 2, self.sequence - 1, self.sequence)
        if settings.layout >= 2:
            body += (time * 10**6).to_bytes(7, "little")
            known = rest + 19 + len(body) + 4 + self._trailer
            for size, head, most in (
                (1, b"", 250),
                (3, b"\xfc", 0xFFFF),
                (4, b"\xfd", 0xFFFFFF),
                (9, b"\xfe", 1 << 63),
            ):
                if known + size <= most:
                    body += head + (known + size).to_bytes(size - len(head), "little")
                    break
            body += struct.pack("<I", settings.server_version)
        self.gno += assigned
        self.sequence += 1
        return (time, 33 if assigned else 34, server_id, 0), body

    def _placed(self, header: tuple[int, ...], body: bytes, number: int, count: int) -> bytes:
        timestamp, kind, server_id, flags = header
        size = 19 + len(body) + self._trailer
        self.position += size
        marker = INSIDE if 0 < number < count - 1 else OPENS if number == 0 else CLOSES
        if count == 1:
            marker = ALONE
        if kind in _IGNORED:
            marker = IGNORE
        flags = flags & ~0x1C00 | marker << 10
        event = HEADER.pack(timestamp, kind, server_id, size, self.position & 0xFFFFFFFF, flags) + body
        return event + struct.pack("<I", zlib.crc32(event)) if self._trailer else event
