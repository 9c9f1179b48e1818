"""Where a feed begins that is in no lake yet, and how it goes on when it had nothing to feed at first."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> list[Path]:
    """The binlogs before a table has any row, and when it has one and two."""
    directory = tmp_path_factory.mktemp("start")
    server: Server = module_servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(["CREATE DATABASE x", "CREATE TABLE x.a (id INT PRIMARY KEY)"])
    found = [copied_binlogs(server, directory / "0")]
    for number in (1, 2):
        server.execute_many([f"INSERT INTO x.a VALUES ({number})"])
        found.append(copied_binlogs(server, directory / str(number)))
    return found


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_feed_that_begins_at_the_latest_misses_nothing_between_its_first_runs(
    tmp_path: Path, stages: list[Path], format: str
) -> None:
    archive = tmp_path / "binlogs"
    shutil.copytree(stages[0], archive)
    feed = SmallFeed(tmp_path / "feed", archive, "x", start="latest", format=format)
    assert feed.run() is None
    shutil.copytree(stages[1], archive, dirs_exist_ok=True)
    assert feed.run() is None
    shutil.copytree(stages[2], archive, dirs_exist_ok=True)
    assert feed.run() is None
    assert [one["after"] for one in feed.rows("a", "changes") or []] == ['{"id":1}', '{"id":2}']


def test_other_settings_before_there_is_a_table_miss_nothing(tmp_path: Path, stages: list[Path]) -> None:
    archive = tmp_path / "binlogs"
    shutil.copytree(stages[0], archive)
    target = str(tmp_path / "lake")
    for stage, tables in enumerate((["x.*"], ["x.*", "y.*"])):
        shutil.copytree(stages[stage], archive, dirs_exist_ok=True)
        feed = SmallFeed(tmp_path / "feed", archive, "x", start="latest", target=target, tables=tables)
        assert feed.run() is None
    assert [one["after"] for one in feed.rows("a", "changes") or []] == ['{"id":1}']


def test_a_feed_begins_at_the_earliest_beside_one_that_has_no_table_yet(tmp_path: Path, stages: list[Path]) -> None:
    target = str(tmp_path / "lake")
    assert SmallFeed(tmp_path / "other", stages[1], "x", target=target, tables=["x.later"]).run() is None
    feed = SmallFeed(tmp_path / "feed", stages[2], "x", target=target)
    assert feed.run() is None
    assert [one["id"] for one in feed.rows("a") or []] == [1, 2]
