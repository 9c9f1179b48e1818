"""Streams from packed files, on the disk and in a bucket: the same bytes, and what is told where they cannot be had."""

import asyncio
import contextlib
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest

from protocol.auth.account import Account
from protocol.binlog.event_type import EventType
from protocol.errors import ErrorCode
from relay.archive.archive import Archive
from relay.archive.write.options import ArchiveOptions
from relay.downstream.listen_options import ListenOptions
from relay.downstream.server import DownstreamServer
from relay.object_store.object_errors import StoreUnreachable
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.key_ring import KeyRing
from relay.packed.packed_file import PackedFile
from relay.packed_reads.packed_files import PackedFiles
from relay.packed_reads.shared_frames import SharedFrames
from relay.packed_reads.tiered_layer import TieredLayer
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import INSIDE, BinlogBuilder
from tests.support.packed_archive import pack_all_but_newest
from tests.support.replica_client import PASSWORD, USER, ReplicaClient
from tests.unit.downstream.test_dump_edges import rotate_to, stamped

FIRST, SECOND, THIRD = (f"mysql-bin.00000{number}" for number in (1, 2, 3))
KEYS: Final = KeyRing({"2026": bytes(range(32))}, "2026")
CACHE_BYTES: Final = 1 << 20
CLIENTS: Final = ThreadPoolExecutor(32)


def binlog(seed: int, *, checksum: bool = True) -> tuple[bytes, int]:
    """A file of some frames, with a transaction that is larger than a step; and a place between two transactions."""
    rng = random.Random(seed)
    built = BinlogBuilder(checksum=checksum)

    def add(size: int) -> None:
        built.begin().query(rng.randbytes(size // 2).hex(), INSIDE).xid()

    for _ in range(40):
        add(rng.randrange(100, 20_000))
    middle = built.size
    add(400_000)
    for _ in range(40):
        add(rng.randrange(100, 20_000))
    return stamped(bytes(built.data)), middle


FILES: Final = {name: binlog(number) for number, name in enumerate((FIRST, SECOND, THIRD))}


class Tiers:
    """A server of an archive whose every file but the newest is packed."""

    def __init__(self, directory: Path, shared: SharedFrames, keys: KeyRing | None, in_bucket: bool) -> None:
        self.directory = directory
        self.shared = shared
        self.keys = keys
        self.bucket = directory.with_name("bucket")
        self.bucket.mkdir(exist_ok=True)
        self.store = ObjectStore(StoreOptions(f"file://{self.bucket}", tries=2)) if in_bucket else None
        self.server: DownstreamServer
        self.archive: Archive

    def stored(self, name: str) -> Path:
        """Where the packed file is."""
        found = list((self.bucket if self.store is not None else self.directory).glob(f"{name}.zst*"))
        assert len(found) == 1
        return found[0]

    async def begin(self, files: dict[str, bytes], *, keys_given: KeyRing | None) -> None:
        layer = TieredLayer(PackedFiles(self.directory, self.shared, keys_given, self.store))
        self.archive = await Archive.open(self.directory, ArchiveOptions(layer=layer))
        for name, data in files.items():
            await self.archive.current.begin_file(name)
            await append_all(self.archive.current, data)
        await self.pack()
        self.server = DownstreamServer(
            self.archive,
            [Account.with_password(USER, PASSWORD), Account.with_password("plain", PASSWORD, "strip")],
            options=ListenOptions(position_wait_s=0.3),
        )
        await self.server.start("127.0.0.1", 0)

    async def pack(self) -> None:
        async with asyncio.timeout(10):
            while any(file.digest is None for file in self.archive.current.files[:-1]):
                await asyncio.sleep(0.01)
        await asyncio.to_thread(pack_all_but_newest, self.archive, self.store, self.keys)

    async def read(
        self, file: str = "", offset: int = 4, *, user: str = USER, checksum: bool = True, server_id: int = 77
    ) -> bytes:
        """All that comes, joined. Raises: pymysql.MySQLError, whose `came` is what came before it."""

        def run() -> bytes:
            client = ReplicaClient(self.server.port, user=user)
            came = bytearray()
            try:
                client.set_up(checksum=checksum, server_id=server_id)
                client.ask_dump(file, offset, flags=1, server_id=server_id)
                while (event := client.event()) is not None:
                    came += event.data
            except pymysql.MySQLError as error:
                error.came = bytes(came)  # type: ignore[attr-defined]
                raise
            finally:
                client.cut()
            return bytes(came)

        return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(CLIENTS, run), 20)


Begin = Callable[..., Any]


@pytest.fixture(autouse=True)
def blocked_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every test is one of this too: what waits for a bucket or unpacks a frame is never done by the loop's thread."""
    wrong: list[str] = []
    for owner, name in (
        (ObjectStore, "get_range"),
        (ObjectStore, "get_tail"),
        (ObjectStore, "head"),
        (PackedFile, "decode"),
    ):
        real = getattr(owner, name)

        def called(*arguments: Any, real: Callable[..., Any] = real, name: str = name, **named: Any) -> Any:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop()
                wrong.append(name)
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, called)
    yield wrong
    assert wrong == []


