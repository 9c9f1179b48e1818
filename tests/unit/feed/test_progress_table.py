"""The table `_feed` of a lake, also one that an earlier version of the feed created."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

import duckdb
import pyarrow as pa

from relay.feed.lake.delta_lake import DeltaLake
from relay.feed.lake.iceberg_lake import IcebergLake
from relay.feed.lake.lake_table import NewTable
from relay.feed.progress_table import PROGRESS, STATE, ProgressTable
from relay.feed.rows.feed_place import FeedOffset

FORMATS = ["delta", "iceberg"]
LATER_COLUMNS = ("aside", "kinds")
"""The columns that a first version of the feed did not have."""


def lake_of(format: str, directory: Path) -> Any:
    if format == "delta":
        return DeltaLake(str(directory), {}, duckdb.connect())
    return IcebergLake(str(directory), None, {}, duckdb.connect())


def text(place: FeedOffset) -> str:
    return f"mysql-bin.{place.number:06}:{place.position}"


def table_of_an_earlier_version(lake: Any, place: FeedOffset) -> None:
    schema = pa.schema([one for one in PROGRESS if one.name not in LATER_COLUMNS])
    row = {"schema": "shop", "table": "orders", "place": text(place), "current": "current", "modes": "changes,current"}
    made = lake.create(NewTable(STATE, ("", ""), schema, place))
    made.replace(pa.Table.from_pylist([row], schema=schema), place)


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_is_set_aside_in_a_lake_of_an_earlier_version(tmp_path: Path, format: str) -> None:
    lake = lake_of(format, tmp_path)
    place = FeedOffset(1, 1, 400)
    table_of_an_earlier_version(lake, place)
    ProgressTable(lake, told=text).note_aside({("shop", "lines"): (place, "why")}, place)
    assert ProgressTable(lake).aside() == {("shop", "lines"): "why"}


@pytest.mark.parametrize("format", FORMATS)
def test_tables_of_an_earlier_version_keep_their_places_when_one_is_set_aside(tmp_path: Path, format: str) -> None:
    lake = lake_of(format, tmp_path)
    place = FeedOffset(1, 1, 400)
    table_of_an_earlier_version(lake, place)
    ProgressTable(lake, told=text).note_aside({("shop", "lines"): (FeedOffset(1, 1, 300), "why")}, place)
    found = ProgressTable(lake)
    assert found.done(("shop", "orders")) == place and found.done(("shop", "lines")) == FeedOffset(1, 1, 300)


@pytest.mark.parametrize("format", FORMATS)
def test_what_was_noted_before_a_table_was_set_aside_is_not_written_over_its_record(
    tmp_path: Path, format: str
) -> None:
    lake = lake_of(format, tmp_path)
    place = FeedOffset(1, 1, 400)
    tables: list[Any] = [
        SimpleNamespace(key=("shop", name), current=None, may_have_current=False, kinds=())
        for name in ("lines", "orders")
    ]
    progress = ProgressTable(lake, told=text)
    progress.note(place, tables, text(place), None)
    progress.note_aside({("shop", "lines"): (place, "why")}, place)
    progress.write()
    found = ProgressTable(lake)
    assert (found.aside(), found.done(("shop", "orders"))) == ({("shop", "lines"): "why"}, place)
