"""What a rebuild decides before it reads anything, and which changes it keeps."""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from relay.feed.lake.lake_table import LOADED, SNAPSHOT, STALE_FROM, loaded_properties
from relay.feed.rebuild import kept_changes
from relay.feed.rebuild.feed_beside import OneTable
from relay.feed.rebuild.rebuild_plan import LoadedVersion, RebuildPlan, loaded_version, rebuild_plan
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.statements.history_rows import CHANGE_COLUMNS, HistoryGap

BEGUN = datetime(2024, 1, 1, tzinfo=UTC)
START = FeedOffset(1, 5, 4)


class Archive:
    """An archive from binlog 2 to 9, which names no table."""

    path = ""

    def oldest(self) -> FeedOffset:
        return FeedOffset(1, 2, 4)

    def newest(self, *_limits: object) -> FeedOffset:
        return FeedOffset(1, 9, 4)

    def begun(self, _place: FeedOffset) -> datetime:
        return BEGUN

    def told(self, place: FeedOffset) -> str:
        return f"mysql-bin.{place.number:06}:{place.position}"

    text = told

    def definition_files(self, *_given: object) -> frozenset[tuple[int, int]]:
        return frozenset()

    def stretches_before(self, _upto: FeedOffset) -> list[Any]:
        return []


class Table:
    """A table of the lake with these properties and rows."""

    def __init__(self, properties: dict[str, str] | None = None, rows: pa.Table | None = None) -> None:
        self.properties = properties or {}
        self.version = 12
        self.place = START
        self._rows = rows

    def scan(self) -> pa.RecordBatchReader:
        assert self._rows is not None
        return self._rows.to_reader()


def planned(current: Table | None, asked: str | None = None, *, needs_rows: bool = True) -> RebuildPlan:
    archive: Any = Archive()
    table: Any = current
    return rebuild_plan(archive, ("shop", "t"), table, asked, needs_rows=needs_rows)


def loaded(begun: datetime = BEGUN, **properties: str) -> Table:
    table: Any = Table(dict(properties))
    return Table(loaded_properties(table, lambda _place: begun))


def test_without_a_creation_a_table_begins_at_its_last_snapshot() -> None:
    assert planned(loaded()) == RebuildPlan(START, LoadedVersion(12, START))


def test_changes_may_be_made_from_before_the_snapshot() -> None:
    assert planned(loaded(), "first") == RebuildPlan(FeedOffset(1, 2, 4), LoadedVersion(12, START))


def test_a_snapshot_before_the_place_that_was_asked_for_says_nothing_of_the_rows_there() -> None:
    with pytest.raises(FeedStop, match="rows_unknown") as refused:
        planned(loaded(), "mysql-bin.000006:4")
    assert "last snapshot of it was complete at mysql-bin.000005:4, which is before" in refused.value.what


def test_without_a_creation_and_a_snapshot_the_way_on_is_a_snapshot() -> None:
    with pytest.raises(FeedStop, match="rows_unknown") as refused:
        planned(Table())
    assert "feed snapshot --table shop.t" in refused.value.advice


def test_a_snapshot_of_another_archive_with_the_same_names_is_none() -> None:
    with pytest.raises(FeedStop, match="rows_unknown"):
        planned(loaded(datetime(2023, 1, 1, tzinfo=UTC)))


def test_changes_alone_need_no_rows() -> None:
    assert planned(None, needs_rows=False) == RebuildPlan(FeedOffset(1, 2, 4))


@pytest.mark.parametrize("place", ["yesterday", "mysql-bin.000001:4", "mysql-bin.000010:4", "last"])
def test_a_place_that_the_archive_has_not_is_refused(place: str) -> None:
    with pytest.raises(FeedStop, match="place_unknown"):
        planned(loaded(), place)


@pytest.mark.parametrize("plan", [RebuildPlan(START), RebuildPlan(START, LoadedVersion(3, FeedOffset(2, 1, 99)))])
def test_a_plan_that_was_recorded_is_the_same(plan: RebuildPlan) -> None:
    assert RebuildPlan.of_text(plan.text()) == plan


def test_a_table_that_was_stale_at_its_snapshots_end_has_no_version_to_begin_with() -> None:
    archive: Any = Archive()
    table: Any = Table({STALE_FROM: "mysql-bin.000004:4"})
    properties = loaded_properties(table, archive.begun)
    assert properties == {SNAPSHOT: ""} and LOADED not in properties
    assert loaded_version(archive, table) is None


def test_a_table_with_an_asterisk_in_its_name_is_no_pattern() -> None:
    choice = OneTable(("shop.*",), (), ("shop", "*"))
    assert choice(("shop", "*")) and not choice(("shop", "t"))


def test_changes_before_the_place_stay_and_a_gap_over_it_ends_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_changes.arrow, "sequence_of", lambda _path, _place: 50)
    rows = [{"sequence": one, "row": 0, "operation": "insert", "time": BEGUN} for one in (10, 49, 50, 60)]
    over = HistoryGap("mysql-bin.000004:9", "mysql-bin.000007:9", 70, "they were purged", BEGUN)
    behind = HistoryGap("mysql-bin.000006:9", "mysql-bin.000007:9", 80, "later", BEGUN)
    upto = HistoryGap("mysql-bin.000003:9", "mysql-bin.000005:4", 50, "before", BEGUN)
    table: Any = Table(
        rows=pa.concat_tables(
            [pa.Table.from_pylist(rows, CHANGE_COLUMNS), *(one.rows() for one in (over, behind, upto))]
        )
    )
    archive: Any = Archive()
    found = pa.Table.from_batches(kept_changes.kept_changes(archive, table, START)).to_pylist()
    assert [(one["sequence"], one["operation"]) for one in found] == [
        (10, "insert"),
        (49, "insert"),
        (50, "gap"),
        (50, "gap"),
    ]
    gaps = {(one["reason"], one["to"]) for one in (json.loads(row["after"]) for row in found if row["after"])}
    assert gaps == {("they were purged", "mysql-bin.000005:4"), ("before", "mysql-bin.000005:4")}
