"""A source that has GTIDs of the uuid under which the view gives numbers: no number is ever the source's and the view's."""

import struct
from collections.abc import Mapping

import pytest

from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from relay.view.rules.settings import ViewSettings
from relay.view.stops.view_stop import ViewStop, ViewStopped
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.view_making import UUID_OF_VIEW, marked, settings
from tests.support.view_oracle import events_of

OWN, NONE, ANONYMOUS, OTHER = "own", "none", "anonymous", "other"
UUIDS = {OWN: UUID_OF_VIEW.bytes, OTHER: b"o" * 16}


def binlog(*heads: str, previous: str = "", row_bytes: int = 20) -> tuple[bytes, list[int]]:
    """A transaction for each, with a GTID of such a source; where they begin."""
    made = BinlogBuilder()
    if previous:
        made.event(35, encode_gtid_set(GtidSet.from_text(previous)), ALONE)
    places = []
    for number, head in enumerate(heads, 1):
        places.append(len(made.data))
        if head in UUIDS:
            made.event(33, b"\1" + UUIDS[head] + struct.pack("<q", number), OPENS)
        elif head == ANONYMOUS:
            made.event(34, b"\1" + bytes(24), OPENS)
        made.query("BEGIN", OPENS if head == NONE else INSIDE).table_map().rows(row_bytes).event(16, bytes(8), CLOSES)
    return marked(made.data), places


def translated(
    data: bytes, given: ViewSettings, checkpoint: ViewCheckpoint, skips: Mapping[int, int] | None = None
) -> FileTranslation:
    def read_into(view: memoryview, offset: int) -> int:
        count = min(len(view), max(len(data) - offset, 0))
        view[:count] = data[offset : offset + count]
        return count

    return FileTranslation("bin.000001", read_into, given, rules_of(given), checkpoint, skips or {}, mark_gap=1)


def made_until_stopped(data: bytes, one: FileTranslation) -> tuple[int, ViewStop | None]:
    """How many transactions of the view there are, and what stopped it."""
    room, made = bytearray(1 << 22), b""
    try:
        while count := one.fill(room, 0, len(data), sealed=True):
            made += room[:count]
    except ViewStopped as stop:
        return sum(event[4] == 16 for event in events_of(made)), stop.stop
    return sum(event[4] == 16 for event in events_of(made)), None


@pytest.mark.parametrize("row_bytes", [20, 1_200_000])
@pytest.mark.parametrize("target", ["mysql-9.7", "mysql-5.6"])
@pytest.mark.parametrize(
    "heads",
    [(NONE, OWN), (ANONYMOUS, OWN), (OTHER, NONE, OTHER, OWN), (OWN, NONE), (OWN, ANONYMOUS), (OWN, OTHER, OWN, NONE)],
)
def test_the_view_stops_before_the_transaction_whose_number_may_be_of_another(
    heads: tuple[str, ...], target: str, row_bytes: int
) -> None:
    data, places = binlog(*heads, row_bytes=row_bytes)
    count, stop = made_until_stopped(data, translated(data, settings(target=target), ViewCheckpoint.of_file(1, b"")))
    assert count == len(heads) - 1
    assert stop is not None
    assert (stop.reason.name, stop.offset, stop.group_stop) == ("uuid_in_use", places[-1], places[-1])
    assert str(UUID_OF_VIEW) in stop.reason.text


@pytest.mark.parametrize("heads", [(OWN, NONE), (NONE, OWN), (OWN, OTHER, OWN, ANONYMOUS)])
def test_begun_again_at_any_mark_it_stops_at_the_same_place(heads: tuple[str, ...]) -> None:
    data, places = binlog(*heads)
    first = translated(data, settings(), ViewCheckpoint.of_file(1, b""))
    made_until_stopped(data, first)
    assert len(first.marks) >= len(heads)
    for mark in [*first.marks, first.checkpoint()]:
        _, stop = made_until_stopped(data, translated(data, settings(), mark))
        assert stop is not None
        assert stop.offset == places[-1]


def test_a_decision_to_leave_the_first_out_does_not_hide_that_it_has_the_uuid() -> None:
    data, places = binlog(OWN, NONE)
    one = translated(data, settings(), ViewCheckpoint.of_file(1, b""), {places[0]: places[1]})
    assert made_until_stopped(data, one)[0] == 0
    stop = made_until_stopped(data, translated(data, settings(), one.checkpoint()))[1]
    assert stop is not None
    assert stop.offset == places[1]


