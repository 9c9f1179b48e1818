"""Transactions without an end, because the source crashed: left out where nobody has anything of them, else the view stops."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from relay.view.inspect.dry_run_stops import find_stops
from relay.view.stops.view_stop import ViewStop, ViewStopped
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.any_archive import rows, table_map
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.event_stream import query_body
from tests.support.memory_file import MemoryFile, looked_at
from tests.support.view_making import marked, settings
from tests.support.view_oracle import events_of

MAP, INTVAR, STOP, ROTATE, GTID = 19, 5, 3, 4, 33
Event = tuple[int, bytes]


def text(words: str) -> Event:
    return 2, query_body(words, b"d")


def mapped(table: str) -> Event:
    return MAP, table_map(table)


BEGIN = text("BEGIN")
INTO_M, INTO_I, INTO_OLD = (text(f"INSERT INTO {table} VALUES (1)") for table in ("m", "i", "old"))
ROWS, OPEN_ROWS = rows(30, 20), rows(30, 20, last=False)
MADE = (
    "CREATE TABLE m (a INT) ENGINE=MyISAM",
    "CREATE TABLE i (a INT) ENGINE=InnoDB",
    "CREATE TABLE w (a INT) ENGINE=InnoDB",
    "CREATE TRIGGER d.w AFTER INSERT ON d.w FOR EACH ROW INSERT INTO d.m VALUES (1)",
)


def cut(
    *events: Event, behind: tuple[Event, ...] = (), version: str = "", definitions: tuple[str, ...] = MADE
) -> tuple[bytes, int, int]:
    """A binlog with these events without an end, and others behind them; where the former begin and end."""
    made = BinlogBuilder(version=version)
    for words in definitions:
        made.event(*text(words), ALONE)
    start = len(made.data)
    for number, (kind, body) in enumerate(events):
        made.event(kind, body, INSIDE if number else OPENS)
    stop = len(made.data)
    for kind, body in behind:
        made.event(kind, body, INSIDE)
    return marked(made.data), start, stop


class Outcome:
    """What a view has behind the definitions, and what stopped it."""

    def __init__(
        self, data: bytes, most: int = 1 << 20, skips: Mapping[int, int] | None = None, **given: object
    ) -> None:
        def read_into(view: memoryview, offset: int) -> int:
            count = min(len(view), max(len(data) - offset, 0))
            view[:count] = data[offset : offset + count]
            return count

        wanted = settings(**given)
        one = FileTranslation(
            "bin.000001", read_into, wanted, rules_of(wanted), ViewCheckpoint.of_file(1, b""), skips or {}
        )
        room, made = bytearray(most), b""
        self.stop: ViewStop | None = None
        try:
            while count := one.fill(room, 0, len(data), sealed=True, ends_cut=True):
                made += room[:count]
        except ViewStopped as stop:
            self.stop = stop.stop
        self.types = [event[4] for event in events_of(made)][2 + 2 * len(MADE) :]
        self.next_gno = one.checkpoint().next_gno


@pytest.mark.parametrize("target", ["mysql-9.7", "mysql-5.6"])
@pytest.mark.parametrize(
    "events",
    [
        (BEGIN,),
        (BEGIN, INTO_I),
        (BEGIN, INTO_I, INTO_I, (INTVAR, bytes(9))),
        (BEGIN, mapped("i"), ROWS),
        (BEGIN, mapped("i"), OPEN_ROWS, OPEN_ROWS),
        (BEGIN, mapped("m")),
        ((INTVAR, bytes(9)),),
    ],
)
def test_what_nobody_kept_is_left_out_and_takes_no_number(events: tuple[Event, ...], target: str) -> None:
    for behind in ((), ((STOP, b""),)):
        outcome = Outcome(cut(*events, behind=behind)[0], target=target)
        assert (outcome.stop, outcome.types) == (None, [kind for kind, _ in behind])
        assert outcome.next_gno == 1 + len(MADE)


@pytest.mark.parametrize("engines", ["keep", "innodb"])
@pytest.mark.parametrize(
    ("events", "why"),
    [
        ((BEGIN, INTO_M), "d.m has no transactions"),
        ((BEGIN, INTO_I, INTO_M), "d.m has no transactions"),
        ((BEGIN, mapped("m"), ROWS), "d.m has no transactions"),
        ((BEGIN, mapped("i"), ROWS, mapped("m"), OPEN_ROWS), "d.m has no transactions"),
        ((BEGIN, INTO_OLD), "the engine of d.old is not known"),
        ((BEGIN, mapped("old"), ROWS), "the engine of d.old is not known"),
        ((BEGIN, text("INSERT INTO w VALUES (1)")), "d.w has triggers"),
        ((BEGIN, text("INSERT INTO i SELECT f()")), "stored functions"),
        ((BEGIN, text("CREATE TABLE n (a INT)")), "a definition"),
        ((BEGIN, text("UPDATE i JOIN")), "("),
        ((BEGIN, *[INTO_I] * 20_001, INTO_M), "d.m has no transactions"),
    ],
)
def test_what_may_have_been_kept_stops_the_view(events: tuple[Event, ...], why: str, engines: str) -> None:
    data, start, stop = cut(*events)
    outcome = Outcome(data, engines=engines)
    assert outcome.stop is not None
    reason = outcome.stop.reason
    assert (reason.name, outcome.stop.offset, outcome.stop.group_stop) == ("unfinished_transaction", start, stop)
    assert why in reason.text
    skipped = Outcome(data, skips={start: stop}, engines=engines)
    assert (skipped.stop, skipped.types, skipped.next_gno) == (None, [], 1 + len(MADE))


@pytest.mark.parametrize("count", [1, 9000])
@pytest.mark.parametrize("table", ["i", "m"])
def test_a_transaction_that_follows_in_the_same_file_would_commit_it(table: str, count: int) -> None:
    following = (BEGIN, INTO_I, (16, bytes(8)))
    data, start, stop = cut(BEGIN, *[text(f"INSERT INTO {table} VALUES ({'1' * 100})")] * count, behind=following)
    outcome = Outcome(data)
    assert outcome.stop is not None
    assert (outcome.stop.reason.name, outcome.stop.offset, outcome.stop.group_stop) == (
        "unfinished_transaction",
        start,
        stop,
    )
    skipped = Outcome(data, skips={start: stop})
    assert (skipped.stop, skipped.types) == (None, [GTID, 2, 2, 16])
    # Nothing was done: nothing to commit.
    assert Outcome(cut(BEGIN, behind=(*following[:0], (34, b"\1" + bytes(24)), *following))[0]).stop is None


def test_so_it_is_where_the_replicas_are_older_than_the_source() -> None:
    for events, name in (((BEGIN, INTO_M), "unfinished_transaction"), ((BEGIN, mapped("i"), ROWS), None)):
        stop = Outcome(cut(*events, version="8.0.36")[0], target="mysql-5.7").stop
        assert (stop.reason.name if stop is not None else None) == name


def test_the_check_names_it_in_all_files_but_the_one_that_grows() -> None:
    first, start, stop = cut(BEGIN, INTO_M)
    newest, _, _ = cut(BEGIN, INTO_M, definitions=())

    found = find_stops([looked_at("bin.000001", first), looked_at("bin.000002", newest)], settings())
    assert [(one.file, one.offset, one.group_stop, one.reason.name) for one in found.stops] == [
        ("bin.000001", start, stop, "unfinished_transaction")
    ]
    assert not found.unread


NEXT = (BEGIN, INTO_I, (16, bytes(8)))
WENT_ON = "the file before this one ends inside a transaction, and the source continued"


def following(*, started: bool) -> bytes:
    """The next file, with a transaction; started: the source was started again for it."""
    made = BinlogBuilder(started=started)
    for (kind, body), effect in zip(NEXT, (OPENS, INSIDE, CLOSES), strict=True):
        made.event(kind, body, effect)
    return marked(made.data)


@pytest.mark.parametrize("target", ["mysql-9.7", "mysql-5.6"])
@pytest.mark.parametrize("behind", [(), ((ROTATE, bytes(8) + b"bin.000002"),), ((STOP, b""),)])
@pytest.mark.parametrize(
    ("events", "started", "stops"),
    [
        ((BEGIN, INTO_I), False, True),
        ((BEGIN, mapped("i"), OPEN_ROWS), False, True),
        ((BEGIN, INTO_I), True, False),
        ((BEGIN,), False, False),
    ],
)
def test_where_the_source_went_on_it_did_not_roll_back_what_it_could_not_write(
    events: tuple[Event, ...], behind: tuple[Event, ...], target: str, started: bool, stops: bool
) -> None:
    first, _, _ = cut(*events, behind=behind)
    second, third = following(started=started), following(started=False)
    head = len(BinlogBuilder().data)
    for skips, told in (({}, stops), ({4: head}, False)):
        files = [
            looked_at("bin.000001", first),
            replace(looked_at("bin.000002", second), skips=skips),
            looked_at("bin.000003", third),
        ]
        found = find_stops(files, settings(target=target))
        places = [(one.file, one.offset, one.group_stop, one.reason.name) for one in found.stops]
        assert places == ([("bin.000002", 4, head, "unfinished_transaction")] if told else [])
        assert all(one.reason.text.startswith(WENT_ON) for one in found.stops)
        assert not found.unread


def test_the_view_stands_before_the_file_until_somebody_decides() -> None:
    first, _, _ = cut(BEGIN, INTO_I)
    second = following(started=False)
    begins = made_of(first, ViewCheckpoint.of_file(1, b""), {})[1]
    assert b'"open_end"' in begins.rules
    decided = 0
    for _ in range(2):  # also where it begins again there
        stop, begins = made_of(second, begins, {})
        assert stop is not None
        assert (stop.offset, stop.reason.name, begins.source) == (4, "unfinished_transaction", 4)
        decided = stop.group_stop
    stop, begins = made_of(second, begins, {4: decided})
    assert stop is None
    assert b'"open_end"' not in begins.rules


def made_of(data: bytes, begin: ViewCheckpoint, skips: Mapping[int, int]) -> tuple[ViewStop | None, ViewCheckpoint]:
    """What stops the view in a file, and where the next one is gone on with, or this one."""
    one = FileTranslation("bin.000002", MemoryFile(data).read_into, settings(), rules_of(settings()), begin, skips)
    try:
        while one.fill(bytearray(1 << 20), 0, len(data), sealed=True, ends_cut=True):
            pass
    except ViewStopped as stop:
        return stop.stop, one.checkpoint()
    return None, ViewCheckpoint.of_file(one.checkpoint().next_gno, one.checkpoint().rules)
