"""SIGKILL of a relay with a view of a MariaDB, and of the view's replicas, under load of many sessions and types of columns.

The connections of the replicas are also cut, after so many bytes: inside transactions, as the replicas report.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Self

from deploy.servers import Server
from tests.support.cutting_proxy import CuttingProxy
from tests.support.hex_values import hex_differences, hex_tables
from tests.support.mariadb_random import MariadbRandomWorkload
from tests.support.mariadb_view import check_mariadb_replica
from tests.support.view_chain import follow, view_keys
from tests.support.view_kill_run import REPLICA_OPTIONS, ViewKillRun

SESSIONS = 3
DATABASES = ("steady", *(f"session{number}" for number in range(SESSIONS)))
_MOST_CUTS: Final = 40
_MOST_BYTES: Final = 60_000
_GIVEN_UP_S: Final = 2.0
"""The maximum time without data, or for which a replica may be disconnected."""
_CUT_INSIDE_XA: Final = "XAER_RMFAIL"
_QUEUEING: Final = "SELECT QUEUEING_TRANSACTION FROM performance_schema.replication_connection_status"


class MariadbKillRun(ViewKillRun):
    """A `ViewKillRun` with a MariaDB 10.11, and tables of InnoDB alone: a MySQL keeps no others in step with its GTIDs."""

    SOURCE = "mariadb"
    # The steady writer makes statements, over tables that its CREATE TABLE IF NOT EXISTS may have found there.
    KEYS = view_keys(plain_tables=["steady.steady", "steady.steady_total"])

    def __enter__(self) -> Self:
        self.cut_inside = 0
        """How often a replica was disconnected inside a transaction."""
        self._proxies: dict[int, CuttingProxy] = {}
        self._proxies_end = contextlib.ExitStack()
        try:
            return super().__enter__()
        except BaseException:
            self._proxies_end.close()
            raise

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._proxies_end.close()

    def _replica(self) -> Server:
        replica = self.chain.server("mysql97", REPLICA_OPTIONS)
        proxy = self._proxies_end.enter_context(CuttingProxy(self.chain.relay.port))
        self._proxies[id(replica)] = proxy
        follow(replica, proxy.port)
        return replica

    def _accidents(self) -> dict[Callable[[], None], int]:
        return {self._kill_relay: 2, self._kill_replica: 1, self._cut_replica: 2}

    def _cut_replica(self) -> None:
        """Cut the replica off until it had received a part of a transaction at the cut."""
        replica = self._random.choice(self.replicas)
        proxy = self._proxies[id(replica)]
        for _ in range(_MOST_CUTS):
            cut = proxy.cut_count
            proxy.cut_now_after(self._random.randrange(1, _MOST_BYTES))
            deadline = time.monotonic() + _GIVEN_UP_S
            while proxy.cut_count == cut and time.monotonic() < deadline:
                time.sleep(0.005)
            if proxy.cut_count > cut and any(name for (name,) in replica.sql(_QUEUEING)):
                self.cut_inside += 1
                return

    def _take_up(self, replica: Server) -> None:
        """Restart a MySQL that was cut off inside an XA transaction: it rolls back its part in a form that it refuses itself (1399),
        and stops. It continues where it was when it has dropped that part, as its GTIDs say."""
        self._say(f"a replica stopped inside an XA transaction: {replica.replica_status()['sql_error'][:200]}")
        replica.execute_many(["STOP REPLICA", "RESET REPLICA", "START REPLICA"])

    def _other_writer(self) -> "ManySessions":
        return ManySessions(self.chain.source, self._random.randrange(1 << 30))

    def _check(self, replica: Server) -> int:
        for _ in range(self.cut_inside):
            try:
                return check_mariadb_replica(self.chain, replica, DATABASES)
            except AssertionError as error:
                if _CUT_INSIDE_XA not in str(error):
                    raise
                self._take_up(replica)
        return check_mariadb_replica(self.chain, replica, DATABASES)

    def _table_findings(self) -> list[str]:
        wanted = hex_tables(self.chain.source, DATABASES)
        return [found for replica in self.replicas for found in hex_differences(wanted, hex_tables(replica, DATABASES))]


class Mariadb118KillRun(MariadbKillRun):
    """The same with a MariaDB 11.8."""

    SOURCE = "mariadb118"


class ManySessions:
    """Threads that write at random, each into its own database, until this is left. It raises their errors."""

    def __init__(self, source: Server, seed: int) -> None:
        self._ending = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._write, args=(source, seed, number), name=f"session {number}")
            for number in range(SESSIONS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _write(self, source: Server, seed: int, number: int) -> None:
        try:
            work = MariadbRandomWorkload(
                source, seed + number, binlog_format="ROW", database=DATABASES[1 + number], engines=("InnoDB",)
            )
            while not self._ending.is_set():
                work.run(5)
                self._ending.wait(0.01)
        except BaseException as error:
            self._failures.append(error)
