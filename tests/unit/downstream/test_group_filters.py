"""The filters of both flavours over a file: what is sent, what is pending before it and when, and where filter or stream end."""

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from protocol.binlog.encoded_events import gtid_list_event, heartbeat_event, heartbeat_v2_event
from protocol.errors import PositionRefused
from protocol.gtid.block_index import BlockIndexWriter
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition
from protocol.position import Position
from relay.archive.gtids.gtid_recorder import gtx_path
from relay.archive.read.file_snapshot import FileSnapshot
from relay.downstream.gtid_filter import mysql_filter
from relay.downstream.gtid_filter.group_filter import GroupFilter
from relay.downstream.gtid_filter.mariadb_filter import Awaited, MariadbGroupFilter, Until
from relay.downstream.gtid_filter.mysql_filter import MysqlGroupFilter
from relay.downstream.gtid_filter.seek import Seek
from tests.support.binlog_builder import BinlogBuilder
from tests.support.gtid_binlog import add_mariadb, add_mysql, mariadb_binlog, mysql_binlog

U = "11111111-1111-1111-1111-111111111111"
V = "22222222-2222-2222-2222-222222222222"
FILE = "mysql-bin.000001"
SERVER_ID = 7


def gtids(text: str) -> GtidSet:
    return GtidSet.from_text(text)


def mysql_file(text: str) -> BinlogBuilder:
    """One transaction after the other, in the order of the text; "-" is one without a GTID."""
    binlog = mysql_binlog(GtidSet())
    for part in text.split():
        if part == "-":
            add_mysql(binlog, None)
        else:
            (gtid,) = gtids(part).members()
            add_mysql(binlog, gtid)
    return binlog


def mariadb_file(text: str) -> BinlogBuilder:
    binlog = mariadb_binlog(GtidList())
    for part in text.split():
        add_mariadb(binlog, DomainGtid.from_text(part))
    return binlog


def filtered(groups: GroupFilter, binlog: BinlogBuilder, step: int = 1 << 20) -> tuple[bytes, list[tuple[int, bytes]]]:
    """The bytes that are sent, and what is pending with the place before which it is; the filter may be done before the end."""
    data = binlog.data
    sent = b""
    made: list[tuple[int, bytes]] = []
    groups.begin_file(FILE, checksum=True)
    at = 4
    end = min(at + step, len(data))
    while at < len(data) and not groups.is_done:
        source = bytearray(data[at:end])
        told = groups.send_until - at
        used = min(told, len(source)) if told > 0 else groups.next_range(source, 0, len(source), at)
        if used == 0:
            if end == len(data) or groups.refused or groups.finished:
                break
            end = min(end + step, len(data))
            continue
        if groups.sending:
            made += pending(groups, at)
            sent += bytes(source[:used])
        at += used
        end = max(end, min(at + step, len(data)))
    if groups.is_done:
        sent += bytes(data[at:])
    else:
        made += pending(groups, at)
    return sent, made


def pending(groups: GroupFilter, offset: int) -> list[tuple[int, bytes]]:
    events = groups.pending_events(Position(FILE, offset), SERVER_ID, with_checksum=True)
    groups.pending_sent()
    return [(offset, event) for event in events]


def spans(binlog: BinlogBuilder) -> list[tuple[int, int]]:
    """Where each transaction is, in the order of the file."""
    return [(start, end) for start, end in binlog.groups.items() if end is not None]


def head(binlog: BinlogBuilder) -> bytes:
    return bytes(binlog.data[4 : spans(binlog)[0][0]])


def of(binlog: BinlogBuilder, *numbers: int) -> bytes:
    """The head, and these transactions, from 0."""
    return head(binlog) + b"".join(bytes(binlog.data[slice(*spans(binlog)[number])]) for number in numbers)


# ---- MySQL ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1 << 20, 37])
def test_a_heartbeat_tells_a_mysql_replica_where_it_is_behind_what_it_has(step: int) -> None:
    binlog = mysql_file(f"{U}:1 {U}:2 {V}:1 {U}:3 {U}:4")
    groups = MysqlGroupFilter(gtids(f"{U}:1-2:4,{V}:9"), 3)
    sent, made = filtered(groups, binlog, step)
    assert sent == of(binlog, 2, 3)
    places = [spans(binlog)[2][0], binlog.size]
    assert made == [(place, heartbeat_event(Position(FILE, place), SERVER_ID, with_checksum=True)) for place in places]


