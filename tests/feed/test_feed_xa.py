"""XA transactions that were prepared before what a table begins with, and committed behind it: it is told that rows are missing."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from relay.feed.command.feed_command import SnapshotRequest
from relay.feed.feed_config import FeedSource, load_feed_config
from relay.feed.feed_run import opened_engine
from relay.feed.lake.lake_table import STALE_REASON
from relay.feed.snapshot.snapshot_run import run_snapshots
from tests.conftest import ServerFactory
from tests.support.feed_lake import SmallFeed, copied_binlogs
from tests.support.source_proof import feed_proof_of

pytestmark = pytest.mark.interop

_TABLES = ("a", "b", "c")
_BEFORE = "XA COMMIT of a transaction that was prepared before"


@pytest.fixture(params=["mysql97", "mariadb"])
def server(request: pytest.FixtureRequest, servers: ServerFactory) -> Server:
    server: Server = servers(request.param)
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(["CREATE DATABASE x", *(f"CREATE TABLE x.{one} (id INT PRIMARY KEY)" for one in _TABLES)])
    server.sql(f"GRANT SELECT, REPLICATION CLIENT ON *.* TO '{server.replication_user}'@'%'")
    return server


@contextlib.contextmanager
def prepared(server: Server, name: str, table: str) -> Iterator[str]:
    """A row of a transaction that is prepared; what ends it is of the same connection."""
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        for one in (
            f"XA START '{name}'",
            f"INSERT INTO x.{table} VALUES (7)",
            f"XA END '{name}'",
            f"XA PREPARE '{name}'",
        ):
            cursor.execute(one)
        yield name
        cursor.execute(f"XA COMMIT '{name}'")


def test_a_dump_between_leaves_a_table_that_is_stale_from_the_commit(tmp_path: Path, server: Server) -> None:
    archive = server.binlogs()[0].parent
    feed = SmallFeed(tmp_path, archive, "x", modes=["current"])
    source = FeedSource(
        host="127.0.0.1",
        port=server.port,
        user=server.replication_user,
        password=SecretStr(server.replication_password),
        **feed_proof_of(server),
    )
    with prepared(server, "one", "a"):
        server.execute_many(["FLUSH BINARY LOGS", "INSERT INTO x.b VALUES (1)"])
        # The server itself does not change, so that it has what a dump would.
        end = server.master_status()
        dumped = SnapshotRequest(("x.a", "x.b"), False, f"127.0.0.1:{server.port}", f"{end.file}:{end.position}")
        with opened_engine(load_feed_config(feed.config)) as engine:
            run_snapshots(engine, source, dumped, print)
        assert not feed.property("a", STALE_REASON)
    assert feed.run() is None
    assert feed.rows("a") == []  # nobody would know of the row without the mark
    assert feed.property("a", STALE_REASON) == _BEFORE
    assert not feed.property("b", STALE_REASON)


def test_what_was_prepared_before_the_archive_may_be_of_any_table(tmp_path: Path, server: Server) -> None:
    with prepared(server, "one", "a"):
        server.execute_many(["FLUSH BINARY LOGS", *(f"DROP TABLE x.{one}" for one in "bc")])
        server.execute_many(["CREATE TABLE x.b (id INT PRIMARY KEY)", "INSERT INTO x.b VALUES (1)"])
    binlogs = copied_binlogs(server, tmp_path / "binlogs")
    min(one for one in binlogs.iterdir()).unlink()
    feed = SmallFeed(tmp_path, binlogs, "x", modes=["current"])
    assert feed.run() is None
    assert feed.property("b", STALE_REASON) == f"{_BEFORE} the archive begins"