def test_what_was_executed_before_the_file_counts() -> None:
    data, places = binlog(OTHER, NONE, previous=f"{UUID_OF_VIEW}:1-7")
    count, stop = made_until_stopped(data, translated(data, settings(), ViewCheckpoint.of_file(1, b"")))
    assert count == 1
    assert stop is not None
    assert (stop.reason.name, stop.offset) == ("uuid_in_use", places[1])
    count, stop = made_until_stopped(data, translated(data, settings(), ViewCheckpoint.of_file(5, b"")))
    assert count == 0
    assert stop is not None
    assert (stop.reason.name, stop.group_stop) == ("uuid_in_use", stop.offset)


@pytest.mark.parametrize("head", [NONE, ANONYMOUS])
def test_a_server_started_without_gtids_names_none_and_its_old_ones_count_all_the_same(head: str) -> None:
    first, _ = binlog(OWN, OTHER)
    one = translated(first, settings(), ViewCheckpoint.of_file(1, b""))
    assert made_until_stopped(first, one) == (2, None)
    behind = one.checkpoint().next_file()
    assert (behind.source, behind.view, behind.next_gno) == (4, 4, 1)
    data, places = binlog(OTHER, head)
    second = translated(data, settings(), behind)
    count, stop = made_until_stopped(data, second)
    assert count == 1
    assert stop is not None
    assert (stop.reason.name, stop.offset) == ("uuid_in_use", places[1])
    for mark in second.marks:
        stop = made_until_stopped(data, translated(data, settings(), mark))[1]
        assert stop is not None
        assert stop.offset == places[1]
    # Nothing else of a file's numbers goes over to the next.
    other, _ = binlog(OTHER, NONE)
    last = translated(other, settings(), ViewCheckpoint.of_file(1, b""))
    assert made_until_stopped(other, last) == (2, None)
    assert last.checkpoint().next_file() == ViewCheckpoint.of_file(2, b"")


@pytest.mark.parametrize(
    ("gtids", "heads", "previous"),
    [
        # A relay behind a relay's view: all of it has numbers already.
        ("assign", (OWN, OWN, OTHER), f"{UUID_OF_VIEW}:1-7"),
        ("assign", (NONE, OTHER, ANONYMOUS), f"{UUID_OF_VIEW}:tag:1-7"),
        ("anonymous", (NONE, OWN, NONE), f"{UUID_OF_VIEW}:1-7"),
        ("keep", (NONE, OWN, NONE), f"{UUID_OF_VIEW}:1-7"),
    ],
)
def test_where_no_number_can_be_of_two_it_goes_on(gtids: str, heads: tuple[str, ...], previous: str) -> None:
    data, _ = binlog(*heads, previous=previous)
    given = settings(gtids=gtids)
    assert made_until_stopped(data, translated(data, given, ViewCheckpoint.of_file(1, b""))) == (3, None)


@pytest.mark.parametrize("gtids", ["assign", "keep", "anonymous"])
def test_a_file_that_names_no_gtids_any_more_stops_the_view_at_its_beginning(gtids: str) -> None:
    given = settings(gtids=gtids)
    first, _ = binlog(OTHER, OTHER, previous="0f0f0f0f-0000-0000-0000-000000000001:1-7")
    one = translated(first, given, ViewCheckpoint.of_file(1, b""))
    assert made_until_stopped(first, one) == (2, None)
    behind = one.checkpoint().next_file()
    # A file that ends at once, as in a crash, says nothing of it.
    empty, _ = binlog()
    between = translated(empty, given, behind)
    assert made_until_stopped(empty, between) == (0, None)
    data, places = binlog(NONE, NONE)
    count, stop = made_until_stopped(data, translated(data, given, between.checkpoint().next_file()))
    if gtids == "anonymous":
        assert (count, stop) == (2, None)
        return
    assert count == 0
    assert stop is not None
    assert (stop.reason.name, stop.offset, stop.group_stop) == ("executed_gtids_missing", places[0], places[0])
    named, _ = binlog(NONE, previous="0f0f0f0f-0000-0000-0000-000000000001:1-7")
    assert made_until_stopped(named, translated(named, given, behind)) == (1, None)
    for mark in one.marks:
        again = translated(first, given, mark)
        assert made_until_stopped(first, again)[1] is None
        assert again.checkpoint().next_file() == behind
