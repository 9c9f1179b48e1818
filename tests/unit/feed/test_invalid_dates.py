"""The count of invalid dates that were written as NULL: each of them once, whenever the feed was killed."""

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[feed]'")

from protocol.sql.tables.source_table import Column
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.rows.invalid_dates import NullDates, null_dates, with_null_dates
from relay.feed.rows.lake_columns import lake_column
from relay.feed.rows.net_changes import TableRows
from relay.feed.snapshot.source_rows import lake_table_of

BEFORE, FIRST, SECOND = FeedOffset(1, 1, 4), FeedOffset(1, 1, 100), FeedOffset(1, 1, 200)
INVALID = ("0000-00-00", "2020-00-01", "2020-02-30", "0000-01-01")


def loaded(dates: NullDates | None, texts: tuple[str | None, ...], key: tuple[str, ...] = ()) -> list[object]:
    column = lake_column(Column("d", "date", ""))
    assert column is not None
    rows = TableRows("shop.orders", [column], key, "", dates)
    found: list[object] = lake_table_of([(text,) for text in texts], rows).column("d").to_pylist()
    return found


def test_a_commit_that_was_not_made_does_not_count() -> None:
    properties = with_null_dates({}, BEFORE, 3, FIRST)
    assert null_dates(properties, BEFORE) == 0
    assert null_dates(properties, FIRST) == 3


def test_a_batch_that_is_read_again_up_to_another_place_counts_once() -> None:
    killed = with_null_dates({}, BEFORE, 3, FIRST)
    assert null_dates(with_null_dates(killed, BEFORE, 5, SECOND), SECOND) == 5
    assert null_dates(with_null_dates(killed, FIRST, 5, SECOND), SECOND) == 8


@pytest.mark.parametrize("text", INVALID)
def test_a_snapshot_stops_at_an_invalid_date(text: str) -> None:
    with pytest.raises(FeedStop, match=r'value_has_no_type: .*invalid_dates = "null"'):
        loaded(None, ("2020-01-02", text))


def test_a_snapshot_writes_and_counts_invalid_dates_as_null() -> None:
    dates = NullDates()
    assert [one is None for one in loaded(dates, ("2020-01-02", *INVALID, INVALID[0], None))] == [False, *[True] * 6]
    assert dates.count == 5


def test_a_snapshot_stops_at_an_invalid_date_of_a_key() -> None:
    with pytest.raises(FeedStop):
        loaded(NullDates(), (INVALID[0],), ("d",))
