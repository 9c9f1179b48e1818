"""A view's files against what is made again: the first difference, with both places."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from protocol.position import Position
from relay.view.inspect.view_comparison import MadePiece, ViewDifference, differences
from relay.view.inspect.view_listing import files_of
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder


class Again:
    """What is made again: these bytes, in pieces."""

    def __init__(self, data: bytes, piece_bytes: int = 10) -> None:
        self._data = data
        self._piece_bytes = piece_bytes

    def pieces(self, file: str) -> Iterable[MadePiece]:
        for at in range(0, len(self._data), self._piece_bytes):
            yield MadePiece(1000 + at, self._data[at : at + self._piece_bytes])


@pytest.fixture
async def view(tmp_path: Path) -> Path:
    binlog = BinlogBuilder().transaction(20).transaction(30)
    await fill(tmp_path, ("mysql-bin.000001", binlog.data))
    return tmp_path


def found(view: Path, again: Again, *, sealed: bool = True) -> list[ViewDifference]:
    files = files_of(view)
    for file in files:
        file.sealed = sealed
    return list(differences(view, files, again))


def bytes_of(view: Path) -> bytes:
    return (view / "mysql-bin.000001").read_bytes()


@pytest.mark.parametrize("piece_bytes", [1, 7, 10, 10_000])
def test_the_same_bytes_are_no_difference(view: Path, piece_bytes: int) -> None:
    assert found(view, Again(bytes_of(view), piece_bytes)) == []


def test_each_byte_that_is_another_is_found(view: Path) -> None:
    data = bytes_of(view)
    for at in range(len(data)):
        (one,) = found(view, Again(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]))
        assert one.view == Position("mysql-bin.000001", at)
        assert one.source == Position("mysql-bin.000001", 1000 + at // 10 * 10)


def test_bytes_that_nothing_gives_are_a_difference(view: Path) -> None:
    (one,) = found(view, Again(bytes_of(view)[:-1]))
    assert one.source is None and one.view.offset == len(bytes_of(view)) - 1


@pytest.mark.parametrize("more", [1, 25])
def test_what_is_not_there_yet_is_a_difference_in_a_complete_file_only(view: Path, more: int) -> None:
    assert found(view, Again(bytes_of(view) + bytes(more)), sealed=False) == []
    (one,) = found(view, Again(bytes_of(view) + bytes(more)))
    assert one.view.offset == len(bytes_of(view)) and "more to it" in one.what
