"""Two feeds on one lake, as after a restart on another machine while the first one still runs."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

import duckdb
import pyarrow as pa

from relay.feed.feed_run import is_passing
from relay.feed.lake.delta_lake import DeltaLake
from relay.feed.lake.iceberg_lake import IcebergLake
from relay.feed.lake.lake_table import ColumnsChange, NewTable
from relay.feed.rows.feed_place import FeedOffset

SCHEMA = pa.schema([("id", pa.int64()), ("_sequence", pa.int64())])


def lake_of(format: str, directory: Path) -> Any:
    connection = duckdb.connect()
    return (
        DeltaLake(str(directory), {}, connection)
        if format == "delta"
        else IcebergLake(str(directory), None, {}, connection)
    )


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_what_two_feeds_commit_at_once_is_there_once(tmp_path: Path, format: str) -> None:
    lake_of(format, tmp_path).create(NewTable("changes", ("shop", "t"), SCHEMA, FeedOffset(1, 1, 4)))
    first, second = (lake_of(format, tmp_path).open("changes", "shop", "t") for _ in range(2))
    rows = pa.table({"id": [1], "_sequence": [1]}, schema=SCHEMA)
    first.append(rows, FeedOffset(1, 1, 100))
    with pytest.raises(Exception) as refused:
        second.append(rows, FeedOffset(1, 1, 100))
    assert is_passing(refused.value)  # the feed opens the lake again, and sees that it is done
    opened = lake_of(format, tmp_path).open("changes", "shop", "t")
    assert opened.place == FeedOffset(1, 1, 100)
    with opened.scan() as reader:
        assert reader.read_all().num_rows == 1


@pytest.mark.parametrize("how", ["advance", "evolve", "clear"])
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_feed_that_is_behind_does_not_take_the_place_back(tmp_path: Path, format: str, how: str) -> None:
    lake_of(format, tmp_path).create(NewTable("current", ("shop", "t"), SCHEMA, FeedOffset(1, 1, 4)))
    first, second = (lake_of(format, tmp_path).open("current", "shop", "t") for _ in range(2))
    first.append(pa.table({"id": [1], "_sequence": [1]}, schema=SCHEMA), FeedOffset(1, 1, 200))
    wider = SCHEMA.append(pa.field("n", pa.int32()))
    with pytest.raises(Exception) as refused:
        if how == "advance":
            second.advance(FeedOffset(1, 1, 150))
        else:
            second.evolve(ColumnsChange(wider, emptied=how == "clear"), FeedOffset(1, 1, 150))
    assert is_passing(refused.value)
    opened = lake_of(format, tmp_path).open("current", "shop", "t")
    assert opened.place == FeedOffset(1, 1, 200)
