"""Tables that are older than the feed: read from the source while it is written to, compared with it, looked after."""

import json
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from deltalake import DeltaTable

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess
from tests.support.source_proof import proof_of
from tests.support.view_seeding import dump, restore

pytestmark = pytest.mark.interop


class Writer:
    """Changes rows all the time, with images of all kinds, keys that change, and rows that come and go."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        chance = random.Random(5)
        connection = self._server.connect("shop")
        cursor = connection.cursor()
        cursor.execute("SELECT MAX(ABS(id)) FROM old")
        number = 100_000 + int(cursor.fetchone()[0])
        while not self._ended.is_set():
            image = chance.choice(("FULL", "MINIMAL", "NOBLOB"))
            at = chance.randint(1, 3000)
            number += 1
            cursor.execute(f"SET binlog_row_image = {image}")
            cursor.execute(f"UPDATE old SET n = n + 1, note = 'changed' WHERE id = {at}")
            cursor.execute(f"UPDATE old SET id = {number + 1_000_000} WHERE id = {chance.randint(1, 3000)}")
            cursor.execute(f"DELETE FROM old WHERE id = {chance.randint(1, 3000)}")
            cursor.execute(f"INSERT INTO old (id, n) VALUES ({-number}, 7)")
            cursor.execute(f"UPDATE old SET id = -id, n = n + 1 WHERE id = {-number}")
            self._ended.wait(0.01)
        connection.close()


@pytest.fixture(scope="module")
def relay(
    tmp_path_factory: pytest.TempPathFactory, module_servers: ServerFactory
) -> Iterator[tuple[Server, RelayProcess]]:
    """A source with a table of 3,000 rows, and its relay."""
    directory = tmp_path_factory.mktemp("snapshot")
    server = module_servers("mariadb")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(
        [
            "CREATE DATABASE shop",
            "USE shop",
            "CREATE TABLE old (id BIGINT PRIMARY KEY, n INT NOT NULL DEFAULT 5, f FLOAT, d DECIMAL(60,3), b VARBINARY(9), "
            "e ENUM('x','y'), t DATETIME(6), s TIMESTAMP(3) NULL, g POINT, u UUID, k BIT(9), note TEXT)",
            "INSERT INTO old SELECT seq, seq, seq / 7, seq, UNHEX('00ff'), IF(seq % 2, 'x', 'y'), '2020-01-02 03:04:05.678', "
            "'2020-01-02 03:04:05.678', POINT(seq, 1), UUID(), seq % 500, REPEAT('ü', seq % 9) FROM seq_1_to_3000",
            "CREATE TABLE keyless (a INT)",
        ]
    )
    with RelayProcess(directory / "relay", server, port=free_port()) as running:
        end = server.master_status()
        running.wait_archived(end.file, end.position)
        yield server, running


def feed(config: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "relay", "feed", *words, "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=240,
    )


def settings(path: Path, server: Server, relay: RelayProcess, **more: Any) -> Path:
    end = server.master_status()
    lines = {
        "archive": str(relay.archive), "target": str(path / "lake"), "tables": ["shop.*"], "start": f"{end.file}:{end.position}",
        **more,
    }  # fmt: skip
    config = path / "feed.toml"
    config.write_text(
        "[feed]\n"
        + "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items())
        + f'[feed.source]\nhost = "127.0.0.1"\nport = {server.port}\nuser = "{server.replication_user}"\n'
        f'password = "{server.replication_password}"\nchunk_rows = 700\n'
        + "".join(f'{key} = "{value}"\n' for key, value in proof_of(server, {}).items())
    )
    server.sql(f"GRANT SELECT, REPLICATION CLIENT ON *.* TO '{server.replication_user}'@'%'")
    end = server.master_status()
    relay.wait_archived(end.file, end.position)
    return config


def test_a_table_is_loaded_while_it_is_written_to_and_is_the_sources_then(
    tmp_path: Path, relay: tuple[Server, RelayProcess]
) -> None:
    server, running = relay
    config = settings(tmp_path, server, running)
    with Writer(server):
        loaded = feed(config, "snapshot", "--table", "shop.old")
        assert loaded.returncode == 0, loaded.stderr
        compared = feed(config, "verify", "--json")
    assert compared.returncode == 0, compared.stdout + compared.stderr
    told = json.loads(compared.stdout)
    assert told["same"] and told["rows"] > 2000 and len(told["ranges"]) > 3
    end = server.master_status()
    running.wait_archived(end.file, end.position)
    assert feed(config, "--once").returncode == 0
    names, rows = true_rows(server, "shop", "old")
    plain = [name for name in names if name not in ("g", "d")]
    lake = current(config, "shop", "old")
    assert lake_rows(lake.select(plain), plain) == sorted(
        (tuple(value for value, name in zip(row, names, strict=True) if name in plain) for row in rows), key=repr
    )


def test_verify_finds_what_differs_and_status_what_is_not_current(
    tmp_path: Path, relay: tuple[Server, RelayProcess]
) -> None:
    server, running = relay
    config = settings(tmp_path, server, running)
    assert feed(config, "snapshot", "--table", "shop.old").returncode == 0
    server.execute_many(
        [
            "SET sql_log_bin = 0",
            "UPDATE shop.old SET n = -1 WHERE id = (SELECT * FROM (SELECT MIN(id) FROM shop.old) x)",
            "DELETE FROM shop.old WHERE id = (SELECT * FROM (SELECT MAX(id) FROM shop.old) x)",
            "INSERT INTO shop.old (id) VALUES (5000000)",
        ]
    )
    server.sql("INSERT INTO shop.keyless VALUES (1)")
    end = server.master_status()
    running.wait_archived(end.file, end.position)
    compared = json.loads(feed(config, "verify", "--json").stdout)
    assert (compared["different"], compared["missing"], compared["extra"]) == (1, 1, 1)
    status = [json.loads(line) for line in feed(config, "status", "--json").stdout.splitlines()]
    assert {one["table"]: one["state"] for one in status} == {
        "shop.keyless": "waits for a snapshot",
        "shop.old": "current",
    }
    done = feed(config, "compact", "--json", "--keep-hours", "0")
    assert done.returncode == 0, done.stderr
    assert feed(config, "status", "--json").stdout.count("shop.old") == 1


def test_a_table_that_is_set_aside_comes_back_by_a_snapshot_once_the_source_has_no_trouble(
    tmp_path: Path, relay: tuple[Server, RelayProcess]
) -> None:
    server, running = relay
    config = settings(tmp_path, server, running, tables=["aside.*"])
    server.execute_many(
        [
            "CREATE DATABASE aside",
            "USE aside",
            "CREATE TABLE zeros (id INT PRIMARY KEY, d DATE)",
            "CREATE TABLE fine (id INT PRIMARY KEY)",
            "SET sql_mode = ''",
            "INSERT INTO zeros VALUES (1, '0000-00-00'), (2, '2020-01-02')",
            "INSERT INTO fine VALUES (1)",
        ]
    )
    archived(server, running)
    assert feed(config, "--once").returncode == 1
    refused = feed(config, "snapshot", "--all")
    assert refused.returncode == 1 and "value_has_no_type" in refused.stderr and "aside.zeros" in refused.stderr
    assert states(config) == {"aside.fine": "current", "aside.zeros": "set aside"}
    server.execute_many(["UPDATE aside.zeros SET d = NULL WHERE id = 1", "INSERT INTO aside.fine VALUES (2)"])
    archived(server, running)
    loaded = feed(config, "snapshot", "--table", "aside.zeros")
    assert loaded.returncode == 0, loaded.stderr
    server.sql("INSERT INTO aside.zeros VALUES (3, NULL)")
    archived(server, running)
    assert feed(config, "--once").returncode == 0
    assert states(config) == {"aside.fine": "current", "aside.zeros": "current"}
    for table, ids in (("zeros", {1, 2, 3}), ("fine", {1, 2})):
        assert {row["id"] for row in current(config, "aside", table).to_pylist()} == ids
    changes = current(config, "aside", "zeros", "changes").sort_by([("sequence", "ascending"), ("row", "ascending")])
    assert changes.column("operation").to_pylist() == ["create", "insert", "insert", "update", "insert"]


def test_a_stale_table_that_a_snapshot_made_right_has_a_row_for_what_its_changes_may_lack(
    tmp_path: Path, relay: tuple[Server, RelayProcess]
) -> None:
    server, running = relay
    config = settings(tmp_path, server, running, tables=["stale.*"], statement_changes="named")
    server.execute_many(
        ["CREATE DATABASE stale", "USE stale", "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)",
         "SET binlog_format = STATEMENT", "UPDATE t SET id = 2", "SET binlog_format = ROW", "CREATE TABLE u (id INT)"]
    )  # fmt: skip
    archived(server, running)
    assert feed(config, "--once").returncode == 0 and states(config)["stale.t"] == "stale"
    assert feed(config, "snapshot", "--table", "stale.t").returncode == 0
    changes = current(config, "stale", "t", "changes").sort_by([("sequence", "ascending"), ("row", "ascending")])
    *_others, last = changes.to_pylist()
    assert last["operation"] == "gap" and "a change in statement format" in json.loads(last["after"])["reason"]


def states(config: Path) -> dict[str, str]:
    """Return the state of each table, as `feed status` has it."""
    told = [json.loads(line) for line in feed(config, "status", "--json").stdout.splitlines()]
    return {one["table"]: one["state"] for one in told}


def test_a_table_is_rebuilt_from_its_last_snapshot_where_the_place_is_behind_its_creation(
    tmp_path: Path, relay: tuple[Server, RelayProcess]
) -> None:
    server, running = relay
    server.sql("CREATE TABLE shop.late (id INT PRIMARY KEY, n INT)")
    server.sql("INSERT INTO shop.late VALUES (1, 1), (2, 2), (3, 3)")
    config = settings(tmp_path, server, running, tables=["shop.late"])
    begun = server.master_status()
    place = f"{begun.file}:{begun.position}"
    server.sql("INSERT INTO shop.late VALUES (4, 4)")
    archived(server, running)
    refused = feed(config, "rebuild", "--table", "shop.late", "--from", place)
    assert refused.returncode == 1 and "rows_unknown" in refused.stderr and "knows no snapshot" in refused.stderr
    loaded = feed(config, "snapshot", "--table", "shop.late")
    assert loaded.returncode == 0, loaded.stderr
    server.execute_many(["UPDATE shop.late SET n = 30 WHERE id = 3", "DELETE FROM shop.late WHERE id = 1"])
    archived(server, running)
    assert feed(config, "--once").returncode == 0
    DeltaTable(str(tmp_path / "lake/current/shop/late")).delete("id = 2")
    done = feed(config, "rebuild", "--table", "shop.late", "--from", place, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 3
    compared = feed(config, "verify")
    assert compared.returncode == 0, compared.stdout
    assert changes_of(config, "shop", "late") == ["insert", "update", "delete"]


def changes_of(config: Path, schema: str, table: str) -> list[str]:
    """Return the operations in a table's changes, in order."""
    rows = DeltaTable(str(config.parent / "lake" / "changes" / schema / table)).to_pyarrow_table().to_pylist()
    return [one["operation"] for one in sorted(rows, key=lambda one: (one["sequence"], one["row"]))]


