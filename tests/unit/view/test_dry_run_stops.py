"""All stops that are ahead of a view, found in one go: they are those that it would come to, one after the other."""

import os
from pathlib import Path

import pytest

from protocol.binlog.event_type import EventType
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from relay.binlog_file.file_bytes import DescriptorBytes
from relay.view.inspect.dry_run_stops import StopsFound, find_stops
from relay.view.inspect.file_pass import LookedAtFile
from relay.view.rules.settings import ViewSettings
from relay.view.stops.source_stops import source_changed
from relay.view.stops.view_stop import ViewStop, ViewStopped
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.view_making import UUID_OF_VIEW, marked, settings

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"
MIXED = "UPDATE i, m SET i.a = 1, m.a = 1"


class OpenedBytes(DescriptorBytes):
    """A file that is closed."""

    def close(self) -> None:
        os.close(self._fd)


def file_of(directory: Path, name: str, binlog: BinlogBuilder | bytes) -> LookedAtFile:
    data = bytes(binlog) if isinstance(binlog, bytes) else marked(binlog.data)
    (directory / name).write_bytes(data)
    return LookedAtFile(name, len(data), lambda: OpenedBytes(os.open(directory / name, os.O_RDONLY)))


def mixing(count: int = 1, binlog: BinlogBuilder | None = None) -> BinlogBuilder:
    """Two tables, and statements that change both."""
    made = binlog or BinlogBuilder()
    made.query("CREATE TABLE i (a INT) ENGINE=InnoDB").query("CREATE TABLE m (a INT) ENGINE=MyISAM")
    return statements(made, count)


def statements(made: BinlogBuilder, count: int = 1) -> BinlogBuilder:
    for _ in range(count):
        made.transaction(50).query("BEGIN", OPENS).query(MIXED, INSIDE).xid()
    return made


def many_kinds() -> BinlogBuilder:
    """Stops of rules and of others, one of which defines a table that what follows needs."""
    made = mixing()
    made.query("CREATE TABLE p (a INT) ENGINE=MyISAM PARTITION BY HASH(a)")
    made.query("BEGIN", OPENS).query("UPDATE i, p SET i.a = 1, p.a = 1", INSIDE).xid()
    made.event(EventType.INCIDENT, b"\x01\x00\x00", ALONE)
    made.query("BEGIN", OPENS).query("INSERT INTO unknown VALUES (1)", INSIDE).query("ROLLBACK", CLOSES)
    return made.transaction(1 << 20, 1 << 20).query("CREATE TABLE c ENGINE=MyISAM SELECT 1")


def one_after_the_other(files: list[LookedAtFile], given: ViewSettings) -> list[tuple[str, int, int, str]]:
    """The stops of a view whose operator skips each."""
    found = []
    checkpoint = ViewCheckpoint.of_file(1, b"")
    buffer = bytearray(1 << 20)
    for file in files:
        skips: dict[int, int] = {}
        source = file.open()
        while True:
            rules = rules_of(given)
            made = FileTranslation(file.name, source.read_into, given, rules, checkpoint, skips)
            try:
                while made.fill(buffer, 0, file.end, sealed=True):
                    pass
                break
            except ViewStopped as stopped:
                stop = stopped.stop
                found.append((stop.file, stop.offset, stop.group_stop, stop.reason.name))
                skips[stop.offset] = stop.group_stop
                checkpoint = made.checkpoint()
        source.close()
        checkpoint = ViewCheckpoint.of_file(1, made.checkpoint().rules)
    return found


def told(found: StopsFound) -> list[tuple[str, int, int, str]]:
    return [(stop.file, stop.offset, stop.group_stop, stop.reason.name) for stop in found.stops]


