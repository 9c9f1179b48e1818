"""Whether a binlog is all there, by its last event and the next file's first one."""

from collections.abc import Callable

import pytest

from relay.binlog_file.file_end import is_incomplete
from tests.support.binlog_builder import BinlogBuilder
from tests.support.memory_file import MemoryFile

ROTATED, STARTED = BinlogBuilder(started=False), BinlogBuilder()
NEXT = "mysql-bin.000002"


def incomplete(data: bytes | bytearray, following: BinlogBuilder) -> bool:
    return is_incomplete(MemoryFile(bytes(data)), len(data), MemoryFile(bytes(following.data)))


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize(
    "end", [lambda built: built.rotate(NEXT), lambda built: built.stop()], ids=["a rotate", "a stop"]
)
def test_a_file_that_its_server_ended_is_all_there_and_no_part_of_it_is(
    flavour: str, checksum: bool, end: Callable[[BinlogBuilder], BinlogBuilder]
) -> None:
    built = BinlogBuilder(flavour, checksum=checksum).ddl().transaction(20)
    end(built)
    assert not incomplete(built.data, ROTATED)
    for size in range(built.events[0].end, built.size):
        assert incomplete(built.data[:size], ROTATED)


def test_a_file_behind_which_the_server_was_started_may_end_anywhere() -> None:
    built = BinlogBuilder().transaction(20).transaction(30)
    assert not any(incomplete(built.data[:size], STARTED) for size in range(4, built.size + 1))


def test_a_rotate_in_the_middle_is_no_end() -> None:
    assert incomplete(BinlogBuilder().rotate(NEXT).ddl().data, ROTATED)


def test_until_the_next_file_has_its_beginning_a_file_without_an_end_is_not_all_there() -> None:
    data = BinlogBuilder().ddl().data
    for size in range(STARTED.events[0].end):
        assert is_incomplete(MemoryFile(bytes(data)), len(data), MemoryFile(bytes(STARTED.data[:size])))


def test_what_follows_and_is_no_binlog_says_nothing() -> None:
    data = BinlogBuilder().ddl().data
    statement = BinlogBuilder().ddl().data[STARTED.size :]
    assert not is_incomplete(MemoryFile(bytes(data)), len(data), MemoryFile(bytes(STARTED.data[:4] + statement)))
