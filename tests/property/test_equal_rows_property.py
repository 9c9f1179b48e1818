"""Tables without a key against a model: a multiset of rows, whatever happened to equal ones, cut anywhere."""

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.sql.tables.source_table import Column, Table
from relay.feed.lake.delta_lake import DeltaLake
from relay.feed.lake.lake_table import LakeTable, NewTable
from relay.feed.rows.equal_rows import OWN_NAME, equal_row_changes
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.rows.lake_columns import lake_columns, lake_schema
from relay.feed.rows.net_changes import CHANGES, TableRows

TABLE = Table(
    "shop",
    "t",
    "InnoDB",
    (
        Column("s", "varchar(9)", "utf8mb4"),  # in a collation in which 'a' and 'A' are equal
        Column("f", "double"),
        Column("d", "decimal(9,2)", default="7.00"),
        Column("b", "varbinary(9)"),
        Column("t", "timestamp(3)"),
    ),
    (),
)
COLUMNS = lake_columns(TABLE, "here")
ROWS = TableRows("shop.t", COLUMNS, (), "here")
NAMES = [one.name for one in COLUMNS]

rows_of = st.fixed_dictionaries(
    {
        "s": st.sampled_from([None, "", "a", "A", "a ", "ü"]),
        "f": st.sampled_from([None, 0.0, -0.0, 0.1]),
        "d": st.sampled_from([None, "7.00"]),
        "b": st.sampled_from([None, {"base64": "AP8="}]),
        "t": st.sampled_from([None, "2020-02-29 12:00:00.125"]),
    }
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "update", "delete"]),
        rows_of,
        st.integers(0, 9),
        st.sampled_from(["whole", "part"]),
    ),
    min_size=1,
    max_size=25,
)


def happen(step: tuple[str, dict[str, Any], int, str], rows: list[dict[str, Any]]) -> tuple[Any, Any] | None:
    """What a step does to rows, and the images before and after as the binlog has them; None: it does nothing."""
    verb, new, place, image = step
    if verb == "insert":
        rows.append(dict(new))
        left_out = {"d"} if image == "part" and new["d"] == "7.00" else set()
        return None, {name: value for name, value in new.items() if name not in left_out}
    if not rows:
        return None
    old = rows.pop(place % len(rows))
    if verb == "delete":
        return old, None
    rows.append(dict(new))
    # MINIMAL has of a table without a key all columns before, and after those that changed
    return old, new if image == "whole" else {
        name: value for name, value in new.items() if repr(value) != repr(old[name])
    }


def changes_of(found: list[tuple[int, tuple[Any, Any]]]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "sequence": sequence,
                "row": 0,
                "operation": "update",
                "before": None if before is None else json.dumps(before),
                "after": None if after is None else json.dumps(after),
            }
            for sequence, (before, after) in found
        ],
        schema=CHANGES,
    )


def shown(table: LakeTable) -> Counter[str]:
    found = table.scan().read_all().select(NAMES).to_pylist()
    return Counter(
        repr((one["s"], one["f"], None if one["d"] is None else str(one["d"]), one["b"], one["t"] is not None))
        for one in found
    )


def expected(rows: list[dict[str, Any]]) -> Counter[str]:
    # -0 is kept as 0
    return Counter(
        repr(
            (
                one["s"],
                one["f"] if one["f"] is None else one["f"] + 0.0,
                one["d"],
                None if one["b"] is None else b"\x00\xff",
                one["t"] is not None,
            )
        )
        for one in rows
    )


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Any:
    connection = duckdb.connect()
    directory: Path = tmp_path_factory.mktemp("lakes")
    numbers = iter(range(1_000_000))

    def fresh() -> tuple[LakeTable, Any]:
        made = DeltaLake(str(directory / str(next(numbers))), {}, connection)
        return made.create(
            NewTable("current", ("shop", "t"), lake_schema(COLUMNS, has_key=False), FeedOffset(1, 1, 4))
        ), connection

    return fresh


@settings(max_examples=25, deadline=None)
@given(steps=steps, cuts=st.lists(st.integers(0, 24), max_size=3))
def test_whatever_happened_to_equal_rows_there_are_as_many_of_each_as_at_the_source(
    lake: Any, steps: Any, cuts: list[int]
) -> None:
    table, connection = lake()
    rows: list[dict[str, Any]] = []
    happened = [(1000 + number, one) for number, step in enumerate(steps) if (one := happen(step, rows)) is not None]
    edges = sorted({0, len(happened), *(cut for cut in cuts if cut < len(happened))})
    for first, last in itertools.pairwise(edges):
        net = equal_row_changes(connection, changes_of(happened[first:last]), ROWS, table.scan)
        if net.num_rows:
            table.merge(net, OWN_NAME, FeedOffset(1, 1, 100 + last))
    assert shown(table) == expected(rows)
    own = table.scan().read_all().select(list(OWN_NAME)).to_pylist()
    assert len({tuple(one.values()) for one in own}) == len(own)


def test_a_row_that_the_lake_has_not_stops_it_by_name(lake: Any) -> None:
    table, connection = lake()
    row = {"s": "a", "f": 0.0, "d": None, "b": None, "t": None}
    net = equal_row_changes(connection, changes_of([(1, (None, row))]), ROWS, table.scan)
    table.merge(net, OWN_NAME, FeedOffset(1, 1, 100))
    for other in ({**row, "s": "A"}, {**row, "f": 0.1}, {**row, "b": {"base64": ""}}):
        with pytest.raises(FeedStop, match="row_missing"):
            equal_row_changes(connection, changes_of([(2, (other, None))]), ROWS, table.scan)
        assert (
            equal_row_changes(connection, changes_of([(2, (other, None))]), ROWS, table.scan, lenient=True).num_rows
            == 0
        )
    found = equal_row_changes(connection, changes_of([(2, ({**row, "f": -0.0}, None))]), ROWS, table.scan)
    assert found.num_rows == 1  # 0 and -0 are one
    with pytest.raises(FeedStop, match="key_missing"):
        equal_row_changes(connection, changes_of([(2, ({"s": "a"}, None))]), ROWS, table.scan)
