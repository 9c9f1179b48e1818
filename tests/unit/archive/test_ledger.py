"""The append-only ledger of what went wrong."""

from pathlib import Path

from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.storage.files import CATALOG_NAME, FileLayer


def test_what_a_retry_repeats_is_written_once_and_news_in_between_starts_over(tmp_path: Path) -> None:
    catalog = Catalog.open(tmp_path / CATALOG_NAME, FileLayer())
    try:
        for seconds in range(5):
            catalog.add_ledger(LedgerRow(float(seconds), "write_failed", "mysql-bin.000001", 500, "disk full"))
        catalog.add_ledger(LedgerRow(9.0, "gap", "mysql-bin.000002", 4, "a file is missing"))
        catalog.add_ledger(LedgerRow(10.0, "write_failed", "mysql-bin.000001", 500, "disk full"))
        assert [(row.time, row.kind) for row in catalog.ledger()] == [
            (0.0, "write_failed"),
            (9.0, "gap"),
            (10.0, "write_failed"),
        ]
    finally:
        catalog.close()
