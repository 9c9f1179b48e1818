"""A DOUBLE's -0 stands as `-0` in an image, and is -0 in the lake, not an integer's 0."""

from typing import Any

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[feed]'")

import duckdb
import pyarrow as pa

from relay.feed.rows.equal_rows import equal_row_changes
from relay.feed.rows.lake_columns import DELETED, NUMBER, ROW, SEQUENCE, TEXT, LakeColumn
from relay.feed.rows.net_changes import CHANGES, TableRows, loaded, net_changes

NO_SOURCE: Any = None
COLUMNS = [
    LakeColumn("x", pa.float64(), NUMBER, "DOUBLE", NO_SOURCE),
    LakeColumn("s", pa.string(), TEXT, "VARCHAR", NO_SOURCE),
    LakeColumn("y", pa.float64(), NUMBER, "DOUBLE", NO_SOURCE),
    LakeColumn("n", pa.int32(), NUMBER, "INTEGER", NO_SOURCE),
]
IMAGE = '{"x":-0,"s":"\\":-0,","y": -0,"n":-0}'
INSERT = pa.table([[1], [0], ["insert"], pa.nulls(1, pa.string()), [IMAGE]], schema=CHANGES)


def shown(rows: pa.Table) -> list[str]:
    return [str([one[name] for name in ("x", "s", "y", "n")]) for one in rows.to_pylist()]


@pytest.mark.parametrize("key", [("n",), ("x",), ()], ids=["a key", "itself the key", "no key"])
def test_minus_zero_stays_what_it_is(key: tuple[str, ...]) -> None:
    rows = TableRows("shop.t", COLUMNS, key)
    connection = duckdb.connect()
    found = (
        net_changes(connection, INSERT, rows)
        if key
        else equal_row_changes(connection, INSERT, rows, lambda: pa.table({}).to_reader())
    )
    assert shown(found) == [str([-0.0, '":-0,', -0.0, 0])]


def test_an_image_in_part_that_is_made_whole_keeps_minus_zero() -> None:
    assert str(loaded(IMAGE)["x"]) == "-0.0"


def test_a_row_without_a_key_is_found_by_its_minus_zero() -> None:
    rows = TableRows("shop.t", COLUMNS, ())
    delete = pa.table([[2], [0], ["delete"], [IMAGE], pa.nulls(1, pa.string())], schema=CHANGES)
    lake = pa.table({"x": [-0.0], "s": ['":-0,'], "y": [-0.0], "n": pa.array([0], pa.int32()), SEQUENCE: [1], ROW: [7]})
    found = equal_row_changes(duckdb.connect(), delete, rows, lake.to_reader)
    assert [(one[SEQUENCE], one[ROW], one[DELETED]) for one in found.to_pylist()] == [(1, 7, True)]
