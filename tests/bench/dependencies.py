"""Dependencies in a view: what a replica gains by them, what making them costs, and how they compare with those of a MySQL 9.7.

The replica is durable, and a sync takes two milliseconds (`slow_sync.py`): what is gained is waiting for the disk together.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from deploy.servers import SERVERS, Server
from deploy.servers.mysql56 import MySQL56
from protocol.position import Position
from tests.bench.figures import GB, MB, Report, median
from tests.bench.slow_sync import DURABLE, SlowSyncMySQL97
from tests.bench.source_data import BenchSource, bench_source
from tests.bench.views import TRANSACTIONS, archived, made_once
from tests.support.chain import wait_until
from tests.support.key_workload import KeyWorkload
from tests.support.numbered_groups import width_of
from tests.support.relay_process import REPLICA_PASSWORD
from tests.support.view_chain import ViewChain, account_of, executed_by, view_keys
from tests.support.view_files import binlogs_in

SERIAL, WRITESET = "serial", "writeset"
VIEWS: Final = [view_keys(SERIAL), view_keys(WRITESET, dependencies="writeset")]
_GTIDS: Final = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
_TABLES: Final = 4
_GIVEN_UP_S: Final = 600.0


def run_applied(directory: Path, *, transactions: int = 2500, turns: int = 3) -> Report:
    """How fast a replica applies what it has received, by workers and view, by turns."""
    report = Report(
        "dependencies", f"{transactions:,} transactions of one row, replica durable, 2 ms a sync, {turns} turns each"
    )
    ways = [(SERIAL, 4), (WRITESET, 4), (WRITESET, 16)]
    seconds: dict[tuple[str, int], list[float]] = {way: [] for way in ways}
    with _servers() as servers, ViewChain(servers, "mysql56", directory / "applied", views=VIEWS) as chain:
        _write_rows(chain.source, transactions)
        for view in (SERIAL, WRITESET):
            chain.wait_viewed(view, _GIVEN_UP_S)
        for _ in range(turns):
            for view, workers in ways:
                seconds[view, workers].append(_apply_s(chain, view, workers))
    for (view, workers), taken in seconds.items():
        report.add(f"{view}, {workers} workers", transactions / median(taken), "trx/s")
    serial = seconds[SERIAL, 4]
    for view, workers in ways[1:]:
        gained = median([slow / fast for slow, fast in zip(serial, seconds[view, workers], strict=True)])
        name = f"{view} / {SERIAL}, {workers} workers"
        if workers == 4:
            report.add(name, gained, aim=2.5, at_least=True)
        else:
            report.add(name, gained)
    return report


def run_made(source: BenchSource, directory: Path, *, turns: int = 5) -> Report:
    """Making a view with dependencies against making it without, of a warm archive, by turns."""
    report = Report(
        "dependencies-made", f"{source.size / MB:.0f} MB of {source.transactions:,} transactions, {turns} turns each"
    )
    made_s: dict[str, list[float]] = {SERIAL: [], WRITESET: []}
    cpu: dict[str, list[float]] = {SERIAL: [], WRITESET: []}
    expected = {SERIAL: 0, WRITESET: 0}
    with archived(source, directory / "archived") as archive:
        for turn in range(turns + 1):
            for way, keys in ((SERIAL, view_keys()), (WRITESET, view_keys(dependencies="writeset"))):
                place = directory / f"{way}-{turn}"
                taken, used, expected[way] = made_once(archive, source, place, expected[way], keys)
                if turn:
                    made_s[way].append(taken)
                    cpu[way].append(used)
    for way, taken_s in made_s.items():
        report.add(
            f"view, {way}, made from the archive",
            source.size / median(taken_s) / MB,
            "MB/s",
            note="of the source's bytes",
        )
    report.add(
        f"making, {WRITESET} / {SERIAL}", median(made_s[SERIAL]) / median(made_s[WRITESET]), aim=0.5, at_least=True
    )
    report.add("the same, least disturbed turn of each", min(made_s[SERIAL]) / min(made_s[WRITESET]))
    for way, used_s in cpu.items():
        report.add(f"making, {way}, CPU", median(used_s) / source.size * GB, "s/GB")
    return report


def run_widths(directory: Path, *, transactions: int = 20_000, turns: int = 3) -> Report:
    """How many transactions may run together on average: in the view, and in a MySQL 9.7's own binlogs of the same work."""
    report = Report("dependencies-width", f"{transactions:,} transactions")
    works: dict[str, Callable[[Server], None]] = {
        "one row each": lambda server: _write_rows(server, transactions),
        "forty tables, eight connections": lambda server: KeyWorkload(server, 1).run(transactions),
    }
    for name, work in works.items():
        ours, theirs = [], []
        for turn in range(turns):
            place = directory / f"width-{name[:3]}-{turn}"
            with _servers() as servers:
                options = ["--binlog-format=ROW", "--innodb-lock-wait-timeout=3"]
                with ViewChain(servers, "mysql56", place, options=options, views=VIEWS[1:]) as chain:
                    work(chain.source)
                    chain.wait_viewed(WRITESET, _GIVEN_UP_S)
                    ours.append(width_of(binlogs_in(chain.view_directory(WRITESET))))
                server = servers("mysql97").start(server_id=2, options=[*_GTIDS, options[1]])
                work(server)
                theirs.append(width_of(server.binlogs()))
        report.add(f"{name}: view", median(ours))
        report.add(f"{name}: MySQL 9.7", median(theirs))
        report.add(f"{name}: view / MySQL 9.7", median(ours) / median(theirs), aim=0.9, at_least=True)
    return report


