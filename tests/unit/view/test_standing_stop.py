"""Where a view stands stopped, by the ledgers."""

from pathlib import Path

import pytest

from protocol.position import Position
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.view.inspect.standing_stop import standing_stop
from relay.view.rules.kept_settings import view_directory
from relay.view.stops.stop_reason import StopReason
from relay.view.stops.view_stop import STOPPED, ViewStop, keep_stop
from relay.view.view_place import ViewPlace
from relay.view.view_skips import skip_row
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder

DETAILS = '{"reason": "account_statement", "replica_error": 1064, "group_stop": 300}'
REASON = StopReason("account_statement", "GRANT with a hash. Skip it.", 1064, "")


async def stopped(archive: Path, details: str = DETAILS, offset: int = 120) -> Path:
    """The view's directory."""
    view = view_directory(archive, "gtid")
    binlog = BinlogBuilder().transaction(20)
    await fill(archive, ("mysql-bin.000001", binlog.data))
    await fill(view, ("mysql-bin.000001", binlog.data))
    add_row(view, LedgerRow(1.0, STOPPED, "mysql-bin.000001", offset, "GRANT with a hash. Skip it.", details))
    return view


def add_row(directory: Path, row: LedgerRow) -> None:
    catalog = Catalog.open(directory / CATALOG_NAME, FileLayer())
    catalog.add_ledger(row)
    catalog.close()


def made_to(offset: int) -> ViewPlace:
    return ViewPlace(Position("mysql-bin.000001", offset), Position("mysql-bin.000001", offset), 0)


async def test_a_view_stands_stopped_where_its_ledger_says(tmp_path: Path) -> None:
    view = await stopped(tmp_path)
    wanted = ViewStop("mysql-bin.000001", 120, 300, REASON, 1.0)
    assert standing_stop(tmp_path, view, "gtid", made_to(120)) == wanted
    assert standing_stop(tmp_path, view, "gtid", None) == wanted


async def test_a_view_that_went_on_since_stands_not_stopped(tmp_path: Path) -> None:
    view = await stopped(tmp_path)
    assert standing_stop(tmp_path, view, "gtid", made_to(300)) is None


async def test_a_relay_that_was_killed_before_it_said_that_the_view_went_on_leaves_no_transaction_to_be_skipped(
    tmp_path: Path,
) -> None:
    """It is in the view: left out from now on, the view would be another one where it is made again."""
    view = await stopped(tmp_path)
    stop = ViewStop("mysql-bin.000001", 120, 300, REASON, 1.0)
    keep_stop(view, stop, FileLayer())
    assert standing_stop(tmp_path, view, "gtid", made_to(120)) == stop
    assert standing_stop(tmp_path, view, "gtid", made_to(300)) is None
    no_group = stop._replace(group_stop=120)
    keep_stop(view, no_group, FileLayer())
    assert standing_stop(tmp_path, view, "gtid", made_to(300)) == no_group


async def test_what_somebody_skipped_stops_no_view_any_more(tmp_path: Path) -> None:
    view = await stopped(tmp_path)
    stop = standing_stop(tmp_path, view, "gtid", made_to(120))
    assert stop is not None
    for other in (skip_row("other", stop, "a test"), skip_row("gtid", stop._replace(generation=2), "a test")):
        add_row(tmp_path, other)
        assert standing_stop(tmp_path, view, "gtid", made_to(120)) is not None
    add_row(tmp_path, skip_row("gtid", stop, "a test"))
    assert standing_stop(tmp_path, view, "gtid", made_to(120)) is None


@pytest.mark.parametrize("details", ["", "{", "[]", '{"reason": "x"}'])
async def test_a_stop_whose_details_are_not_known_is_one_that_cannot_be_skipped(tmp_path: Path, details: str) -> None:
    view = await stopped(tmp_path, details)
    stop = standing_stop(tmp_path, view, "gtid", None)
    assert stop is not None and stop.group_stop == stop.offset and "GRANT" in stop.reason.text
