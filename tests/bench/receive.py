"""Receiving: the relay against `mysqlbinlog --read-from-remote-server --raw`, from the same source, by turns.

The relay is started while the source is stopped (SIGSTOP), so that its own start does not count; the clock runs from
SIGCONT until the archived file is complete. mysqlbinlog's clock runs from exec to exit; its start takes milliseconds.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.bench.figures import GB, MB, Report, median
from tests.bench.process_facts import cpu_s
from tests.bench.relays import make_relay
from tests.bench.source_data import BenchSource, wait_until_size


def run(source: BenchSource, directory: Path, *, turns: int = 5) -> Report:
    """Measures `turns` turns of each."""
    relay_s, relay_cpu, other_s, other_cpu = [], [], [], []
    for turn in range(turns):
        seconds, cpu = _relay_once(source, directory / f"relay-{turn}")
        relay_s.append(seconds)
        relay_cpu.append(cpu)
        seconds, cpu = _mysqlbinlog_once(source, directory / f"mysqlbinlog-{turn}")
        other_s.append(seconds)
        other_cpu.append(cpu)
    size = source.size
    report = Report("receive", f"{size / MB:.0f} MB of {source.transactions:,} small transactions, {turns} turns each")
    report.add("relay, throughput", size / median(relay_s) / MB, "MB/s")
    report.add("mysqlbinlog --raw, throughput", size / median(other_s) / MB, "MB/s")
    report.add("throughput, relay / mysqlbinlog", median(other_s) / median(relay_s), aim=5, at_least=True)
    report.add("relay, CPU", median(relay_cpu) / size * GB, "s/GB")
    report.add("mysqlbinlog --raw, CPU", median(other_cpu) / size * GB, "s/GB")
    report.add("CPU, relay / mysqlbinlog", median(relay_cpu) / median(other_cpu), aim=0.15)
    return report


def _relay_once(source: BenchSource, directory: Path) -> tuple[float, float]:
    """Seconds and seconds of CPU for everything the source has."""
    file, size = source.newest()
    relay = make_relay(directory, source.server)
    os.kill(source.pid, signal.SIGSTOP)
    try:
        relay.start()
        time.sleep(0.3)
    finally:
        before = cpu_s(relay.pid)
        start = time.monotonic()
        os.kill(source.pid, signal.SIGCONT)
    try:
        end = wait_until_size(relay.archive / file, size)
        used = cpu_s(relay.pid) - before
    finally:
        relay.kill()
    shutil.rmtree(directory)
    return end - start, used


def _mysqlbinlog_once(source: BenchSource, directory: Path) -> tuple[float, float]:
    server = source.server
    directory.mkdir()
    command = [
        *server.mysqlbinlog(),
        "--no-defaults",
        "--read-from-remote-server",
        "--raw",
        "--to-last-log",
        "--protocol=tcp",
        "--host=127.0.0.1",
        f"--port={server.port}",
        f"--user={server.replication_user}",
        f"--password={server.replication_password}",
        f"--result-file={directory}/",
        source.file,
    ]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    end = time.monotonic()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"mysqlbinlog ended with {process.returncode}")
    shutil.rmtree(directory)
    return end - start, used.ru_utime + used.ru_stime
