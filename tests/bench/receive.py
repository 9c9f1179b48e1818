"""Receiving: the relay against `mysqlbinlog --read-from-remote-server --raw`, from the same source, by turns.

The relay is started while the source is stopped (SIGSTOP), so that its own start does not count; the clock runs from
SIGCONT until the archived file is complete. mysqlbinlog's clock runs from exec to exit; its start takes milliseconds.

In a virtual machine that gives free memory back to its host, the first write to a page costs several times what the
copy costs, and whose turn meets how many such pages is chance. So before each turn of either side as much is written
and removed again. A client that throws the bytes away shows what the source can send at all at that moment.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.figures import GB, MB, Report, median
from tests.bench.process_facts import cpu_s
from tests.bench.relays import make_relay
from tests.bench.source_data import BenchSource, wait_until_size
from tests.bench.streams import drain, stream_size
from tests.support.relay_process import RelayProcess


def run(source: BenchSource, directory: Path, *, turns: int = 5) -> Report:
    """Measures `turns` turns of each."""
    relay_s, relay_cpu, other_s, other_cpu, thrown_s = [], [], [], [], []
    wanted = stream_size(source.login, source.file)
    for turn in range(turns):
        seconds, cpu = relay_once(source, directory / f"relay-{turn}")
        relay_s.append(seconds)
        relay_cpu.append(cpu)
        seconds, cpu = _mysqlbinlog_once(source, directory / f"mysqlbinlog-{turn}")
        other_s.append(seconds)
        other_cpu.append(cpu)
        thrown_s.append(drain(source.login, source.file, wanted)["seconds"])
    size = source.size
    report = Report("receive", f"{size / MB:.0f} MB of {source.transactions:,} small transactions, {turns} turns each")
    report.add("relay, throughput", size / median(relay_s) / MB, "MB/s")
    report.add("mysqlbinlog --raw, throughput", size / median(other_s) / MB, "MB/s")
    report.add(
        "source to a client that throws all away", size / median(thrown_s) / MB, "MB/s", note="nobody can be faster"
    )
    report.add("throughput, relay / mysqlbinlog", median(other_s) / median(relay_s), aim=5, at_least=True)
    report.add("the same, least disturbed turn of each", min(other_s) / min(relay_s))
    report.add("relay, CPU", median(relay_cpu) / size * GB, "s/GB")
    report.add("mysqlbinlog --raw, CPU", median(other_cpu) / size * GB, "s/GB")
    report.add("CPU, relay / mysqlbinlog", median(relay_cpu) / median(other_cpu), aim=0.15)
    report.add("the same, least disturbed turn of each", min(relay_cpu) / min(other_cpu))
    return report


def relay_once(
    source: BenchSource,
    directory: Path,
    *,
    prepare: Callable[[RelayProcess], object] = lambda _: None,
    checkout: Path | None = None,
) -> tuple[float, float]:
    """Seconds and seconds of CPU until the source's first binlog is archived. `prepare`: changes the relay before it starts."""
    relay = make_relay(directory, source.server, checkout)
    prepare(relay)
    os.kill(source.pid, signal.SIGSTOP)
    try:
        relay.start()
        time.sleep(0.3)
        warm_free_memory(directory.parent, source.size)
    finally:
        before = cpu_s(relay.pid)
        start = time.monotonic()
        os.kill(source.pid, signal.SIGCONT)
    try:
        end = wait_until_size(relay.archive / source.file, source.size)
        used = cpu_s(relay.pid) - before
    finally:
        relay.kill()
    shutil.rmtree(directory)
    return end - start, used


def warm_free_memory(directory: Path, size: int) -> None:
    """Leaves several times `size` of free memory that is the machine's own already, in pieces of the sizes that count."""
    paths = []
    for step in (16 << 10, 64 << 10, 256 << 10, 1 << 20):
        piece = bytes(step)
        paths.append(directory / f"warm-{step}")
        with paths[-1].open("wb", buffering=0) as file:
            for _ in range(size * 5 // 4 // step + 1):
                file.write(piece)
    for path in paths:
        path.unlink()


def _mysqlbinlog_once(source: BenchSource, directory: Path) -> tuple[float, float]:
    server = source.server
    directory.mkdir()
    command = [
        *server.mysqlbinlog(),
        "--no-defaults",
        "--read-from-remote-server",
        "--raw",
        "--protocol=tcp",
        "--host=127.0.0.1",
        f"--port={server.port}",
        f"--user={server.replication_user}",
        f"--password={server.replication_password}",
        f"--result-file={directory}/",
        source.file,
    ]
    warm_free_memory(directory, source.size)
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    end = time.monotonic()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"mysqlbinlog ended with {process.returncode}")
    shutil.rmtree(directory)
    return end - start, used.ru_utime + used.ru_stime
