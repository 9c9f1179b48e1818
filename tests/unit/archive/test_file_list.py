"""mysql-bin.index grows by a line for each file, whatever its length, and no fault leaves it wrong for good."""

import errno
from pathlib import Path

import pytest

from relay.archive.storage.files import INDEX_NAME, FileLayer
from relay.archive.write.file_list import FileList
from tests.support.forgetful_disk import ForgetfulDisk

NAMES = [f"mysql-bin.{number:06d}" for number in range(1, 6)]


class Counting(FileLayer):
    """Counts the bytes that are written."""

    def __init__(self) -> None:
        self.written = 0

    def pwritev(self, fd, buffers, offset):  # type: ignore[no-untyped-def]
        self.written += sum(map(len, buffers))
        return super().pwritev(fd, buffers, offset)


def listed(directory: Path) -> list[str]:
    return (directory / INDEX_NAME).read_text().splitlines()


def test_each_file_is_a_line_and_costs_a_line(tmp_path: Path) -> None:
    layer = Counting()
    files = FileList(tmp_path, layer)
    for name in NAMES:
        files.add(name)
    assert listed(tmp_path) == [f"./{name}" for name in NAMES]
    assert layer.written == (tmp_path / INDEX_NAME).stat().st_size


def test_the_newest_file_is_listed_once(tmp_path: Path) -> None:
    files = FileList(tmp_path, FileLayer())
    for name in (NAMES[0], NAMES[1], NAMES[1]):
        files.add(name)
    assert listed(tmp_path) == [f"./{name}" for name in NAMES[:2]]


@pytest.mark.parametrize("room", range(20))
def test_a_full_disk_leaves_no_half_line(tmp_path: Path, room: int) -> None:
    disk = ForgetfulDisk()
    files = FileList(tmp_path, disk)
    files.add(NAMES[0])
    disk.room_bytes = room
    if room < len(f"./{NAMES[1]}\n"):
        with pytest.raises(OSError, match=r"No space") as caught:
            files.add(NAMES[1])
        assert caught.value.errno == errno.ENOSPC
        assert listed(tmp_path) == [f"./{NAMES[0]}"]
    disk.room_bytes = None
    files.add(NAMES[1])
    assert listed(tmp_path) == [f"./{name}" for name in NAMES[:2]]


def test_files_are_taken_out(tmp_path: Path) -> None:
    files = FileList(tmp_path, FileLayer())
    for name in NAMES:
        files.add(name)
    files.remove(NAMES[:3])
    files.add("mysql-bin.000006")
    assert listed(tmp_path) == [f"./{name}" for name in (*NAMES[3:], "mysql-bin.000006")]
