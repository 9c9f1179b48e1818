"""A feed that is killed behind any of its commits: the next one has the same rows and the same changes."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from tests.conftest import ServerFactory
from tests.support.dying_lake import Died, dying_behind
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop
HISTORIES = {
    "one": ["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"],
    "renamed": ["CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)", "RENAME TABLE a TO t"],
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> Path:
    server = module_servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    for schema, statements in HISTORIES.items():
        server.execute_many([f"CREATE DATABASE {schema}", f"USE {schema}", *statements])
    return copied_binlogs(server, tmp_path_factory.mktemp("killed") / "binlogs")


@pytest.mark.parametrize(("schema", "format"), [("one", "delta"), ("one", "iceberg"), ("renamed", "delta")])
def test_no_change_is_missing_wherever_the_feed_was_killed(
    tmp_path: Path, archive: Path, schema: str, format: str
) -> None:
    whole = SmallFeed(tmp_path / "whole", archive, schema, format=format)
    with dying_behind(9999) as done:
        assert whole.run() is None
    for count in range(1, len(done) + 1):
        feed = SmallFeed(tmp_path / str(count), archive, schema, format=format)
        with pytest.raises(Died), dying_behind(count):
            feed.run()
        assert feed.run() is None
        for kind in ("current", "changes"):
            assert feed.rows("t", kind) == whole.rows("t", kind), (kind, done[:count])
        shutil.rmtree(tmp_path / str(count))
