"""Index blocks as bytes: written, read, torn, looked up."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Malformed
from protocol.gtid.block_index import BlockIndex, BlockIndexWriter, last_start
from protocol.gtid.file_gtids import IndexBlock, Run
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mysql_gtid import MAX_GNO, parse_uuid

U = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
KEY = parse_uuid(U).bytes
TAGGED = KEY + b"t" * 32
BLOCKS = [
    IndexBlock(4, 70_000, 100, 0, (Run(KEY, 1, 9, 9),)),
    IndexBlock(70_000, 140_000, 110, 0, (Run(TAGGED, 1, MAX_GNO, 12), Run(KEY, 10, 12, 15))),
    IndexBlock(140_000, 2**40, 2**32 - 1, 3, ()),
]


def written(blocks: list[IndexBlock]) -> bytes:
    writer = BlockIndexWriter()
    return b"".join(map(writer.encode, blocks))


def test_blocks_are_read_as_they_were_written() -> None:
    data = written(BLOCKS)
    index = BlockIndex(data)
    assert list(index) == BLOCKS
    assert len(index) == 3
    assert index.whole_size == len(data)
    assert index.keys == [KEY, TAGGED]
    assert list(BlockIndex(b"")) == []


def test_a_block_that_was_torn_is_not_seen_and_can_be_written_again() -> None:
    data = written(BLOCKS)
    ends = [len(written(BLOCKS[:count])) for count in range(4)]
    for size in range(len(data) + 1):
        index = BlockIndex(data[:size])
        whole = max(count for count in range(4) if ends[count] <= size)
        assert list(index) == BLOCKS[:whole]
        assert index.whole_size == ends[whole]
        writer = BlockIndexWriter(data[:size])
        again = data[: index.whole_size] + b"".join(map(writer.encode, BLOCKS[whole:]))
        assert again == data


@pytest.mark.parametrize(
    ("key", "number", "place"),
    [(KEY, 1, 0), (KEY, 9, 0), (KEY, 10, 1), (KEY, 13, None), (TAGGED, MAX_GNO, 1), (KEY + b"x", 1, None)],
)
def test_a_transaction_is_found_in_its_block(key: bytes, number: int, place: int | None) -> None:
    found = BlockIndex(written(BLOCKS)).find(key, number)
    assert found == (None if place is None else BLOCKS[place])


@pytest.mark.parametrize(
    ("held", "place"),
    [("", 0), (f"{U}:1-8", 0), (f"{U}:1-9", 1), (f"{U}:1-12", 1), (f"{U}:1-12:{'t' * 32}:1-{MAX_GNO}", 2)],
)
def test_the_first_block_with_something_that_a_replica_lacks_is_found(held: str, place: int) -> None:
    assert BlockIndex(written(BLOCKS)).first_missing(GtidSet.from_text(held)) == BLOCKS[place]


def test_a_replica_that_has_all_lacks_nothing() -> None:
    assert BlockIndex(written(BLOCKS[:1])).first_missing(GtidSet.from_text(f"{U}:1-9")) is None


PIECES = [
    IndexBlock(4, 70_000, 100, 0, (Run(KEY, 1, 9, 9),)),
    IndexBlock(70_000, 140_000, 100, 0, (Run(TAGGED, 1, 3, 12), Run(KEY, 10, 12, 15))),
    IndexBlock(140_000, 210_000, 100, 0, (Run(KEY, 13, 20, 23),)),
    IndexBlock(210_000, 280_000, 100, 1, (Run(KEY, 21, 28, 32),)),
    IndexBlock(280_000, 350_000, 100, 0, (Run(KEY, 29, 40, 44),)),
    IndexBlock(350_000, 420_000, 100, 0, tuple(Run(KEY, number, number, 50 + number) for number in range(41, 81, 2))),
    IndexBlock(420_000, 490_000, 100, 0, (Run(KEY, 81, 90, 100),)),
]


@pytest.mark.parametrize(
    ("held", "end", "at_least", "pieces"),
    [
        ("", 490_000, 1, [(4, 210_000), (280_000, 350_000), (420_000, 490_000)]),
        ("", 489_999, 1, [(4, 210_000), (280_000, 350_000)]),
        ("", 490_000, 70_001, [(4, 210_000)]),
        (f"{U}:11:29-40", 490_000, 1, [(4, 70_000), (140_000, 210_000), (420_000, 490_000)]),
        (f"{U}:9:13:{'t' * 32}:4-9", 490_000, 1, [(70_000, 140_000), (280_000, 350_000), (420_000, 490_000)]),
        (f"{U}:1-100", 490_000, 1, []),
    ],
)
def test_pieces_without_what_a_replica_has_end_at_that_and_at_what_has_no_gtid_and_at_too_many_runs(
    held: str, end: int, at_least: int, pieces: list[tuple[int, int]]
) -> None:
    index = BlockIndex(written(PIECES))
    assert index.pieces_without(GtidSet.from_text(held), end, at_least) == pieces


@pytest.mark.parametrize(
    ("offset", "transactions"),
    [(4, 0), (5, 9), (70_000, 9), (140_000, 15), (210_000, 23), (280_000, 32), (350_000, 44)],
)
def test_transactions_are_counted_up_to_a_place(offset: int, transactions: int) -> None:
    assert BlockIndex(written(PIECES)).transactions_before(offset) == transactions


def test_where_nothing_has_a_gtid_no_transactions_are_counted() -> None:
    assert BlockIndex(written(BLOCKS[2:])).transactions_before(2**41) == 0
    assert BlockIndex(b"").transactions_before(4) == 0
    assert BlockIndex(written(BLOCKS)).transactions_before(2**41) == 15


def maria(domain: int, server: int) -> bytes:
    return domain.to_bytes(4, "little") + server.to_bytes(4, "little")


GROUPS = [
    IndexBlock(4, 70_000, 100, 0, (Run(maria(0, 1), 1, 9, 9),)),
    IndexBlock(70_000, 140_000, 100, 0, (Run(maria(0, 2), 5, 8, 13), Run(maria(1, 1), 1, 1, 14))),
    IndexBlock(140_000, 210_000, 100, 0, (Run(maria(0, 1), 12, 2**64 - 1, 16),)),
    IndexBlock(210_000, 280_000, 100, 0, (Run(maria(0, 1), 20, 21, 18),)),
]


@pytest.mark.parametrize(
    ("awaited", "place", "passed"),
    [
        ({}, 0, []),
        ({0: (1, 1)}, 0, []),
        ({0: (1, 10)}, 1, [(maria(0, 1), 9)]),
        ({0: (1, 10), 1: (2, 1)}, 2, [(maria(0, 1), 9), (maria(0, 2), 8), (maria(1, 1), 1)]),
        ({0: (1, 10), 1: (1, 1)}, 1, [(maria(0, 1), 9)]),
        ({0: (2, 8), 1: (9, 9)}, 1, [(maria(0, 1), 9)]),
        ({0: (9, 9), 1: (9, 9)}, 3, [(maria(0, 2), 8), (maria(1, 1), 1), (maria(0, 1), 2**64 - 1)]),
    ],
)
def test_the_first_block_in_which_a_mariadb_replica_is_sent_something_or_awaits_it(
    awaited: dict[int, tuple[int, int]], place: int, passed: list[tuple[bytes, int]]
) -> None:
    waiting = {
        domain.to_bytes(4, "little"): (server.to_bytes(4, "little"), number)
        for domain, (server, number) in awaited.items()
    }
    assert BlockIndex(written(GROUPS)).first_reaching(waiting) == (GROUPS[place].start, passed)


def test_all_bytes_tell_where_the_last_block_starts() -> None:
    data = written(BLOCKS)
    assert last_start(data) == BlockIndex(data).last_start == BLOCKS[-1].start
    ends = {len(written(BLOCKS[:count])): block.start for count, block in enumerate(BLOCKS, start=1)}
    assert {size: last_start(data[:size]) for size in range(len(data) + 1) if last_start(data[:size])} == ends


def test_a_byte_that_was_changed_is_seen_wherever_it_is() -> None:
    data = written(BLOCKS)
    for place in range(len(data)):
        bad = bytearray(data)
        bad[place] ^= 1 << place % 8
        whole = max(count for count in range(4) if len(written(BLOCKS[:count])) <= place)
        assert list(BlockIndex(bytes(bad), torn=True)) == BLOCKS[:whole]
        assert last_start(bytes(bad)) is None
        # What changed may be a block's end: then the rest looks as if it was torn.
        with contextlib.suppress(Malformed):
            assert list(BlockIndex(bytes(bad))) == BLOCKS[: len(BlockIndex(bytes(bad)))]


def test_a_block_that_is_missing_or_stands_elsewhere_is_seen() -> None:
    parts = [written(BLOCKS[:count])[len(written(BLOCKS[: count - 1])) :] for count in range(1, 4)]
    for order in ((0, 2), (1, 2), (0, 1, 1, 2)):
        with pytest.raises(Malformed):
            BlockIndex(b"".join(parts[number] for number in order))


@pytest.mark.parametrize(("time", "place"), [(99, None), (100, 0), (109, 0), (110, 1), (2**32, 2)])
def test_the_block_of_a_time_is_found(time: int, place: int | None) -> None:
    assert BlockIndex(written(BLOCKS)).at_time(time) == (None if place is None else BLOCKS[place])


def test_bytes_that_are_no_index_are_malformed() -> None:
    data = bytearray(written(BLOCKS))
    data[16] = 200
    with pytest.raises(Malformed, match="key of 200 bytes"):
        BlockIndex(bytes(data))
    with pytest.raises(Malformed, match="source 0 of 0"):
        BlockIndex(bytes(40))


U64 = st.integers(0, 2**64 - 1)
OFFSETS = st.integers(4, 2**60)
RUNS = st.builds(Run, st.sampled_from([KEY, TAGGED, b"12345678"]), U64, U64, st.integers(1, 2**40))
TIMES = st.integers(0, 2**32 - 1)
ANY = st.builds(IndexBlock, OFFSETS, OFFSETS, TIMES, st.integers(0, 99), st.lists(RUNS, max_size=4).map(tuple))


@given(st.lists(ANY))
def test_any_blocks_are_read_as_they_were_written(blocks: list[IndexBlock]) -> None:
    assert list(BlockIndex(written(blocks))) == blocks
