"""Sums of blocks: their records, who makes them, what is read with them, and what is done where they are damaged."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.read.file_reads import FileReads
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer
from relay.archive.sums.block_check import check_blocks
from relay.archive.sums.block_sum import BLOCK_BYTES, BlockSum, decode_sums, encode_sums, sum_paths
from relay.archive.sums.file_sums import BlockReader, FileSums, touched
from relay.archive.sums.newest_block import NewestBlock
from relay.archive.sums.sum_files import known_end, make_sums, read_sums, sums_on_disk
from relay.archive.sums.sum_recorder import SumRecorder
from relay.archive_inspection.listing import rebuild_archive
from relay.archive_inspection.scrub import Scrub
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder
from tests.unit.downstream.test_dump_edges import stamped

NAME = "mysql-bin.000001"
SECOND = "mysql-bin.000002"
DISK = FileLayer()


class PlainRun(NamedTuple):
    data: bytes
    boundary: int
    position: int


def facts(end: int) -> ArchivedFile:
    return ArchivedFile(NAME, 1, end, False, 0, "5.6", 1, 0, "mysql")


# --- records --------------------------------------------------------------------------------------------------------------


def test_a_record_that_was_changed_anywhere_is_none() -> None:
    whole = encode_sums([BlockSum(BLOCK_BYTES, 0x12345678), BlockSum(77, 0)], 5)
    assert decode_sums(whole, 5) == [BlockSum(BLOCK_BYTES, 0x12345678), BlockSum(77, 0)]
    for place in range(12):
        changed = bytearray(whole)
        changed[place] ^= 1
        assert decode_sums(bytes(changed), 5) == [None, BlockSum(77, 0)]


def test_a_record_in_the_place_of_another_is_none() -> None:
    assert decode_sums(encode_sums([BlockSum(9, 9)], 5), 6) == [None]
    assert decode_sums(bytes(24), 0) == [None, None]


# --- who makes them -------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "fail", "cut back", "restart", "lose"]), st.integers(0, 50_000)
    ),
    max_size=14,
)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 1000))
def test_whatever_is_written_cut_back_lost_and_resumed_the_sums_are_of_what_is_there(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], seed: int
) -> None:
    chance = random.Random(seed)
    path = tmp_path_factory.mktemp("sums") / NAME
    written = bytearray(b"\xfebin")
    path.write_bytes(written)
    newest = NewestBlock()
    recorder = SumRecorder.create(DISK, path, newest)
    boundary = 4
    for step, amount in [("write", 100), *steps]:
        if step in ("write", "fail"):
            batch, position, end = [], len(written), boundary
            for size in (amount // 3, amount - amount // 3):
                data = chance.randbytes(size)
                position += size
                if chance.random() < 0.7:
                    end = chance.randint(max(end, position - size), position)
                batch.append(PlainRun(data, end, position))
            recorder.take(batch)
            if step == "fail":  # the file's own bytes were not written
                del written[boundary:]
                recorder.cut_back()
                continue
            for run in batch:
                written += run.data
            boundary = end
            recorder.written()
        elif step == "cut back":
            del written[boundary:]
            recorder.cut_back()
        else:
            recorder.close()
            del written[boundary:]
            path.write_bytes(written)
            if step == "lose":
                for place in sum_paths(path):
                    content = place.read_bytes()
                    place.write_bytes(content[: chance.randint(0, len(content))])
            newest = newest if chance.random() < 0.5 else NewestBlock()
            recorder = SumRecorder.resume(DISK, path, facts(boundary), newest)
        path.write_bytes(written)
        number, _ = divmod(boundary, BLOCK_BYTES)
        (known,) = sums_on_disk(DISK, path, number, boundary) or [BlockSum(0, 0)]
        if newest.of(NAME) is not None:
            assert newest.of(NAME) == (number, known)
        assert read_sums(DISK, path)[:number] == sums_on_disk(DISK, path, 0, number * BLOCK_BYTES)
    recorder.finish()
    recorder.close()
    assert newest.of(NAME) is None
    assert [place.read_bytes() for place in sum_paths(path)] == [
        encode_sums(sums_on_disk(DISK, path, 0, len(written)), 0)
    ] * 2


# --- reading --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def binlog(tmp_path: Path) -> Path:
    """A file of five blocks and a piece, with its sums."""
    path = tmp_path / NAME
    path.write_bytes(random.Random(1).randbytes(5 * BLOCK_BYTES + 700))
    make_sums(DISK, path, 5 * BLOCK_BYTES + 700)
    return path


@settings(max_examples=200, deadline=None)
@given(
    offset=st.integers(0, 5 * BLOCK_BYTES + 699),
    size=st.integers(1, 60_000),
    wrong=st.integers(0, 5 * BLOCK_BYTES + 699),
)
def test_what_is_read_is_good_up_to_the_first_block_that_was_changed(
    tmp_path_factory: pytest.TempPathFactory, offset: int, size: int, wrong: int
) -> None:
    data = bytearray(random.Random(1).randbytes(5 * BLOCK_BYTES + 700))
    size = min(size, len(data) - offset)
    sums: list[BlockSum | None] = [
        BlockSum(len(data[at : at + BLOCK_BYTES]), crc32(data[at : at + BLOCK_BYTES]))
        for at in range(0, len(data), BLOCK_BYTES)
    ]
    data[wrong] ^= 1

    def read(parts: Sequence[memoryview], at: int) -> int:
        done = 0
        for part in parts:
            piece = data[at + done : at + done + len(part)]
            part[: len(piece)] = piece
            done += len(piece)
        return done

    first, count = touched(offset, size)
    blocks = BlockReader()
    buffer = bytearray(size)
    got = blocks.read(read, sums[first : first + count], memoryview(buffer), offset)  # type: ignore[arg-type]
    block = wrong // BLOCK_BYTES
    if first <= block < first + count:
        assert blocks.wrong is not None and blocks.wrong[0] == block * BLOCK_BYTES
        assert got == max(0, block * BLOCK_BYTES - offset)
    else:
        assert (got, blocks.wrong) == (size, None)
    assert buffer[:got] == data[offset : offset + got]


async def read_file(path: Path, told: list[str], *, nowait: bool = True) -> bytes:
    """All of the file as a stream reads it. Raises: ArchiveDamaged."""
    reads = FileReads()
    reads._nowait = reads._nowait and nowait
    file = reads.open(path, FileSums(DISK, path, NewestBlock(), lambda at, text, lacks: told.append(text)))
    try:
        found = b""
        while len(found) < path.stat().st_size:
            size = min(60_000, path.stat().st_size - len(found))
            got = reads.read_now(file, len(found), size)
            if got:
                found += reads.buffer[:got]
                continue
            done = asyncio.get_running_loop().create_future()

            def finish(
                buffer: bytearray, got: int, error: Exception | None, done: asyncio.Future[bytes] = done
            ) -> None:
                if error is None:
                    done.set_result(bytes(buffer[:got]))
                else:
                    done.set_exception(error)

            reads.read_later(file, len(found), size, finish)
            found += await done
        return found
    finally:
        reads.close(file)
        reads.shutdown()


@pytest.mark.parametrize("nowait", [True, False])
async def test_all_of_a_sound_file_is_read(binlog: Path, nowait: bool) -> None:
    told: list[str] = []
    assert await read_file(binlog, told, nowait=nowait) == binlog.read_bytes()
    assert told == []


@pytest.mark.parametrize("nowait", [True, False])
async def test_a_changed_block_ends_the_reading_by_name(binlog: Path, nowait: bool) -> None:
    data = bytearray(binlog.read_bytes())
    data[3 * BLOCK_BYTES + 5] ^= 1
    binlog.write_bytes(data)
    with pytest.raises(ArchiveDamaged, match="are not what was received") as caught:
        await read_file(binlog, [], nowait=nowait)
    assert (caught.value.offset, caught.value.boundary) == (3 * BLOCK_BYTES, 3 * BLOCK_BYTES)


async def test_a_record_that_only_the_copy_has_is_put_right(binlog: Path) -> None:
    place = sum_paths(binlog)[0]
    whole = place.read_bytes()
    place.write_bytes(whole[:30] + b"\xff" + whole[31:])
    told: list[str] = []
    assert await read_file(binlog, told, nowait=False) == binlog.read_bytes()
    assert [place.name in text and "put right" in text for text in told] == [True]
    assert place.read_bytes() == whole


async def test_without_any_sum_all_is_read_and_told_once(binlog: Path) -> None:
    for place in sum_paths(binlog):
        place.unlink()
    told: list[str] = []
    assert await read_file(binlog, told) == binlog.read_bytes()
    assert told == ["it has neither NAME.sum nor NAME.sum2, and is served without being compared"]


@pytest.mark.parametrize("nowait", [True, False])
async def test_a_directory_in_the_place_of_the_sums_is_as_if_they_were_damaged(binlog: Path, nowait: bool) -> None:
    place = sum_paths(binlog)[0]
    place.unlink()
    place.mkdir()
    assert await read_file(binlog, [], nowait=nowait) == binlog.read_bytes()


# --- in an archive --------------------------------------------------------------------------------------------------------


def plain(*row_sizes: int) -> BinlogBuilder:
    return BinlogBuilder(checksum=False).transaction(*row_sizes)


async def until_digested(directory: Path, *, damaged: int = 0) -> list[str]:
    """Opens and closes it when all sealed files have their digests, and so many are found damaged; the ledger's texts of damage."""
    generation = await Generation.open(directory)
    for _ in range(500):
        digested = all(
            file.digest or generation.damaged_files.first(file.name) for file in generation.files if file.sealed
        )
        if digested and len(list(generation.damaged_files.all)) >= damaged:
            break
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    found = [place.text for place in generation.damaged_files.all]
    await generation.close()
    return found