def run(directory: Path, quick: bool) -> Report:
    """All of it, with sources of its own."""
    report = run_applied(directory, transactions=150 if quick else 2500, turns=1 if quick else 3)
    with bench_source(3_000 if quick else TRANSACTIONS, None, kind=MySQL56) as source:
        parts = [run_made(source, directory, turns=1 if quick else 5)]
    parts.append(run_widths(directory, transactions=500 if quick else 20_000, turns=1 if quick else 3))
    for part in parts:
        report.figures += part.figures
    report.conditions = "; ".join([report.conditions, *(part.conditions for part in parts)])
    return report


# ---- parts ---------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _servers() -> Iterator[Callable[[str], Server]]:
    """Makes servers by name; a MySQL 9.7 called "slow" has slow syncs. They are ended afterwards."""
    with contextlib.ExitStack() as stack:
        kinds: dict[str, type[Server]] = {**SERVERS, "slow": SlowSyncMySQL97}
        yield lambda name: stack.enter_context(kinds[name]())


def _write_rows(server: Server, transactions: int) -> None:
    """INSERT and UPDATE of single rows in tables with a primary and a unique key, on one connection; always the same."""
    chance = random.Random(17)
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE rowed")
        cursor.execute("USE rowed")
        cursor.execute("SET binlog_format = ROW")
        for number in range(_TABLES):
            cursor.execute(f"CREATE TABLE t{number} (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(40)) ENGINE=InnoDB")
        held = [0] * _TABLES
        for number in range(transactions):
            table = chance.randrange(_TABLES)
            if not held[table] or chance.random() < 0.5:
                cursor.execute(f"INSERT INTO t{table} VALUES ({held[table]}, {number}, 'a customer called {number}')")
                held[table] += 1
            else:
                cursor.execute(f"UPDATE t{table} SET u = {number} WHERE id = {chance.randrange(held[table])}")


def _apply_s(chain: ViewChain, view: str, workers: int) -> float:
    """Seconds from the start of the applier, with all in the relay log, to the last transaction."""
    gtids, end = chain.gtids_of_view(view), chain.end_of_view(view)
    assert end is not None
    replica = chain.server("slow", [*_GTIDS, *DURABLE, f"--replica-parallel-workers={workers}"])
    try:
        replica.attach(
            "127.0.0.1", chain.relay.port, account_of(view), REPLICA_PASSWORD, start=False, auto_position=1, ssl=1
        )
        replica.sql("START REPLICA IO_THREAD")
        wait_until(lambda: _received(replica) == end, "the replica has received the view", _GIVEN_UP_S)
        begun = time.monotonic()
        replica.sql("START REPLICA SQL_THREAD")
        wait_until(lambda: executed_by(replica) == gtids, "the replica has applied the view", _GIVEN_UP_S)
        return time.monotonic() - begun
    finally:
        replica.close()


def _received(replica: Server) -> Position:
    status = replica.replica_status()
    return Position(status["source_file"], status["read_position"])
