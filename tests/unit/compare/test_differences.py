"""What a comparison tells."""

import json

import pytest

from relay.compare.rows.differences import Difference, Differences, TableOutcome
from relay.compare.rows.load_limits import ChunkSize, LoadLimits


def test_a_row_is_told_with_its_key_and_both_values() -> None:
    line = Difference("row", "shop.orders", "different", {"id": 7}, {"note": ("a", None)}).line()
    assert line == "row shop.orders [id = 7] differs: note: 'a' at the source, None at the new server"


def test_a_table_is_equal_different_or_not_known() -> None:
    verdicts = [TableOutcome("t"), TableOutcome("t", missing=1, unsettled=1), TableOutcome("t", unsettled=1)]
    assert [one.verdict for one in verdicts] == ["equal", "different", "unknown"]


def test_only_some_rows_of_a_table_are_shown_and_all_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    found = Differences(as_json=False)
    for number in range(30):
        found.found(Difference("row", "shop.orders", "missing", {"id": number}))
    assert found.different == 30
    assert len(capsys.readouterr().out.splitlines()) == 21


def test_json_has_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    found = Differences(as_json=True)
    found.table_done(TableOutcome("shop.orders", rows=3), "b.000001:4")
    found.summary(1, 3, 0.5, "b.000001:4")
    table, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert table["table"]["verdict"] == summary["summary"]["verdict"] == "equal"


def test_ranges_grow_and_shrink_with_the_time_that_they_take() -> None:
    size = ChunkSize(LoadLimits(chunk_s=0.5), 1000, 100_000)
    first = size.rows
    size.took(first, 0.01)
    assert size.rows == 2 * first
    size.took(2 * first, 5.0)
    assert size.rows == 2 * first // 10


def test_a_table_of_huge_rows_begins_with_few() -> None:
    assert ChunkSize(LoadLimits(), 10, 100 << 20).rows == 1
