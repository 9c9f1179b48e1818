"""Monitors, failover tools and readers of binlogs ask the relay what they ask a server, and get what that server answers."""

import contextlib
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mysql.connector
import pytest

from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until
from tests.support.described_answer import Asker, DescribedAnswer
from tests.support.monitor_statements import DENIED, EMPTY, FACTS, PROCESSES, SCHEMA, SHOWN, SHOWN_WITH_SIZES, STATUS
from tests.support.relay_process import RelayProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

SOURCES = ("mysql56", "mysql97", "mariadb")
ADMIN, PASSWORD = "watcher", "watcher-password"
# No client tells a LONG from a LONGLONG, or a DOUBLE from a DECIMAL, by the text.
KINDS = dict.fromkeys((1, 2, 3, 8, 9, 13), "integer") | dict.fromkeys((0, 4, 5, 246), "real")
KINDS |= dict.fromkeys((6, 15, 247, 248, 249, 250, 251, 252, 253, 254), "text") | dict.fromkeys((7, 10, 11, 12), "time")
SHOP = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT UNSIGNED NOT NULL AUTO_INCREMENT, customer BIGINT UNSIGNED, amount DECIMAL(10,2) NOT NULL, "
    "state ENUM('new','paid''d') CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL, note VARCHAR(40) CHARACTER SET utf8mb4 "
    "COLLATE utf8mb4_bin, body TEXT CHARACTER SET latin1 COLLATE latin1_swedish_ci, seen DATETIME(3), f DOUBLE, flags BIT(4), "
    "PRIMARY KEY (id), UNIQUE KEY by_note (note), KEY by_customer (customer, seen))",
    "CREATE TABLE shop.empty_one (a TINYINT NOT NULL, b CHAR(3) CHARACTER SET latin1 COLLATE latin1_swedish_ci)",
)


@pytest.fixture(scope="module", params=SOURCES)
def chain(request: pytest.FixtureRequest, module_chains: ChainFactory) -> Chain:
    """A source with tables that the relay may see, and a relay that has recorded them."""
    source_name: str = request.param
    account = {"user": ADMIN, "password": PASSWORD, "admin": True}
    made = module_chains(source_name, sections={"source": {"record_schema": True}, "[account]": account})
    user = made.source.replication_user
    made.source.execute_many([f"GRANT REFERENCES ON *.* TO '{user}'@'%'", *SHOP])
    end = made.source.master_status()
    made.relay.wait_archived(end.file, end.position)
    wait_until(lambda: recorded(made.relay), "the relay has recorded the source's tables")
    return made


def recorded(relay: RelayProcess) -> bool:
    asked = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'shop'"
    with contextlib.closing(Asker(relay.port, ADMIN, PASSWORD)) as asker:
        return asker.ask(asked).rows in ((("2",),), ((b"2",),))


@pytest.fixture
def askers(chain: Chain) -> Iterator[tuple[Asker, Asker]]:
    """The source, as root, and the relay, as an admin."""
    with (
        contextlib.closing(Asker(chain.source.port, "root", "", charset="utf8mb4")) as source,
        contextlib.closing(Asker(chain.relay.port, ADMIN, PASSWORD, charset="utf8mb4")) as relay,
    ):
        yield source, relay


def statements(by_tool: dict[str, list[str]]) -> list[str]:
    return list(itertools.chain.from_iterable(by_tool.values()))


def columns(answer: DescribedAnswer) -> list[tuple[str, str]]:
    return [(column.name, KINDS[column.kind]) for column in answer.columns]


def comparable(statement: str, answer: DescribedAnswer) -> list[tuple[Any, ...]]:
    """Its rows; sorted where the statement orders nothing: MySQL 9.7 then answers in an order that differs between two
    servers with the same tables."""
    ordered = statement.startswith("SHOW ") or "ORDER BY" in statement.upper()
    return list(answer.rows) if ordered else sorted(answer.rows, key=repr)


def differences(askers: tuple[Asker, Asker], asked: list[str], *, rows: bool = False) -> list[str]:
    source, relay = askers
    found = []
    for statement in asked:
        expected, got = source.ask(statement), relay.ask(statement)
        if expected.error or got.error:
            if expected.error != got.error:
                found.append(f"{statement}: {expected.error} {expected.message}, not {got.error} {got.message}")
            continue
        if columns(expected) != columns(got):
            found.append(f"{statement}:\n    {columns(expected)}, not\n    {columns(got)}")
        if rows and comparable(statement, expected) != comparable(statement, got):
            found.append(f"{statement}:\n    {expected.rows}, not\n    {got.rows}")
    return found


