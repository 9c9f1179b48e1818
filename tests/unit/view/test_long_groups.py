"""Groups of many events, read from their file: nobody holds them, and the rules are those of small ones."""

import struct
import tracemalloc
import zlib
from collections.abc import Iterable

import pytest

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import CHECKSUM_SIZE, HEADER
from relay.view.rules import sub_transactions
from relay.view.rules.group import GroupRules, New, OutGroup, SourceGroup
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.targets.target_rules import TargetRules
from relay.view.stops.stop_reason import Untranslatable
from relay.view.translate.source_groups import GroupReader
from tests.support import target_groups
from tests.support.event_stream import query_body
from tests.support.rule_groups import STATUS, RuleRun, settings

NAME = "mysql-bin.000001"
MANY = 8_000
LENGTHS = bytes([0, 0, 13, *[8] * 253])
Written = tuple[int, bytes]


def statement(text: str) -> Written:
    return EventType.QUERY, query_body(text, b"d", STATUS)


BEGIN, COMMIT, ROLLBACK = statement("BEGIN"), statement("COMMIT"), statement("ROLLBACK")


def group_of(events: Iterable[Written], version: str = "5.6.24-log") -> SourceGroup:
    """The group of these events, as a file's reader gives it."""
    data = bytearray(b"\xfebin")
    for kind, body in events:
        size = HEADER.size + len(body) + CHECKSUM_SIZE
        event = HEADER.pack(1_795_423_210, kind, 1, size, len(data) + size, 0) + body
        data += event + struct.pack("<I", zlib.crc32(event))

    def read_into(into: memoryview, offset: int) -> int:
        count = min(len(into), len(data) - offset)
        into[:count] = data[offset : offset + count]
        return count

    group = GroupReader(NAME, read_into, LENGTHS, version, CHECKSUM_SIZE).group(4, len(data))
    assert group.is_held == (len(list(group.events)) <= 2000)
    return group


def rules_with_tables(**changes: object) -> MysqlRules:
    made = RuleRun(settings(**changes))
    for one in ("CREATE DATABASE d", "CREATE TABLE i (a INT) ENGINE=InnoDB", "CREATE TABLE m (a INT) ENGINE=MyISAM"):
        made.plan(one)
    return made.rules


def mixed(every: int) -> list[Written]:
    """Changes of d.i, and one of d.m in each `every`."""
    return [statement(f"INSERT INTO {'i' if number % every else 'm'} VALUES ({number})") for number in range(MANY)]


def peak_of(rules: GroupRules, group: SourceGroup) -> tuple[list[OutGroup], int]:
    """What becomes of it, and the bytes in memory that this took at most."""
    tracemalloc.start()
    try:
        return rules.plan(group), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_mixes_engines_is_split_in_little_memory() -> None:
    group = group_of([BEGIN, *mixed(100), COMMIT])
    made, peak = peak_of(rules_with_tables(), group)
    assert len(made) == 2 * MANY // 100
    assert peak < 5 << 20


def test_of_what_was_rolled_back_the_same_is_kept_in_little_memory() -> None:
    group = group_of([BEGIN, *mixed(1000), ROLLBACK])
    (made,), peak = peak_of(rules_with_tables(engines="innodb"), group)
    assert len(made.pieces) == 2 + MANY // 1000
    assert peak < 5 << 20


def test_what_would_take_too_much_stops_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sub_transactions, "MOST_TRANSACTIONS", 100)
    with pytest.raises(Untranslatable) as raised:
        rules_with_tables().plan(group_of([BEGIN, *mixed(2), COMMIT]))
    assert raised.value.reason.name == "transaction_too_large"
    assert "engines" in raised.value.reason.advice
    assert len(rules_with_tables(engines="innodb").plan(group_of([BEGIN, *mixed(2), COMMIT]))) == 1


def test_comments_before_a_statement_take_no_time() -> None:
    text = "/**/" * 60 + "CREATE TEMPORARY TABLE x (a INT)"
    group = group_of([BEGIN, *mixed(MANY)[1:], statement(text), COMMIT])
    assert len(rules_with_tables().plan(group)) == 1


def test_an_older_target_takes_little_memory_for_what_stays_as_it_is() -> None:
    rows = [target_groups.table_map(3), target_groups.rows()] * (MANY // 2)
    events = [target_groups.ANONYMOUS, target_groups.BEGIN, *rows, target_groups.XID]
    wanted = target_groups.settings("mysql-5.6")
    (made,), peak = peak_of(TargetRules(wanted, MysqlRules(wanted)), group_of(events, "9.7.4"))
    assert len(made.pieces) == 2
    assert peak < 5 << 20


@pytest.mark.parametrize("engines", ["keep", "innodb"])
def test_of_many_statements_only_those_are_rewritten_that_replicas_take_otherwise(engines: str) -> None:
    cached = statement("INSERT INTO i SELECT SQL_CACHE 1")
    names = [statement(f"INSERT INTO i (`password`) VALUES ('it\\'s {number}')") for number in range(MANY)]
    rules = rules_with_tables(engines=engines, target="mysql-9.7")
    (made,), peak = peak_of(rules, group_of([BEGIN, cached, *names, cached, cached, COMMIT]))
    texts = [piece.body.rpartition(b"\0")[2] for piece in made.pieces if isinstance(piece, New)]
    assert texts == [b"INSERT INTO i SELECT 1"] * 3
    assert [isinstance(piece, New) for piece in made.pieces] == [False, True, False, True, True, False]
    assert peak < 5 << 20