@pytest.fixture
async def begin(tmp_path: Path) -> AsyncIterator[Begin]:
    made: list[Tiers] = []

    async def begin(
        files: dict[str, bytes] | None = None,
        *,
        keys: KeyRing | None = None,
        keys_given: KeyRing | None = None,
        in_bucket: bool = False,
    ) -> Tiers:
        shared = SharedFrames(CACHE_BYTES)
        tiers = Tiers(tmp_path / "archive", shared, keys, in_bucket)
        await tiers.begin(files or {name: data for name, (data, _) in FILES.items()}, keys_given=keys_given or keys)
        made.append(tiers)
        return tiers

    yield begin
    for tiers in made:
        await tiers.server.close()
        await tiers.archive.close()
        tiers.shared.close()


def whole_stream() -> bytes:
    return b"".join(rotate_to(name) + data[4:] for name, (data, _) in FILES.items())


@pytest.mark.parametrize("keys", [None, KEYS], ids=["open", "encrypted"])
@pytest.mark.parametrize("in_bucket", [False, True], ids=["cold", "object"])
async def test_a_stream_from_packed_files_is_byte_for_byte_that_of_the_plain_ones(
    begin: Begin, keys: KeyRing | None, in_bucket: bool
) -> None:
    tiers = await begin(keys=keys, in_bucket=in_bucket)
    assert not (tiers.directory / FIRST).exists() and not (tiers.directory / SECOND).exists()
    assert await tiers.read() == whole_stream()
    assert tiers.shared.most_used_bytes <= CACHE_BYTES


async def test_markers_are_left_out_of_packed_files_as_of_plain_ones(begin: Begin, tmp_path: Path) -> None:
    original = BinlogBuilder().transaction(20, 60_000).ddl()
    tiers = await begin({FIRST: stamped(bytes(original.data)), SECOND: FILES[SECOND][0]})
    came = await tiers.read(user="plain")
    assert came.startswith(rotate_to(FIRST) + bytes(original.data[4:]) + rotate_to(SECOND))


async def test_files_without_checksums_are_compared_with_their_sums_when_they_are_packed(begin: Begin) -> None:
    files = {name: binlog(number, checksum=False)[0] for number, name in enumerate((FIRST, SECOND))}
    tiers = await begin(files)
    came = await tiers.read(checksum=False)
    assert came.endswith(files[SECOND][4:]) and files[FIRST][4:] in came


async def test_a_stream_that_begins_in_the_middle_of_a_packed_file_reads_what_follows_and_not_what_is_before(
    begin: Begin,
) -> None:
    tiers = await begin(in_bucket=True)
    tiers.shared.limit_bytes = 64 << 20
    data, middle = FILES[SECOND]
    came = await tiers.read(SECOND, middle)
    assert came.endswith(data[middle:] + rotate_to(THIRD) + FILES[THIRD][0][4:])
    assert tiers.store.counts.bytes_read < tiers.stored(SECOND).stat().st_size


async def test_many_replicas_at_one_place_cost_one_download(begin: Begin) -> None:
    tiers = await begin(in_bucket=True)
    tiers.shared.limit_bytes = 64 << 20
    streams = await asyncio.gather(*(tiers.read(server_id=100 + number) for number in range(8)))
    assert set(streams) == {whole_stream()}
    stored = sum(tiers.stored(name).stat().st_size for name in (FIRST, SECOND))
    assert tiers.store.counts.bytes_read < stored + (160 << 10)  # the ends of two files are read for their tables


