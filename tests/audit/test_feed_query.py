"""The feed as a streaming query: the same tables as without Spark, also where Spark repeats a batch."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from relay.feed.feed_config import load_feed_config
from relay.feed.feed_run import open_connection, open_lake
from relay.spark.feed_query import feed_query
from tests.conftest import ServerFactory

PAGE = Path(__file__).resolve().parents[2] / "docs" / "FEED.md"
pytestmark = pytest.mark.interop


def settings(directory: Path, archive: Path, target: str) -> Path:
    path = directory / f"{target}.toml"
    path.write_text(
        f'[feed]\narchive = "{archive}"\ntarget = "{directory / target}"\ntables = ["shop.*"]\nbatch_mb = 1\n'
    )
    return path


def tables(config: Path) -> dict[str, Any]:
    section = load_feed_config(config)
    lake = open_lake(section, open_connection(section))
    found = {}
    for kind in ("current", "changes"):
        table = lake.open(kind, "shop", "orders")
        assert table is not None
        rows = table.scan().read_all().to_pylist()
        found[kind] = sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)
        found[f"{kind} version"] = table.version
    return found


def test_a_query_feeds_the_same_tables_as_the_command_and_a_repeated_batch_changes_nothing(
    spark: Any, tmp_path: Path, servers: ServerFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(
        [
            "CREATE DATABASE shop",
            "USE shop",
            "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(200))",
            *(f"INSERT INTO orders VALUES ({n}, REPEAT('x', 200)), ({-n}, NULL)" for n in range(1, 60)),
            "ALTER TABLE orders ADD amount DECIMAL(10,2) NOT NULL DEFAULT 1.5",
            "FLUSH BINARY LOGS",
            "UPDATE orders SET id = id + 1000 WHERE id > 50",
            "CREATE TABLE fresh LIKE orders",
            "INSERT INTO fresh SELECT * FROM orders",
            "RENAME TABLE orders TO old, fresh TO orders",
            "DELETE FROM orders WHERE id < -50",
        ]
    )
    archive = tmp_path / "binlogs"
    archive.mkdir()
    for one in server.binlogs():
        shutil.copy(one, archive)
    by_query, by_command = settings(tmp_path, archive, "query"), settings(tmp_path, archive, "command")
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        query = feed_query(spark, by_query, str(checkpoint), once=True)
        assert query.awaitTermination(120)
        assert query.exception() is None

    run()
    done = tables(by_query)
    subprocess.run(
        [sys.executable, "-m", "relay", "feed", "--config", str(by_command), "--once"], check=True, capture_output=True
    )
    assert {kind: done[kind] for kind in ("current", "changes")} == {
        kind: rows for kind, rows in tables(by_command).items() if "version" not in kind
    }
    assert len(done["current"]) > 100

    newest = max((checkpoint / "commits").glob("[0-9]*"), key=lambda one: int(one.name))
    newest.unlink()
    (checkpoint / "commits" / f".{newest.name}.crc").unlink(missing_ok=True)
    run()
    assert tables(by_query) == done

    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (example,) = [one for one in examples if "spark.sql" in one]
    exec(example.replace("/lake/shop", str(tmp_path / "query")), {"spark": spark})
    with server.connect("shop") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*), sum(amount) FROM orders")
        told = cursor.fetchone()
    shown = capsys.readouterr().out
    assert f"|{told[0]:6}|{told[1]!s:>6}|" in shown, shown
