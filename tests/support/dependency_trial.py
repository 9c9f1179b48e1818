"""Two transactions of a real MySQL 5.6 with assigned numbers, on a real MySQL 9.7 that holds the first one up.

The first one begins with a row that a connection to the replica has locked. So it does not depend on luck whether the second one runs
beside it: it does, or the replica waits.
"""

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from deploy.servers import Server
from protocol.gtid.gtid_set import GtidSet
from tests.support.dependency_checker import ClaimedGroup, DependencyChecker
from tests.support.dependency_traps import Trap
from tests.support.free_port import free_port
from tests.support.key_judge import KeyJudge
from tests.support.numbered_groups import renumbered
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.table_values import differences, table_values
from tests.support.view_chain import executed_by
from tests.support.view_writer import VIEW_UUID, AsItIs, ViewWriter

LEAD: Final = "INSERT INTO gate.lead VALUES (1)"
"""A transaction before the two: a transaction that waits for neither of the two must wait for something."""
GATE: Final = "UPDATE gate.gate SET n = n + 1"
GATE_SETUP: Final = (
    "DROP DATABASE IF EXISTS gate",
    "CREATE DATABASE gate",
    "CREATE TABLE gate.gate (id INT PRIMARY KEY, n INT)",
    "INSERT INTO gate.gate VALUES (1, 0)",
    "CREATE TABLE gate.lead (id INT PRIMARY KEY)",
)
_AS_APPLIED: Final = ("SET sql_log_bin = 0", "SET restrict_fk_on_non_standard_key = 0")
_MOST_SERVED: Final = 1000
_GIVEN_UP_S: Final = 30.0
_WATCHED_S: Final = 1.0
_COORDINATOR: Final = 1
"""The index of the coordinator among the replica's threads, after the one that receives."""
_WAITS_FOR_PARENT, _WAITS_FOR_ORDER = "Waiting for dependent transaction", "Waiting for preceding transaction"
_IDLE: Final = "Replica has read all relay log"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome. `error` is the replica's (0: none). `ran_together` says that the second one ran while the first one was held up."""

    error: int
    ran_together: bool
    differences: tuple[str, ...]