def test_a_walk_is_over_when_all_that_is_here_was_passed_over() -> None:
    binlog = mysql_file(f"{U}:1 {U}:2 {U}:3 {U}:4")
    groups = MysqlGroupFilter(gtids(f"{U}:2"), 1)
    sent, _ = filtered(groups, binlog, 100)
    assert groups.is_done
    assert sent == of(binlog, 0, 2, 3)
    assert not MysqlGroupFilter(gtids(f"{U}:2"), 0, later=True).is_done


def test_what_a_jump_passes_over_counts_and_is_told() -> None:
    binlog = mysql_file(f"{U}:1 {U}:2 {U}:3")
    groups = MysqlGroupFilter(gtids(f"{U}:1-2"), 2)
    groups.begin_file(FILE, checksum=True)
    target = spans(binlog)[2][0]
    groups.take_seek(Seek(spans(binlog)[0][0], target, 2))
    assert not groups.is_done
    assert [offset for offset, _ in pending(groups, target)] == [target]
    assert groups.is_done


@pytest.mark.parametrize(
    ("takes_v2", "made"),
    [(True, [heartbeat_v2_event(Position(FILE, 1 << 32), SERVER_ID, with_checksum=True)]), (False, [])],
    ids=["v2", "v1"],
)
def test_above_4_gib_only_heartbeats_of_version_2_have_room(takes_v2: bool, made: list[bytes]) -> None:
    groups = MysqlGroupFilter(gtids(f"{U}:1"), 1, takes_v2=takes_v2)
    groups.take_seek(Seek(4, 1 << 32, 1))
    assert groups.pending_events(Position(FILE, 1 << 32), SERVER_ID, with_checksum=True) == made
    (below,) = groups.pending_events(Position(FILE, (1 << 32) - 1), SERVER_ID, with_checksum=True)
    assert below[4] == 27


@pytest.mark.parametrize(
    ("refuse", "words", "sent"),
    [
        ({"anonymous": True, "gtids": False}, "Cannot replicate anonymous transaction", (0,)),
        ({"anonymous": False, "gtids": True}, "Cannot replicate GTID-transaction", ()),
        ({"anonymous": False, "gtids": False}, "", (0, 1, 2)),
    ],
    ids=["anonymous", "gtid", "neither"],
)
def test_the_stream_ends_before_what_the_mode_does_not_allow(
    refuse: dict[str, bool], words: str, sent: tuple[int, ...]
) -> None:
    binlog = mysql_file(f"{U}:1 - {U}:2")
    groups = MysqlGroupFilter(later=True)
    groups.refuse(**refuse)
    assert filtered(groups, binlog)[0] == of(binlog, *sent)
    if not words:
        assert groups.refused is None
        return
    assert isinstance(groups.refused, PositionRefused)
    place = spans(binlog)[len(sent)][0]
    assert groups.refused.what.startswith(words)
    assert f"at file {FILE}, position {place}" in groups.refused.what


@pytest.mark.parametrize("step", [1 << 20, 37])
def test_what_a_replica_has_of_a_source_that_comes_later_is_passed_over_from_then_on(step: int) -> None:
    binlog = mysql_file(f"{U}:1 {U}:2 {V}:1 {V}:2 {U}:3")
    groups = MysqlGroupFilter(gtids(f"{U}:1"), 1)
    groups.also(gtids(f"{V}:1"))
    sent, _ = filtered(groups, binlog, step)
    assert sent == of(binlog, 1, 3, 4)
    assert not groups.is_done, "nobody knows how many of them come"


