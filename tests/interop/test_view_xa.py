"""XA transactions of a real MySQL that prepares them in groups of their own, by the rules of a view, on a real MySQL 9.7.

The source is a 9.7 without GTIDs, as no 5.7 can be had: both write XA START, XA END and XA_prepare, and mixed engines inside.
"""

from collections.abc import Sequence

import pytest

from deploy.servers import Server
from protocol.binlog.event_type import EventType
from relay.view.rules.group import OutGroup, SourceGroup
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.synthesized_events import empty_group
from relay.view.stops.stop_reason import Untranslatable
from tests.conftest import ServerFactory
from tests.interop.conftest import TrialFactory
from tests.support.rule_groups import settings
from tests.support.view_trial import REPLICA_OPTIONS
from tests.support.view_writer import AsItIs, Plans

pytestmark = pytest.mark.interop

TABLES = [
    "CREATE DATABASE d",
    "USE d",
    "CREATE TABLE i (a INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE m (a INT PRIMARY KEY) ENGINE=MyISAM",
]
INNO, BOTH = ("INSERT INTO i VALUES ({0})",), ("INSERT INTO i VALUES ({0})", "INSERT INTO m VALUES ({0})")


def xa(number: int, statements: Sequence[str], *end: str) -> list[str]:
    """An XA transaction of these statements, and how it ends."""
    name = f"'x{number}'"
    inside = [statement.format(number) for statement in statements]
    return [f"XA START {name}", *inside, f"XA END {name}", *(one.replace("?", name) for one in end)]


PREPARED_COMMIT, PREPARED_ROLLBACK = ("XA PREPARE ?", "XA COMMIT ?"), ("XA PREPARE ?", "XA ROLLBACK ?")
WORK = [
    *TABLES,
    *xa(1, INNO, *PREPARED_COMMIT),
    *xa(2, INNO, *PREPARED_ROLLBACK),
    *xa(3, INNO, "XA COMMIT ? ONE PHASE"),
    *xa(4, INNO, "XA ROLLBACK ?"),
    *xa(5, BOTH, "XA COMMIT ? ONE PHASE"),
    *xa(6, BOTH, "XA ROLLBACK ?"),
    "INSERT INTO i VALUES (7)",
]


@pytest.fixture(scope="module")
def trial_servers(module_servers: ServerFactory) -> tuple[Server, Server]:
    without_gtids = ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"]
    source = module_servers("mysql97").start(server_id=1, options=without_gtids)
    return source, module_servers("mysql97").start(server_id=2, options=list(REPLICA_OPTIONS))


class WithoutHeads:
    """What `rules` make of the groups without their Anonymous_gtid events, in whose place GTIDs are put."""

    def __init__(self, rules: Plans) -> None:
        self.rules = rules

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        events = [event for event in group.events if event.type != EventType.ANONYMOUS_GTID]
        return self.rules.plan(group._replace(start=events[0].offset, events=events))


class Skipping:
    """The rules, where somebody skips every group at which they stop. reasons: why they did."""

    def __init__(self, rules: MysqlRules) -> None:
        self.rules = rules
        self.reasons: list[str] = []

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        try:
            return self.rules.plan(group)
        except Untranslatable as error:
            self.reasons.append(error.reason.name)
            self.rules.skipped(group)
            return [empty_group(group.events[-1], None, None)]


@pytest.mark.parametrize("engines", ["keep", "innodb"])
def test_a_new_replica_ends_with_the_tables_of_the_source_and_without_a_hole(trial: TrialFactory, engines: str) -> None:
    here = trial()
    file = here.write(WORK)
    rules = MysqlRules(settings(engines=engines))
    assert here.apply(WithoutHeads(rules), file, version=90704) == 0
    assert here.tables(here.replica) == here.tables(here.source) == {"i": [(1,), (3,), (5,), (7,)], "m": [(5,), (6,)]}
    assert here.whole, here.executed


@pytest.mark.parametrize("engines", ["keep", "innodb"])
@pytest.mark.parametrize(("end", "rows"), [(PREPARED_COMMIT, [(8,)]), (PREPARED_ROLLBACK, [])])
def test_what_ends_a_transaction_that_was_skipped_stops_no_replica(
    trial: TrialFactory, engines: str, end: tuple[str, ...], rows: list[tuple[int]]
) -> None:
    here = trial()
    file = here.write([*TABLES, *xa(8, BOTH, *end), "INSERT INTO i VALUES (9)"])
    skipping = Skipping(MysqlRules(settings(engines=engines)))
    assert here.apply(WithoutHeads(skipping), file, version=90704) == 0
    assert skipping.reasons == ["xa_without_transactions"]
    assert here.tables(here.source) == {"i": [*rows, (9,)], "m": [(8,)]}
    assert here.tables(here.replica) == {"i": [(9,)], "m": []}
    assert here.whole, here.executed


@pytest.mark.parametrize("end", [PREPARED_COMMIT, ("XA COMMIT ? ONE PHASE",)])
def test_without_the_rule_the_replica_refuses_both_engines_in_one(trial: TrialFactory, end: tuple[str, ...]) -> None:
    here = trial()
    file = here.write([*TABLES, *xa(10, BOTH, *end)])
    assert here.apply(WithoutHeads(AsItIs()), file, version=90704) == 1785


def test_without_the_rule_one_that_was_rolled_back_at_once_leaves_a_hole(trial: TrialFactory) -> None:
    here = trial()
    file = here.write([*TABLES[:3], "CREATE TABLE m (a INT PRIMARY KEY) ENGINE=MEMORY", *xa(11, BOTH, "XA ROLLBACK ?")])
    assert here.apply(WithoutHeads(AsItIs()), file, version=90704) in (0, 1785)
    assert not here.whole, here.executed