@pytest.mark.parametrize("asked", [FACTS, SCHEMA, SHOWN], ids=["facts", "schema", "shown"])
def test_what_is_the_sources_is_answered_as_the_source_answers(
    askers: tuple[Asker, Asker], asked: dict[str, list[str]]
) -> None:
    found = differences(askers, statements(asked), rows=True)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "asked", [PROCESSES, EMPTY, STATUS, SHOWN_WITH_SIZES], ids=["processes", "empty", "status", "sizes"]
)
def test_what_is_the_relays_own_has_the_sources_columns(
    askers: tuple[Asker, Asker], asked: dict[str, list[str]]
) -> None:
    found = differences(askers, statements(asked))
    assert not found, "\n".join(found)


def test_what_a_replicas_account_may_not_read_is_denied_as_at_the_source(chain: Chain) -> None:
    user, password = chain.source.replication_user, chain.source.replication_password
    with (
        contextlib.closing(Asker(chain.source.port, user, password)) as source,
        contextlib.closing(Asker(chain.relay.port, ADMIN, PASSWORD)) as relay,
    ):
        for statement in statements(DENIED):
            assert (source.ask(statement).error, relay.ask(statement).error) == (1142, 1142), statement


def test_two_monitors_keep_out_of_each_others_way_by_a_lock(chain: Chain) -> None:
    """As MHA does: one has the lock, the other waits for it, and has it when the first has gone; others are answered meanwhile."""
    lock = "SELECT GET_LOCK('MHA_Master_High_Availability_Monitor', {}) AS Value"
    with (
        contextlib.closing(Asker(chain.relay.port, ADMIN, PASSWORD)) as second,
        contextlib.closing(Asker(chain.relay.port, ADMIN, PASSWORD)) as bystander,
        ThreadPoolExecutor(1) as beside,
    ):
        with contextlib.closing(Asker(chain.relay.port, ADMIN, PASSWORD)) as first:
            assert first.ask(lock.format(0)).rows == (("1",),)
            assert second.ask(lock.format(0)).rows == (("0",),)
            waiting = beside.submit(second.ask, lock.format(8))
            for _ in range(20):
                assert bystander.ask("SELECT 1").rows == (("1",),)
            assert not waiting.done()
        assert waiting.result(8).rows == (("1",),)
        assert second.command(0x1F, b"")[:1] == b"\0"
        assert bystander.ask("SELECT IS_FREE_LOCK('MHA_Master_High_Availability_Monitor')").rows == (("1",),)


def test_a_prepared_statement_gives_the_same_values_as_at_the_source(chain: Chain) -> None:
    """As Go's driver, Connector/J with server-side statements and mysql2 ask; here Connector/Python does."""
    both = []
    for port, user, password in ((chain.source.port, "root", ""), (chain.relay.port, ADMIN, PASSWORD)):
        with (
            contextlib.closing(
                mysql.connector.connect(host="127.0.0.1", port=port, user=user, password=password, use_pure=True)
            ) as connection,
            contextlib.closing(connection.cursor(prepared=True)) as cursor,
        ):
            answers = []
            for statement, values in PREPARED:
                cursor.execute(statement, values)
                rows = cursor.fetchall()
                answers.append((statement, cursor.column_names, rows))
            both.append(answers)
    assert both[0] == both[1]


PREPARED = [
    ("SELECT ? AS a, ? AS b, ? AS c", (5, "it's", None)),
    ("SELECT 1, 'a', NULL, -5, 12345678901, 1.5, TRUE", ()),
    ("SELECT ? + 1 AS a, ? LIKE 'a\\_b' AS b", (41, "a_b")),
    ("SELECT CONCAT(?, '-', ?) AS c", ("\\ ' \" ?", "ü")),
    ("SELECT UNIX_TIMESTAMP(?) AS t", ("2023-11-14 22:13:20",)),
    (
        "SELECT COLUMN_NAME, COLLATION_NAME, CHARACTER_SET_NAME, COLUMN_COMMENT, COLUMN_TYPE, ORDINAL_POSITION FROM "
        "INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA=? AND TABLE_NAME=? ORDER BY ORDINAL_POSITION",
        ("shop", "orders"),
    ),
    ("SELECT COUNT(*), MAX(ORDINAL_POSITION) AS m FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = ?", ("shop",)),
    ("SHOW VARIABLES LIKE 'server\\_id'", ()),
]