def noted(path: Path, binlog: BinlogBuilder, gap_bytes: int = 0) -> FileSnapshot:
    """The file and its NAME.gtx, in which a stretch is a transaction, or the first ones that have so many bytes."""
    path.write_bytes(binlog.data)
    collector = FileGtidCollector("mysql", checksum=True, gap_bytes=gap_bytes)
    collector.take(bytes(binlog.data[4:]))
    collector.finish()
    gtx_path(path).write_bytes(b"".join(map(BlockIndexWriter().encode, collector.take_blocks())))
    return FileSnapshot(path.name, path, binlog.size, checksum=True)


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql_filter, "_WORTH_A_PIECE_BYTES", 1)


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("step", [1 << 20, 37, 400])
@pytest.mark.parametrize("held", [f"{U}:3:6", f"{U}:1:4-5:8", f"{U}:2:4:6:8", f"{V}:1"])
def test_what_is_sent_and_told_is_the_same_where_only_pieces_with_what_a_replica_has_are_looked_at(
    tmp_path: Path, held: str, step: int
) -> None:
    binlog = mysql_file(f"{U}:1 {U}:2 {U}:3 {U}:4 {V}:1 {U}:5 {U}:6 {U}:7 {U}:8")
    wanted = filtered(MysqlGroupFilter(gtids(held), 99), binlog, step)
    groups = MysqlGroupFilter(gtids(held), 99)
    groups.find_seek(noted(tmp_path / FILE, binlog))
    assert filtered(groups, binlog, step) == wanted
    assert groups.unseen_until


@pytest.mark.usefixtures("short_pieces")
def test_of_a_file_with_nothing_that_a_replica_has_the_last_stretch_is_looked_at(tmp_path: Path) -> None:
    binlog = mysql_file(f"{U}:1 {U}:2 {U}:3")
    snapshot = replace(noted(tmp_path / FILE, binlog), inside=encode_gtid_set(gtids(f"{U}:1-3")))
    groups = MysqlGroupFilter(gtids(f"{U}:9"), 1)
    assert groups.find_seek(snapshot) is None
    assert filtered(groups, binlog)[0] == of(binlog, 0, 1, 2)
    assert groups.unseen_until == spans(binlog)[2][0]


@pytest.mark.usefixtures("short_pieces")
def test_what_comes_before_a_piece_is_one_range_with_it_and_needs_no_look_once_the_heartbeat_was_sent(
    tmp_path: Path,
) -> None:
    binlog = mysql_file(" ".join(f"{U}:{number}" for number in range(1, 7)))
    places, data = spans(binlog), bytearray(binlog.data)
    groups = MysqlGroupFilter(gtids(f"{U}:1"), 99)
    groups.begin_file(FILE, checksum=True)
    groups.find_seek(noted(tmp_path / FILE, binlog, gap_bytes=places[0][1] - places[0][0] + 1))
    assert groups.next_range(data, 4, len(data), 0) == places[0][0]
    assert groups.next_range(data, places[0][0], len(data), 0) == places[1][0]
    assert not groups.sending
    # The second shares its stretch with the first; the four behind them are the piece.
    assert groups.next_range(data, places[1][0], places[3][0], 0) == places[3][0]
    assert groups.send_until == groups.unseen_until == binlog.size
    assert not groups.sends_all(binlog.size), "a heartbeat is owed first"
    groups.pending_sent()
    assert groups.sends_all(binlog.size)
    assert not groups.sends_all(binlog.size + 1)


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("change", ["also", "refuse"])
def test_pieces_that_were_noted_do_not_hide_what_is_to_be_looked_for_now(tmp_path: Path, change: str) -> None:
    binlog = mysql_file(f"{U}:1 {U}:2 {V}:1 {U}:3")
    groups = MysqlGroupFilter(gtids(f"{U}:2"), 1, later=True)
    groups.find_seek(noted(tmp_path / FILE, binlog))
    if change == "also":
        groups.also(gtids(f"{V}:1"))
        assert filtered(groups, binlog)[0] == of(binlog, 0, 3)
    else:
        groups.refuse(anonymous=False, gtids=True)
        assert filtered(groups, binlog)[0] == of(binlog)
        assert groups.refused is not None


