"""When a file is packed without giving way."""

from pathlib import Path

import pytest

from relay.archive.storage.files import FileLayer
from relay.tiers.compression_priority import LEAST_FREE_SHARE, LONGEST_WAIT_S, CompressionPriority

FILE = (1, "mysql-bin.000001")


class Disk(FileLayer):
    """Has so much room."""

    share = 0.5

    def free_bytes(self, directory: Path) -> int:
        return int(self.share * self.whole_bytes(directory))

    def whole_bytes(self, directory: Path) -> int:
        return 1 << 40


class Waiting:
    def __init__(self) -> None:
        self.now, self.disk = 0.0, Disk()
        self.urgency = CompressionPriority(self.disk, Path("nowhere"), lambda: self.now)

    @property
    def is_urgent(self) -> bool:
        return self.urgency.is_urgent(*FILE)


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


def test_a_file_that_has_waited_for_a_day_is_urgent(waiting: Waiting) -> None:
    waiting.urgency.wait([FILE])
    waiting.now = LONGEST_WAIT_S - 1
    waiting.urgency.wait([FILE, (1, "mysql-bin.000002")])
    assert not waiting.is_urgent
    waiting.now = LONGEST_WAIT_S
    assert waiting.is_urgent and not waiting.urgency.is_urgent(1, "mysql-bin.000002")


def test_a_file_that_was_not_due_meanwhile_begins_to_wait_again(waiting: Waiting) -> None:
    waiting.urgency.wait([FILE])
    waiting.urgency.wait([])
    waiting.now = LONGEST_WAIT_S
    waiting.urgency.wait([FILE])
    assert not waiting.is_urgent


def test_with_little_room_on_the_disk_every_file_is_urgent(waiting: Waiting) -> None:
    assert not waiting.is_urgent
    waiting.disk.share = LEAST_FREE_SHARE / 2
    assert waiting.is_urgent
