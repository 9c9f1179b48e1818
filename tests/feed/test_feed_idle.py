"""A `--once` with nothing to do opens no table, and takes none of the troubles for nothing to do."""

import shutil
import threading
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from protocol.errors import RelayError
from relay.feed import feed_run
from relay.feed.feed_config import load_feed_config
from relay.feed.lake.iceberg_lake import IcebergLake
from relay.feed.sink_table import SinkTable
from tests.conftest import ServerFactory
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop
IDLE = "nothing was to be done"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> Path:
    server: Server = module_servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(
        ["CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)",
         "CREATE DATABASE other", "CREATE TABLE other.u (id INT PRIMARY KEY, d DATE)", "FLUSH BINARY LOGS", "SET sql_mode = ''",
         "INSERT INTO other.u VALUES (1, '0000-00-00')", "INSERT INTO t VALUES (2)"]
    )  # fmt: skip
    return copied_binlogs(server, tmp_path_factory.mktemp("idle") / "binlogs")


def fed(tmp_path: Path, archive: Path, **more: object) -> SmallFeed:
    return SmallFeed(tmp_path, archive, "shop", **{"on_trouble": "stop-table", **more})


def once(feed: SmallFeed) -> str:
    """Return what a `--once` says, with the error that it ends with."""
    said: list[str] = []
    try:
        feed_run.run_feed(load_feed_config(feed.config), said.append, once=True, ended=threading.Event())
    except RelayError as error:
        said.append(str(error))
    return "\n".join(said)


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_second_once_opens_no_table(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    feed = fed(tmp_path, archive, format=format)
    once(feed)
    monkeypatch.setattr(SinkTable, "__init__", lambda *_given: pytest.fail("a table was opened"))
    assert IDLE in once(feed)


def test_new_changes_in_the_archive_are_fed(tmp_path: Path, archive: Path) -> None:
    growing = tmp_path / "binlogs"
    growing.mkdir()
    files = sorted(archive.iterdir())
    shutil.copy(files[0], growing)
    feed = fed(tmp_path, growing)
    once(feed)
    for one in files[1:]:
        shutil.copy(one, growing)
    assert IDLE not in once(feed)
    assert [one["id"] for one in feed.rows("t") or []] == [1, 2]


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_table_that_was_removed_is_noticed_though_there_is_nothing_new(
    tmp_path: Path, archive: Path, format: str
) -> None:
    feed = fed(tmp_path, archive, format=format)
    once(feed)
    lake = feed.lake()
    if isinstance(lake, IcebergLake):
        lake._catalog.drop_table(("shop", "t"))
    else:
        shutil.rmtree(tmp_path / "lake/current/shop/t")
    assert "table_removed" in once(feed)


def test_a_table_that_is_set_aside_is_named_though_there_is_nothing_new(tmp_path: Path, archive: Path) -> None:
    feed = fed(tmp_path, archive, tables=["*.*"])
    once(feed)
    assert "1 table is set aside" in once(feed)


def test_tables_that_the_settings_name_only_now_are_fed(tmp_path: Path, archive: Path) -> None:
    once(fed(tmp_path, archive, tables=["shop.*"]))
    feed = fed(tmp_path, archive, tables=["shop.*", "other.*"], invalid_dates="null")
    assert IDLE not in once(feed)


def test_changes_are_begun_for_tables_that_had_current_rows_only(tmp_path: Path, archive: Path) -> None:
    once(fed(tmp_path, archive, modes=["current"]))
    assert IDLE not in once(fed(tmp_path, archive, modes=["current", "changes"]))


def test_binlogs_that_were_replaced_by_others_of_the_same_names_are_noticed(tmp_path: Path, archive: Path) -> None:
    copy = tmp_path / "binlogs"
    shutil.copytree(archive, copy)
    feed = fed(tmp_path, copy)
    once(feed)
    for one in copy.iterdir():
        data = bytearray(one.read_bytes())
        data[4] ^= 1  # the time of the first event
        one.write_bytes(data)
    assert IDLE not in once(feed)
