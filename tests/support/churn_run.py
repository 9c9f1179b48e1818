"""Clients that come and go, minute after minute: the relay must release what it holds for them.

    python -m tests.support.churn_run --seconds 600 [--source mysql56|mysql97|mariadb]

There is a source that is written to and rotates, a relay, and clients that log in and out, fail to, run statements, change nothing,
begin dumps at all kinds of places and leave in the middle. Memory, descriptors and threads are measured when the first clients have
left, and at the end, without clients. Exit status 0 means that they are almost the same, 1 that they are not.
"""

import argparse
import contextlib
import os
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pymysql

from deploy.servers import SERVERS, Server
from tests.bench.process_facts import rss_mb
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient
from tests.support.thread_names import hook, left_over, thread_names

SOURCES: Final = ("mysql56", "mysql97", "mariadb")
CLIENTS: Final = 4
WARM_UP: Final = 0.2
"""This share of the time is for the warm-up: caches fill, code is loaded, buffers and pools of threads reach their number."""
LEAST_WARM_UP_S: Final = 8.0
"""The warm-up takes at least so long however short the run: each new thread of a pool has its own pages of the allocator."""
GROWN_MB: Final = 8.0
"""The growth that is allowed afterwards: pages of the allocator that are not given back at once."""
STATEMENTS: Final = (
    "SHOW SLAVE STATUS",
    "SHOW BINARY LOGS",
    "SHOW STATUS",
    "SHOW VARIABLES",
    "SHOW PROCESSLIST",
    "SHOW MASTER STATUS",
    "SHOW BINLOG EVENTS LIMIT 20",
    "SELECT 1, @@version, NOW(), CONNECTION_ID()",
    "SELECT * FROM no.such_table",
    "this is no statement",
    "SET NAMES utf8mb4",
)


@dataclass(frozen=True, slots=True)
class Held:
    """The resources that a process holds."""

    rss_mb: float
    descriptors: int
    threads: list[str]
    others: int
    """The number of threads that Python does not know: those of its libraries."""

    @classmethod
    def of(cls, pid: int, names: Path) -> "Held":
        """Return the current resources. `names` is where the process reports its threads."""
        threads = thread_names(pid, names)
        others = len(os.listdir(f"/proc/{pid}/task")) - len(threads)
        return cls(rss_mb(pid), len(os.listdir(f"/proc/{pid}/fd")), threads, others)

    def __str__(self) -> str:
        return f"{self.rss_mb:.1f} MB, {self.descriptors} descriptors, {len(self.threads)} + {self.others} threads"


