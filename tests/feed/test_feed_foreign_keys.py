"""MySQL from 9.6 on may log what foreign keys change, and its rows say whether it does: what is not logged makes tables stale."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from relay.feed.lake.lake_table import STALE_REASON
from tests.conftest import ServerFactory
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop

STATEMENTS = [
    "CREATE DATABASE shop",
    "USE shop",
    "CREATE TABLE parent (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE leaf (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES child (id) ON DELETE SET NULL)",
    "CREATE TABLE apart (id INT PRIMARY KEY, n INT)",
    "INSERT INTO parent VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO child VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO leaf VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO apart VALUES (1, 1)",
    "DELETE FROM parent WHERE id = 1",
    "UPDATE parent SET id = 4 WHERE id = 2",
    "UPDATE apart SET n = 2",
]
TABLES = ("apart", "child", "leaf", "parent")
ON = "--innodb-native-foreign-keys=ON"
# Who wrote the binlogs: the source's options; None: it is no replica.
WRITERS = {
    "the server carries them out": ([], None),
    "the engine does": ([ON], None),
    "a replica of a source whose engine does": ([], [ON]),
    "a replica, whose engine would, of a source whose server does": ([ON], []),
}
LOGGED = {"the server carries them out", "a replica, whose engine would, of a source whose server does"}


@pytest.fixture(scope="module", params=WRITERS)
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory
) -> Iterator[tuple[str, Server, Path]]:
    own, of_source = WRITERS[request.param]
    compressed = "--binlog-transaction-compression=ON"
    writer: Server = module_servers("mysql97").start(server_id=1, options=["--binlog-format=ROW", compressed, *own])
    written: Server = writer
    if of_source is not None:
        written = module_servers("mysql97").start(server_id=2, options=["--binlog-format=ROW", *of_source])
        writer.attach_to(written)
    written.execute_many(STATEMENTS)
    if written is not writer:
        writer.wait_for_source(written)
    yield request.param, writer, copied_binlogs(writer, tmp_path_factory.mktemp("keys") / "binlogs")
    for one in {writer, written}:
        one.stop()


def test_what_foreign_keys_changed_is_in_the_lake_or_the_tables_are_stale(
    tmp_path: Path, told: tuple[str, Server, Path]
) -> None:
    name, server, archive = told
    feed = SmallFeed(tmp_path, archive, "shop", modes=["current"])
    assert feed.run() is None
    differing, stale = set(), {table for table in TABLES if feed.property(table, STALE_REASON)}
    for table in TABLES:
        names, rows = true_rows(server, "shop", table)
        current = feed.lake().open("current", "shop", table)
        assert current is not None
        with current.scan() as reader:
            if lake_rows(reader.read_all(), names) != rows:
                differing.add(table)
    assert differing == stale == (set() if name in LOGGED else {"child", "leaf"})