async def test_files_with_checksums_have_no_sums(tmp_path: Path) -> None:
    await fill(tmp_path, (NAME, BinlogBuilder().transaction(20).data))
    assert not any(place.exists() for place in sum_paths(tmp_path / NAME))


async def test_sums_of_an_older_archive_are_made_where_the_digest_agrees(tmp_path: Path) -> None:
    await fill(tmp_path, (NAME, plain(40_000).data), (SECOND, plain(50).data))
    await until_digested(tmp_path)
    places = [*sum_paths(tmp_path / NAME), *sum_paths(tmp_path / SECOND)]
    whole = [place.read_bytes() for place in places]
    for place in places:
        place.unlink()
    assert await until_digested(tmp_path) == []
    assert [place.read_bytes() for place in places] == whole


async def test_sums_of_an_older_archive_are_not_made_of_a_file_that_was_changed(tmp_path: Path) -> None:
    await fill(tmp_path, (NAME, plain(40_000).data), (SECOND, plain(50).data))
    await until_digested(tmp_path)
    for place in sum_paths(tmp_path / NAME):
        place.unlink()
    data = bytearray((tmp_path / NAME).read_bytes())
    data[30_000] ^= 1
    (tmp_path / NAME).write_bytes(data)
    (told,) = await until_digested(tmp_path, damaged=1)
    assert "was noted when it was sealed" in told
    assert not any(place.exists() for place in sum_paths(tmp_path / NAME))


