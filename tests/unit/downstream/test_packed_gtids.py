"""By GTID, in every layout of markers, with and without semi-sync: packed files give what the plain ones gave."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.auth.account import Account
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.gtid_set import GtidSet
from protocol.statements.session.gtid_variables import GtidVariables
from relay.archive.archive import Archive
from relay.archive.write.options import ArchiveOptions
from relay.downstream.connection.presentation import Presentation
from relay.downstream.listen_options import ListenOptions
from relay.downstream.request.source_state import SourceState
from relay.downstream.server import DownstreamServer
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed_reads.packed_files import PackedFiles
from relay.packed_reads.shared_frames import SharedFrames
from relay.packed_reads.tiered_layer import TieredLayer
from tests.support.generation_filling import A
from tests.support.packed_archive import pack_all_but_newest
from tests.support.replica_client import PASSWORD, ReplicaClient
from tests.support.tier_archive import fill_archive

LAYOUTS = ("tbm", "edges", "strip")
TRANSACTIONS = 60


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[tuple[DownstreamServer, Archive, ObjectStore]]:
    place = tmp_path / "archive"
    await fill_archive(place, files=3, transactions=TRANSACTIONS)
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    store = ObjectStore(StoreOptions(f"file://{bucket}"))
    shared = SharedFrames(64 << 20)
    layer = TieredLayer(PackedFiles(place, shared, None, store))
    archive = await Archive.open(place, ArchiveOptions(layer=layer))
    accounts = [Account.with_password(layout, PASSWORD, layout) for layout in LAYOUTS]
    options = ListenOptions(position_wait_s=0.5, presentation=Presentation(semi_sync=True))
    made = DownstreamServer(archive, accounts, SourceState(lambda: GtidVariables(mode="ON")), options)
    await made.start("127.0.0.1", 0)
    yield made, archive, store
    await made.close()
    await archive.close()
    shared.close()


async def read(server: DownstreamServer, layout: str, held: str, *, semi_sync: bool = False) -> list[bytes]:
    def run() -> list[bytes]:
        client = ReplicaClient(server.port, user=layout)
        try:
            client.set_up()
            if semi_sync:
                client.query("SET @rpl_semi_sync_slave= 1")
            body = encode_binlog_dump_gtid(encode_gtid_set(GtidSet.from_text(held)), flags=1, server_id=77)
            client.command(0x1E, body)
            return [event.data for event in client.events_to_eof()]
        finally:
            client.cut()

    return await asyncio.wait_for(asyncio.to_thread(run), 20)


HELD = ("", f"{A}:1-{TRANSACTIONS // 2}", f"{A}:1-{TRANSACTIONS + 10}", f"{A}:1-5:{TRANSACTIONS}-{2 * TRANSACTIONS}")


async def test_what_replicas_lack_is_sent_from_a_bucket_as_from_the_disk(
    server: tuple[DownstreamServer, Archive, ObjectStore],
) -> None:
    served, archive, store = server
    ways = [(layout, held, semi_sync) for layout in LAYOUTS for held in HELD for semi_sync in (False, layout == "tbm")]
    plain = [await read(served, layout, held, semi_sync=semi_sync) for layout, held, semi_sync in ways]
    assert len({len(events) for events in plain}) >= len(HELD)
    await asyncio.to_thread(pack_all_but_newest, archive, store, None, 4 << 10)
    packed = [await read(served, layout, held, semi_sync=semi_sync) for layout, held, semi_sync in ways]
    assert packed == plain
    assert store.counts.bytes_read