class Churn:
    """The clients of one relay. `done` counts what was done; `findings` lists what is wrong."""

    def __init__(self, relay: RelayProcess, source: Server, seed: int, names: Path) -> None:
        self.done: Counter[str] = Counter()
        self.findings: list[str] = []
        self._relay = relay
        self._source = source
        self._seed = seed
        self._names = names
        self._stop = threading.Event()

    def run(self, seconds: float) -> tuple[Held, Held]:
        """Return what the relay held when it was warm, and at the end."""
        warm = self._for(max(seconds * WARM_UP, LEAST_WARM_UP_S))
        return warm, self._for(seconds * (1 - WARM_UP))

    def _for(self, seconds: float) -> Held:
        self._stop.clear()
        threads = [threading.Thread(target=self._client, args=(number,), daemon=True) for number in range(CLIENTS)]
        threads.append(threading.Thread(target=self._write, daemon=True))
        for thread in threads:
            thread.start()
        self._stop.wait(seconds)
        self._stop.set()
        for thread in threads:
            thread.join(60)
        if any(thread.is_alive() for thread in threads):
            self.findings.append("a client waits for ever")
        return self._alone()

    def _alone(self) -> Held:
        """Return what it holds when all of them have left."""
        deadline = time.monotonic() + 30
        while self._others() and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1.0)
        return Held.of(self._relay.pid, self._names)

    def _others(self) -> int:
        return int(dict(self._relay.sql("SHOW STATUS LIKE 'Threads_connected'"))["Threads_connected"]) - 1

    def _write(self) -> None:
        number = 0
        while not self._stop.wait(0.05):
            number += 1
            self._source.sql("INSERT INTO d.t (a) VALUES (REPEAT('x', 500))")
            if number % 100 == 0:
                self._source.sql("FLUSH BINARY LOGS")

    def _client(self, number: int) -> None:
        chance = random.Random(f"{self._seed}-{number}-{time.monotonic()}")
        kinds: list[Callable[[random.Random], None]] = [self._ask, self._fail_to_log_in, self._say_nothing, self._dump]
        while not self._stop.is_set():
            kind = chance.choice(kinds)
            try:
                with contextlib.suppress(pymysql.MySQLError):
                    kind(chance)
            except Exception as error:  # It is reported at the end
                self.findings.append(f"{kind.__name__}: {type(error).__name__}: {error}")
                return
            self.done[kind.__name__.strip("_")] += 1

    def _log_in(self, password: str = REPLICA_PASSWORD) -> ReplicaClient:
        return ReplicaClient(self._relay.port, user=REPLICA_USER, password=password)

    def _ask(self, chance: random.Random) -> None:
        client = self._log_in()
        try:
            for _ in range(chance.randrange(1, 6)):
                with contextlib.suppress(pymysql.err.OperationalError, pymysql.err.ProgrammingError):
                    client.query(chance.choice(STATEMENTS))
        finally:
            chance.choice([client.close, client.cut])()

    def _fail_to_log_in(self, chance: random.Random) -> None:
        self._log_in(f"wrong {chance.random()}").cut()

    def _say_nothing(self, chance: random.Random) -> None:
        with socket.create_connection(("127.0.0.1", self._relay.port), timeout=5) as stranger:
            stranger.recv(100)
            stranger.send(chance.randbytes(chance.randrange(30)))

    def _dump(self, chance: random.Random) -> None:
        files = sorted(self._relay.archived()) or [""]
        client = self._log_in()
        try:
            client.set_up(server_id=chance.randrange(1000, 2000), heartbeat_s=0.1)
            client.query("SET @mariadb_slave_capability= 4")
            client.ask_dump(chance.choice(files), chance.choice([4, 4, 4, 120, 100_000_000]), flags=2)
            for _ in range(chance.choice([1, 20, 2000])):
                if client.event() is None or self._stop.is_set():
                    break
        finally:
            with contextlib.suppress(AttributeError):  # PyMySQL has no socket any more
                chance.choice([client.shut_down, client.cut, client.cut])()
            client.cut()


def churn(name: str, seconds: float, directory: Path, seed: int = 1) -> Churn:
    """Run once; print what the relay held."""
    with SERVERS[name]() as source:
        source.start(server_id=1)
        source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, a TEXT)"])
        # Its limit for wrong passwords would send all of these clients away.
        sections = {"listen": {"max_login_failures": 0}}
        names = directory / "threads"
        with RelayProcess(directory, source, port=free_port(), sections=sections, environment=hook(names)) as relay:
            run = Churn(relay, source, seed, names)
            warm, end = run.run(seconds)
            print(f"{name}: {dict(run.done)}; warm {warm}; at the end {end}", flush=True)
            if end.rss_mb > warm.rss_mb + GROWN_MB:
                run.findings.append(f"memory grew from {warm.rss_mb:.1f} to {end.rss_mb:.1f} MB")
            if end.descriptors > warm.descriptors + 2 or end.others > warm.others:
                run.findings.append(f"left over: {warm} became {end}")
            if threads := left_over(warm.threads, end.threads):
                run.findings.append(f"threads left over: {', '.join(threads)}")
            if relay.logged("task_failed") or relay.logged("dump_fault"):
                run.findings.append("the relay logged a fault of its own")
    return run


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--source", choices=SOURCES, default="mysql56")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        run = churn(chosen.source, chosen.seconds, Path(directory) / "relay")
    for finding in run.findings:
        print(finding)
    return 1 if run.findings else 0


if __name__ == "__main__":
    sys.exit(main())
