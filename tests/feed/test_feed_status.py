"""The status of a feed says what is known, and nothing more: of the relay, of tables that were removed, of patterns without a table."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deltalake import DeltaTable

from deploy.servers import Server
from relay.archive.storage.files import LOCK_NAME
from relay.feed.lake.iceberg_lake import IcebergLake
from tests.conftest import ServerFactory
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> Path:
    server: Server = module_servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(
        ["CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)",
         "INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (2)"]
    )  # fmt: skip
    return copied_binlogs(server, tmp_path_factory.mktemp("status") / "binlogs")


def fed(tmp_path: Path, archive: Path, **more: object) -> SmallFeed:
    feed = SmallFeed(tmp_path, archive, "shop", **{"on_trouble": "stop-table", **more})
    assert feed.run() is None
    return feed


def command(feed: SmallFeed, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "relay", "feed", *words, "--config", str(feed.config)], capture_output=True, text=True
    )


def copy_of_a_relays_archive(tmp_path: Path, archive: Path) -> Path:
    """Return an archive that no relay has open."""
    made = tmp_path / "archive"
    shutil.copytree(archive, made)
    (made / LOCK_NAME).touch()
    return made


@pytest.mark.parametrize("kind", ["current", "changes"])
def test_a_table_that_somebody_removed_is_set_aside_by_name(tmp_path: Path, archive: Path, kind: str) -> None:
    feed = fed(tmp_path, archive)
    shutil.rmtree(tmp_path / "lake" / kind / "shop" / "t")
    done = command(feed, "--once")
    assert done.returncode == 1
    assert re.search(
        rf"shop\.t: set aside at .* table_removed: .*{kind}/shop/t, and has it no more.* feed snapshot", done.stderr
    )


def test_a_table_of_iceberg_that_somebody_removed_is_set_aside(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, format="iceberg")
    lake = feed.lake()
    assert isinstance(lake, IcebergLake)
    lake._catalog.drop_table(("shop", "t"))
    assert "table_removed" in command(feed, "--once").stderr


def test_the_other_tables_are_fed_when_one_was_removed(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive)
    shutil.rmtree(tmp_path / "lake/current/shop/t")
    assert feed.run() is None
    assert [one["id"] for one in feed.rows("u") or []] == [2] and feed.rows("t") is None


def test_the_status_shows_a_removed_table_and_writes_nothing(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive)
    shutil.rmtree(tmp_path / "lake/current/shop/t")
    before = DeltaTable(tmp_path / "lake" / "_feed").version()
    status = command(feed, "status")
    assert status.returncode == 1 and "shop.t: set aside" in status.stdout
    assert DeltaTable(tmp_path / "lake" / "_feed").version() == before


def test_a_removed_table_stops_a_feed_that_stops_for_each_trouble(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, on_trouble="stop-feed")
    shutil.rmtree(tmp_path / "lake/current/shop/t")
    stop = feed.run()
    assert stop is not None and stop.name == "table_removed" and stop.table == "shop.t"


def test_a_pattern_that_matches_no_table_is_named_and_ends_with_1(tmp_path: Path, archive: Path) -> None:
    feed = SmallFeed(tmp_path, archive, "shop", tables=["shp.*", "shop.*"])
    once, status = command(feed, "--once"), command(feed, "status")
    assert once.returncode == status.returncode == 1
    for text in (once.stderr, status.stdout):
        assert "No table of the archive matches 'shp.*' of `tables`" in text
    assert [one["id"] for one in feed.rows("t") or []] == [1]


def test_a_finding_is_an_object_of_its_own_in_json(tmp_path: Path, archive: Path) -> None:
    feed = SmallFeed(tmp_path, archive, "shop", tables=["shp.*"])
    [found] = [json.loads(line) for line in command(feed, "status", "--json").stdout.splitlines()]
    assert found["finding"].startswith("No table of the archive matches")


def test_a_dead_relay_is_told_and_no_lag_is_claimed(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, copy_of_a_relays_archive(tmp_path, archive))
    status = command(feed, "status")
    assert status.returncode == 1
    assert "No relay on this machine has the archive open" in status.stdout
    assert "t: current at" in status.stdout and "behind the archive 0 bytes" in status.stdout


def test_the_lag_against_the_source_is_null_where_nobody_knows_it(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive)
    status = command(feed, "status", "--json")
    assert status.returncode == 0
    assert {(one["source_behind_s"], one["relay_follows"]) for one in map(json.loads, status.stdout.splitlines())} == {
        (None, None)
    }


def test_the_report_of_a_feed_whose_relay_is_dead_is_not_green(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, copy_of_a_relays_archive(tmp_path, archive))
    assert command(feed, "report", "--out", str(tmp_path / "page.html")).returncode == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "No relay on this machine has the archive open" in page and "as the archive has them" not in page


def test_the_report_claims_no_more_than_that_tables_are_as_the_archive_has_them(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive)
    assert command(feed, "report", "--out", str(tmp_path / "page.html")).returncode == 0
    assert "All 2 tables are as the archive has them" in (tmp_path / "page.html").read_text(encoding="utf-8")
