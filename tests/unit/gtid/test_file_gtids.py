"""What whole binlogs say about GTIDs: real ones, cut anywhere."""

import re
import struct
from pathlib import Path

import pytest

from protocol.errors import Malformed
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.file_gtids import FileGtidCollector, IndexBlock, Run, gtid_text
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList

RECORDED = Path(__file__).resolve().parents[2] / "corpus" / "recorded"
M56 = "d16fe3c3-e520-11f1-a3a0-02fc00000001"
M97 = "d39f2862-e520-11f1-9e39-02fc00000001"
# By the listings beside them: set before, set inside, transactions without a GTID.
FILES: dict[str, tuple[str, GtidSet | GtidList | None, GtidSet | GtidList, int]] = {
    "mysql56-gtid": ("mysql", GtidSet.from_text(f"{M56}:1"), GtidSet.from_text(f"{M56}:2-5"), 0),
    "mysql97-gtid": ("mysql", GtidSet.from_text(f"{M97}:1"), GtidSet.from_text(f"{M97}:2-9:tag:1"), 0),
    "mysql97-anonymous": ("mysql", GtidSet(), GtidSet(), 17),
    "mysql97-compressed": ("mysql", GtidSet(), GtidSet(), 4),
    "mysql56": ("mysql", None, GtidSet(), 0),
    "mariadb": ("mariadb", GtidList.from_text("0-7-1"), GtidList.from_text("0-7-18"), 0),
    "mariadb118": ("mariadb", GtidList.from_text("0-7-1"), GtidList.from_text("0-7-18"), 0),
}


def collected(name: str, pieces: int, gap_bytes: int = 65536) -> FileGtidCollector:
    data = (RECORDED / f"{name}.binlog").read_bytes()
    collector = FileGtidCollector(FILES[name][0], checksum=True, gap_bytes=gap_bytes)
    for at in range(4, len(data), pieces):
        collector.take(memoryview(data)[at : min(at + pieces, len(data))])
    collector.finish()
    assert collector.position == len(data)
    return collector


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("pieces", [1, 13, 300, 1 << 20])
def test_a_recorded_binlog_tells_what_was_before_it_and_what_is_in_it(name: str, pieces: int) -> None:
    _flavour, before, inside, anonymous = FILES[name]
    collector = collected(name, pieces)
    assert (collector.before, collector.inside(), collector.anonymous) == (before, inside, anonymous)


@pytest.mark.parametrize("name", ["mysql56-gtid", "mysql97-gtid", "mariadb", "mariadb118"])
@pytest.mark.parametrize("pieces", [17, 1 << 20])
def test_with_blocks_of_one_transaction_each_is_found_where_it_starts(name: str, pieces: int) -> None:
    wanted = []
    for line in (RECORDED / f"{name}.listing").read_text().splitlines():
        offset, _, rest = line.partition("\t")
        found = re.search(r"GTID_NEXT= '([^']+)'|GTID ([0-9]+-[0-9]+-[0-9]+)", rest)
        if found:
            wanted.append((int(offset), found[1] or found[2]))
    blocks = collected(name, pieces, gap_bytes=0).take_blocks()
    assert [(block.start, gtid_text(run.key, run.first)) for block in blocks for run in block.runs] == wanted


def test_blocks_follow_each_other_and_say_what_they_hold() -> None:
    collector = collected("mysql97-gtid", 1 << 20, gap_bytes=600)
    blocks = collector.take_blocks()
    assert len(blocks) > 2
    assert [one.stop for one in blocks[:-1]] == [one.start for one in blocks[1:]]
    tagged = blocks[-1].runs[-1].key
    assert sum(run.last - run.first + 1 for block in blocks for run in block.runs) == collector.transactions
    assert blocks[0].has(blocks[0].runs[0].key, 2)
    assert not blocks[0].has(tagged, 99)
    assert collector.take_blocks() == []


def event(kind: int, body: bytes, flags: int = 0, server_id: int = 1) -> bytes:
    return struct.pack("<IBIIIH", 7, kind, server_id, 19 + len(body), 0, flags) + body


