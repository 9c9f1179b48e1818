"""Schemas and tables whose names are like something else's: each is a table of its own in the lake, with its rows."""

from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop

NAMES = [("shop.eu", "t"), ("shop", "eu.t"), ("shop", "t"), ("shop", "T"), ("shop__changes", "t"), ("shop_", "t"), ("Shop", "t"),
         (" shop", "t"), ("shop.", "t"), ("@0020shop", "t"), ("binlog_relay", "_feed"),
         ("shop/eu", "../t"), ("sh'op", "t%20")]  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> tuple[Server, Path]:
    server: Server = module_servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    for number, (schema, table) in enumerate(NAMES):
        server.execute_many(
            [
                f"CREATE DATABASE IF NOT EXISTS `{schema}`",
                f"USE `{schema}`",
                f"CREATE TABLE `{table}` (id INT PRIMARY KEY, n INT)",
                f"INSERT INTO `{table}` VALUES (1, {number}), (2, 2)",
                f"ALTER TABLE `{table}` ADD c{number} INT NOT NULL DEFAULT 5",
                f"DELETE FROM `{table}` WHERE id = 2",
            ]
        )
    return server, copied_binlogs(server, tmp_path_factory.mktemp("names") / "binlogs")


@pytest.mark.parametrize("format", ["delta", "iceberg"])
@pytest.mark.parametrize("together", [True, False])
def test_each_table_has_its_own_rows(tmp_path: Path, told: tuple[Server, Path], format: str, together: bool) -> None:
    server, archive = told
    feeds = [["*.*"]] if together else [[f"{schema}.{table}"] for schema, table in NAMES]
    for number, patterns in enumerate(feeds):
        feed = SmallFeed(tmp_path / str(number), archive, "", tables=patterns, format=format, no_cascades=["*.*"])
        assert feed.run() is None
        lake = feed.lake()
        for schema, table in NAMES if together else [NAMES[number]]:
            names, rows = true_rows(server, schema, table)
            current, changes = lake.open("current", schema, table), lake.open("changes", schema, table)
            assert current is not None, (schema, table)
            assert changes is not None
            with current.scan() as reader:
                assert lake_rows(reader.read_all(), names) == rows, (schema, table)
            assert changes.facts()["rows"] == 5