async def test_replicas_at_different_places_share_the_room_that_there_is(begin: Begin) -> None:
    tiers = await begin(in_bucket=True)
    places = [(FIRST, 4), (FIRST, FILES[FIRST][1]), (SECOND, 4), (SECOND, FILES[SECOND][1])] * 2
    streams = await asyncio.gather(*(tiers.read(*place, server_id=100 + number) for number, place in enumerate(places)))
    assert all(came.endswith(FILES[THIRD][0][4:]) for came in streams)
    assert tiers.shared.most_used_bytes <= CACHE_BYTES


async def test_a_file_that_is_packed_while_it_is_sent_is_sent_to_its_end(begin: Begin) -> None:
    tiers = await begin({FIRST: FILES[FIRST][0]})
    await tiers.archive.current.begin_file(SECOND)
    await append_all(tiers.archive.current, FILES[SECOND][0])

    def run() -> bytes:
        client = ReplicaClient(tiers.server.port)
        try:
            client.set_up()
            client.ask_dump("", 4, flags=1)
            came = b"".join(event.data for event in client.events(3))
            asyncio.run_coroutine_threadsafe(tiers.pack(), loop).result(10)
            return came + b"".join(event.data for event in client.events_to_eof())
        finally:
            client.cut()

    loop = asyncio.get_running_loop()
    assert not list(tiers.directory.glob("*.zst"))
    came = await asyncio.wait_for(asyncio.to_thread(run), 20)
    assert came == rotate_to(FIRST) + FILES[FIRST][0][4:] + rotate_to(SECOND) + FILES[SECOND][0][4:]
    assert list(tiers.directory.glob("*.zst"))


async def test_a_file_that_goes_from_the_bucket_back_to_the_disk_while_it_is_sent_is_sent_to_its_end(
    begin: Begin,
) -> None:
    tiers = await begin(in_bucket=True)
    tiers.shared.limit_bytes = 300 << 10

    def run() -> bytes:
        client = ReplicaClient(tiers.server.port)
        try:
            client.set_up()
            client.ask_dump("", 4, flags=1)
            came = b"".join(event.data for event in client.events(3))
            for name in (FIRST, SECOND):
                (tiers.directory / name).write_bytes(FILES[name][0])
                (tiers.directory / f"{name}.place").unlink()
                tiers.stored(name).unlink()
            return came + b"".join(event.data for event in client.events_to_eof())
        finally:
            client.cut()

    assert await asyncio.wait_for(asyncio.to_thread(run), 20) == whole_stream()


# --- what cannot be had ------------------------------------------------------------------------------------------------


async def refused(tiers: Tiers, file: str = "", offset: int = 4) -> tuple[int, str, bytes]:
    with pytest.raises(pymysql.MySQLError) as caught:
        await tiers.read(file, offset)
    number, text = caught.value.args
    return number, text, caught.value.came  # type: ignore[attr-defined]


