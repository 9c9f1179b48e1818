"""The archive of a running relay, read and followed while a real source writes."""

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from relay.schema_history.schema_file import read_schema
from tests.audit.test_splits import found_in, rows, splits_of
from tests.conftest import ServerFactory
from tests.support.chain import Chain, wait_until

pytestmark = pytest.mark.interop


@pytest.fixture
def chain(servers: ServerFactory, tmp_path: Path) -> Iterator[Chain]:
    """A MariaDB source, and a relay that stamps what it archives."""
    with contextlib.ExitStack() as made:
        made_chain = made.enter_context(Chain(servers, "mariadb", tmp_path / "relay", options=["--binlog-format=ROW"]))
        made_chain.source.execute_many(
            [
                "CREATE DATABASE shop",
                "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE=InnoDB",
            ]
        )
        yield made_chain


def test_events_of_an_archive_are_stamped_as_they_are_inferred(chain: Chain) -> None:
    for number in range(50):
        chain.source.sql(f"INSERT INTO shop.orders (n) VALUES ({number}), ({number})")
    chain.wait_archived()
    archive = chain.relay.archive
    assert found_in(archive) == []
    events = rows(splits_of(archive), "events", "position", "boundary", "inferred", "stamped", "type")
    assert all(row["stamped"] and row["boundary"] == row["inferred"] for row in events)
    transactions = [row for row in rows(splits_of(archive), "transactions") if row["tables"] == ["shop.orders"]]
    assert [row["rows_inserted"] for row in transactions] == [2] * 50
    # while the source's own files, which nobody stamped, say the same of the transactions
    plain = [row for row in rows(splits_of(chain.source.datadir), "transactions") if row["tables"] == ["shop.orders"]]
    # but for their order among files: a server's directory has files with numbers that are no binlogs
    assert [{**row, "sequence": None} for row in transactions] == plain


def test_streams_that_are_stopped_and_started_see_each_transaction_and_row_of_the_relay_once(
    spark: Any, chain: Chain, tmp_path: Path
) -> None:
    count = 400

    def order() -> None:
        with chain.source.connect("shop") as connection, connection.cursor() as cursor:
            for number in range(count):
                cursor.execute(f"INSERT INTO orders (n) VALUES ({number}), ({number})")
                if number in (count // 3, count // 2):
                    cursor.execute("FLUSH BINARY LOGS")

    def start(level: str, condition: str, columns: tuple[str, ...]) -> Any:
        return (
            spark.readStream.format("binlog")
            .option("level", level)
            .load(str(chain.relay.archive))
            .where(condition)
            .select(*columns)
            .writeStream.format("parquet")
            .option("path", str(tmp_path / level / "out"))
            .option("checkpointLocation", str(tmp_path / level / "checkpoint"))
            .trigger(processingTime="50 milliseconds")
            .start()
        )

    wanted = {
        "transactions": ("array_contains(tables, 'shop.orders')", ("file", "start", "gtid", "rows_inserted")),
        "rows": ("schema = 'shop' AND table = 'orders'", ("file", "transaction", "row", "gtid", "after", "statement")),
    }
    writer = threading.Thread(target=order)
    writer.start()
    queries = [start(level, *what) for level, what in wanted.items()]
    for query in queries:
        query.processAllAvailable()
        query.stop()
    queries = [start(level, *what) for level, what in wanted.items()]
    writer.join()
    chain.wait_archived()
    for query in queries:
        query.processAllAvailable()
        query.stop()
    for level, (_condition, columns) in wanted.items():
        found = spark.read.parquet(str(tmp_path / level / "out")).collect()
        expected = [
            tuple(row[name] for name in columns)
            for row in rows(splits_of(chain.relay.archive), level)
            if (row["table"] == "orders" if level == "rows" else "shop.orders" in row["tables"])
        ]
        assert len(expected) == count * (2 if level == "rows" else 1)
        assert sorted(tuple(row) for row in found) == sorted(expected)


def test_rows_have_the_names_that_the_relay_recorded_while_the_table_changed(
    servers: ServerFactory, tmp_path: Path
) -> None:
    recording = {"source": {"record_schema": True}}
    with Chain(servers, "mysql56", tmp_path / "relay", options=["--binlog-format=ROW"], sections=recording) as chain:
        source = chain.source
        source.sql(f"GRANT REFERENCES ON *.* TO '{source.replication_user}'@'%'")
        source.execute_many(
            ["CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT UNSIGNED, kind ENUM('new','paid'), t TEXT)"]
        )
        source.sql("INSERT INTO shop.orders VALUES (4294967295, 'paid', 'grün')")

        def recorded(column: str) -> bool:
            at = source.master_status()
            table = read_schema(chain.relay.archive).recorded("shop", "orders", at.file, at.position)
            return table is not None and column in [one.name for one in table.columns]

        wait_until(lambda: recorded("kind"), "the table is recorded")
        source.execute_many(
            [
                "ALTER TABLE shop.orders DROP COLUMN kind, ADD COLUMN more BINARY(2)",
                "INSERT INTO shop.orders VALUES (1, NULL, 'ab')",
            ]
        )
        wait_until(lambda: recorded("more"), "the table is recorded as it is now")
        chain.wait_archived()
        found = [json.loads(row["after"]) for row in rows(splits_of(chain.relay.archive), "rows")]
    assert found == [
        {"id": 4294967295, "kind": "paid", "t": "grün"},
        {"id": 1, "t": None, "more": {"base64": "YWI="}},
    ]
