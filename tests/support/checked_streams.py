"""Streams that begin anywhere in an archive, compared with what the source wrote: by file and position, and by GTID."""

import random
import re
import zlib
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import pymysql

from protocol.binlog.boundary import BoundaryType
from protocol.binlog.event_type import EventType
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.gtid_set import GtidSet
from tests.support.replica_client import ReplicaClient

_HEADER_BYTES: Final = 19
_CHECKSUM_BYTES: Final = 4
# Behind the header: version u16, the server's version 50, then this.
_CREATED: Final = slice(52, 56)
# A checksum may follow it.
_NAME: Final = re.compile(rb"^[a-z-]+\.\d{6}")
_LAST_OF_ITS_UNIT: Final = (BoundaryType.SELF_CONTAINED, BoundaryType.END)
# These contain the place after transactions that were skipped.
_HEARTBEATS: Final = (EventType.HEARTBEAT, EventType.HEARTBEAT_V2)
# A flag of a Gtid_list that tells a MariaDB replica where the stream is.
_ARTIFICIAL: Final = 0x20
_GTID_TYPES: Final = (EventType.GTID, EventType.MARIADB_GTID)


@dataclass(frozen=True, slots=True)
class Unit:
    """A transaction, or a separate event. `gtid` is uuid:number, domain-server-number, or empty."""

    file: str
    start: int
    stop: int
    gtid: str


@dataclass(frozen=True, slots=True)
class StreamStart:
    """The start of a replica. `executed` is what it has, in its flavour's notation; None if it asks by file and position."""

    file: str
    position: int
    executed: str | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """The received stream: (file, event) each, without what was made for the stream, and the error at its end; empty for EOF."""

    events: tuple[tuple[str, bytes], ...]
    descriptions: tuple[tuple[str, bytes], ...]
    error: str

    @property
    def by_file(self) -> dict[str, bytes]:
        """Return the events' bytes by file."""
        found: dict[str, list[bytes]] = {}
        for name, event in self.events:
            found.setdefault(name, []).append(event)
        return {name: b"".join(events) for name, events in found.items()}


class WrittenBinlogs:
    """The undamaged files of one archive, and the expected stream from any place in them. `flavour` is that of the GTIDs in them; empty
    if there are none."""

    def __init__(self, binlogs: dict[str, bytes], flavour: str) -> None:
        self.flavour = flavour
        self._binlogs = binlogs
        self.units = [unit for name in sorted(binlogs) for unit in self._units_of(name)]

    def random_start(self, chance: random.Random, file: str = "") -> StreamStart:
        """Return any boundary, of that file or of any; by GTID half of the time, if there are GTIDs."""
        before = chance.choice([number for number, unit in enumerate(self.units) if number and file in ("", unit.file)])
        by_gtid = bool(self.flavour) and chance.random() < 0.5
        lacking = chance.randrange(before) if chance.random() < 0.3 else None
        if not by_gtid:
            return StreamStart(self.units[before].file, self.units[before].start)
        had = [unit.gtid for unit in self.units[:before] if unit.gtid]
        if self.flavour == "mariadb":
            return StreamStart("", 4, had[-1] if had else "")
        if lacking is not None:
            had = [gtid for gtid in had if gtid != self.units[lacking].gtid]
        return StreamStart("", 4, GtidSet.from_text(",".join(had)).line)

    def expected(self, start: StreamStart) -> list[Unit]:
        """Return what such a replica must get, in order; by GTID only what has one."""
        if start.executed is None:
            place = (start.file, start.position)
            return [unit for unit in self.units if (unit.file, unit.start) >= place]
        named = [unit for unit in self.units if unit.gtid]
        if self.flavour == "mariadb":
            first = next((number for number, unit in enumerate(named, 1) if unit.gtid == start.executed), 0)
            return named[first:]
        had = GtidSet.from_text(start.executed)
        return [unit for unit in named if not GtidSet.from_text(unit.gtid) <= had]

    def has_all_of(self, units: list[Unit], stream: Stream) -> bool:
        """Return whether the ends of these units came."""
        ends = {(name, int.from_bytes(event[13:17], "little")) for name, event in stream.events}
        return all((unit.file, unit.stop) in ends for unit in units)

    def check(self, start: StreamStart, stream: Stream) -> bool:
        """Return whether all expected units came. Raises: AssertionError for a wrong byte, an unrequested event, or half a unit."""
        for name, event in stream.events:
            stop = int.from_bytes(event[13:17], "little")
            if event[4] == EventType.FORMAT_DESCRIPTION and start.executed is not None:
                self._check_description(name, event, start)
            elif self._binlogs[name][stop - len(event) : stop] != event:
                raise AssertionError(
                    f"WRONG BYTES of {name}, event of type {event[4]} that ends at {stop}, from {start}"
                )
        for name, event in stream.descriptions:
            self._check_description(name, event, start)
        expected = self.expected(start)
        wanted = {(unit.file, unit.start) for unit in expected}
        if start.executed is not None:  # Separate events come too: heads and rotations
            wanted |= {(unit.file, unit.start) for unit in self.units if not unit.gtid}
        received = self._units_received(start, stream, wanted)
        if start.executed is not None:
            received = [unit for unit in received if unit.gtid]
        if received != expected[: len(received)]:
            raise AssertionError(f"other transactions came than were asked for, from {start}")
        return len(received) == len(expected)

    def _units_received(self, start: StreamStart, stream: Stream, wanted: set[tuple[str, int]]) -> list[Unit]:
        by_start = {(unit.file, unit.start): unit for unit in self.units}
        received: list[Unit] = []
        at: Unit | None = None
        reached = 0
        for name, event in stream.events:
            stop = int.from_bytes(event[13:17], "little")
            begin = stop - len(event)
            if at is None:
                at, reached = by_start.get((name, begin)), begin
                if at is None or (name, begin) not in wanted:
                    raise AssertionError(
                        f"what begins at {begin} of {name} came, which was not asked for, from {start}"
                    )
            if (name, begin) != (at.file, reached):
                raise AssertionError(
                    f"{name}:{begin} came behind {at.file}:{reached}, inside a transaction, from {start}"
                )
            reached = stop
            if stop == at.stop:
                received.append(at)
                at = None
        if at is not None:
            raise AssertionError(f"the stream from {start} ended inside a transaction, at {reached} of {at.file}")
        return received

    def _check_description(self, name: str, event: bytes, start: StreamStart) -> None:
        """Check a format description that was remade for a stream that begins after it: it may differ in its end, time of creation and
        checksum only."""
        data = self._binlogs[name]
        written = data[4 : 4 + int.from_bytes(data[13:17], "little")]
        if _described(event) != _described(written):
            raise AssertionError(f"WRONG BYTES in the format description of {name}, from {start}")
        if event[-5] == 1 and zlib.crc32(event[:-_CHECKSUM_BYTES]) != int.from_bytes(
            event[-_CHECKSUM_BYTES:], "little"
        ):
            raise AssertionError(f"the format description of {name} has a wrong checksum, from {start}")

    def _units_of(self, name: str) -> list[Unit]:
        data, found = self._binlogs[name], []
        at = start = 4
        gtid = ""
        while at < len(data):
            size = int.from_bytes(data[at + 9 : at + 13], "little")
            if data[at + 4] in _GTID_TYPES and self.flavour:
                gtid = _gtid(data[at : at + size])
            mark = data[at + 18] >> 2 & 7
            alone = start == at and mark == BoundaryType.IGNORE
            at += size
            if alone or mark in _LAST_OF_ITS_UNIT:
                found.append(Unit(name, start, at, gtid))
                start, gtid = at, ""
        return found


