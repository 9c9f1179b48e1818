"""What a filter answers before each run: what is sent, looked at, passed over, sent first, and where the stream ends."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from protocol.binlog.encoded_events import heartbeat_event
from protocol.errors import PositionRefused
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition
from protocol.position import Position
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import ArchivedFile
from relay.downstream.gtid_filter.group_filter import GroupFilter
from relay.downstream.gtid_filter.gtid_filter import End, FilterTo, GtidFilter, SendFirst, SendTo, SkipTo, Wait
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.gtid_filter.mariadb_filter import Awaited, MariadbGroupFilter, Until
from relay.downstream.gtid_filter.mysql_filter import MysqlGroupFilter
from relay.downstream.gtid_filter.seek import WORTH_A_SEEK_BYTES, Seek
from relay.downstream.request.refusal import refusal
from tests.support.gtid_binlog import add_mariadb, mariadb_binlog

FILE = "mysql-bin.000001"
SERVER_ID = 7
HELD = GtidSet.from_text("11111111-1111-1111-1111-111111111111:1-9")


class Lookup:
    """Answers when a test says so."""

    def __init__(self) -> None:
        self.answers: list[Callable[[Seek | None], None]] = []

    def find_seek(self, _generation: object, _groups: object, _name: str, done: Callable[[Seek | None], None]) -> None:
        self.answers.append(done)


class Told(GtidFilter):
    """Looks at events as long as a test says so."""

    looks = False
    refuses: PositionRefused | None = None

    def __init__(self, groups: GroupFilter | None = None, *, size: int = 1000) -> None:
        self.lookup = Lookup()
        super().__init__(
            cast(GtidLookup, self.lookup), cast(Generation, None), FILE, groups, continues=False
        )  # fmt: skip
        self.file = ArchivedFile(FILE, 1, size, False, 0, "9.7.4", 1, 1, "mysql")
        self.begin_file(self.file, SERVER_ID)

    def must_look(self, _file: str) -> bool:
        return self.looks

    def changed(self, groups: GroupFilter | None) -> GroupFilter | None:
        if self.refuses is not None:
            raise self.refuses
        return groups or MysqlGroupFilter(later=True)

    def at(self, offset: int, stop: int | None = None) -> Any:
        end = self.file.end
        return self.next(offset, end if stop is None else stop, end)


def holding() -> MysqlGroupFilter:
    return MysqlGroupFilter(HELD, 9)


def heartbeat(offset: int) -> bytes:
    return heartbeat_event(Position(FILE, offset), SERVER_ID, with_checksum=True)


def test_without_anything_to_look_for_all_is_sent_as_it_is() -> None:
    filter = Told()
    assert (filter.at(4, 300), filter.at(1000)) == (SendTo(300), SendTo(1000))
    assert not filter.is_active


def test_a_replica_that_has_something_has_every_byte_looked_at_behind_the_head() -> None:
    filter = Told(holding())
    filter.begin_behind(120)
    assert filter.at(120, 300) == FilterTo(300)
    assert filter.is_active


def test_what_comes_up_later_is_looked_for_behind_what_was_published_before() -> None:
    filter = Told(size=500)
    assert filter.at(100) == SendTo(500)
    filter.looks = True
    filter.file.end = 900
    assert filter.at(300) == SendTo(500)
    assert filter.at(500) == FilterTo(900)
    assert filter.groups.send_until == 500


def test_what_need_not_be_read_is_passed_over_and_told_at_the_end() -> None:
    groups = holding()
    groups.seek = Seek(120, 1000, 9)
    filter = Told(groups)
    assert (filter.at(4), filter.at(120)) == (SendTo(120), SkipTo(1000))
    assert filter.at(1000) == SendFirst([heartbeat(1000)])
    assert filter.at(1000) == SendTo(1000)


def test_a_filter_that_has_nothing_more_to_pass_over_looks_at_nothing_any_more() -> None:
    groups = holding()
    groups.seek = Seek(4, 500, 9)
    filter = Told(groups)
    assert filter.at(4) == SkipTo(500)
    assert filter.at(500) == FilterTo(1000)
    groups.pending_sent()
    assert filter.at(500) == SendTo(1000)
    assert not filter.is_active


def test_a_refusal_ends_the_stream_once_all_before_it_was_sent() -> None:
    groups = holding()
    filter = Told(groups)
    groups.send_until, groups.refused = 300, refusal("no further")
    assert filter.at(200) == FilterTo(1000)
    assert filter.at(300) == End(groups.refused)


def test_the_end_that_a_replica_wanted_comes_behind_what_it_is_still_to_get() -> None:
    binlog = mariadb_binlog(GtidList())
    add_mariadb(binlog, DomainGtid(0, 1, 1))
    until = Until([DomainGtid(0, 1, 1)], before=True)
    groups = MariadbGroupFilter(Awaited(GtidPosition([])), until)
    filter = Told(groups, size=binlog.size)
    at = 4
    while not filter.has_ended:
        assert filter.at(at) == FilterTo(binlog.size)
        at = groups.next_range(binlog.data, at, binlog.size, 0)
    first = filter.at(binlog.size)
    assert isinstance(first, SendFirst) and len(first.events) == 1
    assert filter.at(binlog.size) == End(None)


def test_a_stream_that_may_not_go_on_ends() -> None:
    filter = Told()
    filter.looks, filter.refuses = True, refusal("asks again")
    assert filter.at(4) == End(filter.refuses)


@pytest.mark.parametrize("found", [Seek(4, 700, 3), None])
def test_a_later_file_waits_for_what_of_it_need_not_be_read(found: Seek | None) -> None:
    filter = Told(holding(), size=WORTH_A_SEEK_BYTES)
    woken: list[object] = []
    filter.look_for_seek(lambda: woken.append(filter.at(4)))
    assert filter.at(4) == Wait()
    (answer,) = filter.lookup.answers
    answer(found)
    assert woken == [SkipTo(700) if found else FilterTo(WORTH_A_SEEK_BYTES)]


@pytest.mark.parametrize(
    ("groups", "size"), [(holding(), WORTH_A_SEEK_BYTES - 1), (None, WORTH_A_SEEK_BYTES)], ids=["small", "all is sent"]
)
def test_a_file_of_which_nothing_could_be_saved_is_read_at_once(groups: GroupFilter | None, size: int) -> None:
    filter = Told(groups, size=size)
    filter.look_for_seek(lambda: None)
    assert filter.lookup.answers == []


def test_a_small_file_is_looked_up_where_it_is_to_be_counted_again_what_is_passed_over() -> None:
    filter = Told(MysqlGroupFilter(HELD, 0, later=True), size=500)
    filter.look_for_seek(lambda: None)
    assert len(filter.lookup.answers) == 1
