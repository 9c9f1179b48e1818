"""A binlog's first bytes, the places of its events by their headers, and its bytes in pieces."""

from pathlib import Path

import pytest

from protocol.binlog.format_description import decode_first_event
from protocol.binlog.layout import ENCRYPTED_MAGIC, FIRST_EVENT, MAGIC
from protocol.errors import Malformed, Truncated
from protocol.gtid.mariadb import GtidList
from relay.binlog_file.broken import wrong_magic
from relay.binlog_file.event_places import count_events, event_around, event_headers
from relay.binlog_file.file_bytes import DescriptorBytes, pieces, read_bytes
from relay.binlog_file.gtids_before import gtids_before
from relay.binlog_file.head import LONGEST_FORMAT, read_start
from tests.support.binlog_builder import BinlogBuilder


@pytest.fixture
def opened(tmp_path: Path):
    """Makes a file of some bytes and opens it."""
    files = []

    def made(data: bytes) -> DescriptorBytes:
        path = tmp_path / f"{len(files)}"
        path.write_bytes(data)
        files.append(path.open("rb"))
        return DescriptorBytes(files[-1].fileno())

    yield made
    for file in files:
        file.close()


def test_a_binlog_starts_with_its_magic_and_its_first_event(opened) -> None:
    binlog = BinlogBuilder().transaction()
    start = read_start(opened(bytes(binlog.data)))
    first = binlog.events[0]
    assert (start.magic, start.event, start.is_whole) == (MAGIC, bytes(binlog.data[first.start : first.end]), True)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 16, 22, 23, 60])
def test_of_a_file_that_has_hardly_begun_there_is_what_there_is(opened, size: int) -> None:
    data = bytes(BinlogBuilder().data[:size])
    start = read_start(opened(data))
    assert (start.magic, start.event, start.is_whole) == (data[:4], data[4:], False)


@pytest.mark.parametrize("size", [0, 18, 1 << 17, 0xFFFFFFFF])
def test_a_first_event_of_any_length_costs_little(opened, size: int) -> None:
    data = bytearray(BinlogBuilder().data) + bytes(1 << 18)
    data[FIRST_EVENT + 9 : FIRST_EVENT + 13] = size.to_bytes(4, "little")
    start = read_start(opened(bytes(data)))
    assert (len(start.event) <= LONGEST_FORMAT, start.is_whole) == (True, False)


def test_a_first_event_of_some_kilobytes_is_whole(opened) -> None:
    data = bytearray(BinlogBuilder().data[:FIRST_EVENT]) + bytes(9) + (5000).to_bytes(4, "little") + bytes(8000)
    start = read_start(opened(bytes(data)))
    assert (start.is_whole, start.event) == (True, bytes(data[4:5004]))


@pytest.mark.parametrize(
    ("magic", "name", "words"),
    [
        (MAGIC, None, ""),
        (ENCRYPTED_MAGIC, "file_encrypted", "is encrypted at rest by MySQL"),
        (b"%PDF", "not_a_binlog", "is not a binlog: it starts with 25 50 44 46 instead of fe 62 69 6e"),
        (b"", "not_a_binlog", "is not a binlog: it is empty"),
    ],
)
def test_what_is_no_binlog_is_named(magic: bytes, name: str | None, words: str) -> None:
    wrong = wrong_magic(magic)
    assert wrong == (None if name is None else (name, words))


def test_the_first_event_tells_who_wrote_the_file_and_how() -> None:
    header, described = decode_first_event(bytes(BinlogBuilder("mariadb", server_id=7).data[FIRST_EVENT:]))
    assert (header.server_id, described.flavour, described.checksum_bytes) == (7, "mariadb", 4)


def test_another_first_event_is_refused() -> None:
    with pytest.raises(Malformed, match="of type 2, not a format description"):
        decode_first_event(bytes(BinlogBuilder(header=False).query("BEGIN").data[FIRST_EVENT:]))
    with pytest.raises(Truncated, match="announces"):
        decode_first_event(bytes(BinlogBuilder().data[FIRST_EVENT:-1]))