def group(domain: int, server: int, number: int) -> bytes:
    return event(162, struct.pack("<QIB", number, domain, 0) + bytes(6), 3 << 10, server) + event(16, b"", 5 << 10)


def test_the_newest_group_of_a_domain_is_the_one_that_came_last_whatever_its_number() -> None:
    collector = FileGtidCollector("mariadb", checksum=False)
    collector.take(group(0, 1, 10) + group(0, 2, 2**64 - 1) + group(0, 1, 11) + group(5, 2, 1) + group(0, 3, 4))
    collector.finish()
    inside = collector.inside()
    assert inside == GtidList.from_text("0-2-18446744073709551615,0-1-11,5-2-1,0-3-4")
    (block,) = collector.take_blocks()
    assert [gtid_text(run.key, run.last) for run in block.runs][-1] == "0-3-4"
    assert isinstance(inside, GtidList)
    assert inside.position.domain(0) == DomainGtid(0, 3, 4)


def test_a_look_in_between_changes_nothing() -> None:
    collector = FileGtidCollector("mariadb", checksum=False)
    assert collector.open_block() is None
    key = struct.pack("<II", 0, 1)
    size = len(group(0, 1, 1))
    for number in range(1, 6):
        collector.take(group(0, 1, number))
        assert str(collector.inside()) == f"0-1-{number}"
        assert collector.open_block() == IndexBlock(4, 4 + number * size, 7, 0, (Run(key, 1, number, number),))
    assert collector.take_blocks() == []
    collector.finish()
    assert collector.take_blocks() == [IndexBlock(4, 4 + 5 * size, 7, 0, (Run(key, 1, 5, 5),))]
    assert collector.open_block() is None


def test_runs_that_were_interrupted_are_in_the_open_block_too() -> None:
    collector = FileGtidCollector("mysql", checksum=False)
    for gno in (1, 2, 7, 8, 3):
        head = event(33, b"\1" + bytes(16) + struct.pack("<q", gno), 3 << 10)
        collector.take(head + event(16, b"", 5 << 10))
    block = collector.open_block()
    assert block is not None
    assert [(run.first, run.last, run.serial) for run in block.runs] == [(1, 2, 2), (7, 8, 4), (3, 3, 5)]
    assert str(collector.inside()) == "00000000-0000-0000-0000-000000000000:1-3:7-8"
    assert collector.inside() == collector.inside()


def test_a_file_that_was_cut_back_goes_on_where_it_was_cut() -> None:
    collector = FileGtidCollector("mariadb", checksum=False)
    first = group(0, 1, 1)
    collector.take(first + group(0, 1, 2)[:30])
    collector.begin(4 + len(first))
    collector.take(group(0, 1, 3))
    collector.finish()
    assert str(collector.inside()) == "0-1-3"
    assert collector.take_blocks() == [
        IndexBlock(
            4,
            4 + 2 * len(first),
            7,
            0,
            (Run(struct.pack("<II", 0, 1), 1, 1, 1), Run(struct.pack("<II", 0, 1), 3, 3, 2)),
        )
    ]


def test_bytes_that_are_no_event_are_malformed_with_their_offset() -> None:
    collector = FileGtidCollector("mysql", checksum=False)
    with pytest.raises(Malformed, match="an event shorter than its header at offset 4"):
        collector.take(bytes(40))


def test_a_head_that_is_no_set_is_malformed_when_it_is_asked_for() -> None:
    collector = FileGtidCollector("mysql", checksum=False)
    collector.take(event(35, encode_gtid_set(GtidSet()) + b"x"))
    with pytest.raises(Malformed, match="1 bytes behind"):
        _ = collector.before


def test_half_a_head_says_nothing_yet() -> None:
    collector = FileGtidCollector("mysql", checksum=False)
    head = event(35, encode_gtid_set(GtidSet.from_text(f"{M56}:1-7")))
    collector.take(head[:40])
    assert collector.before is None
    collector.take(head[40:])
    assert collector.before == GtidSet.from_text(f"{M56}:1-7")
    assert collector.before is collector.before
