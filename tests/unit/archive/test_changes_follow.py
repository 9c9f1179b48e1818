"""Whether anything that a replica applies stands behind a place, or only what servers write for themselves."""

from pathlib import Path

import pytest

from relay.archive.read.changes_follow import Stretch, changes_follow
from relay.archive.storage.files import FileLayer
from tests.support.binlog_builder import BinlogBuilder


def stretch(directory: Path, name: str, built: BinlogBuilder, start: int) -> Stretch:
    path = directory / name
    path.write_bytes(built.data)
    return Stretch(path, start, built.size)


def test_the_end_of_a_file_and_the_head_of_the_next_change_nothing(tmp_path: Path) -> None:
    first = BinlogBuilder().transaction(20)
    place = first.size
    first.rotate("mysql-bin.000002")
    rest = [
        stretch(tmp_path, "mysql-bin.000001", first, place),
        stretch(tmp_path, "mysql-bin.000002", BinlogBuilder(), 4),
    ]
    assert not changes_follow(FileLayer(), rest)


def test_the_stop_of_a_server_changes_nothing(tmp_path: Path) -> None:
    built = BinlogBuilder().transaction(20)
    place = built.size
    built.stop()
    assert not changes_follow(FileLayer(), [stretch(tmp_path, "mysql-bin.000001", built, place)])


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
def test_a_transaction_changes_something(tmp_path: Path, flavour: str) -> None:
    built = BinlogBuilder(flavour=flavour)
    place = built.size
    built.transaction(20)
    assert changes_follow(FileLayer(), [stretch(tmp_path, "mysql-bin.000001", built, place)])


def test_a_place_that_is_no_events_start_may_have_changes_behind_it(tmp_path: Path) -> None:
    built = BinlogBuilder()
    assert changes_follow(FileLayer(), [stretch(tmp_path, "mysql-bin.000001", built, built.size - 3)])
