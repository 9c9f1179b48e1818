"""Transactions of a newer source for an older target: events that it cannot read, GTIDs, and rules behind these."""

import struct
import sys
import tomllib
from pathlib import Path
from uuid import UUID

import pytest

from protocol.binlog.event_type import EventType
from protocol.binlog.gtid_event import Gtid, decode_gtid
from protocol.binlog.gtid_tagged import encode_gtid_tagged
from protocol.binlog.query import read_query
from relay.view.rules.group import Copy, New, OutGroup, SourceGroup
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.targets.target_rules import TargetRules
from relay.view.rules.targets.unpacked_payload import MOST_BYTES
from relay.view.stops.stop_reason import Untranslatable
from tests.support.target_groups import (
    ANONYMOUS,
    BEGIN,
    COMMIT,
    GTID,
    UUID_OF_SOURCE,
    XID,
    Event,
    group_of,
    made_for,
    made_of,
    payload,
    plan,
    rows,
    settings,
    statement,
    stop_of,
    table_map,
    text_made,
)

TABLE = table_map(3)
ROW_GROUP = (BEGIN, TABLE, rows(), XID)
OLDER = ("mysql-5.5", "mysql-5.6", "mysql-5.7")


def types(events: list[Event]) -> list[int]:
    return [event.type for event in events]


def texts(events: list[Event]) -> list[str]:
    return [read_query(event.type, event.body, 0).text.decode() for event in events if event.type == EventType.QUERY]


# ---- GTIDs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "size"), [("mysql-5.6", 25), ("mysql-5.7", 42), ("mysql-8.0", 55)])
def test_a_gtid_that_is_kept_has_the_targets_length(target: str, size: int) -> None:
    ((head, *rest),) = made_for(target, GTID, *ROW_GROUP, gtids="keep")
    assert (head.type, len(head.body)) == (EventType.GTID, len(GTID.body) if size == 55 else size)
    assert (decode_gtid(head.body).text, len(rest)) == (f"{UUID_OF_SOURCE}:77", 4)


def test_a_version_that_has_gtids_of_25_bytes_gets_the_flag_that_it_writes() -> None:
    ((head, *_),) = made_for("mysql-5.6", GTID, *ROW_GROUP, gtids="keep")
    assert decode_gtid(head.body) == Gtid(1, UUID_OF_SOURCE, 77)


@pytest.mark.parametrize(
    ("gtids", "head", "gtid", "first"),
    [
        ("keep", GTID, "source", EventType.GTID),
        ("keep", ANONYMOUS, "source", EventType.ANONYMOUS_GTID),
        ("assign", GTID, "source", EventType.GTID),
        ("assign", ANONYMOUS, "new", EventType.QUERY),
        ("anonymous", GTID, "new", EventType.QUERY),
        ("anonymous", ANONYMOUS, "new", EventType.QUERY),
    ],
)
def test_whose_gtid_a_transaction_has_is_the_views_choice(gtids: str, head: Event, gtid: str, first: int) -> None:
    (outgroup,) = TargetRules(settings(gtids=gtids)).plan(group_of(head, *ROW_GROUP))
    ((made, *_),) = made_for("mysql-5.6", head, *ROW_GROUP, gtids=gtids)
    assert (outgroup.gtid, made.type) == (gtid, first)


def test_a_version_without_gtids_gets_none_in_front() -> None:
    for gtids in ("keep", "anonymous"):
        (outgroup,) = TargetRules(settings("mysql-5.5", gtids=gtids)).plan(group_of(ANONYMOUS, BEGIN, COMMIT))
        assert outgroup.gtid == "source"
        assert types(made_for("mysql-5.5", GTID, BEGIN, COMMIT, gtids=gtids)[0]) == [2, 2]


def tagged(tag: str, gno: int = 5) -> Event:
    return Event(EventType.GTID_TAGGED, encode_gtid_tagged(Gtid(1, UUID_OF_SOURCE, gno, tag, 4, 5)))