@pytest.mark.parametrize("in_bucket", [False, True], ids=["cold", "object"])
@pytest.mark.parametrize("keys", [None, KEYS], ids=["open", "encrypted"])
async def test_a_stream_ends_at_the_last_whole_transaction_before_a_damaged_frame(
    begin: Begin, in_bucket: bool, keys: KeyRing | None
) -> None:
    tiers = await begin(in_bucket=in_bucket, keys=keys)
    stored = tiers.stored(SECOND)
    data = bytearray(stored.read_bytes())
    data[len(data) // 2] ^= 1
    stored.write_bytes(data)
    number, text, came = await refused(tiers)
    assert number == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG
    assert SECOND in text and "is not what was packed" in text
    good = whole_stream()
    assert good.startswith(came) and len(came) > len(rotate_to(FIRST)) + len(FILES[FIRST][0])
    place = tiers.archive.current.damaged_files.first(SECOND)
    assert place is not None and came.endswith(FILES[SECOND][0][4 : place.boundary])


async def test_a_missing_key_is_named_and_the_replica_may_try_again(begin: Begin) -> None:
    tiers = await begin(keys=KEYS, keys_given=KeyRing({"2025": bytes(32)}, None))
    number, text, _came = await refused(tiers)
    assert number == ErrorCode.ER_UNKNOWN_ERROR
    assert FIRST in text and "'2026'" in text and "'2025'" in text


async def test_a_wrong_key_is_named_and_the_replica_may_try_again(begin: Begin) -> None:
    tiers = await begin(keys=KEYS, keys_given=KeyRing({"2026": bytes(32)}, None))
    number, text, _came = await refused(tiers)
    assert number == ErrorCode.ER_UNKNOWN_ERROR
    assert FIRST in text and "'2026'" in text


async def test_an_object_that_is_gone_ends_the_streams_that_need_it_by_name(begin: Begin) -> None:
    tiers = await begin(in_bucket=True)
    tiers.stored(SECOND).unlink()
    number, text, came = await refused(tiers)
    assert number == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG
    assert f"{SECOND}.zst" in text
    assert came.startswith(rotate_to(FIRST) + FILES[FIRST][0][4:])
    assert (await tiers.read(THIRD)).endswith(FILES[THIRD][0][4:])


async def test_heartbeats_come_while_a_replica_waits_for_a_bucket(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiers = await begin(in_bucket=True)
    real = ObjectStore.get_range
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(store: ObjectStore, key: str, start: int, stop: int) -> bytes:
        if key.startswith(SECOND):
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result(10)
        return real(store, key, start, stop)

    monkeypatch.setattr(ObjectStore, "get_range", slow)

    def run() -> tuple[bytes, int]:
        client = ReplicaClient(tiers.server.port)
        came, beats = bytearray(), 0
        try:
            client.set_up(heartbeat_s=0.05)
            client.ask_dump("", 4, flags=1)
            while (event := client.event()) is not None:
                if event.kind == EventType.HEARTBEAT:
                    beats += 1
                    if beats == 3:
                        loop.call_soon_threadsafe(gate.set)
                else:
                    came += event.data
        finally:
            with contextlib.suppress(OSError):
                client.cut()
        return bytes(came), beats

    came, beats = await asyncio.wait_for(asyncio.to_thread(run), 20)
    assert beats >= 3
    assert came == whole_stream()


async def test_a_bucket_that_is_silent_holds_up_nobody_who_does_not_need_it(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiers = await begin(in_bucket=True)
    silent = threading.Event()
    real = ObjectStore.get_range

    def read(store: ObjectStore, key: str, start: int, stop: int) -> bytes:
        if key.startswith(FIRST):
            assert silent.wait(15)
        return real(store, key, start, stop)

    monkeypatch.setattr(ObjectStore, "get_range", read)
    waiting = [asyncio.create_task(tiers.read(FIRST, 4, server_id=200 + number)) for number in range(12)]
    checks = [asyncio.create_task(tiers.read(FIRST, FILES[FIRST][1], server_id=300 + number)) for number in range(4)]
    await asyncio.sleep(0.2)
    assert (await tiers.read(THIRD, server_id=400)).endswith(FILES[THIRD][0][4:])
    assert (await tiers.read(SECOND, server_id=401)).endswith(FILES[THIRD][0][4:])
    assert not any(task.done() for task in (*waiting, *checks))
    silent.set()
    for came in await asyncio.gather(*waiting, *checks):
        assert came.endswith(FILES[THIRD][0][4:])


async def test_a_store_that_gives_up_ends_the_stream_with_1105_that_names_file_and_place(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiers = await begin(in_bucket=True)
    real = ObjectStore.get_range

    def read(store: ObjectStore, key: str, start: int, stop: int) -> bytes:
        if key.startswith(SECOND):
            raise StoreUnreachable("HTTP 503 SlowDown (tried 8 times in 60 s)", url=store.url(key))
        return real(store, key, start, stop)

    monkeypatch.setattr(ObjectStore, "get_range", read)
    number, text, came = await refused(tiers)
    assert number == ErrorCode.ER_UNKNOWN_ERROR
    assert f"{FIRST}:" in text and f"{SECOND}.zst" in text and "SlowDown" in text and "may try again" in text
    assert came == rotate_to(FIRST) + FILES[FIRST][0][4:]
    assert tiers.archive.current.damaged_files.first(SECOND) is None


async def test_a_stream_by_position_through_a_file_that_was_put_there_packed_needs_no_note_of_it(begin: Begin) -> None:
    tiers = await begin()
    for name in (FIRST, SECOND):
        (tiers.directory / f"{name}.place").unlink()
    assert await tiers.read() == whole_stream()


async def test_a_note_of_a_place_that_cannot_be_understood_is_named_and_ends_nothing_for_good(begin: Begin) -> None:
    tiers = await begin(in_bucket=True)
    note = tiers.directory / f"{FIRST}.place"
    told = note.read_text()
    note.write_text("{}")
    number, text, _came = await refused(tiers)
    assert number == ErrorCode.ER_UNKNOWN_ERROR and f"{FIRST}.place" in text
    note.write_text(told)
    assert await tiers.read() == whole_stream()
