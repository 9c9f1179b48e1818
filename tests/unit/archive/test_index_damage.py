"""A damaged NAME.gtx is told once, however many replicas ask; another content of it is told again."""

import asyncio
import os
from pathlib import Path

import pytest
import structlog.testing

from protocol.gtid.block_index import BlockIndexWriter
from protocol.gtid.file_gtids import IndexBlock
from relay.archive.gtids.gtid_recorder import gtx_path
from relay.archive.read.file_snapshot import FileSnapshot
from relay.archive.read.index_damage import IndexDamage

NAME = "mysql-bin.000001"


def index() -> bytes:
    return BlockIndexWriter().encode(IndexBlock(200, 300, 1_700_000_000, 1, ()))


def damage(path: Path, byte: int = 5) -> None:
    """As a disk does it, or a hand: another byte, at another time."""
    data = bytearray(index())
    data[byte] ^= 0xFF
    gtx_path(path).write_bytes(data)
    os.utime(gtx_path(path), ns=(byte, byte))


def snapshot(path: Path) -> FileSnapshot:
    return FileSnapshot(path.name, path, 400, checksum=True)


async def test_thousands_of_requests_that_meet_the_same_damage_tell_it_once(tmp_path: Path) -> None:
    damage(tmp_path / NAME)
    with structlog.testing.capture_logs() as logs:
        found = await asyncio.gather(*(asyncio.to_thread(snapshot(tmp_path / NAME).blocks) for _ in range(2000)))
    assert set(found) == {None}
    (line,) = logs
    assert (line["event"], line["file"]) == ("gtid_index_damaged", f"{tmp_path / NAME}.gtx")
    assert "check is wrong" in line["why"] and "archive rebuild" in line["advice"]


def test_each_file_is_told_and_damage_after_a_rebuild_is_told_again(tmp_path: Path) -> None:
    first, second = tmp_path / NAME, tmp_path / "mysql-bin.000002"
    damage(first)
    damage(second)
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            assert snapshot(first).blocks() is snapshot(second).blocks() is None
        gtx_path(first).write_bytes(index())
        assert snapshot(first).blocks() is not None
        damage(first, byte=6)
        for _ in range(3):
            assert snapshot(first).blocks() is None
    assert [Path(line["file"]).name for line in logs] == [f"{NAME}.gtx", "mysql-bin.000002.gtx", f"{NAME}.gtx"]


def test_an_archive_with_every_index_damaged_takes_neither_the_memory_nor_the_log(tmp_path: Path) -> None:
    told = IndexDamage(most_files=3)
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            for number in range(10):
                path = tmp_path / f"mysql-bin.{number:06d}"
                gtx_path(path).write_bytes(b"x")
                os.utime(gtx_path(path), ns=(1, 1))
                told.report(path, "bad")
    assert len(told) == 3
    assert [line["event"] for line in logs] == ["gtid_index_damaged"] * 3 + ["gtid_indexes_damaged"]
    assert "archive verify --deep" in logs[-1]["what"]


def test_one_that_is_gone_by_now_is_not_told(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as logs:
        IndexDamage().report(tmp_path / NAME, "bad")
    assert logs == []


@pytest.mark.parametrize("content", [b"", index()])
def test_a_sound_index_is_believed_and_nothing_is_told(tmp_path: Path, content: bytes) -> None:
    gtx_path(tmp_path / NAME).write_bytes(content)
    with structlog.testing.capture_logs() as logs:
        blocks = snapshot(tmp_path / NAME).blocks()
    assert blocks is not None and len(blocks) == (1 if content else 0)
    assert logs == []