def test_a_tag_is_named_where_the_gtid_is_kept() -> None:
    for target in (*OLDER[1:], "mysql-8.0"):
        reason = stop_of(tagged("blue"), *ROW_GROUP, target=target, gtids="keep")
        assert reason.name == "tagged_gtid" and f"{UUID_OF_SOURCE}:blue:5" in reason.text
    assert types(made_for("mysql-5.6", tagged("blue"), *ROW_GROUP)[0])[0] == EventType.QUERY
    assert types(made_for("mysql-8.4", tagged("blue"), *ROW_GROUP, gtids="keep")[0])[0] == EventType.GTID_TAGGED


def test_an_event_for_tags_without_one_becomes_a_plain_one() -> None:
    ((head, *_),) = made_for("mysql-5.7", tagged(""), *ROW_GROUP, gtids="keep")
    assert (head.type, decode_gtid(head.body)) == (EventType.GTID, Gtid(1, UUID_OF_SOURCE, 5, "", 4, 5))
    anonymous = Event(EventType.GTID_TAGGED, encode_gtid_tagged(Gtid(1, UUID(int=0), 0, "", 4, 5)))
    ((head, *_),) = made_for("mysql-5.7", anonymous, *ROW_GROUP, gtids="keep")
    assert head.type == EventType.ANONYMOUS_GTID


# ---- rows -----------------------------------------------------------------------------------------------------------


def test_rows_and_tables_are_copied_as_they_are() -> None:
    optional = table_map(3, optional=b"\x01\x01\x00")
    partitioned = rows(extra=b"\x05\x00\x01\x01\x00")
    group = group_of(ANONYMOUS, BEGIN, optional, partitioned, XID)
    (outgroup,) = TargetRules(settings()).plan(group)
    assert outgroup.pieces[1] == Copy(group.events[2].offset, group.stop)


@pytest.mark.parametrize(
    ("kind", "name", "targets"),
    [
        (245, "JSON", ("mysql-5.5", "mysql-5.6")),
        (242, "VECTOR", ("mysql-5.6", "mysql-5.7", "mysql-8.0", "mysql-8.4")),
        (18, "DATETIME", ("mysql-5.5",)),
        (243, "number 243", ("mysql-5.6", "mysql-9.7")),
    ],
)
def test_a_type_that_the_target_does_not_have_is_named_with_its_table(
    kind: int, name: str, targets: tuple[str, ...]
) -> None:
    for target in targets:
        # of a source that is newer than any
        with pytest.raises(Untranslatable) as stopped:
            plan(TargetRules(settings(target)), BEGIN, table_map(3, kind, name=b"docs"), rows(), XID, version="10.1.0")
        reason = stopped.value.reason
        assert reason.name == "column_type_not_in_target"
        assert reason.text.startswith(f"column 2 of d.docs is of type {name}, which MySQL ")


def test_partial_updates_are_named() -> None:
    for target in OLDER:
        assert stop_of(BEGIN, TABLE, rows(39), XID, target=target).name == "partial_update_rows"
    assert made_for("mysql-8.0", BEGIN, TABLE, rows(39), XID)


def test_5_5_gets_rows_of_version_1_and_no_texts_of_their_statements() -> None:
    query = Event(EventType.ROWS_QUERY, b"\x06DELETE")
    ((_, _, made, _),) = made_for("mysql-5.5", BEGIN, query, TABLE, rows(32, b"\x05\0\x01\x01\0"), XID)
    assert made == Event(EventType.DELETE_ROWS_V1, rows().body[:8] + rows().body[10:])


def test_a_user_variable_has_a_collation_that_the_target_has() -> None:
    body = struct.pack("<I", 1) + b"v\0\0" + struct.pack("<II", 255, 3) + b"abc\0"
    event = Event(EventType.USER_VAR, body)
    sets = statement("UPDATE t SET a = @v", collations=(33, 33, 33))
    assert stop_of(BEGIN, event, sets, XID).name == "collation_not_in_target"
    ((_, made, _, _),) = made_for("mysql-5.6", BEGIN, event, sets, XID, collations={255: 224})
    assert made.body == body.replace(b"\xff\0", b"\xe0\0")
    null = Event(EventType.USER_VAR, struct.pack("<I", 1) + b"v\x01")
    assert made_for("mysql-5.6", BEGIN, null, sets, XID)[0][1] == null


