"""Series of binlogs that no honest source writes: recorded ones of several servers, with one to three errors.

After a mutation of an event, positions and checksums are right again, as a hostile source would have them; a mutation of bytes leaves
them as a disk or a line would.
"""

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from protocol.binlog.layout import FIRST_EVENT, MAGIC

RECORDED: Final = Path(__file__).resolve().parents[1] / "corpus" / "recorded"
_FORMAT, _ROTATE, _QUERY, _HEARTBEAT, _PREVIOUS_GTIDS, _GTID_LIST = 15, 4, 2, 27, 35, 163
_U32: Final = 2**32 - 1
_MOST_EVENTS: Final = 60
_HEADER: Final = struct.Struct("<IBIIIH")


@dataclass(frozen=True)
class Family:
    """A recorded binlog, and its server."""

    recorded: str
    flavour: str
    version: str
    checksum: bool = True


FAMILIES: Final = (
    Family("mysql56", "mysql", "5.6.24-log"),
    Family("mysql56-gtid", "mysql", "5.6.24-log"),
    Family("mysql56-no-checksum", "mysql", "5.6.24-log", checksum=False),
    Family("mysql97-gtid", "mysql", "9.7.4"),
    Family("mysql97-anonymous", "mysql", "9.7.4"),
    Family("mysql97-compressed", "mysql", "9.7.4"),
    Family("mysql97-partial-json", "mysql", "9.7.4"),
    Family("mariadb", "mariadb", "10.11.19-MariaDB-log"),
    Family("mariadb-compressed", "mariadb", "10.11.19-MariaDB-log"),
    Family("mariadb-group-commit", "mariadb", "10.11.19-MariaDB-log"),
    Family("mariadb118", "mariadb", "11.8.6-MariaDB-log"),
)


@dataclass(frozen=True)
class Event:
    """One event without its checksum. `size` and `end` are the values in its header if they differ from the truth."""

    type: int
    body: bytes
    flags: int = 0
    timestamp: int = 1_700_000_000
    server_id: int = 1
    size: int | None = None
    end: int | None = None

    def encode(self, position: int, *, checksum: bool) -> bytes:
        """Return its bytes at this offset of a file."""
        length = 19 + len(self.body) + (4 if checksum or self.type == _FORMAT else 0)
        size = length if self.size is None else self.size
        end = position + length if self.end is None else self.end
        head = (self.timestamp & _U32, self.type, self.server_id & _U32, size & _U32, end & _U32, self.flags & 0xFFFF)
        data = _HEADER.pack(*head) + self.body
        return data + struct.pack("<I", zlib.crc32(data)) if checksum or self.type == _FORMAT else data


@dataclass(frozen=True)
class HostileSeries:
    """Binlogs by name, in order, and what is wrong with them."""

    family: Family
    files: dict[str, bytes]
    what: str


@cache
def recorded_events(family: Family) -> tuple[Event, ...]:
    """Return the first events of the recorded binlog."""
    data = (RECORDED / f"{family.recorded}.binlog").read_bytes()
    events: list[Event] = []
    at = FIRST_EVENT
    while at + 19 <= len(data) and len(events) < _MOST_EVENTS:
        timestamp, kind, server_id, size, _end, flags = _HEADER.unpack_from(data, at)
        cut = 4 if family.checksum or kind == _FORMAT else 0
        if kind not in (_ROTATE, 3):
            events.append(Event(kind, data[at + 19 : at + size - cut], flags & 0x3FF, timestamp, server_id))
        at += size
    return tuple(events)


def rotate(name: bytes, position: int = FIRST_EVENT) -> Event:
    """Return the last event of a file."""
    return Event(_ROTATE, struct.pack("<Q", position) + name)


Events = list[Event]
Mutation = Callable[[random.Random, Events], None]


def _place(rnd: random.Random, events: Events, least: int = 1) -> int:
    return rnd.randrange(min(least, len(events) - 1), len(events))


