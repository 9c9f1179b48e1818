"""NAME.place is read on the event loop when a replica comes: where a file is must be had without the GTIDs that stand behind it."""

import time
from pathlib import Path

import pytest

from relay.archive.storage.storage_location import (
    LocationNote,
    StorageLocation,
    Tier,
    place_path,
    read_note,
    read_place,
)

PLACE = StorageLocation(Tier.OBJECT, "mysql-bin.000001.zst", 10, None, "sha256:x", 100)
GTIDS = bytes(2 << 20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A binlog's, with a note of 4 MiB beside it."""
    path = tmp_path / "mysql-bin.000001"
    note = LocationNote(PLACE, ("mysql-bin.000001",), ("mysql", GTIDS, b"inside", 0))
    place_path(path).write_bytes(note.encode())
    return path


def test_the_place_is_read_at_once_whatever_the_size_of_the_note(path: Path) -> None:
    took = []
    for _ in range(5):
        began = time.perf_counter()
        assert read_place(path) == PLACE
        took.append(time.perf_counter() - began)
    assert min(took) < 0.005


def test_all_of_a_note_is_what_was_written(path: Path) -> None:
    assert read_note(path) == LocationNote(PLACE, ("mysql-bin.000001",), ("mysql", GTIDS, b"inside", 0))


@pytest.mark.parametrize("offset", [15, 60, 150])
def test_a_place_that_was_changed_is_not_believed(path: Path, offset: int) -> None:
    data = bytearray(place_path(path).read_bytes())
    data[offset] ^= 1
    place_path(path).write_bytes(data)
    with pytest.raises(ValueError, match=r"checksum is wrong|cannot be read|not a valid|Expecting"):
        read_place(path)


def test_a_note_from_before_the_place_had_a_sum_is_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "mysql-bin.000001"
    encoded = LocationNote(PLACE, (), None).encode().decode()
    begin, end = encoded.index(', "place_sum"'), encoded.index(', "file"')
    old = encoded[:begin] + encoded[end : encoded.index(', "sum"')] + "}"
    place_path(path).write_text(old)
    assert read_place(path) == PLACE
    assert read_place(tmp_path / "mysql-bin.000002") is None