def archived(server: Server, relay: RelayProcess) -> None:
    """Wait until the relay has all that the source has written."""
    end = server.master_status()
    relay.wait_archived(end.file, end.position)


@pytest.mark.parametrize("word", ["snapshot", "verify"])
def test_a_feed_command_that_is_terminated_ends_with_143_and_no_error_and_can_be_run_again(
    tmp_path: Path, relay: tuple[Server, RelayProcess], word: str
) -> None:
    server, running = relay
    config = settings(tmp_path, server, running)
    if word == "verify":
        assert feed(config, "snapshot", "--table", "shop.old").returncode == 0
    words = [sys.executable, "-m", "relay", "feed", word, "--table", "shop.old", "--config", str(config)]
    with locked(server), subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: is_waiting(server), "it reads rows")
        process.send_signal(signal.SIGTERM)
        _said, wrong = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in wrong
    again = feed(config, word, "--table", "shop.old")
    assert again.returncode == 0, again.stdout + again.stderr


@contextmanager
def locked(server: Server) -> Iterator[None]:
    """Nobody reads `shop.old`."""
    connection = server.connect("shop")
    try:
        connection.cursor().execute("LOCK TABLES old WRITE")
        yield
    finally:
        connection.close()


def is_waiting(server: Server) -> bool:
    """Whether somebody would read rows of `shop.old`."""
    asked = server.sql(
        "SELECT count(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%' AND info LIKE 'SELECT%'"
    )
    return bool(asked[0][0])


