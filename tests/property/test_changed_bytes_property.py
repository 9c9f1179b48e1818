"""Bytes anywhere in an archive of a source without checksums are changed while it is served, or before it is opened: what replicas
get is what was received, up to a transaction's end."""

import asyncio
import tempfile
from pathlib import Path

import pymysql
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.auth.account import Account
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.sums.block_sum import BLOCK_BYTES, sum_paths
from relay.downstream.listen_options import ListenOptions
from relay.downstream.server import DownstreamServer
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.replica_client import PASSWORD, USER, ReplicaClient
from tests.unit.downstream.test_dump_edges import stamped

FIRST = "mysql-bin.000001"
SECOND = "mysql-bin.000002"
SEALED = BinlogBuilder(checksum=False).ddl().transaction(10, 400).transaction(20_000).transaction(300_000)
SEALED.transaction(*[900] * 40).rotate(SECOND)
GROWING = BinlogBuilder(checksum=False).transaction(9).transaction(*[700] * 50).transaction(40_000).transaction(5)
RECEIVED = {FIRST: stamped(bytes(SEALED.data)), SECOND: stamped(bytes(GROWING.data))}

CHANGES = st.lists(
    st.tuples(
        st.sampled_from([FIRST, SECOND]),
        st.sampled_from(["", "", "", ".sum", ".sum2"]),
        st.floats(0, 1),
        st.integers(1, 255),
    ),
    min_size=1,
    max_size=4,
)


def sent(port: int) -> tuple[bytes, int]:
    """Events from the beginning to the end or the error, without those that are made for the stream; the error's number."""
    client = ReplicaClient(port)
    found = b""
    try:
        client.set_up(checksum=False)
        client.ask_dump(FIRST, 4, flags=1)
        while (event := client.event()) is not None:
            # A Rotate that begins a file has no time.
            if event.data[:4] != bytes(4):
                found += event.data
    except pymysql.MySQLError as error:
        return found, int(error.args[0])
    finally:
        client.cut()
    return found, 0


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changes=CHANGES, running=st.booleans(), nowait=st.booleans())
def test_whatever_is_changed_replicas_get_what_was_received(
    changes: list[tuple[str, str, float, int]], running: bool, nowait: bool
) -> None:
    async def scenario(directory: Path) -> None:
        generation = await Generation.open(directory)
        for name, data in RECEIVED.items():
            await generation.begin_file(name)
            await append_all(generation, data)
        for _ in range(500):
            if generation.files[0].digest:
                break
            await asyncio.sleep(0.005)
        if not running:
            await generation.close()
        changed = change(directory, changes)
        if not running:
            generation = await Generation.open(directory)
        server = DownstreamServer(
            Archive.of(generation), [Account.with_password(USER, PASSWORD)], options=ListenOptions(position_wait_s=0.3)
        )
        await server.start("127.0.0.1", 0)
        server.mirror.reads._nowait = server.mirror.reads._nowait and nowait
        try:
            for _ in range(2):
                found, number = await asyncio.wait_for(asyncio.to_thread(sent, server.port), 20)
                all_of_it = RECEIVED[FIRST][4:] + RECEIVED[SECOND][4:]
                assert all_of_it.startswith(found), "bytes were sent that were never received"
                assert number == (1236 if changed else 0)
                if not changed:
                    assert found == all_of_it
                else:
                    name, block = changed
                    before = len(RECEIVED[FIRST]) - 4 if name == SECOND else 0
                    built = SEALED if name == FIRST else GROWING
                    assert len(found) == before + max(built.boundary_at_or_before(block), 4) - 4
                    assert [(place.file, place.offset) for place in generation.damaged_files.all] == [(name, block)]
        finally:
            await server.close()
            await generation.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(scenario(Path(directory)))


def change(directory: Path, changes: list[tuple[str, str, float, int]]) -> tuple[str, int] | None:
    """Makes the changes, of both files of sums never the same byte; the first block that was changed."""
    blocks = []
    spoiled: dict[tuple[str, int], str] = {}
    for name, suffix, place, bits in changes:
        path = directory / (name + suffix)
        data = bytearray(path.read_bytes())
        at = int(place * (len(data) - 1))
        if suffix and spoiled.setdefault((name, at // 12), suffix) != suffix:
            continue
        data[at] ^= bits
        with path.open("r+b") as file:
            file.write(data)
    for name, received in RECEIVED.items():
        stored = (directory / name).read_bytes()
        blocks += [
            (name, at)
            for at in range(0, len(received), BLOCK_BYTES)
            if stored[at : at + BLOCK_BYTES] != received[at : at + BLOCK_BYTES]
        ]
    return blocks[0] if blocks else None


def test_the_files_of_sums_are_where_they_are_looked_for() -> None:
    assert [place.name for place in sum_paths(Path(FIRST))] == [f"{FIRST}.sum", f"{FIRST}.sum2"]
