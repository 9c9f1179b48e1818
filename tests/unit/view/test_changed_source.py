"""A source's file that is changed while a view is made of it: damage by name, and never another transaction."""

import struct
from collections.abc import Callable

import pytest

from protocol.binlog.event_type import EventType
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.view.translate.source_groups import GroupReader
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.binlog_builder import BinlogBuilder
from tests.support.view_making import marked, settings

TEXT = b"CREATE TABLE t (a INT) ENGINE=MyISAM"


def made_of(data: bytes, read: Callable[[memoryview, int], int] | None = None) -> bytes:
    given = settings(engines="innodb")

    def read_into(view: memoryview, offset: int) -> int:
        piece = data[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    one = FileTranslation("bin.000001", read or read_into, given, rules_of(given), ViewCheckpoint.of_file(1, b""), {})
    room, made = bytearray(1 << 20), b""
    while count := one.fill(room, 0, len(data), sealed=True):
        made += room[:count]
    return made


@pytest.mark.parametrize("at", [19 + 4, 19 + 52, 19 + 57 + 1, 19 + 57 + 18])
def test_a_changed_format_description_of_a_file_without_checksums_is_damage(at: int) -> None:
    """Its version and the lengths of heads say how all the others are read. Servers give it a checksum of its own."""
    data = bytearray(marked(BinlogBuilder(checksum=False).transaction().data))
    assert made_of(bytes(data))
    data[4 + at] ^= 1
    with pytest.raises(ArchiveDamaged, match="checksum"):
        made_of(bytes(data))


@pytest.mark.parametrize(
    ("found", "put", "what"),
    [
        (TEXT, TEXT.replace(b" t ", b" u "), "checksum"),
        (struct.pack("<BI", EventType.QUERY, 1), struct.pack("<BI", EventType.QUERY, 2), "checksum"),
        (b"", b"", "ends inside"),
    ],
)
def test_a_definition_that_changes_between_two_reads_is_damage(found: bytes, put: bytes, what: str) -> None:
    """It gets a checksum of its own in the view, where nobody could see it any more."""
    data = marked(BinlogBuilder().query(TEXT.decode()).data)
    assert data.count(found) == 1 or not found
    later = data.replace(found, put) if found else data[:-30]
    reads = 0

    def read_into(view: memoryview, offset: int) -> int:
        nonlocal reads
        reads += offset > 4 + 19
        piece = (data if reads <= 1 else later)[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    assert made_of(data).count(b" t (a INT) ENGINE=InnoDB") == 1
    with pytest.raises(ArchiveDamaged, match=what):
        made_of(data, read_into)


def test_a_body_is_of_the_event_that_was_looked_at() -> None:
    data = bytearray(marked(BinlogBuilder().query(TEXT.decode()).data))
    start = BinlogBuilder().boundaries[-1]

    def read_into(view: memoryview, offset: int) -> int:
        piece = data[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    reader = GroupReader("bin.000001", read_into, bytes(256), "5.6.24", 4)
    group = reader.group(start, len(data))
    (event,) = group.events
    assert group.body(event).endswith(TEXT)
    data[start + 5] ^= 2
    with pytest.raises(ArchiveDamaged, match="another event"):
        group.body(event)
    data[start + 9] = 255
    with pytest.raises(ArchiveDamaged, match="length cannot be"):
        reader.group(start, len(data))
