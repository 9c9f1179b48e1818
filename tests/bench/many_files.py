"""Very many tiny binlogs: a directory of them is archived, and a relay starts with an archive of them."""

import shutil
import socket
import time
from pathlib import Path

from tests.bench.figures import Report, median
from tests.bench.process_facts import cpu_s
from tests.support.binlog_builder import BinlogBuilder
from tests.support.free_port import free_port
from tests.support.many_files import fill_with_many
from tests.support.relay_process import RelayProcess

_PARTS = 3
_FEW = 10_000


def run(directory: Path, *, files: int = 30_000, archived: int = 100_000, turns: int = 3) -> Report:
    """`files` in a directory that is followed, on the disk of `directory`; `archived` in an archive that is opened."""
    report = Report("many-files", f"a directory of {files:,} files, and an archive of {archived:,}, {turns} starts")
    _measure_directory(directory / "followed", files, report)
    _measure_start(directory / "archived", archived, turns, report)
    return report


def _measure_directory(place: Path, files: int, report: Report) -> None:
    source = place / "binlogs"
    source.mkdir(parents=True)
    for number in range(1, files + 1):
        binlog = BinlogBuilder("mysql", version="5.6.24-log").transaction(20).rotate(f"mysql-bin.{number + 1:06d}")
        (source / f"mysql-bin.{number:06d}").write_bytes(binlog.data)
    wanted = sorted({*(files * part // _PARTS for part in range(1, _PARTS + 1)), min(_FEW, files)})
    with RelayProcess(place, source, port=free_port()) as relay:
        started = time.monotonic()
        reached = {0: started}
        for count in wanted:
            newest = relay.archive / f"mysql-bin.{count:06d}"
            while not newest.exists():
                if not relay.running:
                    raise RuntimeError(f"the relay ended:\n{relay.log_tail()}")
                time.sleep(0.02)
            reached[count] = time.monotonic()
        cpu = cpu_s(relay.pid)
        relay.stop(60)
    shutil.rmtree(place)
    few = min(_FEW, files)
    report.add(f"the first {few:,} files", reached[few] - started, "s", aim=60)
    report.add(f"all {files:,} files", reached[files] - started, "s")
    step = files // _PARTS
    for part in range(_PARTS):
        before, after = reached[files * part // _PARTS], reached[files * (part + 1) // _PARTS]
        report.add(f"pace in part {part + 1} of {_PARTS}", step / (after - before), "files/s")
    report.add("CPU for each file", cpu / files * 1000, "ms")


def _measure_start(place: Path, archived: int, turns: int, report: Report) -> None:
    source = place / "binlogs"
    source.mkdir(parents=True)
    relay = RelayProcess(place, source, port=free_port())
    relay.archive.parent.mkdir(parents=True)
    fill_with_many(relay.archive, archived)
    seconds, cpu = [], []
    for _ in range(turns):
        started = time.monotonic()
        relay.start(wait=False)
        _until_it_listens(relay)
        seconds.append(time.monotonic() - started)
        cpu.append(cpu_s(relay.pid))
        relay.kill()
    shutil.rmtree(place)
    report.add(f"exec to the port taking connections, {archived:,} files archived", median(seconds), "s", aim=5)
    report.add("longest", max(seconds), "s")
    report.add("CPU until then", median(cpu), "s")


def _until_it_listens(relay: RelayProcess) -> None:
    while True:
        if not relay.running:
            raise RuntimeError(f"the relay ended:\n{relay.log_tail()}")
        try:
            socket.create_connection(("127.0.0.1", relay.port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.002)
