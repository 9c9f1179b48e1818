"""REPLACE that changes a row in its place, with less than all of its columns in the binlog, stops a view."""

import struct
import zlib
from pathlib import Path

import pytest

from protocol.binlog.event_type import EventType
from protocol.kernel import codes
from relay.view.rules.mariadb.rows.replaced_rows import check_replaced, may_replace
from relay.view.stops.stop_reason import Untranslatable
from relay.view.stops.view_stop import ViewStopped
from relay.view.translate.plain_mariadb import PlainMariadb
from tests.support.view_making import marked
from tests.support.view_oracle import events_of
from tests.unit.view_mariadb.test_plain_mariadb_groups import made_of

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
TABLE = ("shop", "t")
HEAD = b"\x07\0\0\0\0\0\1\0"
UPDATE, ANNOTATE = EventType.UPDATE_ROWS_V1, EventType.ANNOTATE_ROWS


@pytest.mark.parametrize(
    ("text", "may"),
    [
        (b"REPLACE INTO t VALUES (1)", True),
        (b" \n/* why */ replace into t values (1)", True),
        (b"LOAD DATA INFILE 'x' REPLACE INTO TABLE t", True),
        (b"/*!REPLACE*/ INTO t VALUES (1)", True),
        (b"/* never ended REPLACE", True),
        (b"", True),
        (b"INSERTED", True),
        (b"INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1", False),
        (b"/* a */ /* b */\tupdate t set a = 1", False),
        (b"Delete FROM t", False),
    ],
)
def test_the_first_word_tells_what_may_replace_a_row(text: bytes, may: bool) -> None:
    assert may_replace(text, "10.11.6-MariaDB") == may


@pytest.mark.parametrize(
    ("kind", "extra"), [(24, b""), (EventType.UPDATE_ROWS, b"\2\0"), (EventType.UPDATE_ROWS, b"\4\0ab"), (167, b"")]
)
def test_a_column_that_is_missing_behind_the_change_stops_the_view(kind: int, extra: bytes) -> None:
    check_replaced(TABLE, kind, HEAD + extra + b"\x0a" + b"\1\0" + b"\xff\x03" + b"rows")
    check_replaced(TABLE, kind, HEAD + extra + b"\x08" + b"\1" + b"\xff" + b"rows")
    with pytest.raises(Untranslatable) as stopped:
        check_replaced(TABLE, kind, HEAD + extra + b"\x0a" + b"\xff\x03" + b"\xfd\x03" + b"rows")
    assert stopped.value.reason.name == "partial_replace_image"
    assert "shop.t" in stopped.value.reason.text and "1 of its columns" in stopped.value.reason.text


def test_rows_that_are_new_or_gone_are_not_asked() -> None:
    for kind in (EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1, EventType.WRITE_ROWS, EventType.DELETE_ROWS):
        check_replaced(TABLE, kind, HEAD + b"\x0a\0\0\0\0")


def replaced(data: bytes, missing: int) -> bytes:
    """The file with its first update told to be a REPLACE, and so many columns less behind the change."""
    made, found = bytearray(data[:4]), 0
    annotation = 0
    for event in events_of(data[4:]):
        body = bytearray(event[:-4])
        if body[4] == ANNOTATE:
            annotation = len(made)
        if body[4] == UPDATE and not found:
            found = len(made)
            width = (body[27] + 7) // 8
            after = int.from_bytes(body[28 + width : 28 + 2 * width], "little")
            for _ in range(missing):
                after &= after - 1
            body[28 + width : 28 + 2 * width] = after.to_bytes(width, "little")
            length = struct.unpack_from("<I", made, annotation + 9)[0]
            text = b"REPLACE".ljust(length - 23)
            said = made[annotation : annotation + 19] + text
            made[annotation : annotation + length] = said + struct.pack("<I", zlib.crc32(said))
        made += body + struct.pack("<I", zlib.crc32(body))
    assert found and annotation
    return bytes(made)


def test_the_kernel_leaves_them_to_the_rules_and_copies_whole_ones() -> None:
    data = (CORPUS / "rows" / "mariadb118.binlog").read_bytes()
    assert b"\0\0" in made_of(marked(replaced(data, 0)))[0]
    with pytest.raises(ViewStopped) as by_kernel:
        made_of(marked(replaced(data, 1)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PlainMariadb, "copy", lambda self, stop: codes.VIEW_LOOK)
        with pytest.raises(ViewStopped) as by_rules:
            made_of(marked(replaced(data, 1)))
    assert by_kernel.value.stop.reason == by_rules.value.stop.reason
    assert by_rules.value.stop.reason.name == "partial_replace_image"