def test_a_snapshot_of_the_table_is_the_way_on_behind_a_stop(
    tmp_path: Path, relay: tuple[Server, RelayProcess]
) -> None:
    server, running = relay
    config = settings(tmp_path, server, running)
    server.execute_many(
        [
            "USE shop",
            "CREATE TABLE other (id INT PRIMARY KEY)",
            "CREATE TABLE told (id INT PRIMARY KEY, a VARCHAR(9))",
            "INSERT INTO told VALUES (1, '007')",
            "ALTER TABLE told MODIFY a INT",
            "INSERT INTO told VALUES (2, 8)",
            "INSERT INTO other VALUES (1)",
        ]
    )
    end = server.master_status()
    running.wait_archived(end.file, end.position)
    stopped = feed(config, "--once")
    assert stopped.returncode == 1 and "column_changed" in stopped.stderr
    assert feed(config, "snapshot", "--table", "shop.told").returncode == 0
    server.sql("UPDATE shop.told SET a = 9 WHERE id = 1")
    end = server.master_status()
    running.wait_archived(end.file, end.position)
    assert feed(config, "--once").returncode == 0
    assert sorted((one["id"], one["a"]) for one in current(config, "shop", "told").to_pylist()) == [(1, 9), (2, 8)]
    assert current(config, "shop", "other").num_rows == 1


