"""Values of the source by SELECT are written as those of its binlog are."""

import json
import struct

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[feed]'")

import duckdb
import pyarrow as pa

from protocol.columns.text.real_text import put_real_32
from protocol.sql.tables.source_table import Column
from relay.feed.rows.lake_columns import lake_column
from relay.feed.rows.net_changes import CHANGES, TableRows, net_changes
from relay.feed.snapshot.source_rows import lake_table_of, normalised


def in_binlog(number: float) -> str:
    """Return a FLOAT as an image has it."""
    text = bytearray(25)
    return text[: put_real_32(text, 0, int.from_bytes(struct.pack("<f", number), "little"))].decode()


@pytest.mark.parametrize(
    "number", [3, 0.1, -2.5, 3.3277153893293043, 1e20, 1.5e-30, 0, 16777216, 3.4028234663852886e38]
)
def test_a_vector_of_a_snapshot_has_the_text_that_the_feed_writes(number: float) -> None:
    columns = [lake_column(Column("id", "int", "")), lake_column(Column("v", "vector(2)", ""))]
    rows = TableRows("shop.t", [one for one in columns if one is not None], ("id",))
    image = f'{{"id": 1, "v": [{in_binlog(number)}, 1]}}'
    changes = pa.table([[1], [0], ["insert"], [None], [image]], schema=CHANGES)
    with duckdb.connect() as connection:
        fed = net_changes(connection, changes, rows).column("v").to_pylist()
        loaded = lake_table_of([(1, struct.pack("<2f", number, 1))], rows)
        assert normalised(connection, loaded, rows.columns).column("v").to_pylist() == fed
    assert struct.pack("<f", json.loads(fed[0])[0]) == struct.pack("<f", number)
