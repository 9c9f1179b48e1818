"""The archive of a running relay, read and followed while a real source writes."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from tests.audit.test_splits import found_in, rows, splits_of
from tests.conftest import ServerFactory
from tests.support.chain import Chain

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
    assert plain == transactions


def test_a_stream_that_is_stopped_and_started_sees_each_transaction_of_the_relay_once(
    spark: Any, chain: Chain, tmp_path: Path
) -> None:
    count = 400
    work = tmp_path / "work"

    def order() -> None:
        with chain.source.connect("shop") as connection, connection.cursor() as cursor:
            for number in range(count):
                cursor.execute(f"INSERT INTO orders (n) VALUES ({number})")
                if number in (count // 3, count // 2):
                    cursor.execute("FLUSH BINARY LOGS")

    def start() -> Any:
        return (
            spark.readStream.format("binlog")
            .option("level", "transactions")
            .load(str(chain.relay.archive))
            .where("array_contains(tables, 'shop.orders')")
            .select("file", "start", "gtid", "rows_inserted")
            .writeStream.format("parquet")
            .option("path", str(work / "out"))
            .option("checkpointLocation", str(work / "checkpoint"))
            .trigger(processingTime="50 milliseconds")
            .start()
        )

    writer = threading.Thread(target=order)
    writer.start()
    query = start()
    query.processAllAvailable()
    query.stop()
    query = start()
    writer.join()
    chain.wait_archived()
    query.processAllAvailable()
    query.stop()
    found = spark.read.parquet(str(work / "out")).collect()
    expected = [
        (row["file"], row["start"], row["gtid"], 1)
        for row in rows(splits_of(chain.relay.archive), "transactions")
        if "shop.orders" in row["tables"]
    ]
    assert len(expected) == count
    assert sorted(tuple(row) for row in found) == sorted(expected)
