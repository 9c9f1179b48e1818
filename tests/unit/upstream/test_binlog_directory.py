"""Which binlog of a directory comes next, and how seldom all of the directory is read for that."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from relay.upstream import binlog_directory
from relay.upstream.binlog_directory import BinlogDirectory


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The directories that were listed."""
    found: list[Path] = []
    real = binlog_directory.binlog_names

    def counted(path: Path) -> list[str]:
        found.append(path)
        return real(path)

    monkeypatch.setattr(binlog_directory, "binlog_names", counted)
    return found


def put(directory: Path, names: Sequence[str], *, settled: bool = True) -> None:
    """Empty files of these names. settled: long ago, as far as the directory says."""
    for name in names:
        (directory / name).touch()
    if settled:
        ago = time.time() - 60 + len(list(directory.iterdir())) / 1000
        os.utime(directory, (ago, ago))


def names(first: int, last: int, base: str = "mysql-bin") -> list[str]:
    return [f"{base}.{number:06d}" for number in range(first, last + 1)]


def test_a_series_is_gone_through_without_a_listing(tmp_path: Path, listings: list[Path]) -> None:
    put(tmp_path, names(1, 500))
    directory = BinlogDirectory(tmp_path)
    assert directory.names() == names(1, 500)
    assert [directory.after(name) for name in names(1, 499)] == names(2, 500)
    assert len(listings) == 1


def test_at_the_end_nothing_is_listed_while_the_directory_is_as_it_was(tmp_path: Path, listings: list[Path]) -> None:
    put(tmp_path, [*names(1, 3), "mysql-bin.index"])
    clock = Clock()
    directory = BinlogDirectory(tmp_path, clock)
    directory.names()
    for _ in range(20):
        clock.now += 1
        assert directory.after("mysql-bin.000003") is None
    assert len(listings) == 1
    clock.now += 30
    assert directory.after("mysql-bin.000003") is None
    assert len(listings) == 2


def test_a_directory_that_was_changed_just_now_is_listed_again(tmp_path: Path, listings: list[Path]) -> None:
    put(tmp_path, names(1, 3), settled=False)
    clock = Clock()
    directory = BinlogDirectory(tmp_path, clock)
    directory.names()
    before = os.stat(tmp_path).st_mtime_ns
    (tmp_path / "other.000004").touch()
    os.utime(tmp_path, ns=(before, before))  # within the same tick of the file system's clock
    clock.now += 1
    assert directory.after("mysql-bin.000003") == "other.000004"


def test_the_next_file_is_seen_as_soon_as_it_is_there(tmp_path: Path) -> None:
    put(tmp_path, names(1, 1))
    directory = BinlogDirectory(tmp_path)
    directory.names()
    assert directory.after("mysql-bin.000001") is None
    put(tmp_path, ["mysql-bin.000002"])
    assert directory.after("mysql-bin.000001") == "mysql-bin.000002"


def test_the_number_after_999999_has_seven_digits(tmp_path: Path) -> None:
    put(tmp_path, ["mysql-bin.999999", "mysql-bin.1000000"])
    assert BinlogDirectory(tmp_path).after("mysql-bin.999999") == "mysql-bin.1000000"


@pytest.mark.parametrize(
    ("there", "following"),
    [
        (["mysql-bin.000001", "mysql-bin.000003"], "mysql-bin.000003"),
        (["mysql-bin.000001", "other.000002"], "other.000002"),
        (["mysql-bin.000001", "other.000002", "mysql-bin.000005"], "mysql-bin.000005"),
        (["mysql-bin.000001", "mysql-bin.0000002"], "mysql-bin.0000002"),
        (["mysql-bin.000001", "other.000001"], None),
        (["mysql-bin.000001"], None),
    ],
)
def test_after_a_gap_or_a_new_name_it_is_found_by_a_listing(
    tmp_path: Path, there: list[str], following: str | None
) -> None:
    put(tmp_path, there)
    assert BinlogDirectory(tmp_path).after("mysql-bin.000001") == following


def test_while_others_write_there_all_the_time_little_of_the_time_goes_into_listing(
    tmp_path: Path, listings: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, names(1, 1), settled=False)
    clock = Clock()
    counted = binlog_directory.binlog_names

    def slow(path: Path) -> list[str]:
        clock.now += 0.5
        return counted(path)

    monkeypatch.setattr(binlog_directory, "binlog_names", slow)
    directory = BinlogDirectory(tmp_path, clock)
    directory.names()
    for number in range(100):
        clock.now += 1
        (tmp_path / f"unrelated-{number}").touch()
        directory.after("mysql-bin.000001")
    assert len(listings) <= 1 + 100 / (0.5 * 20)
