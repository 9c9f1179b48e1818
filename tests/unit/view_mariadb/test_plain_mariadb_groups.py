"""What the kernel makes of a MariaDB source's plain groups is what the rules make of them, byte for byte and mark for mark."""

import struct
import zlib
from pathlib import Path

import pytest

from protocol.kernel import codes
from relay.view.translate.plain_mariadb import PlainMariadb
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.view_making import marked, settings
from tests.support.view_oracle import events_of

FORMAT_DESCRIPTION, XID, ANNOTATE_ROWS, MARIADB_GTID = 15, 16, 160, 162
CORPUS = Path(__file__).resolve().parents[2] / "corpus"
RECORDED = sorted(path for place in ("recorded", "rows") for path in (CORPUS / place).glob("mariadb*.binlog"))
OF_MYSQL = frozenset((2, 3, 4, 5, 9, 11, 13, 14, 15, 16, 17, 18, 19, 29, 30, 31, 32, 33, 35, 38))


def translation(data: bytes, at: ViewCheckpoint, gap: int) -> FileTranslation:
    def read_into(view: memoryview, offset: int) -> int:
        count = min(len(view), max(len(data) - offset, 0))
        view[:count] = data[offset : offset + count]
        return count

    wanted = settings(flavour="mariadb")
    return FileTranslation("bin.000001", read_into, wanted, rules_of(wanted), at, {}, mark_gap=gap)


def made_of(
    data: bytes, at: ViewCheckpoint | None = None, *, gap: int = 1, room: int = 1 << 20
) -> tuple[bytes, list[ViewCheckpoint]]:
    """The view's bytes, and the marks with the last checkpoint."""
    one = translation(data, at or ViewCheckpoint.of_file(1, b""), gap)
    made, buffer = b"", bytearray(room)
    while count := one.fill(buffer, 0, len(data), sealed=True):
        made += buffer[:count]
    return made, [*one.marks, one.checkpoint()]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_kernel_makes_what_the_rules_make(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = marked(path.read_bytes())
    for gap in (1, 64 << 10):
        by_kernel = made_of(data, gap=gap)
        with monkeypatch.context() as patched:
            patched.setattr(PlainMariadb, "copy", lambda self, stop: codes.VIEW_LOOK)
            by_rules = made_of(data, gap=gap)
        assert by_kernel[0] == by_rules[0]
        assert set(by_kernel[1]) == set(by_rules[1])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_from_each_mark_on_the_same_bytes_are_made(path: Path) -> None:
    data = marked(path.read_bytes())
    whole, marks = made_of(data)
    for mark in marks[:: 1 + len(marks) // 20]:
        if mark.view > 4:
            assert made_of(data, mark)[0] == whole[mark.view - 4 :]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_event_is_left_that_mysql_does_not_know(path: Path) -> None:
    made, _ = made_of(marked(path.read_bytes()))
    assert {event[4] for event in events_of(made)} <= OF_MYSQL
    assert b"MariaDB" not in made[:200]


def test_plain_groups_are_the_kernels() -> None:
    """Else nothing above compares anything."""
    data = marked((CORPUS / "rows" / "mariadb118.binlog").read_bytes())
    copied = 0
    plain = PlainMariadb.copy

    def counting(self: PlainMariadb, stop: int) -> int:
        nonlocal copied
        before = self._source.offset
        status = plain(self, stop)
        copied += self._source.offset - before
        return status

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PlainMariadb, "copy", counting)
        made_of(data)
    assert copied > len(data) // 2


def numbered(data: bytes, groups: int, domains: int) -> bytes:
    """So many groups as the first plain one of `data`, each with the next number of its domain."""
    events = list(events_of(data[4:]))
    begin = next(
        index
        for index, event in enumerate(events)
        if event[4] == MARIADB_GTID
        and not event[19 + 12] & (0x01 | 0x20 | 0xC0)
        and events[index + 1][4] == ANNOTATE_ROWS
    )
    end = begin + 1 + next(index for index, event in enumerate(events[begin:]) if event[4] == XID)
    made = bytearray(data[:4] + b"".join(event for event in events[:begin] if event[4] == FORMAT_DESCRIPTION))
    for number in range(groups):
        head = events[begin]
        gtid = struct.pack("<QI", number // domains + 1, number % domains)
        for event in (head[:19] + gtid + head[31:], *events[begin + 1 : end]):
            body = event[:13] + struct.pack("<I", len(made) + len(event)) + event[17:-4]
            made += body + struct.pack("<I", zlib.crc32(body))
    return bytes(made)


@pytest.mark.parametrize("domains", [1, 100])
def test_what_is_known_at_the_end_of_a_file_of_plain_groups_alone(
    domains: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many marks before it, and as many domains as one likes."""
    data = marked(numbered((CORPUS / "rows" / "mariadb118.binlog").read_bytes(), 1000, domains))
    by_kernel = made_of(data, gap=64 << 10)
    with monkeypatch.context() as patched:
        patched.setattr(PlainMariadb, "copy", lambda self, stop: codes.VIEW_LOOK)
        by_rules = made_of(data, gap=64 << 10)
    assert by_kernel[0] == by_rules[0]
    assert by_kernel[1][-1] == by_rules[1][-1]