async def test_a_file_that_is_changed_before_its_digest_is_made_is_found(tmp_path: Path) -> None:
    generation = await Generation.open(tmp_path)
    await generation.begin_file(NAME)
    built = plain(40_000)
    await append_all(generation, built.data)
    data = bytearray((tmp_path / NAME).read_bytes())
    data[30_000] ^= 1
    with (tmp_path / NAME).open("r+b") as file:
        file.write(data)
    await generation.begin_file(SECOND)
    for _ in range(500):
        if generation.damaged_files.all:
            break
        await asyncio.sleep(0.01)
    (place,) = generation.damaged_files.all
    assert (place.file, place.offset) == (NAME, BLOCK_BYTES)
    await generation.close()


async def test_verify_names_the_blocks_that_were_changed(tmp_path: Path) -> None:
    await fill(tmp_path, (NAME, plain(30_000, 30_000).data), (SECOND, plain(50).data))
    data = bytearray((tmp_path / NAME).read_bytes())
    for place in (20_000, 50_000):
        data[place] ^= 1
    (tmp_path / NAME).write_bytes(data)
    found = [finding for finding in verify_archive(tmp_path, deep=True) if "the block at" in finding.what]
    assert [finding.offset for finding in found] == [BLOCK_BYTES, 3 * BLOCK_BYTES]


async def test_the_sources_own_file_in_the_place_of_a_damaged_one_gets_sums_of_its_own(tmp_path: Path) -> None:
    original = bytes(plain(300, 300).rotate(SECOND).data)
    await fill(tmp_path, (NAME, stamped(original)), (SECOND, stamped(bytes(plain(50).data))))
    (tmp_path / NAME).write_bytes(original)
    rebuild_archive(tmp_path)
    assert await until_digested(tmp_path) == []
    assert list(verify_archive(tmp_path, deep=True)) == []
    # But not what was only changed.
    data = bytearray((tmp_path / SECOND).read_bytes())
    data[-20] ^= 1
    (tmp_path / SECOND).write_bytes(data)
    assert known_end(DISK, tmp_path / SECOND, 4, len(data)) < len(data)


def test_a_check_of_all_blocks_tells_what_it_reads_and_can_be_stopped(binlog: Path) -> None:
    end = binlog.stat().st_size
    told: list[int] = []
    check = check_blocks(DISK, binlog, end, on_bytes=lambda data: told.append(len(data)))
    assert check is not None and (check.differing, check.lacking, sum(told)) == ([], [], end)
    assert check_blocks(DISK, binlog, end, stop=lambda: True) is None


async def test_a_copy_that_is_damaged_is_named_by_a_check_and_put_right(tmp_path: Path) -> None:
    await fill(tmp_path, (NAME, plain(40_000).data), (SECOND, plain(50).data))
    await until_digested(tmp_path)
    copy = sum_paths(tmp_path / NAME)[1]
    whole = copy.read_bytes()
    copy.write_bytes(whole[:30] + b"\xff" + whole[31:])
    (finding,) = verify_archive(tmp_path, deep=True)
    assert (finding.file, "differ: one is damaged" in finding.what) == (f"{NAME}.sum", True)
    archive = await Archive.open(tmp_path)
    scrub = Scrub(archive, None)
    scrub.begin()
    scrub.hurry()
    for _ in range(500):
        if copy.read_bytes() == whole:
            break
        await asyncio.sleep(0.01)
    await scrub.close()
    await archive.close()
    assert copy.read_bytes() == whole
    assert list(verify_archive(tmp_path, deep=True)) == []
