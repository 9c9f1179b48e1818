"""CALL binlog_relay.NAME(...): the procedures that there are, and what is said of others."""

import pytest

from protocol.errors import StatementRefused
from protocol.statements import SourceFacts, StatementSession, answer_statement
from protocol.statements.requests import AcceptGap, FindViewPlace, ListViews, RepairFiles, Request, ScrubNow, SkipInView

FACTS = SourceFacts("mysql", "5.6.24-log", 3)
NOW = 1_700_000_000.0


def answered(text: str, *, is_admin: bool = True) -> object:
    return answer_statement(text, StatementSession(FACTS, 42, is_admin=is_admin), NOW)


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("CALL binlog_relay.repair()", RepairFiles()),
        ("CALL binlog_relay.repair('mysql-bin.000007')", RepairFiles("mysql-bin.000007")),
        ("CALL binlog_relay.scrub()", ScrubNow()),
        ("CALL binlog_relay.accept_gap()", AcceptGap()),
        ("call Binlog_Relay . Accept_Gap;", AcceptGap()),
        ("CALL `binlog_relay`.`accept_gap` ( )", AcceptGap()),
        ("CALL accept_gap()", AcceptGap()),
        ("CALL binlog_relay.accept_gap('mysql-bin.000007')", AcceptGap("mysql-bin.000007", 4)),
        ("CALL binlog_relay.accept_gap('mysql-bin.000007', 120)", AcceptGap("mysql-bin.000007", 120)),
        ("CALL binlog_relay.view_list()", ListViews()),
        ("CALL binlog_relay.view_find('v', 'source', 'a.000007', 120)", FindViewPlace("v", "source", "a.000007", 120)),
        ("CALL binlog_relay.view_find('v', 'View', 'a.000007', 120)", FindViewPlace("v", "view", "a.000007", 120)),
        ("CALL binlog_relay.view_find('v', 'GTID', 'uuid:5')", FindViewPlace("v", "gtid", "uuid:5")),
        ("CALL binlog_relay.view_skip('v', 'a.000007', 120)", SkipInView("v", "a.000007", 120)),
    ],
)
def test_a_procedure_is_a_request_with_its_arguments(text: str, request_: Request) -> None:
    assert answered(text) == request_


@pytest.mark.parametrize(
    ("text", "number", "says"),
    [
        ("CALL binlog_relay.repair_all()", 1305, "PROCEDURE binlog_relay.repair_all does not exist"),
        ("CALL sys.accept_gap()", 1305, "PROCEDURE sys.accept_gap does not exist; binlog-relay has binlog_relay."),
        ("CALL nothing()", 1305, "PROCEDURE nothing does not exist"),
        ("CALL binlog_relay.accept_gap('a.000001', 4, 5)", 1318, "expected 0 to 2, got 3"),
        ("CALL binlog_relay.accept_gap(4)", 1210, "argument 1 is to be a text"),
        ("CALL binlog_relay.accept_gap('mysql-bin.000007', 'x')", 1210, "argument 2 is to be a number"),
        ("CALL binlog_relay.accept_gap('../x')", 1210, "not a binlog file name"),
        ("CALL binlog_relay.accept_gap(NULL)", 1210, "argument 1 is to be a text"),
        ("CALL binlog_relay.view_find('v')", 1318, "expected 3 to 4, got 1"),
        ("CALL binlog_relay.view_find('v', 'source', 'a.000007')", 1210, "'source' or 'view'"),
        ("CALL binlog_relay.view_find('v', 'gtid', 'uuid:5', 4)", 1210, "'source' or 'view'"),
        ("CALL binlog_relay.view_find('v', 'x', 'a.000007', 4)", 1210, "'source' or 'view'"),
        ("CALL binlog_relay.view_find('v', 'source', '../a.000007', 4)", 1210, "not a binlog file name"),
        ("CALL binlog_relay.view_find('v', 'source', 'a.000007', '4')", 1210, "argument 4 is to be a number"),
        ("CALL binlog_relay.view_skip('v', 'a.000007')", 1318, "expected 3 to 3, got 2"),
        ("CALL binlog_relay.view_skip('v', '/a.000007', 4)", 1210, "not a binlog file name"),
        ("CALL binlog_relay.", 1064, "does not understand"),
        ("CALL a.b.c()", 1064, "does not understand"),
        ("CALL 'a'()", 1064, "does not understand"),
        ("CALL binlog_relay.accept_gap(", 1064, "does not understand"),
        ("CALL binlog_relay.accept_gap )", 1064, "does not understand"),
        ("CALL binlog_relay.accept_gap('a' 'b'", 1064, "does not understand"),
    ],
)
def test_what_is_no_procedure_is_refused_by_name(text: str, number: int, says: str) -> None:
    with pytest.raises(StatementRefused) as refused:
        answered(text)
    assert (refused.value.number, says in refused.value.what) == (number, True), refused.value.what


@pytest.mark.parametrize("call", ["accept_gap()", "view_skip('v', 'a.000007', 4)"])
def test_only_an_admin_decides(call: str) -> None:
    with pytest.raises(StatementRefused) as refused:
        answered(f"CALL binlog_relay.{call}", is_admin=False)
    assert refused.value.number == 1227


def test_whoever_may_log_in_looks_at_views() -> None:
    assert answered("CALL binlog_relay.view_list()", is_admin=False) == ListViews()