def test_a_dump_in_a_scratch_server_is_where_tables_begin_also_one_without_a_key(
    tmp_path: Path, relay: tuple[Server, RelayProcess], module_servers: ServerFactory
) -> None:
    server, running = relay
    server.execute_many(["USE shop", "INSERT INTO keyless VALUES (3), (3), (3), (NULL), (NULL)"])
    config = settings(tmp_path, server, running)
    with Writer(server):
        dump(server, tmp_path / "dump.sql", ["shop"], ["--master-data=2"], program="mariadb")
        server.execute_many(
            ["USE shop", "DELETE FROM keyless WHERE a = 3 LIMIT 1", "DELETE FROM keyless WHERE a IS NULL LIMIT 1"]
        )
    told = re.search(
        r"MASTER_LOG_FILE='([^']+)', MASTER_LOG_POS=(\d+)", (tmp_path / "dump.sql").read_text(errors="replace")
    )
    assert told is not None
    scratch = module_servers("mariadb")
    scratch.start(server_id=9)
    restore(scratch, tmp_path / "dump.sql")
    scratch.sql(f"GRANT SELECT, REPLICATION CLIENT ON *.* TO '{server.replication_user}'@'%'")
    tables = ["--table", "shop.old", "--table", "shop.keyless"]
    where = ["--server", f"127.0.0.1:{scratch.port}", "--position", f"{told[1]}:{told[2]}"]
    loaded = feed(config, "snapshot", *tables, *where)
    assert loaded.returncode == 0, loaded.stderr
    end = server.master_status()
    running.wait_archived(end.file, end.position)
    assert feed(config, "--once").returncode == 0
    compared = {one["table"]: one for one in map(json.loads, feed(config, "verify", "--json").stdout.splitlines())}
    assert compared["shop.keyless"]["same"]
    # mariadb-dump writes FLOATs with six digits: it is told, and all else is the source's
    old = compared["shop.old"]
    assert (old["missing"], old["extra"]) == (0, 0) and all(one.endswith("differs in f") for one in old["shown"])
    told_by = {one["table"]: one for one in map(json.loads, feed(config, "status", "--json").stdout.splitlines())}
    assert told_by["shop.old"]["state"] == "stale" and "six digits of FLOAT" in told_by["shop.old"]["stale_reason"]
    assert told_by["shop.keyless"]["state"] == "current"
    names, rows = true_rows(server, "shop", "keyless")
    assert lake_rows(current(config, "shop", "keyless"), names) == rows