@pytest.mark.parametrize("engines", ["keep", "innodb"])
@pytest.mark.parametrize("gtids", ["assign", "anonymous", "keep"])
def test_they_are_those_at_which_a_view_stops_when_each_is_skipped(tmp_path: Path, gtids: str, engines: str) -> None:
    files = [
        file_of(tmp_path, FIRST, many_kinds().rotate(SECOND)),
        file_of(tmp_path, SECOND, statements(BinlogBuilder(), 2)),
    ]
    given = settings(gtids=gtids, engines=engines)
    found = find_stops(files, given)
    assert told(found) == one_after_the_other(files, given)
    assert found.unread == []
    assert found.counts["incident"] + found.counts["source_incident"] == 1
    as_the_source = (gtids, engines) == ("keep", "keep")  # what needs no GTID is not taken apart
    assert found.counts["uncertain_rollback"] == int(not as_the_source)
    assert (found.counts["statement_mixes_engines"] > 0) is (gtids != "keep" and engines == "keep")


def test_what_is_not_listed_is_counted_and_the_first_of_each_reason_is_listed(tmp_path: Path) -> None:
    binlog = mixing(20).query("CREATE TABLE p (a INT) ENGINE=MyISAM PARTITION BY HASH(a)")
    found = find_stops([file_of(tmp_path, FIRST, binlog)], settings(), most=3)
    assert [stop.reason.name for stop in found.stops] == ["statement_mixes_engines"] * 3 + ["partitions_not_supported"]
    assert (found.total, found.not_listed) == (21, 17)
    assert found.counts == {"statement_mixes_engines": 20, "partitions_not_supported": 1}
    assert found.stops[0].time == binlog.timestamp


def test_what_was_decided_is_no_stop(tmp_path: Path) -> None:
    file = file_of(tmp_path, FIRST, mixing(2))
    (first, second) = find_stops([file], settings()).stops
    decided = LookedAtFile(file.name, file.end, file.open, {first.offset: first.group_stop})
    assert find_stops([decided], settings()).stops == [second]


def test_a_servers_own_files_have_the_stops_of_the_archive(tmp_path: Path) -> None:
    expected = find_stops([file_of(tmp_path, FIRST, many_kinds())], settings())
    for in_use in (0, 1):
        data = bytearray(many_kinds().data)
        data[4 + 17] |= (
            in_use  # a server clears it when it closes the file, and its checksum is of the event without it
        )
        assert find_stops([file_of(tmp_path, SECOND, bytes(data))], settings()).counts == expected.counts
    assert expected.total == 6


def test_a_file_that_cannot_be_read_is_named_and_what_follows_is_looked_at(tmp_path: Path) -> None:
    damaged = bytearray(marked(mixing().transaction(200).data))
    damaged[-100] ^= 1
    files = [
        file_of(tmp_path, FIRST, bytes(damaged)),
        LookedAtFile("gone", 100, lambda: OpenedBytes(os.open(tmp_path / "gone", os.O_RDONLY))),
        file_of(tmp_path, "no_binlog", b"nothing of the kind" * 5),
        file_of(tmp_path, "of_mariadb", BinlogBuilder("mariadb").transaction()),
        file_of(tmp_path, "unmarked", bytes(damaged[:-300]) + b"\0" * 300),
        file_of(tmp_path, SECOND, statements(BinlogBuilder())),
    ]
    found = find_stops(files, settings())
    assert [stop.file for stop in found.stops] == [FIRST, "of_mariadb", "unmarked", SECOND]
    assert [part.file for part in found.unread] == [FIRST, "gone", "no_binlog", "of_mariadb", "unmarked"]
    assert all(part.text for part in found.unread)


def test_where_another_source_is_followed_a_view_ends_and_another_begins(tmp_path: Path) -> None:
    first = file_of(tmp_path, FIRST, mixing())
    other = file_of(tmp_path, SECOND, statements(BinlogBuilder()))
    reason = source_changed(FIRST)
    found = find_stops([first, LookedAtFile(other.name, other.end, other.open, after=reason)], settings())
    assert found.stops[1:] == [ViewStop(FIRST, first.end, first.end, reason)]  # of its tables nothing is known


def test_it_goes_on_from_where_a_view_is_made(tmp_path: Path) -> None:
    binlog = mixing(3)
    file = file_of(tmp_path, FIRST, binlog)
    stops = find_stops([file], settings()).stops
    made = FileTranslation(
        FIRST,
        file.open().read_into,
        settings(),
        rules_of(settings()),
        ViewCheckpoint.of_file(1, b""),
        {stops[0].offset: 0},
    )
    with pytest.raises(ViewStopped):
        while True:
            made.fill(bytearray(1 << 20), 0, file.end, sealed=True)
    assert find_stops([file], settings(), begin=made.checkpoint()).stops == stops[1:]


