"""A MariaDB logs a REPLACE as an update without the columns that it set to their defaults: the lake has them, or the table is stale."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from relay.feed.feed_config import FeedSource
from relay.feed.lake.lake_table import SNAPSHOT, STALE_REASON
from relay.feed.replaced_in_part import UNSURE, ReplacedRows
from relay.feed.snapshot.source_rows import SourceRows
from relay.feed.snapshot.table_snapshot import TableSnapshot, begin_snapshot
from tests.conftest import ServerFactory
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop

_COLUMNS = "(id INT PRIMARY KEY, n INT DEFAULT 5, v VARCHAR(9) DEFAULT 'new', c TEXT, e INT)"
_ROWS = "VALUES (1, 1, 'one', 'cone', 1), (2, 2, 'two', 'ctwo', 2)"
IMAGES = ("FULL", "NOBLOB", "MINIMAL")
# Table -> what changes it. {d}: another schema, where a table of that name has a trigger that replaces rows of this one.
REPLACED = {
    "replaced": "REPLACE INTO {t} (id) VALUES (1)",
    "moved": "REPLACE INTO {t} (id, e) VALUES (1, 2)",
    "chosen": "REPLACE INTO {t} (id, c) SELECT 1, 'cone'",
    "twice": "REPLACE INTO {t} (id, n) VALUES (1, 7), (2, 8), (3, 9)",
    "loaded": "LOAD DATA INFILE '{file}' REPLACE INTO TABLE {t} (id)",
}
UPDATED = {"updated": "UPDATE {t} SET n = 8 WHERE id = 1"}
MET = {"met": "INSERT INTO {t} (id) VALUES (1) ON DUPLICATE KEY UPDATE n = 77"}
TRIGGERED = {
    "by_trigger": "INSERT INTO source_of_rows VALUES (1)",
    "by_name": "INSERT INTO {d}.by_name VALUES (1)",
    "by_column": "UPDATE source_of_rows a JOIN (SELECT 1 AS by_column) b SET a.id = 9",
    "set_too": "INSERT INTO {t} (id) VALUES (1) ON DUPLICATE KEY UPDATE e = 77",
    "in_function": "SELECT update_and_replace()",
}
ALL = REPLACED | UPDATED | MET | TRIGGERED
TABLES = tuple(ALL)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> tuple[Server, Path]:
    server: Server = module_servers("mariadb")
    server.start(server_id=1, options=["--binlog-format=ROW", "--secure-file-priv="])
    file = server.directory / "rows.txt"  # where the server may read
    file.write_text("1\n")
    for image in IMAGES:
        schema, other = image.lower(), f"{image.lower()}_other"
        statements = [f"CREATE DATABASE {other}", f"CREATE DATABASE {schema}", f"USE {schema}"]
        for table in ALL:
            statements += [f"CREATE TABLE {table} {_COLUMNS}", f"INSERT INTO {table} {_ROWS}"]
        statements += [
            "ALTER TABLE moved ADD UNIQUE (e)",
            "CREATE TABLE source_of_rows (id INT PRIMARY KEY)",
            f"CREATE TABLE {other}.by_name (id INT PRIMARY KEY)",
            "CREATE TRIGGER a AFTER INSERT ON source_of_rows FOR EACH ROW REPLACE INTO by_trigger (id) VALUES (NEW.id)",
            f"CREATE TRIGGER {other}.b AFTER INSERT ON {other}.by_name FOR EACH ROW REPLACE INTO {schema}.by_name (id) VALUES (NEW.id)",
            "CREATE TRIGGER c AFTER UPDATE ON source_of_rows FOR EACH ROW REPLACE INTO by_column (id) VALUES (1)",
            "CREATE TRIGGER d BEFORE UPDATE ON set_too FOR EACH ROW SET NEW.c = 'other'",
            "CREATE FUNCTION update_and_replace() RETURNS INT DETERMINISTIC BEGIN UPDATE in_function SET n = 9 WHERE id = 1; "
            "REPLACE INTO in_function (id) VALUES (2); RETURN 1; END",
            f"SET binlog_row_image = '{image}'",
        ]
        for table, text in ALL.items():
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
def test_where_the_source_may_have_set_columns_that_a_row_lacks_the_table_is_stale(
    tmp_path: Path, told: tuple[Server, Path], image: str
) -> None:
    feed = fed(tmp_path, told[1], image.lower())
    # In a row in part an UPDATE leaves the key out, and everything else names it; NOBLOB leaves out `c` alone, where nobody names it.
    unsure = {"FULL": set(), "NOBLOB": set(ALL) - {"chosen"}, "MINIMAL": set(ALL) - set(UPDATED)}[image]
    assert stale(feed) == unsure
    assert differing(feed, told[0]) <= unsure
    assert all(feed.property(table, STALE_REASON) == UNSURE for table in unsure)


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("above_kb", [64, 1])
def test_where_no_trigger_changes_a_table_the_text_tells_and_its_rows_are_the_sources(
    tmp_path: Path, told: tuple[Server, Path], image: str, above_kb: int
) -> None:
    trusted = [f"{image.lower()}.{table}" for table in (*REPLACED, *UPDATED, *MET)]
    feed = fed(tmp_path, told[1], image.lower(), trusted_images=trusted, spool_above_kb=above_kb)
    assert stale(feed) == (set() if image == "FULL" else set(TRIGGERED))
    assert differing(feed, told[0]) <= set(TRIGGERED)


def test_without_telling_a_replace_from_an_update_the_lake_is_wrong_in_silence(
    tmp_path: Path, told: tuple[Server, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReplacedRows, "told_apart", lambda _self, changes, _rows: changes)
    feed = fed(tmp_path, told[1], "minimal")
    assert differing(feed, told[0]) == {*REPLACED, *TRIGGERED}
    assert stale(feed) == set()


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


def test_a_table_that_becomes_stale_behind_a_chunk_of_its_snapshot_is_stale_at_its_end(
    tmp_path: Path, told: tuple[Server, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, archive = told[0], tmp_path / "binlogs"
    server.execute_many(
        [
            *("CREATE DATABASE loaded", "USE loaded", f"CREATE TABLE t {_COLUMNS}", f"INSERT INTO t {_ROWS}"),
            "CREATE TABLE x (id INT)",
            "CREATE TRIGGER a AFTER INSERT ON x FOR EACH ROW REPLACE INTO t (id) VALUES (NEW.id)",
        ]
    )
    copied_binlogs(server, archive)
    feed = fed(tmp_path / "feed", archive, "loaded")
    chunk, end = SourceRows.chunk, SourceRows.end
    statements = ["USE loaded", "SET binlog_row_image = 'MINIMAL'", "INSERT INTO x VALUES (1)"]

    def changed_behind(source: SourceRows, *given: Any, **named: Any) -> Any:
        found = chunk(source, *given, **named)
        server.execute_many(statements)
        statements.clear()
        return found

    def archived(source: SourceRows) -> tuple[str, int]:
        found = end(source)
        copied_binlogs(server, archive)
        return found

    monkeypatch.setattr(SourceRows, "chunk", changed_behind)
    monkeypatch.setattr(SourceRows, "end", archived)
    engine = feed.open()
    try:
        begin_snapshot(engine, ("loaded", "t"), engine.place)
        with SourceRows(FeedSource(host="127.0.0.1", port=server.port, user="root")) as source:
            TableSnapshot(engine, source, ("loaded", "t"), 1, lambda _text: None).run()
    finally:
        engine.close()
        engine.let_go()
    assert feed.property("t", SNAPSHOT) is None
    assert feed.property("t", STALE_REASON) == UNSURE
