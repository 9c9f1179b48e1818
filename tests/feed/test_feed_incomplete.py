"""A directory of binlogs that is being copied, in which the next file is there before all of the one before it."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.read_finding import FileLost
from relay.binlog_tables.plan.recorded import reported_schema
from tests.conftest import ServerFactory
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("name", ["mysql56", "mysql97", "mariadb"])
@pytest.mark.parametrize("first", ["all at once", "what is there"])
def test_a_feed_waits_for_the_rest_of_a_file_and_then_has_its_rows_and_its_columns(
    tmp_path: Path, servers: ServerFactory, name: str, first: str
) -> None:
    server = servers(name)
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, a INT)"])
    server.execute_many(["INSERT INTO shop.t VALUES (1, 1)"])
    cut = server.master_status().position
    server.execute_many(
        [
            "INSERT INTO shop.t VALUES (2, 2)",
            "ALTER TABLE shop.t CHANGE a b INT",
            "FLUSH BINARY LOGS",
            "INSERT INTO shop.t VALUES (3, 3)",
        ]
    )
    whole = copied_binlogs(server, tmp_path / "whole")
    copies = tmp_path / "copies"
    copies.mkdir()
    names = sorted(one.name for one in whole.iterdir())
    data = (whole / names[0]).read_bytes()
    (copies / names[0]).write_bytes(data[:cut])
    feed = SmallFeed(tmp_path / "feed", copies, "shop", assume_empty=True)
    if first == "what is there":
        assert feed.run() is None
    for one in names[1:]:
        shutil.copy(whole / one, copies)
    for _ in range(2):
        with pytest.raises(FileLost, match=f"file_incomplete in {names[0]} at {cut}: .*Copy it again"):
            feed.run()
    (copies / names[0]).write_bytes(data)
    assert feed.run() is None
    current = feed.lake().open("current", "shop", "t")
    assert current is not None
    with current.scan(["id", "b"]) as reader:
        assert sorted(reader.read_all().to_pylist(), key=lambda row: row["id"]) == [
            {"id": n, "b": n} for n in (1, 2, 3)
        ]


def test_a_definition_in_the_rest_of_a_file_is_seen_by_a_process_that_has_looked_behind_it(
    tmp_path: Path, servers: ServerFactory
) -> None:
    server = servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, a INT)"])
    cut = server.master_status().position
    server.execute_many(["ALTER TABLE shop.t CHANGE a b INT", "FLUSH BINARY LOGS", "INSERT INTO shop.t VALUES (3, 3)"])
    copies = copied_binlogs(server, tmp_path / "copies")
    first, second = sorted(copies.iterdir())[:2]
    data, size = first.read_bytes(), second.stat().st_size
    first.write_bytes(data[:cut])
    names = []
    for _ in range(2):
        schema = reported_schema(store_of(str(copies)), str(copies), second.name, size)
        table = schema.table("shop", "t", second.name, size)
        names.append([column.name for column in table.columns] if table is not None else None)
        first.write_bytes(data)
    assert names == [None, ["id", "b"]]