def changed_bytes(rnd: random.Random, data: bytes) -> bytes:
    """Return `data` with some of its bytes changed, removed or added."""
    changed = bytearray(data)
    for _ in range(rnd.choice((1, 1, 2, 8))):
        at, how = rnd.randrange(len(changed) + 1), rnd.randrange(6)
        if how == 0 and changed:
            changed[at % len(changed)] ^= 1 << rnd.randrange(8)
        elif how == 1 and changed:
            changed[at % len(changed)] = rnd.choice((0, 0xFF, 0xFE, 0xFB, 0x7F, 0x80))
        elif how == 2:
            del changed[at:]
        elif how == 3:
            changed[at:at] = rnd.randbytes(rnd.choice((1, 8, 200)))
        elif how == 4:
            changed[at : at + 4] = rnd.choice((b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f"))
        else:
            changed += bytes(rnd.randrange(300))
    return bytes(changed)


def _body(rnd: random.Random, events: Events) -> None:
    at = _place(rnd, events)
    events[at] = replace(events[at], body=changed_bytes(rnd, events[at].body))


def _format(rnd: random.Random, events: Events) -> None:
    events[0] = replace(events[0], body=changed_bytes(rnd, events[0].body))


def _type(rnd: random.Random, events: Events) -> None:
    at = _place(rnd, events)
    events[at] = replace(events[at], type=rnd.randrange(256))


def _type_bit(rnd: random.Random, events: Events) -> None:
    at = _place(rnd, events) if rnd.random() < 0.5 else min(1, len(events) - 1)
    events[at] = replace(events[at], type=events[at].type ^ 1 << rnd.randrange(8))


def _header(rnd: random.Random, events: Events) -> None:
    at = _place(rnd, events, 0)
    field = rnd.choice(("flags", "timestamp", "server_id", "size", "end"))
    value = rnd.choice((0, 1, 18, 19, 22, 23, 0x20, 0x80, 0xFFFF, 1 << 24, 1 << 31, _U32, rnd.randrange(1 << 32)))
    changes: dict[str, Any] = {field: value}
    events[at] = replace(events[at], **changes)


def _foreign(rnd: random.Random, events: Events) -> None:
    for _ in range(rnd.choice((1, 1, 5))):
        event = rnd.choice(recorded_events(rnd.choice(FAMILIES)))
        events.insert(
            _place(rnd, events), event if rnd.random() < 0.7 else replace(event, body=changed_bytes(rnd, event.body))
        )


def _gtid_head(rnd: random.Random, events: Events) -> None:
    sources = rnd.choice((0, 1, 3, 2000))
    ends = rnd.choice((2, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 1))
    mysql = struct.pack("<Q", sources) + b"".join(
        number.to_bytes(16, "big") + struct.pack("<QQQ", 1, 1, ends) for number in range(sources)
    )
    mariadb = struct.pack("<I", rnd.choice((sources, 1 << 28, 0x0FFFFFFF))) + b"".join(
        struct.pack("<IIQ", rnd.choice((number, _U32)), 1, ends) for number in range(sources)
    )
    kind = rnd.choice((_PREVIOUS_GTIDS, _GTID_LIST))
    body = rnd.choice((mysql, mariadb, mysql[:-3], b"", rnd.randbytes(40)))
    event = Event(kind, body, rnd.choice((0, 0x80, 0x20)))
    if rnd.random() < 0.5:
        events.insert(rnd.choice((1, _place(rnd, events))), event)
    else:
        events[min(1, len(events) - 1)] = event


def _gtid(rnd: random.Random, events: Events) -> None:
    body = rnd.choice((rnd.randbytes(rnd.choice((0, 10, 19, 25, 42, 60, 300))), bytes(25), b"\xff" * 60))
    events.insert(_place(rnd, events), Event(rnd.choice((33, 34, 42, 161, 162)), body))


def _order(rnd: random.Random, events: Events) -> None:
    how = rnd.randrange(4)
    at, other = _place(rnd, events), _place(rnd, events)
    if how == 0:
        events.insert(other, events[at])
    elif how == 1 and len(events) > 2:
        del events[at]
    elif how == 2:
        events[at], events[other] = events[other], events[at]
    else:
        del events[at:]


def _query(rnd: random.Random, events: Events) -> None:
    texts = (
        b"CREATE TABLE d.t (" + b"a int," * 500 + b"b int)",
        b"CREATE TABLE " + b"/*" * 500,
        b"ALTER TABLE t ADD COLUMN x int DEFAULT " + b"(" * 300,
        b"RENAME TABLE " + b"a TO b," * 200 + b"c TO d",
        b"CREATE TABLE d.\xff\xfe\0(a int)",
        b"XA PREPARE X'00',X'',1",
        b"XA COMMIT 'a','b',99999999999999999999",
        b"COMMIT",
        b"BEGIN",
        b"\0" * 50,
        "DROP TABLE `\u202e\x1b[2J`".encode(),
        rnd.randbytes(100),
    )
    status = rnd.choice((b"", rnd.randbytes(rnd.randrange(60)), b"\0\0\0\0\0\x01" + struct.pack("<Q", 0)))
    name = rnd.choice((b"d", b"", b"\xff", b"n" * 200))
    fixed = struct.pack("<IIBHH", rnd.choice((8, _U32)), 0, len(name), 0, rnd.choice((len(status), 0xFFFF)))
    body = fixed + status + name + b"\0" + rnd.choice(texts)
    events.insert(_place(rnd, events), Event(_QUERY, body))


def _compressed(rnd: random.Random, events: Events) -> None:
    announced = rnd.choice((b"\x84\xff\xff\xff\xff", b"\x82\x03\xe8", b"\x81\0", b"\x80"))
    packed = changed_bytes(rnd, zlib.compress(bytes(100_000)))
    body = rnd.choice(
        (
            struct.pack("<IIBHH", 8, 0, 1, 0, 0) + b"d\0" + announced + packed,
            changed_bytes(rnd, bytes.fromhex("0101000201000304") + bytes(40)),
        )
    )
    events.insert(_place(rnd, events), Event(rnd.choice((40, 165, 166, 167, 171)), body))


def _other(rnd: random.Random, events: Events) -> None:
    kind = rnd.choice((26, 27, 29, 38, 39, 41, 3, 1, 160, 164, 13, 15))
    body = rnd.choice((b"", b"\1\0\4text", rnd.randbytes(60), events[0].body))
    events.insert(_place(rnd, events), Event(kind, body, rnd.choice((0, 0x20, 0x80))))


def _many(rnd: random.Random, events: Events) -> None:
    """Repeat one event, some hundred KiB of it: small ones cost most by their number."""
    kind = rnd.choice((_ROTATE, _HEARTBEAT, _QUERY, _FORMAT, 3, 13, 29, 33, 160, 162))
    bodies = {_ROTATE: rotate(rnd.choice(_NAMES)).body, _FORMAT: events[0].body, _HEARTBEAT: b"mysql-bin.000001"}
    made = Event(
        kind, bodies.get(kind, rnd.randbytes(rnd.choice((0, 19, 42)))), rnd.choice((0, 0x20)), end=rnd.choice((None, 0))
    )
    event = rnd.choice((made, made, events[_place(rnd, events)], rnd.choice(recorded_events(rnd.choice(FAMILIES)))))
    at = _place(rnd, events)
    events[at:at] = [event] * min(10_000, 500_000 // (23 + len(event.body)))


MUTATIONS: Final[dict[str, Mutation]] = {
    "body": _body,
    "format description": _format,
    "type": _type,
    "bit of a type": _type_bit,
    "header": _header,
    "events of others": _foreign,
    "head of GTIDs": _gtid_head,
    "GTID": _gtid,
    "order": _order,
    "statement": _query,
    "compressed": _compressed,
    "other kinds": _other,
    "many": _many,
}
_NAMES: Final = (
    b"../evil.000002", b"a/b.000002", b"x" * 250 + b".000002", "\u202e.000002".encode(), b"\x1b[2J\r\nx.000002", b"\0.000002",
    b".000002", b"mysql-bin", b"mysql-bin.18446744073709551616", b"catalog.sqlite", b"mysql-bin.000002.idx", b"\xff.000002", b"",
    b"mysql-bin.000001",
)  # fmt: skip


def file_of(events: Events, *, checksum: bool) -> bytes:
    """Return a binlog with these events."""
    data = bytearray(MAGIC)
    for event in events:
        data += event.encode(len(data), checksum=checksum)
    return bytes(data)


def hostile_series(rnd: random.Random) -> HostileSeries:
    """Return one to three binlogs of one family with errors in one to three places."""
    family = rnd.choice(FAMILIES)
    count = rnd.choice((1, 2, 2, 3))
    names = [f"mysql-bin.{number:06d}" for number in range(1, count + 1)]
    series = [list(recorded_events(family)) for _ in names]
    done = []
    for _ in range(rnd.choice((1, 1, 2, 3))):
        what = rnd.choice(list(MUTATIONS))
        number = rnd.randrange(count)
        MUTATIONS[what](rnd, series[number])
        done.append(f"{what} in file {number + 1}")
    if rnd.random() < 0.05:
        number, other = rnd.randrange(count), rnd.choice(FAMILIES)
        series[number] = list(recorded_events(other))
        done.append(f"file {number + 1} is of {other.recorded}")
    for number, following in enumerate(names[1:]):
        target = following.encode()
        if rnd.random() < 0.05:
            target = rnd.choice(_NAMES)
            done.append(f"a Rotate to {target[:40]!r}")
        series[number].append(rotate(target))
    files = {name: file_of(events, checksum=family.checksum) for name, events in zip(names, series, strict=True)}
    if rnd.random() < 0.15:
        name = rnd.choice(names)
        damaged = bytearray(files[name])
        for _ in range(rnd.choice((1, 1, 3))):
            damaged[rnd.randrange(len(damaged))] ^= 1 << rnd.randrange(8)
        files[name] = bytes(damaged[: rnd.choice((len(damaged), len(damaged), rnd.randrange(len(damaged))))])
        done.append(f"bytes of {name}")
    return HostileSeries(family, files, f"{family.recorded}: {', '.join(done)}")