def test_a_table_without_a_key_is_loaded_and_compared_as_a_whole(
    tmp_path: Path, relay: tuple[Server, RelayProcess]
) -> None:
    server, running = relay
    server.execute_many(
        ["USE shop", "CREATE TABLE bare (a INT, f FLOAT)", "INSERT INTO bare VALUES (1, 0.1), (1, 0.1), (2, NULL)"]
    )
    config = settings(tmp_path, server, running)
    loaded = feed(config, "snapshot", "--table", "shop.bare")
    assert loaded.returncode == 0, loaded.stderr
    server.execute_many(["USE shop", "DELETE FROM bare WHERE a = 1 LIMIT 1", "UPDATE bare SET a = 3 WHERE f IS NULL"])
    end = server.master_status()
    running.wait_archived(end.file, end.position)
    compared = json.loads(feed(config, "verify", "--table", "shop.bare", "--json").stdout)
    assert compared["same"] and compared["rows"] == 2
    server.execute_many(["SET sql_log_bin = 0", "INSERT INTO shop.bare VALUES (1, 0.1)"])
    told = feed(config, "verify", "--table", "shop.bare", "--json")
    assert told.returncode == 1 and json.loads(told.stdout)["missing"] == 1
    server.execute_many(["USE shop", "INSERT INTO bare SELECT seq, 1 FROM seq_1_to_1000"])
    end = server.master_status()
    running.wait_archived(end.file, end.position)
    many = feed(config, "snapshot", "--table", "shop.bare")
    assert many.returncode == 1 and "no_key" in many.stderr and "--server" in many.stderr
    server.sql("DROP TABLE shop.bare")


def test_a_chunk_has_only_as_many_rows_as_fit_into_memory(
    tmp_path: Path, relay: tuple[Server, RelayProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pydantic import SecretStr

    from protocol.sql.tables.source_table import Column, Table
    from relay.feed.feed_config import FeedSource
    from relay.feed.rows.feed_stop import FeedStop
    from relay.feed.rows.lake_columns import lake_columns
    from relay.feed.rows.net_changes import TableRows
    from relay.feed.snapshot import keyless_snapshot, source_rows

    server, _ = relay
    server.execute_many(
        [
            "USE shop",
            "CREATE TABLE large (id INT PRIMARY KEY, body LONGTEXT)",
            "INSERT INTO large SELECT seq, '' FROM seq_1_to_2500",
            "INSERT INTO large SELECT seq, REPEAT('x', 100000) FROM seq_2501_to_2560",
            "INSERT INTO large SELECT seq, '' FROM seq_2561_to_4000",
        ]
    )
    monkeypatch.setattr(source_rows, "_BYTES_AT_ONCE", 1 << 20)
    columns = (Column("id", "int(11)"), Column("body", "longtext", "utf8mb4"))
    rows = TableRows("shop.large", lake_columns(Table("shop", "large", "InnoDB", columns, ()), ""), ("id",))
    server.sql(f"GRANT SELECT ON *.* TO '{server.replication_user}'@'%'")
    source = FeedSource(
        host="127.0.0.1",
        port=server.port,
        user=server.replication_user,
        password=SecretStr(server.replication_password),
    )
    with source_rows.SourceRows(source) as reading:
        chunks, last = [], None
        while not chunks or last is not None:
            chunk, last = reading.chunk(("shop", "large"), rows, last, 10_000)
            chunks.append(chunk)
        assert [one for chunk in chunks for one in chunk.column("id").to_pylist()] == list(range(1, 4001))
        assert max(one.nbytes for one in chunks) < 1_300_000
        assert 8 <= len(chunks) <= 20
        portions = list(reading.all_rows(("shop", "large"), rows))
        assert sum(one.num_rows for one in portions) == 4000
        assert max(one.nbytes for one in portions) < 1_300_000
        monkeypatch.setattr(keyless_snapshot, "_MOST_BYTES", 2 << 20)
        whole = keyless_snapshot.WholeTable(None, reading, ("shop", "large"), 10_000)  # type: ignore[arg-type]
        with pytest.raises(FeedStop, match="it has more than 2 MB"):
            whole._chunks(rows)
        assert reading.server_id() == 1  # the connection is free for the next table
    server.sql("DROP TABLE shop.large")


def current(config: Path, schema: str, table: str, kind: str = "current") -> Any:
    from relay.feed.feed_config import load_feed_config
    from relay.feed.feed_run import open_connection, open_lake

    section = load_feed_config(config)
    found = open_lake(section, open_connection(section)).open(kind, schema, table)
    assert found is not None
    return found.scan().read_all()