# ---- transactions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", [0, 255])
def test_a_compressed_transaction_is_unpacked(compression: int) -> None:
    inside = (BEGIN, TABLE, rows(), XID)
    for target in OLDER[1:]:
        (made,) = made_for(target, ANONYMOUS, payload(*inside, compression=compression))
        assert types(made) == [2, 19, 30, 16] and made[1:] == [TABLE, rows(), XID]
    packed = payload(*inside)
    assert made_for("mysql-8.0", ANONYMOUS, packed) == [[packed]]


def test_what_is_in_a_compressed_transaction_is_judged_too() -> None:
    assert stop_of(payload(BEGIN, table_map(245), rows(), XID)).name == "column_type_not_in_target"
    assert stop_of(payload(BEGIN, statement("DELETE FROM t"), XID)).name == "collation_not_in_target"


def test_where_a_package_is_missing_that_unpacks_the_stop_names_the_command_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compressed = payload(BEGIN, XID)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    stop = stop_of(compressed)
    assert (stop.name, stop.advice) == (
        "compressed_transaction",
        f"run {sys.executable} -m pip install 'zstandard>=0.23,<1', then start the relay again",
    )


def test_what_is_installed_without_extras_unpacks_compressed_transactions() -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[3] / "pyproject.toml").read_text())["project"]
    assert any(name.startswith("zstandard") for name in project["dependencies"])


@pytest.mark.parametrize("compression", [0, 255])
@pytest.mark.parametrize("target", ["mysql-8.0", "mysql-8.4"])
def test_a_compressed_transaction_that_the_target_reads_is_looked_into(target: str, compression: int) -> None:
    def packed(*events: Event) -> Event:
        return payload(*events, compression=compression)

    kept = packed(BEGIN, TABLE, rows(), XID)
    assert made_for(target, ANONYMOUS, kept) == [[kept]]
    assert stop_of(packed(BEGIN, table_map(242), rows(), XID), target=target).name == "column_type_not_in_target"
    mode = statement("INSERT INTO t SELECT _utf8'x'", mode=1 << 33)
    assert stop_of(packed(BEGIN, mode, XID), target=target).name == "sql_mode_not_in_target"
    newer = packed(BEGIN, statement("DELETE FROM t", more=[(21, b"\0")]), XID)
    assert types(made_for(target, ANONYMOUS, newer)[0]) == [2, 2, 16]
    assert (
        stop_of(packed(BEGIN, statement("DELETE FROM t", more=[(99, b"")]), XID), target=target).name
        == "status_variable_unknown"
    )


def test_a_compressed_transaction_of_any_size_is_looked_into() -> None:
    large = Event(EventType.WRITE_ROWS, bytes(MOST_BYTES))
    kept = payload(BEGIN, TABLE, large, large, XID)
    assert made_for("mysql-8.0", kept) == [[kept]]
    assert (
        stop_of(payload(BEGIN, table_map(242), large, large, XID), target="mysql-8.0").name
        == "column_type_not_in_target"
    )
    assert stop_of(kept).name == "compressed_transaction"


def test_a_damaged_compressed_transaction_is_named_by_those_who_look_into_it() -> None:
    good = payload(BEGIN, TABLE, rows(), XID)
    plain = payload(BEGIN, TABLE, rows(), XID, compression=255)
    for body in (
        good.body[:-30] + bytes(30),
        plain.body[:-3],
        plain.body[:-30],
        payload(Event(2, b"x"), compression=7).body,
    ):
        event = Event(EventType.TRANSACTION_PAYLOAD, body)
        assert stop_of(event, target="mysql-8.4").name == "compressed_transaction"


