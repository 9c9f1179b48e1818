"""Disasters under load, in random order: kills, restarts and cut connections, and the checks at the end.

writers --> source --> proxy --> relay --> proxy --> replicas
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import pymysql

from deploy.servers import CatchUpError, Server
from tests.support.binlog_comparison import differences
from tests.support.cutting_proxy import CuttingProxy
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.workload import SteadyWriter

# Loses nothing by SIGKILL, and rotates often. The last is what makes MyISAM tables usable again.
SOURCE_OPTIONS = (
    "--sync-binlog=1",
    "--innodb-flush-log-at-trx-commit=1",
    "--max-binlog-size=2M",
    "--myisam-recover-options=FORCE,BACKUP",
)
DATABASES = ("steady", "mixed")
CATCH_UP_S = 180.0
_BIG_ROWS = 300
_STOPPED_BY_A_CUT = (1593, 1595)


class MixedWriter:
    """A thread that writes transactions over InnoDB and MyISAM, in ROW, STATEMENT and MIXED format by turns.

    Each one counts itself in `mixed.total`; every seventh is rolled back after it wrote to both engines, which is in the binlog too;
    every 40th is big, so that cuts fall inside it. MyISAM cannot survive SIGKILL in step with the binlog, so `paused()` holds the
    thread between two transactions while the source is killed.
    """

    FORMATS: ClassVar[Sequence[str]] = ("ROW", "STATEMENT", "MIXED")

    def __init__(self, server: Server, pause_s: float) -> None:
        self._server = server
        self._pause_s = pause_s
        self._between = threading.Lock()
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="mixed-writer", daemon=True)

    def __enter__(self) -> Self:
        columns = "n INT NOT NULL, part INT NOT NULL, body VARCHAR(1000), PRIMARY KEY (n, part)"
        self._server.execute_many(
            [
                "CREATE DATABASE mixed DEFAULT CHARACTER SET latin1",
                f"CREATE TABLE mixed.inno ({columns}) ENGINE=InnoDB",
                f"CREATE TABLE mixed.isam ({columns}) ENGINE=MyISAM",
                "CREATE TABLE mixed.total (id INT NOT NULL PRIMARY KEY, transactions INT NOT NULL) ENGINE=InnoDB",
                "INSERT INTO mixed.total VALUES (1, 0)",
            ]
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    @contextlib.contextmanager
    def paused(self) -> Any:
        """Hold the writer: no transaction is under way inside, and the MyISAM tables are closed."""
        with self._between:
            self._server.sql("FLUSH NO_WRITE_TO_BINLOG TABLES")
            yield

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._write()
                except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError):
                    self._stopping.wait(0.05)  # the source is down; what it had of our transaction it rolls back
        except BaseException as error:
            self._failure = error

    def _write(self) -> None:
        with contextlib.closing(self._server.connect("mixed")) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT GREATEST(COALESCE((SELECT MAX(n) FROM inno), 0), COALESCE(MAX(n), 0)) FROM isam")
            number = int(cursor.fetchone()[0])
            while not self._stopping.is_set():
                number += 1
                with self._between:
                    self._transaction(cursor, number)
                self._stopping.wait(self._pause_s)

    def _transaction(self, cursor: Any, number: int) -> None:
        cursor.execute(f"SET SESSION binlog_format = {self.FORMATS[number % len(self.FORMATS)]}")
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO inno VALUES ({number}, 1, 'first')")
        cursor.execute(f"INSERT INTO isam VALUES ({number}, 1, 'stays')")
        if number % 40 == 0:
            rows = ", ".join(f"({number}, {part}, REPEAT('b', 900))" for part in range(2, _BIG_ROWS))
            cursor.execute(f"INSERT INTO inno VALUES {rows}")
        cursor.execute("UPDATE total SET transactions = transactions + 1 WHERE id = 1")
        cursor.execute("ROLLBACK" if number % 7 == 0 else "COMMIT")


class Nurse:
    """A thread that restarts MariaDB replicas that a lost connection has stopped, as an operator would.

    MariaDB (10.11.19, file and position) stops in two such cases, also directly after a real source without a relay: 1595 when the
    connection broke between the row events of one statement (the missing end of the statement counts as a failure of its relay log);
    1593 when it broke just after the SET of @master_binlog_checksum (its client reconnects silently, and the variable is lost).
    """

    def __init__(self, replicas: Sequence[Server]) -> None:
        self.revived = 0
        self._replicas = replicas
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nurse", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(0.3):
            for replica in self._replicas:
                with contextlib.suppress(pymysql.err.MySQLError, OSError):
                    status = replica.replica_status()
                    if status.get("io_errno") in _STOPPED_BY_A_CUT and status["io_running"] == "No":
                        replica.stop_replica()
                        replica.start_replica()
                        self.revived += 1


class CrashRun:
    """A source, a relay and replicas under load, and the disasters that befall them. `with` starts and ends all of it.

    `seed` decides which disasters come when; the threads' timing does not repeat. `say` gets a line per disaster.
    """

    def __init__(
        self,
        directory: Path,
        source: Server,
        replicas: Sequence[Server],
        *,
        relay_port: int,
        seed: int,
        say: Callable[[str], None] = print,
        writer_pause_s: float = 0.002,
    ) -> None:
        self.source = source
        self.replicas = list(replicas)
        self.seed = seed
        self.counts: dict[str, int] = {}
        self._random = random.Random(seed)
        self._say = say
        self._directory = directory
        self._relay_port = relay_port
        self._pause_s = writer_pause_s
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            if not self.source.running:
                self.source.start(server_id=1, options=SOURCE_OPTIONS)
            self._upper = stack.enter_context(CuttingProxy(self.source.port))
            sections: dict[str, dict[str, Any]] = {
                "source": {"port": self._upper.port},
                "archive": {"sync": "interval"},
            }
            self.relay = RelayProcess(
                self._directory / "relay", self.source, port=self._relay_port, sections=sections
            ).start()
            stack.callback(self._end_relay)
            self._lower = stack.enter_context(CuttingProxy(self._relay_port))
            first = self.source.binlogs()[0].name
            self.relay.wait_archived(first, 4)
            for number, replica in enumerate(self.replicas):
                if not replica.running:
                    replica.start(server_id=11 + number)
                replica.attach("127.0.0.1", self._lower.port, REPLICA_USER, REPLICA_PASSWORD, file=first, position=4)
            self.nurse = stack.enter_context(Nurse([one for one in self.replicas if one.flavour == "mariadb"]))
            self._steady = stack.enter_context(SteadyWriter(self.source, pause_s=self._pause_s))
            self._mixed = stack.enter_context(MixedWriter(self.source, self._pause_s))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _end_relay(self) -> None:
        if self.relay.running:
            self.relay.kill()

    # ---- disasters -------------------------------------------------------------------------------------------------

    def kill_relay(self) -> None:
        """Send SIGKILL, and restart after a while."""
        self.relay.kill()
        time.sleep(self._random.uniform(0, 0.2))
        self.relay.start()

    def restart_relay(self) -> None:
        """Send SIGTERM, expect exit code 0, and restart."""
        code = self.relay.stop()
        assert code == 0, f"the relay ended with {code}:\n{self.relay.log_tail()}"
        self.relay.start()

    def restart_source(self) -> None:
        """Shut down in order and restart: a new binlog begins."""
        with self._mixed.paused():
            self.source.restart()

    def kill_source(self) -> None:
        """Send SIGKILL, then let crash recovery run: a binlog was not closed."""
        with self._mixed.paused():
            self.source.kill()
            self.source.start()

    def restart_replica(self) -> None:
        """Shut down one replica in order and restart it.

        Its SQL thread is stopped first, which waits for the end of the group: a shutdown in the middle of one leaves its MyISAM part,
        and the group begins again (MySQL 5.6, 3 of 25 times also directly after a source without a relay: 1062).
        """
        replica = self._random.choice(self.replicas)
        replica.sql("STOP SLAVE SQL_THREAD")
        replica.restart()
        with contextlib.suppress(pymysql.err.MySQLError):
            replica.start_replica()

    def cut_upstream(self) -> None:
        """Break the relay's connection to the source at some byte."""
        self._upper.cut_after(self._random.randrange(1, 40_000))

    def cut_downstream(self) -> None:
        """Break the replicas' connections to the relay at some byte."""
        self._lower.cut_after(self._random.randrange(1, 40_000))

    def befall(self, kills: int) -> None:
        """Kill the relay `kills` times at random moments, with the other disasters between."""
        others = [
            (self.cut_upstream, 5),
            (self.cut_downstream, 5),
            (self.restart_relay, 1),
            (self.restart_source, 1),
            (self.kill_source, 1),
            (self.restart_replica, 1),
        ]
        actions, weights = zip(*others, strict=True)
        # Each kind at least once in a run of 8 kills, at a random place.
        plan: list[Callable[[], None]] = [self.kill_relay] * kills + list(actions)
        plan += self._random.choices(actions, weights, k=max(0, kills - len(actions)))
        self._random.shuffle(plan)
        for number, action in enumerate(plan, 1):
            time.sleep(self._random.uniform(0.05, 1.0))
            started = time.monotonic()
            action()
            name = action.__name__
            self.counts[name] = self.counts.get(name, 0) + 1
            took = time.monotonic() - started
            self._say(f"{number}/{len(plan)} {name} ({took:.2f} s), {self._steady.committed} committed")

    # ---- the end ---------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """End the load and wait until relay and replicas have all of it. Raises: CatchUpError, RelayError."""
        self._steady.stop()
        self._mixed.__exit__()
        for replica in self.replicas:
            status = replica.replica_status()
            if status["io_running"] == "No" and not status["io_errno"]:
                replica.start_replica()
        for replica in self.replicas:
            self._wait_for_source(replica)
        end = self.source.master_status()
        self.relay.wait_archived(end.file, end.position)

    def _wait_for_source(self, replica: Server) -> None:
        deadline = time.monotonic() + CATCH_UP_S
        while True:
            try:
                replica.wait_for_source(self.source, timeout=max(1.0, deadline - time.monotonic()))
                return
            except CatchUpError:
                # Perhaps the nurse is on the way.
                ill = replica.flavour == "mariadb" and replica.replica_status()["io_errno"] in (0, *_STOPPED_BY_A_CUT)
                if not ill or time.monotonic() > deadline:
                    raise
            time.sleep(0.3)

    def findings(self) -> list[str]:
        """Return what is wrong; empty if all is well."""
        found = []
        expected = self.source.checksum_tables(DATABASES)
        totals = self.source.sql("SELECT transactions, total FROM steady.steady_total")[0]
        for replica in self.replicas:
            name = replica.name
            held = replica.checksum_tables(DATABASES)
            found += [f"{name}: {table} differs" for table in sorted(expected) if held.get(table) != expected[table]]
            found += [f"{name}: {line}" for line in _miscounted(replica)]
            if replica.sql("SELECT transactions, total FROM steady.steady_total")[0] != totals:
                found.append(f"{name}: the totals are not the source's {totals}")
        found += [f"source: {line}" for line in _miscounted(self.source)]
        found += differences(self.source.binlogs(), self.relay.archive)
        for event in ("dump_request_failed", "source_given_up"):
            found += [f"relay log: {line}" for line in self.relay.logged(event)]
        found += [f"relay log: {line['event']}" for line in self.relay.log_lines() if "Traceback" in str(line["event"])]
        return found


def _miscounted(server: Server) -> list[str]:
    """Return transactions of the steady writer that exist twice, half or not at all."""
    transactions, total = (int(value) for value in server.sql("SELECT * FROM steady.steady_total")[0][1:])
    rows, numbers, newest = server.sql("SELECT COUNT(*), COUNT(DISTINCT counter), MAX(counter) FROM steady.steady")[0]
    found = []
    if (rows, numbers, newest) != (2 * transactions, transactions, transactions):
        found.append(f"{transactions} transactions counted, but {rows} rows of {numbers}, the newest {newest}")
    if total != transactions * (transactions + 1) // 2:
        found.append(f"the total of 1..{transactions} is {total}")
    return found
