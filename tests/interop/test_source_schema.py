"""What the relay records of its source's tables: true to the position, through changes, crashes and purges."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.sql.tables.source_table import Table
from relay.schema_history.schema_file import read_schema
from relay.schema_history.schema_record import RecordedSchema
from relay.upstream.schema.foreign_key_query import OF_RELAY
from tests.conftest import ServerFactory
from tests.support.chain import Chain, wait_until

pytestmark = pytest.mark.interop

RECORDING = {"source": {"record_schema": True}}
KINDS = {
    "mysql56": "e ENUM('a','b''c') CHARACTER SET utf8, s SET('x','y'), d DECIMAL(10,2) UNSIGNED, t TEXT CHARACTER SET latin1",
    "mariadb": "e ENUM('a','b''c'), s SET('x','y'), d DECIMAL(10,2) UNSIGNED, t TEXT CHARACTER SET latin1, "
    "g INT AS (id + 1) PERSISTENT",
    "mysql97": "e ENUM('a','b''c'), s SET('x','y'), d DECIMAL(10,2) UNSIGNED, t TEXT CHARACTER SET latin1, "
    "g INT AS (id + 1) STORED",
}


EACH_SERVER = pytest.mark.parametrize("chain", list(KINDS), indirect=True)


@pytest.fixture
def chain(request: pytest.FixtureRequest, servers: ServerFactory, tmp_path: Path) -> Iterator[Chain]:
    """A source whose tables the relay may see, and a relay that records them, not started yet."""
    name = getattr(request, "param", "mariadb")
    chain = Chain(servers, name, tmp_path / "relay", options=["--binlog-format=ROW"], sections=RECORDING)
    chain.source.sql(f"GRANT REFERENCES ON *.* TO '{chain.source.replication_user}'@'%'")
    chain.source.sql("CREATE DATABASE shop")
    with contextlib.ExitStack() as ending:
        ending.callback(lambda: chain.relay.running and chain.relay.kill())
        yield chain


def schema_of(chain: Chain) -> RecordedSchema:
    return read_schema(chain.relay.archive)


def wait_for_column(chain: Chain, table: str, column: str | None) -> Table:
    """The table as it is recorded for what comes next, once it has the column; None: once it is there."""
    at = chain.source.master_status()
    found: list[Table] = []

    def there() -> bool:
        table_now = schema_of(chain).recorded("shop", table, at.file, at.position)
        found[:] = [table_now] if table_now is not None else []
        return table_now is not None and (column is None or column in [one.name for one in table_now.columns])

    wait_until(there, f"{table} with the column {column} is recorded")
    return found[0]


@EACH_SERVER
def test_tables_are_recorded_as_the_source_has_them_before_and_after_a_change(chain: Chain) -> None:
    source = chain.source
    source.execute_many(
        [
            f"CREATE TABLE shop.orders (id INT UNSIGNED PRIMARY KEY, {KINDS[source.name]}, UNIQUE KEY by_d (d, s)) "
            "ENGINE=InnoDB",
            "CREATE TABLE shop.notes (a INT) ENGINE=MyISAM",
            "CREATE TABLE shop.texts (a VARCHAR(9) DEFAULT 'NULL', b VARCHAR(9) DEFAULT NULL)",
            "CREATE VIEW shop.seen AS SELECT id FROM shop.orders",
        ]
    )
    made = source.master_status()
    chain.relay.start()
    orders = wait_for_column(chain, "orders", "id")
    assert orders.engine == "InnoDB"
    assert orders.primary_key == ("id",)
    assert dict(orders.keys)["by_d"].columns == ("d", "s")
    assert dict(orders.keys)["by_d"].unique
    columns = {column.name: column for column in orders.columns}
    assert list(columns)[:5] == ["id", "e", "s", "d", "t"]
    assert "unsigned" in columns["id"].type
    assert columns["e"].type == "enum('a','b''c')"
    assert columns["d"].type == "decimal(10,2) unsigned"
    assert (columns["t"].charset, columns["id"].nullable, columns["d"].nullable) == ("latin1", False, True)
    assert "g" not in columns or columns["g"].generated
    texts = wait_for_column(chain, "texts", "a")
    assert texts.columns[0].default == "'NULL'" and texts.columns[1].default in (None, "NULL")
    notes = wait_for_column(chain, "notes", "a")
    assert (notes.engine, notes.has_unique_key) == ("MyISAM", False)
    assert [(table.schema, table.name) for table in schema_of(chain).latest()] == [
        ("shop", "notes"),
        ("shop", "orders"),
        ("shop", "texts"),
    ]
    # it was asked later than it was made, and is known for what was archived in between
    assert schema_of(chain).recorded("shop", "orders", made.file, made.position) == orders

    before = source.master_status()
    source.execute_many(
        ["ALTER TABLE shop.orders ADD COLUMN after_it INT, DROP COLUMN t", "DROP TABLE shop.notes"], "shop"
    )
    changed = wait_for_column(chain, "orders", "after_it")
    after = source.master_status()
    assert [column.name for column in changed.columns][-1] == "after_it"
    schema = schema_of(chain)
    assert schema.table("shop", "orders", before.file, before.position - 1) == orders
    assert schema.table("shop", "notes", before.file, before.position - 1) == notes
    assert schema.table("shop", "orders", after.file, after.position) == changed
    wait_until(lambda: len(schema_of(chain).latest()) == 2, "the table that is gone is noted")


def test_what_was_recorded_is_true_after_a_crash_and_without_the_relay(chain: Chain) -> None:
    source = chain.source
    source.sql("CREATE TABLE shop.one (a INT)")
    chain.relay.start()
    wait_for_column(chain, "one", "a")
    between = source.master_status()
    chain.relay.kill()
    source.execute_many(["ALTER TABLE shop.one ADD b INT", "FLUSH BINARY LOGS", "INSERT INTO shop.one VALUES (1, 2)"])
    middle = source.master_status()
    source.execute_many(["ALTER TABLE shop.one ADD c INT", "INSERT INTO shop.one VALUES (1, 2, 3)"])
    chain.relay.start()
    wait_for_column(chain, "one", "c")
    # which columns it had in between nobody asked: the statements tell it
    schema = schema_of(chain)
    assert schema.recorded("shop", "one", middle.file, middle.position - 1) is None
    worked_out = schema.table("shop", "one", middle.file, middle.position - 1)
    assert worked_out is not None and [column.name for column in worked_out.columns] == ["a", "b"]
    old = schema.table("shop", "one", between.file, between.position - 1)
    assert old is not None and [column.name for column in old.columns] == ["a"]
    with (chain.relay.archive / "source-schema.jsonl").open("a") as file:
        file.write('{"kind": "table", "fi')  # a write that a crash cut
    chain.relay.kill()
    chain.relay.start()
    source.sql("ALTER TABLE shop.one ADD d INT")
    wait_for_column(chain, "one", "d")
    assert schema_of(chain).recorded("shop", "one", between.file, between.position - 1) == old


def test_definitions_of_before_the_recording_was_switched_on_are_found_in_the_archive(
    chain: Chain, tmp_path: Path
) -> None:
    source = chain.source
    source.execute_many(["CREATE TABLE shop.one (a INT)", "CREATE TABLE shop.two (a INT)", "FLUSH BINARY LOGS"])
    early = source.master_status()
    text = chain.relay.config.read_text()
    chain.relay.config.write_text(text.replace("record_schema = true", "record_schema = false"))
    chain.relay.start()
    chain.wait_archived()
    assert not (chain.relay.archive / "source-schema.jsonl").exists()
    source.execute_many(["ALTER TABLE shop.two ADD b INT", "INSERT INTO shop.one VALUES (1)"])
    chain.wait_archived()
    chain.relay.stop()
    chain.relay.config.write_text(text)
    chain.relay.start()
    wait_for_column(chain, "two", "b")
    schema = schema_of(chain)
    assert schema.table("shop", "one", early.file, early.position - 1) is not None
    assert schema.recorded("shop", "two", early.file, early.position - 1) is None
    worked_out = schema.table("shop", "two", early.file, early.position - 1)
    assert worked_out is not None and [column.name for column in worked_out.columns] == ["a"]


def test_without_the_privilege_it_is_said_once_and_the_stream_goes_on(servers: ServerFactory, tmp_path: Path) -> None:
    with Chain(servers, "mariadb", tmp_path / "relay", sections=RECORDING) as chain:
        source = chain.source
        source.execute_many(["CREATE DATABASE shop", "CREATE TABLE shop.one (a INT)"])
        wait_until(lambda: chain.relay.logged("source_schema_empty"), "it is said")
        for number in range(3):
            source.sql(f"CREATE TABLE shop.more{number} (a INT)")
        chain.check_archive()
        (said,) = chain.relay.logged("source_schema_empty")
        assert "GRANT REPLICATION CLIENT, REFERENCES ON *.* TO" in said["advice"]
        source.sql(f"REVOKE REPLICATION CLIENT ON *.* FROM '{source.replication_user}'@'%'")
        chain.relay.stop()
        chain.relay.start()
        wait_until(lambda: chain.relay.logged("source_schema_not_recorded"), "it is said")
        source.sql("CREATE TABLE shop.another (a INT)")
        chain.relay.wait_archived(source.binlogs()[-1].name, source.master_status().position)


def test_what_belongs_to_purged_binlogs_goes_with_them(servers: ServerFactory, tmp_path: Path) -> None:
    with Chain(servers, "mariadb", tmp_path / "relay", sections={**RECORDING}) as chain:
        source = chain.source
        source.sql(f"GRANT REFERENCES ON *.* TO '{source.replication_user}'@'%'")
        source.execute_many(["CREATE DATABASE shop", "CREATE TABLE shop.one (a INT)"])
        for number in range(3):
            source.sql(f"ALTER TABLE shop.one ADD c{number} INT")
            wait_for_column(chain, "one", f"c{number}")
            source.sql("FLUSH BINARY LOGS")
        newest = source.master_status().file
        kept = wait_for_column(chain, "one", "c2")
        chain.wait_archived()
        chain.relay.stop()
        remove_before(chain.relay.archive, newest)
        chain.relay.start()

        def lines() -> list[dict[str, Any]]:
            text = (chain.relay.archive / "source-schema.jsonl").read_text()
            return [json.loads(line) for line in text.splitlines()]

        wait_until(lambda: {line["file"] for line in lines()} == {newest}, "older lines are gone")
        assert [line["kind"] for line in lines()].count("definition") == 0
        assert schema_of(chain).recorded("shop", "one", newest, 4) == kept


def remove_before(archive: Path, newest: str) -> None:
    """What a purge leaves, without a running relay."""
    for path in archive.iterdir():
        base = path.name.removesuffix(".idx").removesuffix(".gtx")
        if base.rpartition(".")[2].isdecimal() and base < newest:
            path.unlink()


FAMILY = (
    "CREATE TABLE shop.parent (id INT PRIMARY KEY, code VARCHAR(30), UNIQUE KEY c (code(7))) ENGINE=InnoDB",
    "CREATE DATABASE other",
    "CREATE TABLE other.child (id INT PRIMARY KEY, up INT, CONSTRAINT f FOREIGN KEY (up) REFERENCES shop.parent (id) "
    "ON DELETE CASCADE) ENGINE=InnoDB",
)


def foreign_keys_at(chain: Chain, file: str, offset: int) -> list[tuple[str, str]] | None:
    """(referenced table, what a deletion does) of the child; None: not known."""
    table = schema_of(chain).recorded("other", "child", file, offset)
    if table is None or table.foreign_keys is None:
        return None
    return [(key.table, key.on_delete) for _name, key in table.foreign_keys]


@EACH_SERVER
def test_foreign_keys_and_prefixes_are_recorded_and_follow_a_parent_that_is_renamed(chain: Chain) -> None:
    source = chain.source
    source.sql(f"GRANT PROCESS ON *.* TO '{source.replication_user}'@'%'")
    source.execute_many(FAMILY)
    chain.relay.start()
    parent = wait_for_column(chain, "parent", "code")
    assert dict(parent.keys)["c"].prefixes == (7,)
    assert (parent.columns[1].collation, parent.foreign_keys) != ("", None)
    before = source.master_status()
    wait_until(
        lambda: foreign_keys_at(chain, before.file, before.position) == [("parent", "CASCADE")],
        "the foreign key is recorded",
    )
    source.sql("RENAME TABLE shop.parent TO shop.grandparent")
    after = source.master_status()
    wait_until(
        lambda: foreign_keys_at(chain, after.file, after.position) == [("grandparent", "CASCADE")],
        "the foreign key is recorded with its parent's new name",
    )
    assert foreign_keys_at(chain, before.file, before.position - 1) == [("parent", "CASCADE")]


@EACH_SERVER
def test_without_the_privilege_foreign_keys_are_those_of_statements_and_not_known_of_other_tables(chain: Chain) -> None:
    source = chain.source
    source.execute_many(FAMILY)
    chain.relay.start()
    wait_for_column(chain, "parent", "code")
    at = source.master_status()
    wait_until(
        lambda: schema_of(chain).recorded("other", "child", at.file, at.position) is not None, "the child is there"
    )
    told = foreign_keys_at(chain, at.file, at.position)
    assert told == ([("parent", "CASCADE")] if source.name == "mysql97" else None)
    known = schema_of(chain).table_with_keys("other", "child", at.file, at.position)
    assert known is not None
    assert known.foreign_keys is not None
    assert [(key.table, key.on_delete) for _name, key in known.foreign_keys] == [("parent", "CASCADE")]
    seen = bool(chain.relay.logged("source_foreign_keys_not_seen"))
    assert seen == (source.name != "mysql97")


def test_a_relay_that_is_a_source_is_known_for_one(chain: Chain) -> None:
    chain.relay.start()
    assert chain.relay.sql(OF_RELAY)
    assert not chain.source.sql(OF_RELAY)
