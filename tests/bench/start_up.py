"""Starting: from exec until the port takes connections, with many archived files."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from relay.archive_inspection.listing import rebuild_archive
from tests.bench.figures import Report, median
from tests.bench.process_facts import cpu_s
from tests.support.binlog_builder import BinlogBuilder
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess


def run(directory: Path, *, files: int = 10_000, turns: int = 5) -> Report:
    """An archive of `files` small sealed files and one open one; the source cannot be reached."""
    place = directory / "start"
    originals = place / "source"
    originals.mkdir(parents=True)
    relay = RelayProcess(place, originals, port=free_port())
    relay.archive.mkdir(parents=True)
    _make_files(relay.archive, files)
    rebuild_archive(relay.archive)
    seconds, cpu = [], []
    for _ in range(turns):
        took, used = _start_once(relay, place)
        seconds.append(took)
        cpu.append(used)
    shutil.rmtree(place)
    report = Report("start", f"an archive of {files:,} files, {turns} starts")
    report.add("exec to the port taking connections", median(seconds), "s", aim=1)
    report.add("longest", max(seconds), "s")
    report.add("CPU until then", median(cpu), "s")
    return report


def _make_files(directory: Path, count: int) -> None:
    for number in range(1, count + 1):
        binlog = BinlogBuilder("mysql", version="5.6.24-log")
        binlog.transaction(20)
        if number < count:
            binlog.rotate(f"mysql-bin.{number + 1:06d}")
        (directory / f"mysql-bin.{number:06d}").write_bytes(binlog.data)


def _start_once(relay: RelayProcess, place: Path) -> tuple[float, float]:
    with relay.log_path.open("ab") as log:
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "relay", "run", "--config", str(relay.config)],
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ},
        )
    try:
        while True:
            if process.poll() is not None:
                raise RuntimeError(f"the relay ended:\n{relay.log_tail()}")
            try:
                socket.create_connection(("127.0.0.1", relay.port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.002)
        return time.monotonic() - start, cpu_s(process.pid)
    finally:
        process.kill()
        process.wait()
