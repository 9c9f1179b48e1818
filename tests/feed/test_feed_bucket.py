"""A real S3 server as the target."""

from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from tests.conftest import ServerFactory
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs
from tests.support.moto_server import BUCKET, moto_server

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_tables_in_a_bucket_are_the_sources(tmp_path: Path, servers: ServerFactory, format: str) -> None:
    server = servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(
        [
            "CREATE DATABASE shop",
            "USE shop",
            "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20), amount DECIMAL(9,2))",
            *(f"INSERT INTO orders VALUES ({n}, 'grün', {n}.5)" for n in range(20)),
            "UPDATE orders SET id = id + 100 WHERE id < 5",
            "DELETE FROM orders WHERE id > 102",
        ]
    )
    archive = copied_binlogs(server, tmp_path / "binlogs")
    secret = tmp_path / "secret"
    secret.write_text("any")
    # In a process of its own: delta-rs keeps the interpreter while it waits for an answer.
    with moto_server() as url:
        feed = SmallFeed(
            tmp_path / "feed",
            archive,
            "shop",
            target=f"s3://{BUCKET}/lake",
            format=format,
            storage={
                "endpoint": url,
                "region": "us-east-1",
                "access_key_id": "any",
                "secret_access_key_file": str(secret),
                "allow_http": True,
            },
            **({"catalog": str(tmp_path / "catalog.sqlite")} if format == "iceberg" else {}),
        )
        assert feed.run() is None
        table = feed.open().lake.open("current", "shop", "orders")
        assert table is not None
        with table.scan() as reader:
            found = reader.read_all()
    names, rows = true_rows(server, "shop", "orders")
    assert lake_rows(found, names) == rows
    assert len(rows) > 10
