"""Dump requests by GTID in an archive of 10,000 files: how soon the first event comes, and how long the loop is kept.

The clock runs from the first byte of the request until the first stored event behind the format description is there. Cold:
the pages of the file and of its index are dropped before. The server watches its own loop; a machine that has other things
to do shows in that too, so the time on the processor is given, and how late the loop was of another server meanwhile, which
has nothing to do.
"""

import contextlib
import json
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from protocol.framing import frame_payload
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.gtid_set import GtidSet
from tests.bench.figures import Report, median
from tests.bench.gtid_archive import (
    file_name,
    foreign_set,
    make_mariadb,
    make_mysql,
    mariadb_position_in,
    mysql_held_before,
)
from tests.bench.position import drop_pages
from tests.support.replica_client import ReplicaClient

ROOT: Final = Path(__file__).resolve().parents[2]
_COM_BINLOG_DUMP: Final = 0x12
_COM_BINLOG_DUMP_GTID: Final = 0x1E
_SEND_ANNOTATE: Final = 2
# Rotate, format description, and what stands behind it in the file.
_EVENTS: Final = 3
_STATEMENTS: Final = (
    "SET @master_binlog_checksum='CRC32', @source_binlog_checksum='CRC32'",
    "SET @master_heartbeat_period=10000000000, @source_heartbeat_period=10000000000",
)


class WatchedServer:
    """A server process over an archive that says how long its loop was blocked."""

    def __init__(self, directory: Path, flavour: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.gtid_server", str(directory), flavour],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.pid = self._process.pid
        self.port = int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the serving process ended")
        return line

    def blocks(self) -> dict[str, float]:
        """What its loop did since this was asked last."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return dict(json.loads(self._line()))

    def close(self) -> None:
        """Ends it."""
        self._process.communicate()


@contextlib.contextmanager
def watched_server(directory: Path, flavour: str) -> Iterator[WatchedServer]:
    """A server that is ended afterwards."""
    server = WatchedServer(directory, flavour)
    try:
        yield server
    finally:
        server.close()


def run(directory: Path, *, files: int = 10_000, turns: int = 15, uuids: int = 1000) -> Report:
    """MySQL and MariaDB, places at the start, in the middle and at the end, cold and warm; and a set of 16 MB."""
    report = Report(
        "gtid", f"an archive of {files:,} files, {turns} requests each; until the first stored event is there"
    )
    places = {"start": 1, "middle": files // 2, "end": files}
    for flavour, make in (("mysql", make_mysql), ("mariadb", make_mariadb)):
        place = directory / f"gtid-{flavour}"
        place.mkdir()
        make(place, files)
        longest: list[dict[str, float]] = []
        idle: list[dict[str, float]] = []
        empty = directory / f"idle-{flavour}"
        empty.mkdir()
        with watched_server(place, flavour) as server, watched_server(empty, flavour) as bystander:
            _first_event_ms(server, _request(flavour, 1))
            server.blocks()
            for name, number in places.items():
                for state in ("cold", "warm"):
                    times = []
                    for _ in range(turns):
                        if state == "cold":
                            _drop(place, number)
                        bystander.blocks()
                        times.append(_first_event_ms(server, _request(flavour, number)))
                        longest.append(server.blocks())
                        idle.append(bystander.blocks())
                    report.add(f"{flavour}, {name}, {state}: median", median(times), "ms", aim=50)
                    report.add(f"{flavour}, {name}, {state}: longest", max(times), "ms", aim=50)
            _add_blocks(report, flavour, longest, idle)
            if flavour == "mysql":
                longest.clear()
                idle.clear()
                request = _request(flavour, places["middle"], uuids)
                times = []
                for _ in range(turns):
                    bystander.blocks()
                    times.append(_first_event_ms(server, request))
                    longest.append(server.blocks())
                    idle.append(bystander.blocks())
                what = f"mysql, {uuids:,} uuids x {uuids:,} intervals in the request"
                report.add(f"{what}: median", median(times), "ms", aim=50, note=f"{len(request[1]) / 1e6:.1f} MB")
                report.add(f"{what}: longest", max(times), "ms", aim=50)
                _add_blocks(report, what, longest, idle)
        shutil.rmtree(place)
    return report


def _add_blocks(report: Report, what: str, longest: list[dict[str, float]], idle: list[dict[str, float]]) -> None:
    clock = [seen["longest_ms"] for seen in longest]
    late = max(seen["longest_ms"] for seen in idle)
    note = f"a loop without work beside it: {late:.3g} ms"
    report.add(f"{what}: loop blocked, longest of all", max(clock), "ms", aim=5, note=note)
    report.add(f"{what}: loop blocked, median of the requests", median(clock), "ms")
    on_processor = [seen["longest_cpu_ms"] for seen in longest]
    report.add(f"{what}: loop's thread on the processor at a stretch, longest of all", max(on_processor), "ms", aim=5)
    report.add(f"{what}: loop's thread on the processor at a stretch, median", median(on_processor), "ms", aim=5)


def _request(flavour: str, file: int, uuids: int = 0) -> tuple[list[str], bytes]:
    """Statements, and the dump request framed."""
    if flavour == "mysql":
        return mysql_request(mysql_held_before(file) | foreign_set(uuids, uuids))
    statements = list(_STATEMENTS)
    statements.append(f"SET @mariadb_slave_capability=4, @slave_connect_state='{mariadb_position_in(file)}'")
    payload = struct.pack("<BIHI", _COM_BINLOG_DUMP, 4, _SEND_ANNOTATE, 77)
    return statements, frame_payload(payload, 0)


def mysql_request(held: GtidSet) -> tuple[list[str], bytes]:
    """Statements, and the framed dump request, of a MySQL replica that has these."""
    payload = bytes([_COM_BINLOG_DUMP_GTID])
    payload += encode_binlog_dump_gtid(encode_gtid_set(held), flags=0, server_id=77)
    return list(_STATEMENTS), frame_payload(payload, 0)


def _first_event_ms(server: WatchedServer, request: tuple[list[str], bytes]) -> float:
    # What the login and the statements cost is not the request's.
    return first_event_ms(ReplicaClient(server.port), request, server.blocks)


def first_event_ms(
    client: ReplicaClient, request: tuple[list[str], bytes], before: Callable[[], object] = lambda: None
) -> float:
    """Milliseconds from the request to the first stored event. `before`: is called when all is ready for it."""
    statements, packet = request
    try:
        for statement in statements:
            client.query(statement)
        link: Any = client.connection._sock
        before()
        start = time.perf_counter()
        link.sendall(packet)
        client.connection._next_seq_id = 1
        client.events(_EVENTS)
        return (time.perf_counter() - start) * 1000
    finally:
        client.cut()


def _drop(directory: Path, number: int) -> None:
    for name in (file_name(number), f"{file_name(number)}.gtx"):
        drop_pages(directory / name)