@contextlib.contextmanager
def held_gate(replica: Server) -> Iterator[Callable[[], None]]:
    """Yield a function that releases the row, which is locked until then or to the end."""
    with contextlib.closing(replica.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM gate.gate FOR UPDATE")
        yield connection.rollback


def wait_settled(replica: Server, second: str) -> bool:
    """Wait until the second transaction runs beside the first one, which is held up, or must wait; return whether it runs.

    `second` is its GTID. A transaction that waits for a parent reports it; one that waits for all before it reports nothing, and is
    watched for a while.
    """
    deadline = time.monotonic() + _GIVEN_UP_S
    held_since: float | None = None
    while time.monotonic() < deadline:
        ((_name, held),) = replica.sql("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
        threads = sorted(row for row in replica.sql("SHOW PROCESSLIST") if row[1] == "system user")
        states = [str(row[6]) for row in threads]
        coordinator = states[_COORDINATOR] if len(states) > _COORDINATOR else ""
        if replica.replica_status()["sql_errno"] or any(state.startswith(_WAITS_FOR_ORDER) for state in states):
            return True
        if replica.sql(f"SELECT GTID_SUBSET('{second}', @@GLOBAL.gtid_executed)")[0][0]:
            return True
        if held == "0" or not coordinator or coordinator.startswith(_IDLE):
            held_since = None
        elif coordinator.startswith(_WAITS_FOR_PARENT):
            return False
        else:
            held_since = held_since or time.monotonic()
            if time.monotonic() - held_since > _WATCHED_S:
                return False
        time.sleep(0.01)
    raise AssertionError(f"nothing is decided: {held} locks are waited for, {states}, {replica.replica_status()}")


class DependencyTrial:
    """A trial. `source` is a MySQL 5.6, and loses its data. `with` starts and ends the relay that serves the numbered transactions."""

    def __init__(self, source: Server, judge: KeyJudge, directory: Path) -> None:
        self._source, self._judge = source, judge
        self._made, self._served = directory / "made", directory / "served"
        self._made.mkdir()
        self._served.mkdir()
        unended = {"source": {"unended_files": [f"mysql-bin.{number:06}" for number in range(1, _MOST_SERVED)]}}
        self._relay = RelayProcess(
            directory / "relay", self._served, port=free_port(), markers="strip", sections=unended
        )
        self._binlogs: list[Path] = []
        self._setup: list[str] = []
        self._database = ""
        self._gno = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._relay.running:
            self._relay.kill()

    def write(self, trap: Trap) -> None:
        """Run the trap on the source."""
        self._database = trap.database
        self._setup = setup_of(trap)
        self._source.sql("RESET MASTER")
        self._source.execute_many(["SET binlog_format = ROW", *self._setup, "FLUSH LOGS"])
        self._source.execute_many(["SET binlog_format = ROW", *work_of(trap), "FLUSH LOGS"])
        self._binlogs = self._source.binlogs()[:2]

    def claims(self, leave_out: Collection[str] = ()) -> list[ClaimedGroup]:
        """Return the claims of the lead and the two transactions, with all rules or without some."""
        self._judge.forget()
        checker = DependencyChecker(self._judge, leave_out)
        setup, work = (list(checker.claims(self._with_gtids(binlog))) for binlog in self._binlogs)
        assert setup
        return work

    def apply(self, replica: Server, numbers: Sequence[tuple[int, int]]) -> Outcome:
        """Return the outcome on a replica with these numbers, which has the rows before them."""
        replica.stop_replica()
        replica.execute_many(["RESET REPLICA ALL", *_AS_APPLIED, *self._setup])
        replica.sql("RESET BINARY LOGS AND GTIDS")
        uuid, before = self._given()
        if before:
            replica.sql(f"SET GLOBAL gtid_purged = '{uuid}:1-{before}'")
        last = before + len(numbers)
        self._serve(renumbered(self._with_gtids(self._binlogs[1], before).read_bytes(), numbers))
        with held_gate(replica) as open_gate:
            replica.attach("127.0.0.1", self._relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1)
            together = wait_settled(replica, f"{uuid}:{last}")
            open_gate()
            error = wait_applied(replica, f"{uuid}:1-{last}")
        replica.stop_replica()
        self._gno = last
        tables = (table_values(server, [self._database]) for server in (self._source, replica))
        return Outcome(error, together, tuple(differences(*tables)))

    def _given(self) -> tuple[object, int]:
        """Return the uuid of the transactions' GTIDs, and the number of the last one before them."""
        return VIEW_UUID, self._gno

    def _with_gtids(self, binlog: Path, gno: int = 0) -> Path:
        writer = ViewWriter(self._made, AsItIs(), gno)
        writer.write(binlog)
        return self._made / binlog.name

    def _serve(self, data: bytes) -> None:
        """Give the relay one more file."""
        made = self._served / f"mysql-bin.{len(os.listdir(self._served)) + 1:06d}"
        part = self._made / made.name
        part.write_bytes(data)
        part.rename(made)
        if not self._relay.running:
            self._relay.start()
        self._relay.wait_archived(made.name, len(data))


class GtidTrial(DependencyTrial):
    """A trial of a source with GTIDs: what it logs is served unchanged except for the numbers. Each `apply` needs its own `write`."""

    def write(self, trap: Trap) -> None:
        """Implement `DependencyTrial.write`."""
        self._database = trap.database
        self._setup = setup_of(trap)
        self._source.sql("FLUSH LOGS")
        self._source.execute_many([*self._setup, "FLUSH LOGS"])
        self._gno = GtidSet.from_text(executed_by(self._source)).count
        self._source.execute_many([*work_of(trap), "FLUSH LOGS"])
        self._binlogs = self._source.binlogs()[-3:-1]

    def _given(self) -> tuple[object, int]:
        return self._source.sql("SELECT @@server_uuid")[0][0], self._gno

    def _with_gtids(self, binlog: Path, gno: int = 0) -> Path:
        return binlog


def setup_of(trap: Trap) -> list[str]:
    """Return what exists before its two transactions."""
    database = trap.database
    made = f"CREATE DATABASE {database} DEFAULT CHARACTER SET utf8"
    return ["SET NAMES utf8", *GATE_SETUP, f"DROP DATABASE IF EXISTS {database}", made, f"USE {database}", *trap.setup]


def work_of(trap: Trap) -> list[str]:
    """Return the lead and the two transactions."""
    return [
        "SET NAMES utf8",
        f"USE {trap.database}",
        LEAD,
        "BEGIN",
        GATE,
        trap.first,
        "COMMIT",
        *trap.second.split("; "),
    ]


def wait_applied(replica: Server, gtids: str) -> int:
    """Wait until the replica has all of them, or has stopped; return its error (0: none)."""
    deadline = time.monotonic() + _GIVEN_UP_S
    while time.monotonic() < deadline:
        status = replica.replica_status()
        if status["sql_errno"] and not status["sql_running"]:
            return int(status["sql_errno"])
        if replica.sql(f"SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)")[0][0]:
            return 0
        time.sleep(0.01)
    raise AssertionError(f"the replica did not come to the end: {status}")
