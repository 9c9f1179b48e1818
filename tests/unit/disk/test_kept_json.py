"""Files that the relay keeps may be written by whoever took its user over: what cannot be in them is refused, and by its name."""

import json
import os
from pathlib import Path
from typing import Final

import pytest

from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.ledger_records import read_record
from relay.archive.catalog.ledger_text import read_lines
from relay.archive.catalog.purge_intent import read_intent
from relay.archive.storage.files import KNOWN_REPLICAS_NAME, PURGE_NAME, FileLayer
from relay.disk.file_calls import MOST_READ_BYTES, read_file
from relay.disk.kept_json import kept_json
from relay.retention.replicas_file import read_known_replicas
from relay.schema_history.schema_record import parse_lines

DEEP: Final = b"[" * 100_000
LINE: Final = b'{"kind": "table", "file": "mysql-bin.000001", "offset": %s}\n'
ROW: Final = {"record": "ledger", "time": 1.5, "kind": "k", "file": "f", "offset": 4, "text": "t", "details": ""}


@pytest.mark.parametrize("text", [DEEP, b'{"a": ' + DEEP, b"NaN", b"-Infinity", b"1e999", b"\xff", b"", b"9" * 5000])
def test_what_was_never_written_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        kept_json(text)


def test_what_was_written_comes_back() -> None:
    value = {"a": [1, -2.5, None, True, "ß\x00", {}], "b": 1 << 63}
    assert kept_json(json.dumps(value)) == kept_json(json.dumps(value).encode()) == value


def test_lines_of_the_schema_record_that_cannot_be_are_passed_over() -> None:
    wrong = [LINE % number for number in (b"1e999", b"Infinity", b'{"a": ' + DEEP, DEEP, b"[]", b'"x"')]
    assert [one.place for one in parse_lines(b"".join([*wrong, DEEP + b"\n", LINE % b"4"]))] == [(1, 4)]


@pytest.mark.parametrize(
    "change", [{"time": "now"}, {"time": None}, {"offset": 1 << 64}, {"offset": 1.5}, {"offset": True}, {"kind": []},
               {"text": 5}, {"file": {}}, {"record": []}, {"record": "source"}]
)  # fmt: skip
def test_rows_of_the_ledger_that_cannot_be_are_none(change: dict[str, object]) -> None:
    assert isinstance(read_record(json.dumps(ROW).encode()), LedgerRow)
    assert read_record(json.dumps(ROW | change).encode()) is None
    assert read_record(DEEP) is None


@pytest.mark.parametrize(
    "text", [DEEP, b"1", b"{}", b"[]", b'[1, "purged", "f", [], "t"]', b'[NaN, "purged", "f", 4, "t"]']
)
def test_an_intent_and_replicas_that_cannot_be_are_value_errors(text: bytes, tmp_path: Path) -> None:
    (tmp_path / PURGE_NAME).write_bytes(text + b"\n")
    with pytest.raises(ValueError, match=r"."):
        read_intent(FileLayer(), tmp_path)
    (tmp_path / KNOWN_REPLICAS_NAME).write_bytes(text)
    with pytest.raises(ValueError, match=r"."):
        read_known_replicas(FileLayer(), tmp_path)


def test_a_file_of_more_bytes_than_memory_has_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.touch()
    os.truncate(path, MOST_READ_BYTES + 1)
    for read in (read_file, lambda path: read_lines(FileLayer(), path)):
        with pytest.raises(OSError, match="read as a whole"):
            read(path)
