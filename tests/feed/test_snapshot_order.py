"""A snapshot reads a table in the order of its key: odd types, keys that change meanwhile, what stops or ends one that has begun."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deploy.servers import Server
from relay.feed.command.feed_command import SnapshotRequest
from relay.feed.feed_config import load_feed_config
from relay.feed.feed_run import opened_engine
from relay.feed.snapshot import table_snapshot
from relay.feed.snapshot.snapshot_run import run_snapshots
from tests.conftest import ServerFactory
from tests.feed.test_feed_snapshot import current, feed, settings
from tests.support.feed_histories import document_columns, lake_rows, true_rows
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess

pytestmark = pytest.mark.interop

Source = tuple[Server, RelayProcess]
MEMBERS = ",".join(f"'m{number}'" for number in range(64))


def begun(server: Server, directory: Path) -> Iterator[Source]:
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.sql("CREATE DATABASE shop")
    with RelayProcess(directory / "relay", server, port=free_port()) as running:
        yield server, running


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> Iterator[Source]:
    yield from begun(module_servers("mariadb"), tmp_path_factory.mktemp("mariadb"))


@pytest.fixture(scope="module")
def mysql56(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> Iterator[Source]:
    yield from begun(module_servers("mysql56"), tmp_path_factory.mktemp("mysql56"))


@pytest.fixture(scope="module")
def mysql97(tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory) -> Iterator[Source]:
    yield from begun(module_servers("mysql97"), tmp_path_factory.mktemp("mysql97"))


def with_chunks(config: Path, rows: int) -> Path:
    config.write_text(config.read_text().replace("chunk_rows = 700", f"chunk_rows = {rows}"))
    return config


def archived(source: Source) -> None:
    server, running = source
    end = server.master_status()
    running.wait_archived(end.file, end.position)


def is_the_sources(config: Path, server: Server, table: str) -> bool:
    names, rows = true_rows(server, "shop", table)
    found = lake_rows(current(config, "shop", table), names, document_columns(server, "shop", table))
    return bool(rows) and found == rows


class Killed(Exception):
    """Where it is broken off."""


def break_off(config: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot that is ended behind its first chunk."""

    def say(_text: str) -> None:
        raise Killed

    section = load_feed_config(config)
    assert section.source is not None
    with monkeypatch.context() as patched, opened_engine(section) as engine, suppress(Killed):
        patched.setattr(table_snapshot, "_MOST_ROWS", 1)
        run_snapshots(engine, section.source, SnapshotRequest((table,)), say)


def test_keys_that_a_server_compares_as_doubles_are_all_loaded_chunk_by_chunk(tmp_path: Path, mysql56: Source) -> None:
    server, running = mysql56
    server.execute_many(
        [
            "USE shop",
            "CREATE TABLE numbers (k DECIMAL(30, 0), l DECIMAL(60, 2), n INT, PRIMARY KEY (k, l))",
            "INSERT INTO numbers VALUES " + ",".join(f"({10**25 + n // 4}, {10**30 + n}.5, {n})" for n in range(20)),
            f"CREATE TABLE members (k SET({MEMBERS}) PRIMARY KEY)",
            "INSERT INTO members VALUES " + ",".join(f"({2**62 + n})" for n in range(20)),
        ]
    )
    config = with_chunks(settings(tmp_path, server, running), 3)
    loaded = feed(config, "snapshot", "--all")
    assert loaded.returncode == 0, loaded.stderr
    assert is_the_sources(config, server, "numbers")
    assert is_the_sources(config, server, "members")


def test_a_vector_is_read_and_a_number_that_a_document_cannot_keep_is_told(tmp_path: Path, mysql97: Source) -> None:
    server, running = mysql97
    server.execute_many(
        [
            "USE shop",
            "CREATE TABLE vectors (id INT PRIMARY KEY, v VECTOR(3))",
            "INSERT INTO vectors VALUES (1, TO_VECTOR('[1, 2.5, -0.1]')), (2, NULL)",
            "CREATE TABLE documents (id INT PRIMARY KEY, j JSON)",
            """INSERT INTO documents VALUES (1, '{"a": 0.30000000000000004, "b": 18446744073709551615}')""",
            """INSERT INTO documents VALUES (4, '{"c": "1.23456789012345678901"}')""",
            "INSERT INTO documents VALUES (2, JSON_OBJECT('d', CAST('1.25000000000000000000' AS DECIMAL(30, 20))))",
        ]
    )
    config = settings(tmp_path, server, running)
    loaded = feed(config, "snapshot", "--all")
    assert loaded.returncode == 0, loaded.stderr
    assert is_the_sources(config, server, "vectors")
    assert is_the_sources(config, server, "documents")
    server.sql(
        "INSERT INTO shop.documents VALUES (3, JSON_OBJECT('d', CAST('1.12345678901234567891' AS DECIMAL(30, 20))))"
    )
    archived(mysql97)
    told = feed(config, "snapshot", "--table", "shop.documents")
    assert told.returncode == 1 and "document_number" in told.stderr and "1.12345678901234567891" in told.stderr