def _gtid(event: bytes) -> str:
    body = event[_HEADER_BYTES:]
    number = int.from_bytes(body[:8], "little")
    if event[4] == EventType.MARIADB_GTID:
        return f"{int.from_bytes(body[8:12], 'little')}-{int.from_bytes(event[5:9], 'little')}-{number}"
    return f"{UUID(bytes=bytes(body[1:17]))}:{int.from_bytes(body[17:25], 'little')}"


def _described(event: bytes) -> tuple[bytes, bytes]:
    """Return a format description without the fields in which a stream's own may differ: (kind and server, body)."""
    body = bytearray(event[_HEADER_BYTES:-_CHECKSUM_BYTES])
    body[_CREATED] = bytes(4)
    return event[4:13], bytes(body)


def read_stream(port: int, start: StreamStart, flavour: str) -> Stream:
    """Return all that a replica gets from there to the end or an error. `flavour` is that of the GTIDs in `start.executed`.
    Blocking."""
    events: list[tuple[str, bytes]] = []
    descriptions: list[tuple[str, bytes]] = []
    name = start.file
    client = ReplicaClient(port)
    try:
        client.query("SET @master_binlog_checksum= @@global.binlog_checksum")
        client.query("SET @mariadb_slave_capability= 4")
        if start.executed is None:
            client.ask_dump(start.file, start.position, flags=1 | 2)
        elif flavour == "mariadb":
            client.query(f"SET @slave_connect_state='{start.executed}'")
            client.ask_dump("", 4, flags=1 | 2)
        else:
            executed = encode_gtid_set(GtidSet.from_text(start.executed))
            client.command(0x1E, encode_binlog_dump_gtid(executed, flags=1, server_id=77))
        while (event := client.event()) is not None:
            if event.kind == EventType.ROTATE and event.data[0:4] == bytes(4):
                name = _NAME.findall(event.data[27:])[0].decode()
            elif event.end_log_pos and event.kind not in _HEARTBEATS and not event.data[17] & _ARTIFICIAL:
                events.append((name, event.data))
            elif event.kind == EventType.FORMAT_DESCRIPTION:
                descriptions.append((name, event.data))
    except pymysql.MySQLError as error:
        return Stream(tuple(events), tuple(descriptions), str(error))
    finally:
        client.cut()
    return Stream(tuple(events), tuple(descriptions), "")
