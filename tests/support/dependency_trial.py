"""Two transactions of a real MySQL 5.6 with numbers that were given to them, on a real MySQL 9.7 that holds the first one up.

The first one begins with a row that a connection to the replica has locked. So whether the second one goes on beside it is no matter
of luck: it does, or the replica waits.
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
"""A transaction in front of the two: what waits for none of the two has to wait for something."""
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
"""Of the replica's threads, behind the one that receives."""
_WAITS_FOR_PARENT, _WAITS_FOR_ORDER = "Waiting for dependent transaction", "Waiting for preceding transaction"
_IDLE: Final = "Replica has read all relay log"


@dataclass(frozen=True, slots=True)
class Outcome:
    """error: the replica's, 0: none. ran_together: the second one went on while the first one was held up."""

    error: int
    ran_together: bool
    differences: tuple[str, ...]


@contextlib.contextmanager
def held_gate(replica: Server) -> Iterator[Callable[[], None]]:
    """The row is locked until the function is called, or to the end."""
    with contextlib.closing(replica.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM gate.gate FOR UPDATE")
        yield connection.rollback


def wait_settled(replica: Server, second: str) -> bool:
    """Waits until the second transaction runs beside the first one, which is held up, or may not; whether it does.

    second: its GTID. Who waits for a parent says so; who waits for all before says nothing of its own, and is watched for a while.
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
    """`source` is a MySQL 5.6, and loses what it holds. `with` starts and ends the relay that serves what was numbered."""

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
        """The source does what the trap says."""
        self._database = trap.database
        self._setup = setup_of(trap)
        self._source.sql("RESET MASTER")
        self._source.execute_many(["SET binlog_format = ROW", *self._setup, "FLUSH LOGS"])
        self._source.execute_many(["SET binlog_format = ROW", *work_of(trap), "FLUSH LOGS"])
        self._binlogs = self._source.binlogs()[:2]

    def claims(self, leave_out: Collection[str] = ()) -> list[ClaimedGroup]:
        """Of the lead and the two transactions, with all rules or without some."""
        self._judge.forget()
        checker = DependencyChecker(self._judge, leave_out)
        setup, work = (list(checker.claims(self._with_gtids(binlog))) for binlog in self._binlogs)
        assert setup
        return work

    def apply(self, replica: Server, numbers: Sequence[tuple[int, int]]) -> Outcome:
        """What a replica makes of them with these numbers, where it has the rows before them."""
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
        """Whose GTIDs the transactions have, and the last one before them."""
        return VIEW_UUID, self._gno

    def _with_gtids(self, binlog: Path, gno: int = 0) -> Path:
        writer = ViewWriter(self._made, AsItIs(), gno)
        writer.write(binlog)
        return self._made / binlog.name

    def _serve(self, data: bytes) -> None:
        """Gives the relay one more file."""
        made = self._served / f"mysql-bin.{len(os.listdir(self._served)) + 1:06d}"
        part = self._made / made.name
        part.write_bytes(data)
        part.rename(made)
        if not self._relay.running:
            self._relay.start()
        self._relay.wait_archived(made.name, len(data))


class GtidTrial(DependencyTrial):
    """Of a source with GTIDs: what it logs is served as it is, but for the numbers. Each `apply` wants a `write` of its own."""

    def write(self, trap: Trap) -> None:
        """See `DependencyTrial`."""
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
    """What is there before its two transactions."""
    database = trap.database
    made = f"CREATE DATABASE {database} DEFAULT CHARACTER SET utf8"
    return ["SET NAMES utf8", *GATE_SETUP, f"DROP DATABASE IF EXISTS {database}", made, f"USE {database}", *trap.setup]


def work_of(trap: Trap) -> list[str]:
    """The lead and the two transactions."""
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
    """Waits until the replica has all of them, or has stopped; its error, 0: none."""
    deadline = time.monotonic() + _GIVEN_UP_S
    while time.monotonic() < deadline:
        status = replica.replica_status()
        if status["sql_errno"] and not status["sql_running"]:
            return int(status["sql_errno"])
        if replica.sql(f"SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)")[0][0]:
            return 0
        time.sleep(0.01)
    raise AssertionError(f"the replica did not come to the end: {status}")
