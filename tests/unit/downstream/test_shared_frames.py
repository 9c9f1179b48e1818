"""Frames for many readers: fetched once, read ahead of those who read on, kept within the limit, whatever fails."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveUnavailable
from relay.object_store.object_errors import ObjectMissing, StoreUnreachable
from relay.packed.byte_source import BytesInMemory
from relay.packed_reads.packed_frames import PackedFrames, StoredBytes
from relay.packed_reads.shared_frames import SharedFrames
from tests.support.packed_archive import packed_bytes

FRAME = 4096
COUNT = 64
NAME = "mysql-bin.000001"


class Counted(BytesInMemory):
    """Counts what is read, may be held up, and may fail."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.ranges: list[tuple[int, int]] = []
        self.open = threading.Event()
        self.open.set()
        self.error: Exception | None = None

    def read(self, offset: int, count: int) -> bytes:
        assert self.open.wait(10)
        if self.error is not None:
            raise self.error
        self.ranges.append((offset, count))
        return super().read(offset, count)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / NAME
    path.write_bytes(b"".join(number.to_bytes(4, "big") * (FRAME // 4) for number in range(COUNT * 2)))
    return path


@pytest.fixture
def source(plain: Path) -> Counted:
    return Counted(packed_bytes(plain, frame_bytes=FRAME))


@pytest.fixture
def shared() -> Iterator[SharedFrames]:
    made = SharedFrames(1 << 20)
    yield made
    made.close()


def opened(source: Counted) -> PackedFrames:
    return PackedFrames(NAME, StoredBytes("key", source, True, "s3://b/k", lambda: None), None, lambda: None)


def test_a_frame_that_many_want_at_once_is_fetched_once(shared: SharedFrames, source: Counted) -> None:
    files = [opened(source) for _ in range(16)]
    tables = [shared.opened(file).result(10) for file in files]
    source.ranges.clear()
    source.open.clear()
    wanted = [shared.coming(file, 5, reads_on=False) for file in files]
    source.open.set()
    assert len({future.result(10) for future in wanted}) == 1
    assert source.ranges == [(tables[0][5].stored_start, tables[0][5].stored_size)]


def test_who_reads_on_finds_more_and_more_fetched_ahead(shared: SharedFrames, source: Counted, plain: Path) -> None:
    file = opened(source)
    table = shared.opened(file).result(10)
    source.ranges.clear()
    came = b"".join(shared.coming(file, index, reads_on=True).result(10) for index in range(len(table)))
    assert came == plain.read_bytes()
    assert len(source.ranges) < len(table) // 4
    assert sum(size for _offset, size in source.ranges) == table.stored_stop - table[0].stored_start


def test_a_look_at_one_place_fetches_one_frame(shared: SharedFrames, source: Counted) -> None:
    file = opened(source)
    table = shared.opened(file).result(10)
    source.ranges.clear()
    shared.coming(file, 7, reads_on=False).result(10)
    assert source.ranges == [(table[7].stored_start, table[7].stored_size)]


def test_no_more_is_kept_and_on_its_way_than_the_limit(source: Counted) -> None:
    shared = SharedFrames(20 * FRAME)
    file = opened(source)
    table = shared.opened(file).result(10)

    def walk(begin: int) -> None:
        for step in range(40):
            assert len(shared.coming(file, (begin + step) % len(table), reads_on=True).result(10)) >= FRAME

    with ThreadPoolExecutor(12) as readers:
        list(readers.map(walk, range(0, 120, 10)))
    assert 0 < shared.most_used_bytes <= 20 * FRAME
    shared.close()


def test_a_store_that_does_not_answer_is_an_error_that_passes(shared: SharedFrames, source: Counted) -> None:
    file = opened(source)
    shared.opened(file).result(10)
    source.error = StoreUnreachable("HTTP 503", url="s3://b/k")
    with pytest.raises(ArchiveUnavailable, match=r"s3://b/k.*HTTP 503"):
        shared.coming(file, 3, reads_on=True).result(10)
    source.error = None
    assert shared.coming(file, 3, reads_on=True).result(10)
    assert shared.used_bytes <= shared.limit_bytes


def test_a_damaged_frame_is_fetched_three_times_and_spoils_no_other(shared: SharedFrames, source: Counted) -> None:
    file = opened(source)
    table = shared.opened(file).result(10)
    data = bytearray(source.read(0, source.size))
    data[table[4].stored_start + table[4].stored_size // 2] ^= 1
    source._data = bytes(data)
    source.ranges.clear()
    with pytest.raises(ArchiveDamaged, match="is not what was packed") as caught:
        shared.coming(file, 4, reads_on=True).result(10)
    assert caught.value.offset == table[4].plain_start
    assert source.ranges.count((table[4].stored_start, table[4].stored_size)) == 3
    assert shared.coming(file, 5, reads_on=True).result(10)


def test_an_object_that_is_missing_once_is_looked_for_again(source: Counted) -> None:
    shared = SharedFrames(1 << 20)
    file = PackedFrames(NAME, StoredBytes("key", source, True, "s3://b/k", lambda: None), None, lambda: away())
    shared.opened(file).result(10)
    source.error = ObjectMissing("there is no such object", url="s3://b/k")

    def away() -> StoredBytes:
        source.error = None
        return StoredBytes("key", source, True, "s3://b/k", lambda: None)

    assert shared.coming(file, 3, reads_on=False).result(10)
    shared.close()


@pytest.mark.parametrize("what", ["frame", "end", "room"])
def test_whoever_waits_when_it_is_closed_is_told(source: Counted, what: str) -> None:
    shared = SharedFrames(FRAME * 3 if what == "room" else 1 << 20, store_threads=1)
    file, stored = opened(source), StoredBytes("other", source, True, "s3://b/o", lambda: None)
    other = PackedFrames("mysql-bin.000002", stored, None, lambda: None)
    shared.opened(file).result(10)
    source.open.clear()
    fetched = shared.coming(file, 1, reads_on=False)
    waits = shared.opened(other) if what == "end" else shared.coming(file, 2, reads_on=False)
    shared.close()
    with pytest.raises(ArchiveUnavailable, match="stopping"):
        waits.result(10)
    source.open.set()
    fetched.exception(10)  # it comes, or was not begun
    with pytest.raises(ArchiveUnavailable, match="stopping"):
        shared.coming(file, 9, reads_on=True).result(10)
    with pytest.raises(ArchiveUnavailable, match="stopping"):
        shared.opened(other).result(10)
    assert shared.used_bytes <= shared.limit_bytes
