"""Memory: a transaction of 1 GiB comes in while 16 replicas are served, of which 4 never read."""

import time
from pathlib import Path

from tests.bench.figures import MB, Report
from tests.bench.process_facts import peak_rss_mb, rss_mb
from tests.bench.relays import filled_relay, login
from tests.bench.source_data import DATABASE, BenchSource, wait_until_size
from tests.bench.streams import Stream, reading

READING = 12
STALLED = 4
_ROW_BYTES = 8000


def run(source: BenchSource, directory: Path, *, transaction_mib: int = 1024) -> Report:
    """The replicas start at the first binlog's beginning and end behind the transaction; peak is of the whole life."""
    server = source.server
    # BLACKHOLE: the binlog is written, and no gigabyte of table.
    server.execute_many(
        [
            "INSTALL SONAME 'ha_blackhole'",
            "CREATE TABLE IF NOT EXISTS wide (data VARBINARY(8000)) ENGINE=BLACKHOLE",
            "FLUSH LOGS",
        ],
        DATABASE,
    )
    with filled_relay(directory / "memory", source) as relay:
        at_rest = rss_mb(relay.pid)
        stalled = [
            Stream.by_position(login(relay), source.file, server_id=4000 + number, receive_buffer_bytes=4096)
            for number in range(STALLED)
        ]
        streams = [Stream.by_position(login(relay), source.file, server_id=5000 + number) for number in range(READING)]
        for stream in stalled:
            stream.send()
        file, before = source.newest()
        with reading("drain", "0", streams=streams) as clients:
            time.sleep(0.5)
            rows = (transaction_mib << 20) // _ROW_BYTES
            server.sql(f"INSERT INTO wide SELECT REPEAT('x', {_ROW_BYTES}) FROM seq_1_to_{rows}", DATABASE)
            transaction = (server.datadir / file).stat().st_size - before
            file, size = source.newest()
            wait_until_size(relay.archive / file, size)
            _wait_until_sent(relay.pid)
            result = clients.result()
        peak = peak_rss_mb(relay.pid)
        for stream in stalled:
            stream.close()
    report = Report(
        "memory",
        f"a transaction of {transaction / 2**20:.0f} MiB, {READING} clients reading, {STALLED} stalled",
    )
    report.add("relay, peak resident", peak, "MB", aim=120)
    report.add("relay, at rest before", at_rest, "MB")
    report.add("sent to the reading clients meanwhile", result["bytes"] / MB, "MB")
    return report


def _wait_until_sent(pid: int) -> None:
    """Returns when the relay is at rest: its processor time stands still."""
    from tests.bench.process_facts import cpu_s

    last = -1.0
    while (now := cpu_s(pid)) - last > 0.02:
        last = now
        time.sleep(0.5)
