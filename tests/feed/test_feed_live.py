"""A feed that follows: what is defined behind the place where it was opened."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from tests.conftest import ServerFactory
from tests.support.feed_lake import SmallFeed

pytestmark = pytest.mark.interop


def test_a_column_that_comes_to_a_table_while_a_feed_follows_is_there(tmp_path: Path, servers: ServerFactory) -> None:
    server = servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(["CREATE DATABASE x", "CREATE TABLE x.a (id INT PRIMARY KEY)", "INSERT INTO x.a VALUES (1)"])
    (written,) = server.binlogs()
    copied = tmp_path / "binlogs" / written.name
    copied.parent.mkdir()
    shutil.copy(written, copied)
    feed = SmallFeed(tmp_path, copied.parent, "x")
    engine = feed.open()
    try:
        while engine.step():
            pass
        server.execute_many(["ALTER TABLE x.a ADD n INT", "INSERT INTO x.a VALUES (2, 5)"])
        shutil.copy(written, copied)
        while engine.step():
            pass
    finally:
        engine.close()
        engine.let_go()
    assert [(one["id"], one["n"]) for one in feed.rows("a") or []] == [(1, None), (2, 5)]
