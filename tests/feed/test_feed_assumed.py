"""Tables that are assumed to have been empty at the archive's start: with all their rows, or stale where something has none."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from relay.feed.lake.lake_table import STALE_REASON
from tests.conftest import ServerFactory
from tests.support.feed_lake import SmallFeed
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess

pytestmark = pytest.mark.interop

_AS_STATEMENT = "SET SESSION binlog_format = STATEMENT"
_AS_ROWS = "SET SESSION binlog_format = ROW"
_OF_XA = ["XA START 'a'", "INSERT INTO t VALUES (1, 1)", "XA END 'a'", "XA PREPARE 'a'", "XA COMMIT 'a'"]


SCHEMAS = ("rows_first", "named", *(f"unseen{number}" for number in range(5)))


@pytest.fixture(scope="module")
def told(
    tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory
) -> Iterator[tuple[Server, RelayProcess]]:
    """A server whose tables were made before the binlogs that there are, and a relay that asked it for them."""
    server: Server = module_servers("mysql97")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    for schema in SCHEMAS:
        tables = (f"CREATE TABLE {schema}.{name} (id INT PRIMARY KEY, v INT)" for name in ("t", "u"))
        server.execute_many([f"CREATE DATABASE {schema}", *tables])
    server.sql(f"GRANT REFERENCES ON *.* TO '{server.replication_user}'@'%'")
    server.sql("RESET BINARY LOGS AND GTIDS")
    with RelayProcess(
        tmp_path_factory.mktemp("assumed"), server, port=free_port(), sections={"source": {"record_schema": True}}
    ) as relay:
        time.sleep(2)  # until it has asked
        yield server, relay


def fed(tmp_path: Path, told: tuple[Server, RelayProcess], schema: str, *steps: list[str], **more: Any) -> SmallFeed:
    """A feed of the schema's tables, which it was run after each step."""
    server, relay = told
    feed = SmallFeed(tmp_path, relay.archive, schema, modes=["current"], assume_empty=True, no_cascades=["*.*"], **more)
    for step in steps:
        server.execute_many([f"USE {schema}", *step])
        end = server.master_status()
        relay.wait_archived(end.file, end.position)
        assert feed.run() is None
    return feed


def test_rows_before_a_definition_are_its_rows_too(tmp_path: Path, told: tuple[Server, RelayProcess]) -> None:
    statements = ["INSERT INTO t VALUES (1, 1)", "ALTER TABLE t COMMENT 'x'", "INSERT INTO t VALUES (2, 2)"]
    feed = fed(tmp_path, told, "rows_first", statements)
    assert sorted(one["id"] for one in feed.rows("t") or []) == [1, 2]
    assert not feed.property("t", STALE_REASON)


UNSEEN = [
    [[_AS_STATEMENT, "INSERT INTO t VALUES (1, 1)", _AS_ROWS, "INSERT INTO t VALUES (2, 2)"]],
    [[_AS_STATEMENT, "INSERT INTO t VALUES (1, 1)"], ["INSERT INTO t VALUES (2, 2)"]],
    [["INSERT INTO t VALUES (2, 2)", _AS_STATEMENT, "UPDATE t SET v = 9"]],
    [[*_OF_XA, "INSERT INTO t VALUES (2, 2)"]],
    [_OF_XA, ["INSERT INTO t VALUES (2, 2)"]],
]


@pytest.mark.parametrize(
    "number", range(5), ids=["a statement", "a statement before", "a statement behind", "XA", "XA before"]
)
def test_one_with_a_change_that_has_no_rows_before_its_first_row_is_stale(
    tmp_path: Path, told: tuple[Server, RelayProcess], number: int
) -> None:
    feed = fed(tmp_path, told, f"unseen{number}", *UNSEEN[number])
    assert [one["id"] for one in feed.rows("t") or []] == [2]
    assert feed.property("t", STALE_REASON)


def test_one_that_was_not_named_for_a_while_is_not_taken_for_empty(
    tmp_path: Path, told: tuple[Server, RelayProcess]
) -> None:
    assert fed(tmp_path, told, "named", ["INSERT INTO u VALUES (2, 2)"]).rows("t") is None
    fed(tmp_path, told, "named", ["INSERT INTO t VALUES (1, 1)"], exclude=["named.t"])
    feed = fed(tmp_path, told, "named", ["INSERT INTO t VALUES (2, 2)"])
    assert feed.rows("t") is None  # it waits for a snapshot
