"""The sums over all files, which monitors ask for, whatever comes and goes."""

from pathlib import Path

import pytest

from relay.archive.read.held_files import HeldFiles
from relay.archive.storage.archived_file import ArchivedFile, describe_new_file
from relay.archive.storage.files import FileLayer
from tests.support.binlog_builder import BinlogBuilder


def a_file(number: int) -> ArchivedFile:
    file = describe_new_file(f"mysql-bin.{number:06d}", bytes(BinlogBuilder().data[4:]))
    file.end, file.events = 1000 + number, number
    return file


def check(held: HeldFiles) -> None:
    assert held.total_bytes == sum(file.end for file in held.all)
    assert held.total_events == sum(file.events for file in held.all)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize("gone", [0, 1, 2, 5])
def test_the_sums_follow_what_is_held(tmp_path: Path, count: int, gone: int) -> None:
    held = HeldFiles(tmp_path, FileLayer(), [a_file(number) for number in range(1, count + 1)])
    check(held)
    taken = held.take_oldest(min(gone, count))
    check(held)
    held.put_back(taken[len(taken) // 2 :])
    check(held)
    held.add(a_file(count + 1))
    check(held)
    held.all[-1].end += 500  # the newest grows
    held.all[-1].events += 3
    check(held)
    held.add(a_file(count + 2))
    check(held)
