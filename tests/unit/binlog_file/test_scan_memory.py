"""What a scan of a binlog holds goes with it, not when Python's collector comes by: it is a megabyte for each client."""

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.binlog_file.binlog_scan import BinlogScan
from tests.support.binlog_builder import BinlogBuilder


@pytest.fixture
def binlog(tmp_path: Path) -> Path:
    path = tmp_path / "mysql-bin.000001"
    path.write_bytes(BinlogBuilder("mysql").transaction(20).transaction(20).data)
    return path


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


def scan(path: Path, chunks: int) -> None:
    with BinlogScan(path) as binlog:
        for _, _chunk in zip(range(chunks), binlog.chunks(lambda read: None), strict=False):
            pass


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("chunks", [1, 1000], ids=["left in the middle", "to its end"])
def test_ten_scans_hold_nothing_when_they_are_through(binlog: Path, chunks: int) -> None:
    scan(binlog, chunks)
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(10):
        scan(binlog, chunks)
    after, _ = tracemalloc.get_traced_memory()
    assert after - before < 100_000


@pytest.mark.usefixtures("no_collector")
def test_a_scan_takes_less_than_three_megabytes(binlog: Path) -> None:
    scan(binlog, 1)
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    scan(binlog, 1)
    assert tracemalloc.get_traced_memory()[1] - before < 3 << 20
