"""What may be sent of the bytes that were read: whole transactions that are as they were archived, short ones and long ones."""

import pytest

from relay.archive.read.checked_bytes import AHEAD_BYTES, CheckedBytes, sound_ahead
from relay.archive.storage.archive_errors import ArchiveDamaged
from tests.support.binlog_builder import BinlogBuilder
from tests.unit.downstream.test_dump_edges import stamped

NAME = "mysql-bin.000001"


def a_file(*row_sizes: int, checksum: bool = True) -> bytearray:
    built = BinlogBuilder(checksum=checksum)
    for size in row_sizes:
        built.transaction(size)
    return bytearray(stamped(bytes(built.data)))


def reader(data: bytearray):  # type: ignore[no-untyped-def]
    def read_into(view: memoryview, offset: int) -> int:
        piece = data[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    return read_into


def sent(data: bytearray, end: int, run_bytes: int) -> int:
    """Up to where a stream gets that reads runs of so many bytes. Raises: ArchiveDamaged."""
    checked = CheckedBytes(NAME, 1, 4)
    offset = 4
    while offset < end:
        run = bytearray(data[offset : min(end, offset + run_bytes)])
        sendable = checked.sendable(run, len(run), offset, end)
        if not sendable:
            checked.found_ahead(offset, sound_ahead(reader(data), NAME, 1, offset, end))
            continue
        offset += sendable
    return offset


@pytest.mark.parametrize("run_bytes", [300, 1_000, 5_000, 1 << 20])
def test_all_of_a_sound_file_is_sent(run_bytes: int) -> None:
    data = a_file(20, 3_000, 50, 200_000, 7)
    assert sent(data, len(data), run_bytes) == len(data)


@pytest.mark.parametrize("run_bytes", [300, 5_000, 1 << 20])
def test_nothing_of_a_transaction_with_a_changed_byte_is_sent(run_bytes: int) -> None:
    before = len(a_file(20, 3_000, 50))
    data = a_file(20, 3_000, 50, 200_000, 7)
    data[before + 150_000] ^= 1
    with pytest.raises(ArchiveDamaged, match="the checksum of the event at") as caught:
        sent(data, len(data), run_bytes)
    assert caught.value.boundary == before
    assert before < (caught.value.offset or 0) <= before + 150_000


def test_a_file_that_ends_too_early_is_sent_up_to_its_last_whole_transaction() -> None:
    before = len(a_file(20, 3_000))
    data = a_file(20, 3_000, 200_000)
    with pytest.raises(ArchiveDamaged, match=f"the file ends at {before + 1000}") as caught:
        sent(data[: before + 1000], len(data), 5_000)
    assert caught.value.boundary == before


def test_an_event_that_goes_beyond_the_end_is_damage() -> None:
    data = a_file(20, 3_000)
    end = len(data) - 8
    with pytest.raises(ArchiveDamaged, match="goes beyond the end"):
        sent(data, end, 1 << 20)


def test_what_changes_while_a_long_transaction_is_sent_ends_the_stream_in_it() -> None:
    data = a_file(20, 200_000, 7)
    checked = CheckedBytes(NAME, 1, 4)
    first = sound_ahead(reader(data), NAME, 1, 4, len(data))
    checked.found_ahead(4, first)
    data[len(data) - 1_000] ^= 1
    with pytest.raises(ArchiveDamaged):
        checked.sendable(bytearray(data[4:]), len(data) - 4, 4, len(data))


def test_one_look_ahead_is_enough_for_many_transactions() -> None:
    data = a_file(*[400_000] * 30)
    assert sound_ahead(reader(data), NAME, 1, 4, len(data)) > AHEAD_BYTES - 400_100


def test_a_group_that_the_source_left_open_is_sent_to_the_files_end() -> None:
    data = a_file(20, 3_000)
    cut = data[: len(data) - 31]  # without its Xid
    assert sent(cut, len(cut), 1_000) == len(cut)