@pytest.mark.usefixtures("short_pieces")
def test_pieces_of_one_file_are_none_of_the_next(tmp_path: Path) -> None:
    binlog = mysql_file(f"{U}:1 {U}:2 {U}:3")
    groups = MysqlGroupFilter(gtids(f"{U}:2"), 2)
    groups.find_seek(noted(tmp_path / "mysql-bin.000000", binlog))
    other = mysql_file(f"{U}:2 {U}:1 {U}:3")
    assert filtered(groups, other)[0] == of(other, 1, 2)
    assert not groups.unseen_until


# ---- MariaDB --------------------------------------------------------------------------------------------------------


def awaited(*texts: str, strict: bool = False) -> Awaited:
    members = [DomainGtid.from_text(text) for text in texts]
    return Awaited(GtidPosition(members), members, strict)


@pytest.mark.parametrize("step", [1 << 20, 37])
def test_a_list_tells_a_mariadb_replica_where_its_last_group_ended(step: int) -> None:
    binlog = mariadb_file("0-1-1 1-1-1 0-1-2 1-2-2 0-1-3 1-2-3")
    groups = MariadbGroupFilter(awaited("0-1-2", "1-2-2"))
    sent, made = filtered(groups, binlog, step)
    assert sent == of(binlog, 4, 5)
    assert groups.is_done
    ends = [spans(binlog)[2][1], spans(binlog)[3][1]]
    states = [GtidList.from_text(text) for text in ("1-1-1,0-1-2", "1-1-1,0-1-2,1-2-2")]
    assert [event for _, event in made] == [
        gtid_list_event(state, end, SERVER_ID, with_checksum=True) for state, end in zip(states, ends, strict=True)
    ]


def test_a_domain_that_nothing_is_awaited_of_is_sent_from_the_start() -> None:
    binlog = mariadb_file("0-1-1 5-1-1 0-1-2 5-1-2")
    groups = MariadbGroupFilter(awaited("0-1-2"))
    assert filtered(groups, binlog)[0] == of(binlog, 1, 3)


@pytest.mark.parametrize("strict", [False, True])
def test_a_hole_ends_the_stream_of_a_strict_replica_only(strict: bool) -> None:
    binlog = mariadb_file("0-1-1 0-1-2 0-1-5 0-1-6")
    groups = MariadbGroupFilter(awaited("0-1-3", strict=strict))
    sent, _ = filtered(groups, binlog)
    assert sent == (head(binlog) if strict else of(binlog, 2, 3))
    if strict:
        assert groups.refused is not None
        assert "missing the GTID 0-1-3 requested by the slave" in groups.refused.what
    else:
        assert groups.refused is None


@pytest.mark.parametrize(("before", "sent"), [(False, (0, 1)), (True, (0,))])
def test_the_stream_ends_where_the_replica_wants_no_more(before: bool, sent: tuple[int, ...]) -> None:
    binlog = mariadb_file("0-1-1 0-1-2 0-1-3")
    groups = MariadbGroupFilter(awaited(), Until([DomainGtid(0, 1, 2)], before))
    assert filtered(groups, binlog)[0] == of(binlog, *sent)
    assert groups.finished


def test_numbers_of_sequence_use_all_their_64_bits() -> None:
    great = 2**64 - 2
    binlog = mariadb_file(f"0-1-{great - 1} 0-1-{great} 0-1-{great + 1}")
    groups = MariadbGroupFilter(awaited(f"0-1-{great}"))
    assert filtered(groups, binlog)[0] == of(binlog, 2)


Made = Callable[[], Any]


@pytest.mark.parametrize(
    ("make", "binlog"),
    [
        (lambda: MysqlGroupFilter(gtids(f"{U}:1"), 1), mysql_file(f"{U}:1 {U}:2")),
        (lambda: MariadbGroupFilter(awaited("0-1-1")), mariadb_file("0-1-1 0-1-2")),
    ],
    ids=["mysql", "mariadb"],
)
def test_what_is_no_event_is_an_error(make: Made, binlog: BinlogBuilder) -> None:
    bad = bytearray(binlog.data[4:])
    struct.pack_into("<I", bad, 9, 5)
    groups = make()
    groups.begin_file(FILE, checksum=True)
    with pytest.raises(ValueError, match="shorter than its header"):
        groups.next_range(bad, 0, len(bad), 4)