def test_the_value_of_a_user_variable_is_judged() -> None:
    def variable(value: bytes) -> Event:
        return Event(
            EventType.USER_VAR, struct.pack("<I", 1) + b"a\0\0" + struct.pack("<II", 33, len(value)) + value + b"\0"
        )

    sets = statement("INSERT INTO t VALUES (@a)", collations=(33, 33, 33))
    offset = variable(b"2020-01-01 10:00:00+02:00")
    assert stop_of(BEGIN, offset, sets, XID).name == "statement_differs_in_target"
    assert made_for("mysql-8.0", BEGIN, offset, sets, XID)[0][1] == offset
    fraction = variable(b"10:00:00.9")
    assert stop_of(BEGIN, fraction, sets, XID, target="mysql-5.5").name == "statement_differs_in_target"
    assert made_for("mysql-5.6", BEGIN, fraction, sets, XID)[0][1] == fraction


def test_a_compressed_transaction_that_cannot_be_unpacked_is_named() -> None:
    good = payload(BEGIN, XID)
    for body in (good.body[:-3], good.body[:-30] + bytes(30), payload(Event(2, b"x"), compression=7).body):
        assert stop_of(Event(EventType.TRANSACTION_PAYLOAD, body)).name == "compressed_transaction"
    large = b"\x02\x01\x00\x03\x09\xfe" + struct.pack("<Q", 1 << 31) + b"\x01\x01\x05\x00" + bytes(5)
    assert "holds in memory" in stop_of(Event(EventType.TRANSACTION_PAYLOAD, large)).text


def xa(*, one_phase: bool) -> tuple[Event, ...]:
    end = Event(EventType.XA_PREPARE, bytes((one_phase,)) + struct.pack("<III", 1, 1, 0) + b"x")
    return statement("XA START X'78',X'',1"), TABLE, rows(), statement("XA END X'78',X'',1"), end


def test_an_xa_transaction_of_one_phase_is_an_ordinary_one_for_5_6() -> None:
    (made,) = made_for("mysql-5.6", ANONYMOUS, *xa(one_phase=True))
    assert types(made) == [2, 19, 30, 2] and texts(made) == ["BEGIN", "COMMIT"]
    assert types(made_for("mysql-5.7", ANONYMOUS, *xa(one_phase=True))[0]) == [2, 19, 30, 2, 38]


def test_an_xa_transaction_that_is_prepared_is_named_for_5_6() -> None:
    reason = stop_of(ANONYMOUS, *xa(one_phase=False))
    assert reason.name == "xa_prepared_transaction" and "X'78',X'',1" in reason.text
    assert made_for("mysql-5.7", ANONYMOUS, *xa(one_phase=False))


CREATED = statement("CREATE TABLE `d`.`s` (\n  `a` int DEFAULT NULL\n) START TRANSACTION")


def test_a_table_made_with_its_rows_takes_two_transactions() -> None:
    for target in OLDER:
        one, two = made_for(target, ANONYMOUS, BEGIN, CREATED, TABLE, rows(), XID)
        assert texts(one) == ["CREATE TABLE `d`.`s` (\n  `a` int DEFAULT NULL\n) "]
        assert types(two)[:2] == [2, 19] and types(two)[-1] == 16 and texts(two) == ["BEGIN"]
    assert len(made_for("mysql-8.0", ANONYMOUS, BEGIN, CREATED, TABLE, rows(), XID)) == 1


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("CREATE TABLE `t` (a INT) START TRANSACTION ENGINE=InnoDB", "CREATE TABLE `t` (a INT)  ENGINE=InnoDB"),
        (
            "CREATE TABLE `t` (a INT COMMENT ') START TRANSACTION') START TRANSACTION",
            "CREATE TABLE `t` (a INT COMMENT ') START TRANSACTION') ",
        ),
    ],
)
def test_the_words_for_its_rows_are_taken_out_wherever_they_stand(text: str, made: str) -> None:
    one, two = made_for("mysql-5.6", ANONYMOUS, BEGIN, statement(text), TABLE, rows(), XID)
    assert texts(one) == [made] and len(two) == 4
    assert len(made_for("mysql-5.6", statement("CREATE TABLE t (a INT) COMMENT=') START TRANSACTION'"))) == 1


def test_both_have_an_anonymous_gtid_and_neither_can_have_one_that_is_real() -> None:
    one, two = made_for("mysql-5.6", ANONYMOUS, BEGIN, CREATED, TABLE, rows(), XID, gtids="keep")
    assert one[0] == two[0] and one[0].type == EventType.ANONYMOUS_GTID
    reason = stop_of(GTID, BEGIN, CREATED, TABLE, rows(), XID, gtids="keep")
    assert (reason.name, reason.error) == ("create_select_with_gtid", 1064)


