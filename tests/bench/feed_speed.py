"""How fast the feed is: an archive into empty Delta tables, and how fresh they are while a source writes.

    python -m tests.bench.feed_speed [--megabytes 1000] [--batch-mb 16] [--modes current] [--key BIGINT] [--behind 0] [--transaction]
    python -m tests.bench.feed_speed --fresh 60 [--rate 10000] [--interval 1] [--spark]

The first prints seconds, changes a second, processor time and peak memory of the feed's process, with --transaction of one transaction
of that size, with --key of a table whose key has that type, with --behind of keys that are larger than this; the second the age of rows
when they can be read in the lake: p50, p99, with --spark by Structured Streaming, and what a trigger costs beside the batch. Needs a
MariaDB. Nothing here waits for a quiet machine: whoever compares figures does.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from deploy.servers import SERVERS, Server
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess

TABLE = (
    "CREATE TABLE orders (id {key} PRIMARY KEY, customer INT, name VARCHAR(60), amount DECIMAL(10,2), created DATETIME(3), "
    "note VARCHAR(100), n INT) ENGINE=InnoDB"
)
ROWS = (
    "SELECT {behind} + seq, seq % 1000, CONCAT('customer number ', seq), seq / 100, '2020-01-02 03:04:05.678', REPEAT('x', seq % 60), "
    "seq % 7 FROM seq_{first}_to_{last}"
)
STEP = 20_000


def written(server: Server, megabytes: int, key: str, behind: int) -> None:
    """Inserts, updates of three quarters of each fourth stretch, deletes of a twentieth, until the binlogs have that size."""
    server.execute_many(["CREATE DATABASE shop", "USE shop", TABLE.format(key=key)])
    first = 1
    while sum(one.stat().st_size for one in server.binlogs()) < megabytes << 20:
        rows = ROWS.format(first=first, last=first + STEP - 1, behind=behind)
        server.execute_many(["USE shop", "INSERT INTO orders " + rows])
        at = behind + first
        if first // STEP % 4 == 3:
            server.execute_many(
                [
                    "USE shop",
                    f"UPDATE orders SET n = n + 1, amount = amount + 1 WHERE id BETWEEN {at - STEP} AND {at - STEP // 4}",
                    f"DELETE FROM orders WHERE id BETWEEN {at - STEP // 5} AND {at - STEP // 6}",
                ]
            )
        first += STEP


def written_at_once(server: Server, megabytes: int, key: str, behind: int) -> None:
    """One transaction of about that size."""
    server.execute_many(["CREATE DATABASE shop", "USE shop", TABLE.format(key=key)])
    rows = megabytes * 11_000
    server.execute_many(["USE shop", "INSERT INTO orders " + ROWS.format(first=1, last=rows, behind=behind)])


def settings(directory: Path, archive: Path, **more: Any) -> Path:
    """A feed.toml."""
    config = directory / "feed.toml"
    keys = {"archive": str(archive), "target": str(directory / "lake"), "tables": ["shop.*"], **more}
    config.write_text("[feed]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in keys.items()))
    return config


def backlog(megabytes: int, batch_mb: int, modes: list[str], key: str, behind: int, *, at_once: bool) -> None:
    """An archive into empty tables."""
    with tempfile.TemporaryDirectory() as temporary, SERVERS["mariadb"]() as server:
        directory = Path(temporary)
        server.start(server_id=1, options=["--binlog-format=ROW", "--max-binlog-size=256M"])
        (written_at_once if at_once else written)(server, megabytes, key, behind)
        archive = directory / "binlogs"
        archive.mkdir()
        for one in server.binlogs():
            shutil.move(one, archive)
        size = sum(one.stat().st_size for one in archive.iterdir())
        config = settings(directory, archive, modes=modes, batch_mb=batch_mb)
        begun = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "relay", "feed", "--config", str(config), "--once"], stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        told = process.stderr.read().decode().strip().splitlines()
        _, status, usage = os.wait4(process.pid, 0)
        took = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        changes = int(told[-1].partition(": ")[2].split()[0])
        lake = DeltaTable(str(directory / "lake" / "current" / "shop" / "orders")).to_pyarrow_table(
            columns=["id", "amount"]
        )
        there = server.sql("SELECT COUNT(*), SUM(id), SUM(amount) FROM shop.orders")[0]
        import pyarrow.compute as pc

        same = (lake.num_rows, pc.sum(lake["id"]).as_py(), pc.sum(lake["amount"]).as_py()) == (
            there[0],
            int(there[1]),
            there[2],
        )
        print(
            f"{size / 1e6:.0f} MB, {changes} changes in {took:.1f} s: {size / 1e6 / took:.1f} MB/s, {changes / took:.0f} changes/s, "
            f"{usage.ru_utime + usage.ru_stime:.1f} s of processor, {usage.ru_maxrss / 1024:.0f} MB at most; "
            f"{lake.num_rows} rows, {'as' if same else 'NOT AS'} on the source"
        )


def freshness(seconds: float, rate: int, interval: float, *, spark: bool) -> None:
    """The age of rows when they can be read in the lake."""
    with tempfile.TemporaryDirectory() as temporary, SERVERS["mariadb"]() as server:
        directory = Path(temporary)
        server.start(server_id=1, options=["--binlog-format=ROW"])
        server.execute_many(["CREATE DATABASE shop", "USE shop", TABLE.format(key="BIGINT")])
        with RelayProcess(directory / "relay", server, port=free_port()) as relay:
            end = server.master_status()
            relay.wait_archived(end.file, end.position)
            config = settings(directory, relay.archive, interval_s=interval, modes=["current"])
            command = ["relay", "feed", "--config", str(config)]
            if spark:
                command = ["tests.bench.spark_feed", str(config), str(directory / "checkpoint")]
            process = subprocess.Popen(
                [sys.executable, "-m", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            while not DeltaTable.is_deltatable(str(directory / "lake" / "current" / "shop" / "orders")):
                if process.poll() is not None:
                    sys.exit(f"the feed ended with {process.returncode} before it had a table")
                time.sleep(0.1)  # to start is another thing than to follow
            wrote: list[tuple[int, float]] = []
            seen: list[tuple[int, float]] = []
            ended = threading.Event()
            watcher = threading.Thread(
                target=watch, args=(directory / "lake" / "current" / "shop" / "orders", seen, ended)
            )
            watcher.start()
            connection = server.connect("shop")
            cursor = connection.cursor()
            number, step = 1, max(rate // 20, 1)
            for _ in range(3):  # Spark starts its workers, whoever feeds reads its code
                cursor.execute("INSERT INTO orders " + ROWS.format(first=number, last=number + step - 1, behind=0))
                number += step
                ends = time.monotonic() + 120
                while (not seen or seen[-1][0] < number - 1) and time.monotonic() < ends:
                    time.sleep(0.1)
            begun, first = time.monotonic(), number
            while time.monotonic() - begun < seconds:
                cursor.execute("INSERT INTO orders " + ROWS.format(first=number, last=number + step - 1, behind=0))
                number += step
                wrote.append((number - 1, time.monotonic()))
                time.sleep(max(0.0, begun + (number - first) / rate - time.monotonic()))
            ends = time.monotonic() + 60
            while (not seen or seen[-1][0] < number - 1) and time.monotonic() < ends:
                time.sleep(0.1)
            ended.set()
            watcher.join()
            if spark:
                lines = process.communicate()[0].decode().splitlines()
                if not lines:
                    sys.exit(f"Spark's query ended with {process.returncode}")
                told = json.loads(lines[-1])
                print(
                    f"{told['micro_batches']} micro-batches: {told['triggerExecution']} ms each (median), of which "
                    f"{told['addBatch']} ms are the batch; the trigger costs the rest"
                )
            process.kill()
            process.wait()
            connection.close()
        ages = []
        for last, at in wrote:
            found = next((when for most, when in seen if most >= last), None)
            ages.append(float("inf") if found is None else found - at)
        ages.sort()
        print(
            f"{(number - first) / (wrote[-1][1] - begun):.0f} rows/s for {seconds:.0f} s, interval {interval:g} s: age when readable "
            f"p50 {ages[len(ages) // 2]:.2f} s, p99 {ages[int(len(ages) * 0.99)]:.2f} s, most {ages[-1]:.2f} s; {len(seen)} versions"
        )


def watch(path: Path, seen: list[tuple[int, float]], ended: threading.Event) -> None:
    """Notes when which rows can be read."""
    version = -1
    while not ended.wait(0.1):
        if not DeltaTable.is_deltatable(str(path)):
            continue
        table = DeltaTable(str(path))
        if table.version() != version:
            version = table.version()
            most = max(
                (
                    one
                    for one in pa.table(table.get_add_actions(flatten=True)).to_pydict().get("max.id", [])
                    if one is not None
                ),
                default=0,
            )
            seen.append((most, time.monotonic()))


def main() -> int:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--batch-mb", type=int, default=16)
    parser.add_argument("--modes", default="current")
    parser.add_argument("--key", default="BIGINT", help="the key's type")
    parser.add_argument("--behind", type=int, default=0, help="keys are larger than this")
    parser.add_argument("--transaction", action="store_true")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--fresh", type=float, default=0)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--interval", type=float, default=1.0)
    options = parser.parse_args()
    if options.fresh:
        freshness(options.fresh, options.rate, options.interval, spark=options.spark)
    else:
        modes = options.modes.split(",")
        backlog(options.megabytes, options.batch_mb, modes, options.key, options.behind, at_once=options.transaction)
    return 0


if __name__ == "__main__":
    sys.exit(main())
