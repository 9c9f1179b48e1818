"""A binlog that is put into the archive by hand is the source's own file, which says so while the source has it open."""

from pathlib import Path

import pytest

from protocol.binlog.header import FLAG_IN_USE
from protocol.binlog.layout import FIRST_EVENT, FLAGS
from relay.archive.recovery.recovery import Recovery
from relay.archive.storage.files import FileLayer
from relay.archive_inspection.verify import verify_archive
from tests.support.binlog_builder import BinlogBuilder

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"


@pytest.fixture
def files() -> dict[str, bytes]:
    return {
        FIRST: bytes(BinlogBuilder().transaction(5).rotate(SECOND).data),
        SECOND: bytes(BinlogBuilder().transaction(5).data),
    }


def open_at_the_source(data: bytes) -> bytes:
    changed = bytearray(data)
    changed[FIRST_EVENT + FLAGS.start] |= FLAG_IN_USE
    return bytes(changed)


@pytest.mark.parametrize("name", [FIRST, SECOND])
def test_a_rebuild_takes_a_file_in_that_the_source_had_open(tmp_path: Path, files: dict[str, bytes], name: str) -> None:
    for held, data in files.items():
        (tmp_path / held).write_bytes(open_at_the_source(data) if held == name else data)
    recovered = Recovery(tmp_path, FileLayer()).run(force=True)
    assert [(file.name, file.end, file.damaged) for file in recovered.files] == [
        (held, len(data), False) for held, data in files.items()
    ]
    assert recovered.findings == []
    assert {held: (tmp_path / held).read_bytes() for held in files} == files
    assert list(verify_archive(tmp_path, deep=True)) == []


def test_a_head_with_that_flag_and_a_wrong_checksum_is_left_as_it_is(tmp_path: Path, files: dict[str, bytes]) -> None:
    changed = bytearray(open_at_the_source(files[FIRST]))
    changed[FIRST_EVENT + 30] ^= 1
    (tmp_path / FIRST).write_bytes(changed)
    (tmp_path / SECOND).write_bytes(files[SECOND])
    recovered = Recovery(tmp_path, FileLayer()).run(force=True)
    assert [file.damaged for file in recovered.files] == [True, False]
    assert (tmp_path / FIRST).read_bytes() == changed