@pytest.mark.parametrize(
    "text",
    ["CREATE USER u IDENTIFIED WITH 'caching_sha2_password' AS '$A$'", "GRANT r TO u", "SET DEFAULT ROLE r TO u"],
)
def test_an_account_statement_leaves_an_empty_transaction(text: str) -> None:
    ((head, *rest),) = made_for("mysql-5.6", GTID, statement(text), gtids="keep")
    assert (head.type, texts(rest)) == (EventType.GTID, ["BEGIN", "COMMIT"])
    ((kept,),) = made_for("mysql-5.6", statement(text, collations=(33, 33, 33)), account_statements="keep")
    assert texts([kept]) == [text]


def test_statistics_that_the_target_does_not_have_leave_an_empty_transaction() -> None:
    ((*made,),) = made_for("mysql-5.6", ANONYMOUS, statement("ANALYZE TABLE t UPDATE HISTOGRAM ON a"))
    assert texts(made) == ["BEGIN", "COMMIT"]
    assert text_made("ANALYZE TABLE t") == "ANALYZE TABLE t"


def test_events_of_group_replication_are_left_out() -> None:
    context, change = Event(EventType.TRANSACTION_CONTEXT, bytes(30)), Event(EventType.VIEW_CHANGE, bytes(52))
    assert types(made_for("mysql-5.6", GTID, context, *ROW_GROUP)[0]) == [2, 19, 30, 16]
    assert types(made_for("mysql-5.6", GTID, BEGIN, change, COMMIT)[0]) == [2, 2]
    assert types(made_for("mysql-5.7", GTID, BEGIN, change, COMMIT)[0]) == [2, 37, 2]


def test_a_type_of_event_that_nobody_knows_is_named() -> None:
    assert stop_of(BEGIN, Event(77, b""), XID).name == "event_not_in_target"


def test_damaged_events_are_named() -> None:
    for group in ((BEGIN, Event(EventType.TABLE_MAP, TABLE.body[:12]), XID), (Event(EventType.QUERY, b"\1"),)):
        assert stop_of(*group).name == "statement_not_parsed"
    assert stop_of(Event(EventType.GTID, b"\1\2"), BEGIN, XID, gtids="keep").name == "statement_not_parsed"
    cut = (*xa(one_phase=True)[:-1], Event(EventType.XA_PREPARE, b"\1"))
    assert stop_of(*cut).name == "statement_not_parsed"


# ---- which groups ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["5.6.51-log", "5.6.24", "5.5.62"])
def test_a_source_that_is_no_newer_is_left_as_it_is(version: str) -> None:
    group = group_of(*ROW_GROUP, version=version)
    assert TargetRules(settings()).plan(group) == [OutGroup([Copy(group.start, group.stop)], "new")]
    group = group_of(GTID, *ROW_GROUP, version=version)
    assert TargetRules(settings()).plan(group) == [OutGroup([Copy(group.start, group.stop)], "source")]


def test_what_stays_as_it_is_of_a_long_transaction_is_one_copy() -> None:
    group = group_of(ANONYMOUS, BEGIN, TABLE, rows(), rows(), rows(), XID)
    (outgroup,) = TargetRules(settings()).plan(group)
    begin, *rest = outgroup.pieces
    assert not isinstance(begin, Copy)
    assert rest == [Copy(list(group.events)[2].offset, group.stop)]