@pytest.mark.parametrize(
    ("columns", "rows", "change"),
    [
        (
            "id INT PRIMARY KEY, x INT NOT NULL UNIQUE",
            "(1, -1), (2, -2), (3, -3), (4, -4), (5, -5), (6, -6), (7, -7)",
            "DROP PRIMARY KEY, ADD PRIMARY KEY (x)",
        ),
        (
            "id VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY",
            "('a'), ('B'), ('c'), ('D'), ('e'), ('F'), ('g')",
            "MODIFY id VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        ),
    ],
    ids=["another key", "another collation"],
)
def test_a_snapshot_that_goes_on_behind_a_change_of_the_order_loads_all_rows(
    tmp_path: Path, mariadb: Source, monkeypatch: pytest.MonkeyPatch, columns: str, rows: str, change: str
) -> None:
    server, running = mariadb
    server.execute_many(
        [
            "USE shop",
            "DROP TABLE IF EXISTS ordered",
            f"CREATE TABLE ordered ({columns}) CHARACTER SET utf8mb4",
            f"INSERT INTO ordered VALUES {rows}",
        ]
    )
    config = with_chunks(settings(tmp_path, server, running, tables=["shop.ordered"]), 3)
    break_off(config, "shop.ordered", monkeypatch)
    server.sql(f"ALTER TABLE shop.ordered {change}")
    archived(mariadb)
    loaded = feed(config, "snapshot", "--table", "shop.ordered")
    assert loaded.returncode == 0, loaded.stderr
    assert is_the_sources(config, server, "ordered")


def test_a_stop_of_a_table_whose_snapshot_has_begun_is_left_by_a_snapshot(
    tmp_path: Path, mariadb: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, running = mariadb
    server.execute_many(
        [
            "USE shop",
            "CREATE TABLE halfway (id INT PRIMARY KEY, x VARCHAR(9))",
            "INSERT INTO halfway SELECT seq, seq FROM seq_1_to_9",
        ]
    )
    config = with_chunks(settings(tmp_path, server, running, tables=["shop.halfway"]), 3)
    break_off(config, "shop.halfway", monkeypatch)
    server.sql("ALTER TABLE shop.halfway MODIFY x INT")
    archived(mariadb)
    assert "column_changed" in feed(config, "--once").stderr
    loaded = feed(config, "snapshot", "--table", "shop.halfway")
    assert loaded.returncode == 0, loaded.stderr
    assert is_the_sources(config, server, "halfway")


def test_a_table_that_is_dropped_while_it_is_loaded_has_no_snapshot_any_more_and_verify_goes_on(
    tmp_path: Path, mariadb: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, running = mariadb
    server.execute_many(
        [
            "USE shop",
            "CREATE TABLE short_lived (id INT PRIMARY KEY)",
            "INSERT INTO short_lived SELECT seq FROM seq_1_to_9",
            "CREATE TABLE staying (id INT PRIMARY KEY)",
            "INSERT INTO staying VALUES (1)",
        ]
    )
    config = with_chunks(settings(tmp_path, server, running, tables=["shop.short_lived", "shop.staying"]), 3)
    assert feed(config, "snapshot", "--table", "shop.staying").returncode == 0
    break_off(config, "shop.short_lived", monkeypatch)
    server.sql("DROP TABLE shop.short_lived")
    archived(mariadb)
    assert feed(config, "--once").returncode == 0
    states = [json.loads(line)["state"] for line in feed(config, "status", "--json").stdout.splitlines()]
    assert states == ["current", "current"]
    compared = feed(config, "verify")
    assert compared.returncode == 0 and "shop.staying: same; 1 rows" in compared.stdout, compared.stderr


def test_verify_of_a_table_that_the_lake_has_not_is_no_success(tmp_path: Path, mariadb: Source) -> None:
    server, running = mariadb
    server.execute_many(["USE shop", "CREATE TABLE waiting (id INT PRIMARY KEY)"])
    config = settings(tmp_path, server, running, tables=["shop.waiting"])
    server.sql("INSERT INTO shop.waiting VALUES (1)")
    archived(mariadb)
    assert feed(config, "--once").returncode == 0
    unknown = feed(config, "verify", "--table", "shop.wating")
    assert unknown.returncode == 1 and "table_not_fed" in unknown.stderr
    waits = feed(config, "verify", "--table", "shop.waiting")
    assert waits.returncode == 1 and "waits for a snapshot" in waits.stderr


def test_rows_of_another_server_than_the_relays_source_are_not_loaded(
    tmp_path: Path, mariadb: Source, module_servers: ServerFactory
) -> None:
    server, running = mariadb
    other = module_servers("mariadb")
    other.start(server_id=7, options=["--binlog-format=ROW"])
    server.execute_many(["USE shop", "CREATE TABLE elsewhere (id INT PRIMARY KEY)", "INSERT INTO elsewhere VALUES (1)"])
    other.execute_many(["CREATE DATABASE shop", "CREATE TABLE shop.elsewhere (id INT PRIMARY KEY)"])
    other.sql(
        f"GRANT SELECT, REPLICATION CLIENT ON *.* TO '{server.replication_user}'@'%' IDENTIFIED BY '{server.replication_password}'"
    )
    server.sql("FLUSH BINARY LOGS")
    config = settings(tmp_path, server, running, tables=["shop.elsewhere"])
    config.write_text(config.read_text().replace(f"port = {server.port}", f"port = {other.port}"))
    for word in ("snapshot", "verify"):
        told = feed(config, word, "--table", "shop.elsewhere")
        assert told.returncode == 1 and "source_is_another" in told.stderr


def test_a_snapshot_without_a_change_writes_down_which_tables_there_are(tmp_path: Path, mariadb: Source) -> None:
    server, running = mariadb
    server.execute_many(["USE shop", "CREATE TABLE quiet (id INT PRIMARY KEY)", "INSERT INTO quiet VALUES (1)"])
    config = settings(tmp_path, server, running, tables=["shop.quiet"])
    assert feed(config, "snapshot", "--table", "shop.quiet").returncode == 0
    assert [one["table"] for one in current(config, "", "", "_feed").to_pylist()] == ["quiet"]


def test_a_lake_that_fails_while_tables_are_compared_is_told_and_is_no_internal_error(
    tmp_path: Path, mariadb: Source
) -> None:
    server, running = mariadb
    server.execute_many(["USE shop", "CREATE TABLE broken (id INT PRIMARY KEY)", "INSERT INTO broken VALUES (1)"])
    config = settings(tmp_path, server, running, tables=["shop.broken"])
    assert feed(config, "snapshot", "--table", "shop.broken").returncode == 0
    max((tmp_path / "lake/current/shop/broken/_delta_log").glob("*.json")).write_text("{")
    told = feed(config, "verify")
    assert told.returncode == 3 and "run it again" in told.stderr and "Internal error" not in told.stderr


def test_a_negative_zero_is_the_same_key_and_the_same_row_as_zero(tmp_path: Path, mysql97: Source) -> None:
    server, running = mysql97
    tables = ["shop.zeros", "shop.bare_zeros"]
    server.execute_many(
        [
            "USE shop",
            "CREATE TABLE zeros (d DOUBLE PRIMARY KEY, n INT, x FLOAT)",
            "INSERT INTO zeros VALUES (-0e0, 1, -0e0)",
            "CREATE TABLE bare_zeros (d DOUBLE, f FLOAT)",
            "INSERT INTO bare_zeros VALUES (-0e0, -0e0), (0, 1)",
        ]
    )
    config = settings(tmp_path, server, running, tables=tables, modes=["current"])
    assert feed(config, "snapshot", "--all").returncode == 0
    server.execute_many(
        ["USE shop", "UPDATE zeros SET d = 0e0, n = 2, x = -0e0", "UPDATE bare_zeros SET f = 3 WHERE f = 0"]
    )
    archived(mysql97)
    fed = feed(config, "--once")
    assert fed.returncode == 0, fed.stderr
    kept = current(config, "shop", "zeros").to_pylist()
    assert [(str(one["d"]), one["n"], str(one["x"])) for one in kept] == [("0.0", 2, "0.0")]
    assert sorted(one["f"] for one in current(config, "shop", "bare_zeros").to_pylist()) == [1, 3]
    assert feed(config, "verify").returncode == 0
