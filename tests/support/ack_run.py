"""A run in which the relay is killed as soon as commits have returned, and the archive is searched for them.

    python -m tests.support.ack_run --rounds 200 [--source mariadb|mysql97]

The source waits for the relay's acknowledgement alone, practically for ever. Several clients commit at once; after a random number of
returned commits the relay is killed (SIGKILL). Everything that had returned by then must be in what the killed relay left, as whole
transactions; the relay is restarted only afterwards. Exit status 0 means that all is there, 1 that there are findings.
"""

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pymysql.err

from deploy.servers import SERVERS, Server
from relay.archive_inspection.listing import list_archive, rebuild_archive
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess
from tests.support.semi_sync import wait_clients, waiting_source

CLIENTS: Final = 4
SOURCES: Final = ("mariadb", "mysql97")
_WAIT_S: Final = 30.0


def marker(number: int) -> str:
    """Return the text that identifies a commit in the binlog."""
    return f"<commit-{number:08d}>"


class Clients:
    """Threads that commit one marked transaction after the other; `returned` are those whose COMMIT came back."""

    def __init__(self, source: Server) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._next = 0
        self._stop = False
        self.returned: list[int] = []
        self.changed = threading.Condition(self._lock)
        self.errors: list[str] = []
        self._threads = [threading.Thread(target=self._commit, daemon=True) for _ in range(CLIENTS)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stop = True
        for thread in self._threads:
            thread.join(_WAIT_S)

    def _commit(self) -> None:
        with contextlib.closing(self._source.connect()) as connection, connection.cursor() as cursor:
            while not self._stop:
                with self._lock:
                    number = self._next
                    self._next += 1
                try:
                    cursor.execute(f"INSERT INTO acked.t (text) VALUES ('{marker(number)}')")
                except pymysql.err.MySQLError as error:
                    self.errors.append(str(error))
                    return
                with self.changed:
                    self.returned.append(number)
                    self.changed.notify_all()

    def wait_returned(self, count: int) -> None:
        """Return as soon as so many commits have returned."""
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.returned) >= count, _WAIT_S):
                raise AssertionError(f"{len(self.returned)} of {count} commits returned; {self.errors}")


def archived_markers(archive: Path, scratch: Path) -> bytes:
    """Return all that the killed relay left as whole transactions, judged on a copy."""
    shutil.copytree(archive, scratch)
    try:
        rebuild_archive(scratch)
        held = b"".join((scratch / file.name).read_bytes()[: file.end] for file in list_archive(scratch))
    finally:
        shutil.rmtree(scratch)
    return held


def run(
    source: Server, directory: Path, rounds: int, seed: int, say: Callable[[str], None] = lambda line: None
) -> list[str]:
    """Kill the relay so many times, and return the findings. Starts `source`."""
    chance = random.Random(seed)
    waiting_source(source)
    sections = {"source": {"ack": "synced"}, "archive": {"sync": chance.choice(["none", "interval", "transaction"])}}
    relay = RelayProcess(directory, source, port=free_port(), sections=sections)
    findings: list[str] = []
    started = time.monotonic()
    with _ended(relay):
        relay.start()
        wait_clients(source)
        if source.flavour == "mariadb":
            # With it the relay asks for the list of replicas, at each start and while commits wait.
            source.sql(f"GRANT REPLICATION MASTER ADMIN ON *.* TO '{source.replication_user}'@'%'")
        source.execute_many(
            [
                "CREATE DATABASE acked",
                "CREATE TABLE acked.t (id INT AUTO_INCREMENT PRIMARY KEY, text VARCHAR(40) NOT NULL) ENGINE=InnoDB",
            ]
        )
        with Clients(source) as clients:
            try:
                for number in range(1, rounds + 1):
                    clients.wait_returned(len(clients.returned) + chance.randrange(1, 12))
                    relay.kill()
                    time.sleep(0.1)  # an acknowledgement that was under way arrives; no other can come
                    returned = list(clients.returned)
                    held = archived_markers(relay.archive, directory / "copy")
                    lost = [commit for commit in returned if marker(commit).encode() not in held]
                    if lost:
                        findings.append(f"kill {number}: {len(lost)} commits returned and are not archived: {lost[:5]}")
                    waiting = len(clients.returned) - len(returned)
                    if waiting:
                        findings.append(f"kill {number}: {waiting} commits returned without a relay")
                    if number % 20 == 0 or number == rounds:
                        say(f"{number} kills, {len(returned)} commits returned, {time.monotonic() - started:.0f} s")
                    relay.start()
            finally:
                if not relay.running:
                    relay.start()
                clients._stop = True
        findings += clients.errors
        say(f"archive.sync was {sections['archive']['sync']!r}; {len(clients.returned)} commits returned in the end")
    return findings


@contextlib.contextmanager
def _ended(relay: RelayProcess) -> Iterator[None]:
    try:
        yield
    finally:
        if relay.running:
            relay.kill()


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200, help="how often the relay is killed behind each source")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--source", choices=SOURCES, action="append", help="only this one")
    arguments = parser.parse_args()
    found = 0
    for name in arguments.source or SOURCES:
        print(f"== {name}: {arguments.rounds} kills, seed {arguments.seed}", flush=True)
        with SERVERS[name]() as source, tempfile.TemporaryDirectory(prefix="binlog-relay-acks-") as place:
            findings = run(
                source, Path(place), arguments.rounds, arguments.seed, lambda line: print(f"  {line}", flush=True)
            )
        for line in findings:
            print(f"  FINDING: {line}")
        found += len(findings)
        print(
            f"  {'every commit that returned is archived' if not findings else f'{len(findings)} findings'}", flush=True
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