@pytest.mark.parametrize(
    ("target", "gtids", "head", "made"),
    [
        ("mysql-5.6", "keep", GTID, [33, 2, 2]),
        ("mysql-5.6", "keep", ANONYMOUS, [34, 2, 2]),
        ("mysql-5.6", "keep", tagged("blue"), None),
        ("mysql-5.6", "anonymous", GTID, [2, 2]),
        ("mysql-5.6", "anonymous", tagged("blue"), [2, 2]),
        ("mysql-5.6", "assign", ANONYMOUS, [2, 2]),
        ("mysql-8.4", "keep", tagged("blue"), [42, 2, 2]),
        ("mysql-5.5", "keep", GTID, None),
    ],
)
def test_what_is_left_out_leaves_its_gtid(target: str, gtids: str, head: Event, made: list[int] | None) -> None:
    rules = TargetRules(settings(target, gtids=gtids))
    group = group_of(head, BEGIN, table_map(245), rows(), XID)
    empty = OutGroup([New(2, 0, 1, 1, b"BEGIN"), New(2, 0, 1, 1, b"COMMIT")], "new")
    found = rules.in_place_of(group, empty)
    assert [types(made_of(group, outgroup)) for outgroup in found] == ([made] if made is not None else [])
    if made is not None:
        assert found[0].gtid == ("source" if len(made) == 3 else "new")
        assert made[0] != 33 or len(made_of(group, found[0])[0].body) == 25
    # without a GTID event in front nobody waits for it
    bare = group_of(BEGIN, XID)
    assert rules.in_place_of(bare, empty) == ([empty] if target == "mysql-5.6" and gtids != "keep" else [])


class Recorder:
    """Rules behind these, which see what came of the group and cut each into single events."""

    wants_statements = False
    look_at = bytes(256)

    def __init__(self) -> None:
        self.seen: list[list[Event]] = []
        self.told: list[str] = []

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        self.seen.append([Event(event.type, group.body(event)) for event in group.events])
        if any(b"stop" in event.body for event in self.seen[-1]):
            raise Untranslatable(stop_of(Event(77, b"")))
        return [OutGroup([Copy(event.offset, event.offset + event.length)], "new") for event in group.events]

    def skipped(self, group: SourceGroup) -> None:
        self.told.append(f"skipped {group.start}")

    def source_started(self) -> None:
        self.told.append("started")

    def source_went_on(self, *, decided: bool) -> None:
        self.told.append(f"went on, {decided}")

    def state(self) -> bytes:
        return bytes((len(self.seen),))

    def restore(self, state: bytes) -> None:
        self.told.append(f"restored {state.hex()}")


def test_rules_behind_these_see_what_the_target_will_see() -> None:
    recorder = Recorder()
    rules = TargetRules(settings(), recorder)
    made = plan(rules, ANONYMOUS, payload(BEGIN, TABLE, rows(), XID))
    assert types(recorder.seen[0]) == [2, 19, 30, 16]
    assert made == [[event] for event in recorder.seen[0]]
    rules.skipped(group_of(*ROW_GROUP))
    rules.source_started()
    rules.source_went_on(decided=True)
    assert (rules.state(), recorder.told) == (b"\1", ["skipped 1000", "started", "went on, True"])


def test_what_they_copy_is_the_sources_where_nothing_changed() -> None:
    group = group_of(ANONYMOUS, *ROW_GROUP)
    made = TargetRules(settings(), Recorder()).plan(group)
    assert [outgroup.pieces[0] for outgroup in made[1:]] == [
        Copy(event.offset, event.offset + event.length) for event in group.events[2:]
    ]


def test_they_have_learned_nothing_where_the_second_of_two_stops() -> None:
    recorder = Recorder()
    with pytest.raises(Untranslatable):
        plan(TargetRules(settings(), recorder), ANONYMOUS, BEGIN, CREATED, Event(EventType.ROWS_QUERY, b"stop"), XID)
    assert recorder.told == ["restored 00"]


def test_the_rules_for_mysql_may_stand_behind_these() -> None:
    rules = TargetRules(
        settings(gtids="assign", engines="innodb"), MysqlRules(settings(gtids="assign", engines="innodb"))
    )
    ((made,),) = plan(rules, ANONYMOUS, statement("CREATE TABLE t (a TIMESTAMP) ENGINE=MyISAM", explicit=1))
    assert texts([made]) == ["CREATE TABLE t (a TIMESTAMP NULL) ENGINE=InnoDB"]
    other = TargetRules(
        settings(gtids="assign", engines="innodb"), MysqlRules(settings(gtids="assign", engines="innodb"))
    )
    other.restore(rules.state())
    assert other.state() == rules.state() != b""