def test_who_watches_is_told_of_all_bytes(tmp_path: Path) -> None:
    done: list[int] = []
    files = [file_of(tmp_path, FIRST, many_kinds()), file_of(tmp_path, SECOND, mixing(3))]
    find_stops(files, settings(), on_looked=done.append)
    assert sum(done) == sum(file.end - 4 for file in files)
    assert len(done) > len(files)  # a long transaction is told of when it is done


# ---- REPLACE and DELETE ----------------------------------------------------------------------------------------------

REFERRED = (
    "CREATE DATABASE test",
    "CREATE TABLE p (id INT PRIMARY KEY)",
    "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
    "CREATE TABLE q (id INT PRIMARY KEY)",
)
REPLACES = ["REPLACE INTO q VALUES ({})", "DELETE FROM p WHERE id = {}", "INSERT INTO p VALUES ({})"]


def replacing(number: int, *more: str) -> BinlogBuilder:
    """A transaction of so many statements that need no rule, with some more in the middle."""
    made = BinlogBuilder(version="5.6.24-log")
    for text in REFERRED:
        made.query(text)
    made.query("BEGIN", OPENS)
    some = [REPLACES[at % 3].format(at) for at in range(number)]
    for text in (*some[: number // 2], *more, *some[number // 2 :]):
        made.query(text, INSIDE)
    return made.xid()


@pytest.mark.parametrize("number", [10, 21_000])
@pytest.mark.parametrize(
    ("more", "name"),
    [
        ("REPLACE INTO p VALUES (1)", "replace_in_parent_table"),
        ("replace p SET id = 1", "replace_in_parent_table"),
        ("DELETE c, p FROM c JOIN p ON c.p = p.id", "multi_table_delete"),
        ("DELETE FROM c, p USING c JOIN p WHERE c.p = p.id", "multi_table_delete"),
    ],
)
def test_a_replace_is_found_in_a_transaction_of_any_length(tmp_path: Path, number: int, more: str, name: str) -> None:
    found = find_stops([file_of(tmp_path, FIRST, replacing(number, more, more))], settings())
    assert dict(found.counts) == {name: 1}


@pytest.mark.parametrize("number", [10, 21_000])
def test_nothing_is_found_in_a_transaction_of_any_length_that_needs_no_rule(tmp_path: Path, number: int) -> None:
    assert find_stops([file_of(tmp_path, FIRST, replacing(number))], settings()).total == 0


def test_what_one_file_says_of_gtids_counts_for_those_behind_it(tmp_path: Path) -> None:
    named = BinlogBuilder()
    named.event(35, encode_gtid_set(GtidSet.from_text("0f0f0f0f-0000-0000-0000-000000000001:1-7")), ALONE)
    later = [file_of(tmp_path, f"mysql-bin.00000{number}", mixing(number)) for number in (2, 3)]
    found = find_stops([file_of(tmp_path, FIRST, named), *later], settings())
    mixes = "statement_mixes_engines"
    assert [(stop.file, stop.reason.name) for stop in found.stops] == [
        (SECOND, "executed_gtids_missing"), (SECOND, mixes), (SECOND, mixes), *[("mysql-bin.000003", mixes)] * 3,
    ]  # fmt: skip
    assert found.unread == []


def test_a_number_that_the_view_gave_in_another_file_is_not_the_sources(tmp_path: Path) -> None:
    own = BinlogBuilder()
    own.event(33, b"\1" + UUID_OF_VIEW.bytes + bytes(8), OPENS).query("BEGIN", INSIDE).xid()
    files = [file_of(tmp_path, FIRST, mixing(0).transaction(50)), file_of(tmp_path, SECOND, own)]
    assert [(stop.file, stop.reason.name) for stop in find_stops(files, settings()).stops] == [(SECOND, "uuid_in_use")]
