"""Serving packed files: from the disk and from a bucket of a local `rclone serve s3`, against plain ones, by turns.

Real rows of a MariaDB; frames as the relay packs them. Each turn has a server of its own, so that nothing is in its memory; the
plain file's pages are cached, as those of the packed one. Then a request by GTID whose place is in the bucket, in an archive
of 10,000 files all but the newest of which are there.
"""

import shutil
import time
from pathlib import Path
from typing import Final

from relay.object_store.object_store import ObjectStore
from relay.packed.frame_cuts import FRAME_BYTES
from relay.packed_reads.archive_layer import note_tiers
from tests.bench.figures import MB, Report, median
from tests.bench.gtid_archive import make_mysql, mysql_held_before
from tests.bench.gtid_requests import WatchedServer, first_event_ms, mysql_request, watched_server
from tests.bench.relays import filled_relay
from tests.bench.source_data import BenchSource
from tests.bench.streams import Server, Stream, counted, drained
from tests.support.packed_archive import pack_away
from tests.support.replica_client import PASSWORD, USER, ReplicaClient
from tests.support.s3_server import S3Server

_TIERS: Final = ("hot", "cold", "object")
_REPLICAS: Final = 16


def run(source: BenchSource, directory: Path, *, turns: int = 5, files: int = 10_000) -> Report:
    """Measures `turns` turns of each, after one that does not count."""
    hot = _archived(source, directory)
    with S3Server(directory / "storage") as storage:
        places = {"hot": hot, **{tier: _packed(hot, directory / tier, storage) for tier in _TIERS[1:]}}
        wanted = _stream_bytes(hot, source.file)
        seconds: dict[str, list[float]] = {tier: [] for tier in _TIERS}
        first: dict[str, list[float]] = {tier: [] for tier in _TIERS}
        for turn in range(turns + 1):
            for tier, place in places.items():
                with watched_server(place, "mariadb") as server:
                    first_s = _first_event_s(server, source.file)
                with watched_server(place, "mariadb") as server:
                    result = drained([_stream(server, source.file, 900)], wanted)
                if turn:
                    seconds[tier].append(result["seconds"])
                    first[tier].append(first_s)
        many, fetched, blocked = _many(places["object"], source.file, wanted, storage)
        report = Report(
            "tiers",
            f"{wanted / MB:.0f} MB of row events, {turns} turns each; rclone serve s3 and its proxy on the same machine",
        )
        size = (hot / source.file).stat().st_size
        stored = next((directory / "cold").glob(f"{source.file}.zst")).stat().st_size
        report.add("ratio of plain to packed bytes", size / stored, "", aim=4, at_least=True)
        for tier in _TIERS:
            aim = 100 if tier == "object" else None
            report.add(f"{tier}, throughput", wanted / median(seconds[tier]) / MB, "MB/s", aim=aim, at_least=True)
        report.add("cold / hot", median(seconds["hot"]) / median(seconds["cold"]), "", aim=0.5, at_least=True)
        for tier in _TIERS:
            aim = 300 if tier == "object" else None
            report.add(f"{tier}, first event of a file that nobody has read", median(first[tier]) * 1000, "ms", aim=aim)
        report.add(f"object, {_REPLICAS} replicas, throughput of all", many / MB, "MB/s")
        report.add(f"object, {_REPLICAS} replicas: bytes fetched / stored bytes", fetched / stored, "", aim=1.2)
        report.add(f"object, {_REPLICAS} replicas: loop blocked, longest", blocked, "ms")
        _add_gtid_requests(report, directory, storage, files, turns)
    return report


def _archived(source: BenchSource, directory: Path) -> Path:
    """An archive of the source whose first file is complete."""
    if source.newest()[0] == source.file:
        source.server.sql("FLUSH BINARY LOGS")
    with filled_relay(directory / "tiers", source) as relay:
        relay.stop()
        return relay.archive


def _packed(hot: Path, place: Path, storage: S3Server) -> Path:
    """A copy of the archive with every file but the newest packed."""
    shutil.copytree(hot, place)
    bucket = storage.options(place.name) if place.name == "object" else None
    store = ObjectStore(bucket) if bucket is not None else None
    for path in _binlogs(place)[:-1]:
        pack_away(path, place, store, frame_bytes=FRAME_BYTES)
    note_tiers(place, bucket, ())
    return place


def _binlogs(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if path.suffix[1:].isdigit())


def _stream(server: WatchedServer, file: str, server_id: int, *, ends: bool = False) -> Stream:
    return Stream.by_position(Server(server.port, USER, PASSWORD), file, server_id=server_id, ends=ends)


def _stream_bytes(place: Path, file: str) -> int:
    with watched_server(place, "mariadb") as server:
        return counted(_stream(server, file, 990, ends=True))


def _first_event_s(server: WatchedServer, file: str) -> float:
    """From the request to the first stored event, in a file that nobody has read."""
    client = ReplicaClient(server.port)
    try:
        client.set_up()
        client.query("SET @mariadb_slave_capability=4")
        begin = time.perf_counter()
        client.ask_dump(file, 4)
        client.events(4)
        return time.perf_counter() - begin
    finally:
        client.cut()


def _many(place: Path, file: str, wanted: int, storage: S3Server) -> tuple[float, int, float]:
    """Bytes a second of all, bytes that were fetched for them, and how long the loop was blocked at most."""
    storage.faults.requests.clear()
    with watched_server(place, "mariadb") as server:
        streams = [_stream(server, file, 1000 + number) for number in range(_REPLICAS)]
        server.blocks()
        result = drained(streams, wanted)
        blocked = server.blocks()["longest_ms"]
    ranges = (one.byte_range.removeprefix("bytes=").split("-") for one in storage.faults.requests if one.byte_range)
    fetched = sum(int(stop) - int(start) + 1 for start, stop in ranges if start)
    return wanted * _REPLICAS / result["seconds"], fetched, blocked


def _add_gtid_requests(report: Report, directory: Path, storage: S3Server, files: int, turns: int) -> None:
    place = directory / "many"
    place.mkdir()
    make_mysql(place, files)
    bucket = storage.options("many")
    stored = storage.bucket_directory / "many"
    stored.mkdir()
    for path in _binlogs(place)[:-1]:
        pack_away(path, place)
        packed = path.with_name(f"{path.name}.zst")
        _in_bucket(path, packed, stored)
    storage.stop()  # it remembers what its directories had
    storage.start()
    note_tiers(place, bucket, ())
    with watched_server(place, "mysql") as server:
        first_event_ms(ReplicaClient(server.port), mysql_request(mysql_held_before(2)))
        times = [
            first_event_ms(
                ReplicaClient(server.port), mysql_request(mysql_held_before(files // 2 + turn)), server.blocks
            )
            for turn in range(3 * turns)
        ]
    what = f"request by GTID that ends in the bucket, {files:,} files there"
    report.add(f"{what}: median", median(times), "ms", aim=500)
    report.add(f"{what}: longest", max(times), "ms", aim=500)


def _in_bucket(path: Path, packed: Path, stored: Path) -> None:
    """Without a request for each of thousands: the server's objects are files."""
    note = path.with_name(f"{path.name}.place")
    note.write_text(note.read_text().replace('"tier": "cold"', '"tier": "object"'))
    packed.rename(stored / packed.name)
