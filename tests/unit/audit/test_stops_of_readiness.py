"""What the audit `readiness` finds in a statement or an event, and what the rules of views stop at, have the same name."""

from dataclasses import replace
from typing import Final
from uuid import UUID

import pytest

from protocol.sql.kind import Purpose, kind_of
from relay.audit.readiness.check import Check
from relay.audit.readiness.checks import ALL, found_in
from relay.audit.readiness.events import CHECKS
from relay.audit.readiness.logged_statement import LoggedStatement
from relay.view.rules.definition_rules import define
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.refused.replicas import Replicas
from relay.view.rules.refused.written_statement import ReplicaStatements
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.stops.server_differences import EVENTS, password_hash
from relay.view.stops.stop_reason import Untranslatable
from tests.sql_verdicts.corpus import Said, kept_statements
from tests.sql_verdicts.readers import HISTORY

SOURCE = (5, 6, 24)
SETTINGS = ViewSettings("v", "assign", UUID(int=1), account_statements="keep")
REPLICAS = Replicas(SETTINGS.target_version, frozenset())
MODE_AND_UTF8MB4 = b"\1" + bytes(8) + b"\4" + b"\x2d\0" * 3
STOPS = frozenset(check.stop for check in ALL if check.stop)
OF_EVENTS = frozenset(check.stop for check in CHECKS if check.stop)
DECIDED: Final = {
    "engine_not_supported": "A MySQL source replaces engines that it does not have, so a view stops at FEDERATED alone.",
}
"""Names of stops that readiness has where a view goes on, and why."""


NO_BLANK: Final = b"\xc2\xa0"
"""A blank for clients of latin1 only, in UTF-8: a client of utf8mb4, as here, gets an error of its server."""


def sample() -> list[Said]:
    said_so = (said for said in kept_statements()[::5] if HISTORY not in said.statement)
    return [said for said in said_so if not said.statement.startswith(NO_BLANK)]


def stop_of_view(statement: bytes) -> str:
    query = LoggedQuery(b"", statement, 7, 0, b"shop", MODE_AND_UTF8MB4, ".".join(map(str, SOURCE)))
    try:
        if kind_of(statement).purpose is Purpose.ACCOUNTS:
            stop = password_hash(query, SOURCE, SETTINGS.target_version)
            return "" if stop is None else stop.reason.name
        made = ReplicaStatements(REPLICAS).text_of(query)
        define(query if made == statement else replace(query, raw=made), SETTINGS)
    except Untranslatable as stopped:
        return stopped.reason.name
    return ""


def stops_of_readiness(statement: bytes) -> set[str]:
    text = statement.decode("utf-8", "backslashreplace")
    return {check.stop for check in found_in(LoggedStatement(text, "shop"), "mysql") if check.stop}


def test_statements_have_the_same_stop_for_both_or_none() -> None:
    """Where a view stops for a reason that readiness leaves to it, that is the first reason, and others may follow."""
    differ = []
    for said in sample():
        stop, found = stop_of_view(said.statement), stops_of_readiness(said.statement)
        missing = {stop} & STOPS - found
        more = found - {stop} - set(DECIDED) if stop in STOPS or not stop else set()
        if missing or more:
            differ.append((said.statement, stop, found))
    assert not differ


def test_the_sample_has_a_statement_for_each_stop() -> None:
    assert {stop for said in sample() for stop in stops_of_readiness(said.statement)} == STOPS - OF_EVENTS


@pytest.mark.parametrize("check", [check for check in CHECKS if check.stop], ids=lambda check: check.name)
def test_events_have_the_same_stop_for_both(check: Check) -> None:
    look_at, types = MysqlRules(SETTINGS).look_at, CHECKS[check]
    difference = next(one for one in EVENTS if one.types == types)
    assert all(look_at[kind] for kind in types)
    assert {difference.stop(kind).reason.name for kind in types} == {check.stop}