@pytest.mark.parametrize("piece_bytes", [19, 20, 64, 1 << 16])
def test_events_are_found_by_their_headers(opened, piece_bytes: int) -> None:
    binlog = BinlogBuilder().transaction(10, 2000, 30).transaction()
    source = opened(bytes(binlog.data))
    found = [(at, fields.size, fields.type) for at, fields in event_headers(source, 4, binlog.size, piece_bytes)]
    assert found == [(event.start, event.end - event.start, event.kind) for event in binlog.events]


def test_events_are_counted_from_one_place_to_another(opened) -> None:
    binlog = BinlogBuilder().transaction(10, 2000, 30).transaction()
    source = opened(bytes(binlog.data))
    first, last = binlog.events[2], binlog.events[6]
    assert count_events(source, first.start, last.start) == (4, last.start)
    assert count_events(source, first.start, last.start + 1) == (5, last.end)
    assert count_events(source, first.start, first.start) == (0, first.start)


def test_a_length_that_lies_ends_the_count(opened) -> None:
    binlog = BinlogBuilder().transaction()
    bad = binlog.events[2]
    binlog.data[bad.start + 9 : bad.start + 13] = b"\x03\0\0\0"
    assert count_events(opened(bytes(binlog.data)), 4, binlog.size) == (2, bad.start)


def test_every_byte_is_in_the_event_that_is_found_around_it(opened) -> None:
    binlog = BinlogBuilder().transaction()
    source = opened(bytes(binlog.data))
    for event in binlog.events:
        for offset in (event.start, event.start + 1, event.end - 1):
            assert event_around(source, 4, offset, binlog.size) == (event.start, event.end)
    with pytest.raises(ValueError, match=f"no event header fits at offset {binlog.size}"):
        event_around(source, 4, binlog.size, binlog.size)
    with pytest.raises(ValueError, match="announces"):
        event_around(source, 4, binlog.events[-1].start, binlog.size - 1)


@pytest.mark.parametrize("piece_bytes", [1, 10, 1 << 20])
def test_pieces_are_all_bytes_between_two_offsets_and_none_behind_the_end(opened, piece_bytes: int) -> None:
    data = bytes(range(256))
    source = opened(data)
    assert b"".join(bytes(piece) for piece in pieces(source, 10, 200, piece_bytes)) == data[10:200]
    assert b"".join(bytes(piece) for piece in pieces(source, 250, 300, piece_bytes)) == data[250:]
    assert list(pieces(source, 5, 5, piece_bytes)) == []
    assert (read_bytes(source, 250, 100), source.size) == (data[250:], 256)


def test_the_head_says_what_was_executed_before_the_file(opened) -> None:
    binlog = BinlogBuilder("mariadb").transaction()
    assert gtids_before(opened(bytes(binlog.data)), "mariadb", checksum=True) == GtidList()
    assert gtids_before(opened(bytes(BinlogBuilder().transaction().data)), "mysql", checksum=True) is None


class CountedBytes(DescriptorBytes):
    """How many bytes were read of a file."""

    read = 0

    def read_into(self, view: memoryview, offset: int) -> int:
        got = super().read_into(view, offset)
        self.read += got
        return got


def test_of_a_file_without_gtids_only_the_head_is_read(tmp_path: Path) -> None:
    """Else a file of servers before GTIDs was read up to 64 MiB to learn that it says nothing."""
    binlog = BinlogBuilder()
    for _ in range(60):
        binlog.transaction(20_000)
    path = tmp_path / "mysql-bin.000001"
    path.write_bytes(bytes(binlog.data))
    with path.open("rb") as file:
        counted = CountedBytes(file.fileno())
        assert gtids_before(counted, "mysql", checksum=True) is None
        assert counted.read < 10_000 < counted.size


def test_damage_behind_the_head_does_not_hide_it(opened) -> None:
    binlog = BinlogBuilder("mariadb").transaction()
    bad = binlog.events[-1]
    binlog.data[bad.start + 9 : bad.start + 13] = b"\x03\0\0\0"
    assert gtids_before(opened(bytes(binlog.data)), "mariadb", checksum=True) == GtidList()
