"""What the head of a file says to the audits."""

from pathlib import Path

import pytest

from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.series_files import SeriesFile
from relay.binlog_tables.plan.series_head import read_head
from tests.support.binlog_builder import BinlogBuilder


@pytest.mark.parametrize(
    ("flavour", "version"),
    [
        ("mariadb", "10.11.19-MariaDB-log"),
        ("mariadb", "10.5.99"),
        ("mariadb", "5.7.99"),
        ("mysql", "8.0.42-not-MariaDB"),
    ],
)
def test_a_file_is_of_the_family_whose_events_it_lists(tmp_path: Path, flavour: str, version: str) -> None:
    path = tmp_path / "mysql-bin.000001"
    path.write_bytes(bytes(BinlogBuilder(flavour=flavour, version=version).data))
    head = read_head(store_of(str(path)), SeriesFile(str(path), path.name))
    assert (head.flavour, head.version) == (flavour, version)
