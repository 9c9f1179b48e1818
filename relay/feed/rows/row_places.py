"""Rows of level `rows` with the places of their transactions, by which they are cut."""

from collections.abc import Collection
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from relay.feed.rows.feed_place import FeedOffset

AT: Final = "place"
"""This column contains the place of a row's transaction, as FeedOffset.version."""


def with_places(rows: pa.Table) -> pa.Table:
    """Return the rows with the places of their transactions, in the column AT."""
    files = pc.unique(rows.column("file")).to_pylist()
    base = pa.array([FeedOffset.at(file, 0).version for file in files], pa.int64())
    index = pc.index_in(rows.column("file"), pa.array(files, pa.string()))
    places = pc.add(base.take(index), rows.column("transaction")) if rows.num_rows else pa.array([], pa.int64())
    return rows.append_column(AT, places)


def rows_within(rows: pa.Table, low: int | None, high: int | None, without: Collection[int]) -> pa.Table:
    """Return rows of transactions that begin in [low, high), except some."""
    if low is not None:
        rows = rows.filter(pc.greater_equal(rows.column(AT), low))
    if high is not None:
        rows = rows.filter(pc.less(rows.column(AT), high))
    if without:
        rows = rows.filter(pc.invert(pc.is_in(rows.column(AT), pa.array(sorted(without), pa.int64()))))
    return rows
