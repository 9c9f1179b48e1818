"""A specification of a view's file: one event after the other, with `struct` and `zlib` only."""

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
    """The settings. `policy` is keep, assign or anonymous; `layout` is 0 as of 5.6, 1 of 5.7, 2 of 8.0; `explicit` -1 means that no
    status variable is added. `checksum` says that the source has them; `strips` that the view does not."""

    policy: str = "assign"
    layout: int = 2
    explicit: int = 0
    uuid: UUID = _UUID
    server_version: int = 50624
    checksum: bool = True
    new_rows: bool = True
    strips: bool = False


def told(rest: int) -> bytes:
    """Return a packed number: how many bytes it has together with `rest` others."""
    for size, head, most in ((1, b"", 250), (3, b"\xfc", 0xFFFF), (4, b"\xfd", 0xFFFFFF)):
        if rest + size <= most:
            return head + (rest + size).to_bytes(size - len(head), "little")
    return b"\xfe" + struct.pack("<Q", rest + 9)


def events_of(data: bytes) -> Iterator[bytes]:
    """Yield the events of `data`, one after the other."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        yield data[at : at + size]
        at += size


def groups_of(data: bytes) -> list[list[bytes]]:
    """Return the events of `data`, which are whole groups, by group: markers show where one ends."""
    found: list[list[bytes]] = [[]]
    for event in events_of(data):
        found[-1].append(event)
        if event[18] >> 2 & 7 in (ALONE, CLOSES):
            found.append([])
    assert not found.pop(), "the last group has no end"
    return found


def status_variables(status: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (code, code and value) of each, as MySQL 5.6 writes them; the last contains an unknown one, and everything after it."""
    sizes = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3}
    while status:
        code = status[0]
        size = 1 + sizes.get(code, 0)
        if code in (2, 5, 6):
            size = 2 + status[1] + (code == 2)
        elif code == 11:
            size = 2 + status[1]
            size += 1 + status[size]
        elif code == 12:
            size = 2
            for _ in range(status[1] if status[1] <= 16 else 0):
                size = status.index(0, size) + 1
        elif code not in sizes:
            size = len(status)
        yield code, status[:size]
        status = status[size:]


def with_explicit(body: bytes, post: int, value: int) -> bytes:
    """Return the statement's body with the status variable for TIMESTAMP columns, in the order of codes, unless it exists."""
    count = int.from_bytes(body[11:13], "little")
    made = b""
    for code, whole in [*status_variables(body[post : post + count]), (255, b"")]:
        if code == 16:
            return body
        if code > 13:
            made += bytes((16, value)) + whole
            break
        made += whole
    return body[:11] + struct.pack("<H", len(made)) + body[13:post] + made + body[post + count :]


class ViewOracle:
    """A converter of plain groups into the view's."""

    def __init__(self, settings: OracleSettings, position: int = 4, gno: int = 1, sequence: int = 1) -> None:
        self.settings = settings
        self.position = position
        self.gno = gno
        self.sequence = sequence

    def view_of(self, groups: Iterable[list[bytes]]) -> bytes:
        """Return the view's bytes of these groups, in order."""
        return b"".join(self._group(group) for group in groups)

    def _group(self, group: list[bytes]) -> bytes:
        first = group[0][4]
        bodies = [self._changed(event) for event in group]
        if self.settings.policy != "keep" and first not in _GTIDS:
            bodies.insert(0, self._gtid(group, sum(19 + len(body) + self._trailer for _, body in bodies)))
        elif first in _GTIDS:
            bodies[0] = (bodies[0][0], self._with_length(bodies, sum(map(len, group))))
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
        elif kind in (2, 18) and self.settings.explicit >= 0 and (kind == 18 or self._is_statement(body)):
            body = with_explicit(body, 13 if kind == 2 else 26, self.settings.explicit)
        return (timestamp, kind, server_id, flags), body

    @staticmethod
    def _is_statement(body: bytes) -> bool:
        text = body[13 + int.from_bytes(body[11:13], "little") + body[8] + 1 :].decode("latin-1").upper()
        if text.startswith(("ROLLBACK TO", "SAVEPOINT ")):
            return False
        return text not in ("BEGIN", "COMMIT", "ROLLBACK")

    def _with_length(self, bodies: list[tuple[tuple[int, ...], bytes]], source: int) -> bytes:
        """Return the body of the source's GTID event, which contains the transaction's length if it did before. `source` is the number
        of bytes that it had there."""
        size = sum(19 + len(body) + self._trailer for _, body in bodies)
        body = bodies[0][1]
        if size == source or len(body) < 49 or body[25] != 2:
            return body
        at = 56 if body[48] & 0x80 else 49
        width = {252: 3, 253: 4, 254: 9}.get(body[at], 1) if at < len(body) else 0
        if not width or body[at] in (251, 255) or at + width > len(body):
            return body
        return body[:at] + told(size - width) + body[at + width :]

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
            body += told(known)
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
