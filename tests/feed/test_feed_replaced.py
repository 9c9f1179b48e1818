"""A MariaDB logs a REPLACE as an update without the columns that it set to their defaults: the lake has them, or the table is stale."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from relay.feed.lake.lake_table import STALE_REASON
from relay.feed.replaced_in_part import UNSURE, ReplacedRows
from tests.conftest import ServerFactory
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop

_COLUMNS = "(id INT PRIMARY KEY, n INT DEFAULT 5, v VARCHAR(9) DEFAULT 'new', c TEXT, e INT)"
_ROWS = "VALUES (1, 1, 'one', 'cone', 1), (2, 2, 'two', 'ctwo', 2)"
IMAGES = ("FULL", "NOBLOB", "MINIMAL")
# Table -> what changes it; {t}: its name, {d}: another schema, where a table of that name has a trigger that replaces rows of this one.
REPLACED = {
    "replaced": "REPLACE INTO {t} (id) VALUES (1)",
    "moved": "REPLACE INTO {t} (id, e) VALUES (1, 2)",
    "chosen": "REPLACE INTO {t} (id, c) SELECT 1, 'cone'",
    "twice": "REPLACE INTO {t} (id, n) VALUES (1, 7), (2, 8), (3, 9)",
    "loaded": "LOAD DATA INFILE '{file}' REPLACE INTO TABLE {t} (id)",
    "updated": "UPDATE {t} SET n = 8 WHERE id = 1",
}
TRIGGERED = {
    "by_trigger": "INSERT INTO source_of_rows VALUES (1)",
    "by_name": "INSERT INTO {d}.by_name VALUES (1)",
    "by_column": "UPDATE source_of_rows a JOIN (SELECT 1 AS by_column) b SET a.id = 9",
    "met": "INSERT INTO {t} (id) VALUES (1) ON DUPLICATE KEY UPDATE e = 77",
}


TABLES = (*REPLACED, *TRIGGERED)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> tuple[Server, Path]:
    server: Server = module_servers("mariadb")
    server.start(server_id=1, options=["--binlog-format=ROW", "--secure-file-priv="])
    file = server.directory / "rows.txt"  # where the server may read
    file.write_text("1\n")
    for image in IMAGES:
        schema, other = image.lower(), f"{image.lower()}_other"
        statements = [f"CREATE DATABASE {other}", f"CREATE DATABASE {schema}", f"USE {schema}"]
        for table in (*REPLACED, *TRIGGERED):
            statements += [f"CREATE TABLE {table} {_COLUMNS}", f"INSERT INTO {table} {_ROWS}"]
        statements += [
            "ALTER TABLE moved ADD UNIQUE (e)",
            "CREATE TABLE source_of_rows (id INT PRIMARY KEY)",
            f"CREATE TABLE {other}.by_name (id INT PRIMARY KEY)",
            "CREATE TRIGGER a AFTER INSERT ON source_of_rows FOR EACH ROW REPLACE INTO by_trigger (id) VALUES (NEW.id)",
            f"CREATE TRIGGER {other}.b AFTER INSERT ON {other}.by_name FOR EACH ROW REPLACE INTO {schema}.by_name (id) VALUES (NEW.id)",
            "CREATE TRIGGER c AFTER UPDATE ON source_of_rows FOR EACH ROW REPLACE INTO by_column (id) VALUES (1)",
            "CREATE TRIGGER d BEFORE UPDATE ON met FOR EACH ROW SET NEW.c = 'other'",
            f"SET binlog_row_image = '{image}'",
        ]
        for table, text in (REPLACED | TRIGGERED).items():
            statements += [f"USE {other if table == 'by_name' else schema}"]
            statements += [text.format(t=table, d=other, file=file)]
        statements += ["SET binlog_row_image = 'FULL'"]
        server.execute_many(statements)
    return server, copied_binlogs(server, tmp_path_factory.mktemp("replaced") / "binlogs")


def fed(tmp_path: Path, archive: Path, schema: str, **more: Any) -> SmallFeed:
    feed = SmallFeed(tmp_path, archive, schema, modes=["current"], no_cascades=["*.*"], **more)
    assert feed.run() is None
    return feed


def differing(feed: SmallFeed, server: Server) -> set[str]:
    """The tables whose rows are not the source's."""
    found = set()
    for table in TABLES:
        names, rows = true_rows(server, feed.schema, table)
        current = feed.lake().open("current", feed.schema, table)
        assert current is not None
        with current.scan() as reader:
            if lake_rows(reader.read_all(), names) != rows:
                found.add(table)
    return found


def stale(feed: SmallFeed) -> set[str]:
    return {table for table in TABLES if feed.property(table, STALE_REASON)}


@pytest.mark.parametrize("image", IMAGES)
def test_replaced_rows_are_the_sources_and_what_may_have_been_a_trigger_makes_the_table_stale(
    tmp_path: Path, told: tuple[Server, Path], image: str
) -> None:
    feed = fed(tmp_path, told[1], image.lower())
    unsure = set(TRIGGERED) if image != "FULL" else set()
    assert differing(feed, told[0]) == unsure
    assert stale(feed) == unsure
    assert all(feed.property(table, STALE_REASON) == UNSURE for table in unsure)


def test_so_it_is_with_rows_that_do_not_fit_into_memory(tmp_path: Path, told: tuple[Server, Path]) -> None:
    assert differing(fed(tmp_path, told[1], "minimal", spool_above_kb=1), told[0]) == set(TRIGGERED)


def test_without_telling_a_replace_from_an_update_the_lake_is_wrong_in_silence(
    tmp_path: Path, told: tuple[Server, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReplacedRows, "told_apart", lambda _self, changes, _rows: changes)
    feed = fed(tmp_path, told[1], "minimal")
    assert differing(feed, told[0]) == {"replaced", "moved", "chosen", "twice", "loaded", *TRIGGERED}
    assert stale(feed) == set()


def test_a_table_that_no_trigger_replaces_can_be_left_current(tmp_path: Path, told: tuple[Server, Path]) -> None:
    assert stale(fed(tmp_path, told[1], "minimal", trusted_images=["minimal.by_*"])) == {"met"}


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> tuple[Server, Path]:
    """A MariaDB that leaves stored computed columns out of the rows of updates, also where these are whole."""
    server: Server = module_servers("mariadb118")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(
        [
            "CREATE DATABASE computed",
            "USE computed",
            "CREATE TABLE t (id INT PRIMARY KEY, n INT, s INT AS (n * 2) STORED)",
            "INSERT INTO t (id, n) VALUES (1, 1), (2, 2)",
            "UPDATE t SET n = 9 WHERE id = 2",
        ]
    )
    return server, copied_binlogs(server, tmp_path_factory.mktemp("computed") / "binlogs")


@pytest.mark.parametrize("is_told", [True, False])
def test_updates_without_a_computed_column_make_the_table_stale(
    tmp_path: Path, computed: tuple[Server, Path], monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    if not is_told:
        monkeypatch.setattr(ReplacedRows, "told_apart", lambda _self, changes, _rows: changes)
    feed = fed(tmp_path, computed[1], "computed")
    names, rows = true_rows(computed[0], "computed", "t")
    current = feed.lake().open("current", "computed", "t")
    assert current is not None
    with current.scan() as reader:
        assert lake_rows(reader.read_all(), names) != rows
    assert feed.property("t", STALE_REASON) == (UNSURE if is_told else None)
