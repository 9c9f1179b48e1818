"""A real source, a relay that follows it, and real replicas of the relay."""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from deploy.servers import BinlogPosition, Server
from tests.support.binlog_comparison import check_archive
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient

FIRST_SERVER_ID = 101


def wait_until(true: Callable[[], object], what: str, timeout_s: float = 20.0) -> None:
    """Return when `true()` is. Raises: AssertionError with `what` after the time."""
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(0.02)


class Chain:
    """A source and a relay, both running, and the replicas that `replicas` made. `with` ends the relay.

    The servers belong to the factory that made them. `options` are the source's; the rest is RelayProcess's.
    """

    def __init__(
        self,
        servers: Callable[[str], Server],
        source_name: str,
        directory: Path,
        *,
        options: Sequence[str] = (),
        markers: str = "tbm",
        sections: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self._servers = servers
        self._next_id = FIRST_SERVER_ID
        self.source = servers(source_name).start(server_id=1, options=options)
        self.relay = RelayProcess(directory, self.source, port=free_port(), markers=markers, sections=sections)

    def __enter__(self) -> Self:
        self.relay.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.relay.running:
            self.relay.kill()

    # ---- replicas --------------------------------------------------------------------------------------------------

    def server(self, name: str, options: Sequence[str] = ()) -> Server:
        """Return a server that follows no source yet."""
        self._next_id += 1
        return self._servers(name).start(server_id=self._next_id, options=options)

    def replica(self, name: str, at: BinlogPosition | None = None, **extra: Any) -> Server:
        """Return a replica of the relay; without `at`, from the source's oldest binlog."""
        server = self.server(name)
        self.attach(server, at, **extra)
        return server

    def replicas(self, names: Iterable[str]) -> list[Server]:
        """Return replicas of the relay from the source's oldest binlog, started in parallel."""
        made = []
        for name in names:
            self._next_id += 1
            made.append((self._servers(name), self._next_id))
        with ThreadPoolExecutor(len(made)) as pool:
            replicas = list(pool.map(lambda item: item[0].start(server_id=item[1]), made))
        for replica in replicas:
            self.attach(replica)
        return replicas

    def attach(
        self, server: Server, at: BinlogPosition | None = None, *, port: int | None = None, **extra: Any
    ) -> None:
        """Run CHANGE MASTER TO the relay (or a proxy before it on `port`), from `at`, and START."""
        at = at or self.first_position()
        port = self.relay.port if port is None else port
        server.attach("127.0.0.1", port, REPLICA_USER, REPLICA_PASSWORD, at.file, at.position, **extra)

    def first_position(self) -> BinlogPosition:
        """Return the first event of the source's oldest binlog."""
        return BinlogPosition(self.source.binlogs()[0].name, 4)

    def raw_client(self, *, timeout_s: float = 15.0, capability: int = 4) -> ReplicaClient:
        """Return a connection to the relay that acts as a replica, with all statements before the dump."""
        client = ReplicaClient(self.relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD, timeout_s=timeout_s)
        prepare(client, self.source.flavour, capability)
        return client

    # ---- comparing -------------------------------------------------------------------------------------------------

    def wait_archived(self) -> BinlogPosition:
        """Return the source's end, once the archive has it. An idle MariaDB writes nothing more then."""
        wait_for_checkpoint(self.source)
        end = self.source.master_status()
        self.relay.wait_archived(end.file, end.position)
        return end

    def wait_published(self) -> BinlogPosition:
        """Do as `wait_archived`, and wait until a dump that ends at the end has all of it: bytes are in the file a little earlier."""
        end = self.wait_archived()
        wait_until(
            lambda: (end.file, end.position) in (row[:2] for row in self.relay.sql("SHOW BINARY LOGS")),
            "what is archived may be read",
        )
        return end

    def check_archive(self) -> int:
        """Wait for the archive and compare every file of it with the source's; return the number of events."""
        self.wait_archived()
        return check_archive(self.relay.archive, self.source.binlogs())

    def check_tables(self, replicas: Iterable[Server], databases: Sequence[str], timeout_s: float = 120.0) -> None:
        """Wait for the replicas and compare their tables with the source's."""
        end = self.source.master_status()
        wanted = self.source.checksum_tables(databases)
        for replica in replicas:
            replica.wait_caught_up(*end, timeout=timeout_s)
            assert replica.checksum_tables(databases) == wanted, f"{replica!r} has other tables than {self.source!r}"


def prepare(client: ReplicaClient, flavour: str, capability: int = 4) -> None:
    """Run what a replica of this flavour sends before its dump, so that the source sends its events unchanged."""
    client.query("SET @master_binlog_checksum= @@global.binlog_checksum")
    if flavour == "mariadb":
        client.query(f"SET @mariadb_slave_capability={capability}")


def exec_position(replica: Server) -> BinlogPosition:
    """Return the position up to which the replica has applied."""
    status = replica.replica_status()
    return BinlogPosition(status["exec_file"], status["exec_position"])


def start_again(replica: Server) -> bool:
    """Restart a MariaDB replica that lost its connection between the row events of one statement; return True.

    MariaDB 10.11 then stops with 1595 ("did not receive an expected Rows-log end-of-statement"), also directly after a MariaDB source
    without a relay. It asks for the same position when it is restarted, and goes on there.
    """
    if replica.name == "mariadb":

        def goes_on() -> bool:
            if replica.replica_status()["io_errno"] != 1595:
                return True
            replica.start_replica()  # and may be cut off at such a place again
            return False

        wait_until(goes_on, "the receiving thread starts again")
    return True


def last_transaction(source: Server) -> tuple[str, list[int], int]:
    """Return (file, offsets of its events, offset after it) of the newest transaction that ends with an Xid event.

    The source itself is asked (SHOW BINLOG EVENTS), so that the product has no influence on it.
    """
    file = source.master_status().file
    rows = source.sql(f"SHOW BINLOG EVENTS IN '{file}'")
    last = max(number for number, row in enumerate(rows) if row[2] == "Xid")
    first = max(number for number in range(last) if str(rows[number][5]).startswith("BEGIN"))
    return file, [int(row[1]) for row in rows[first : last + 1]], int(rows[last][4])


def wait_for_checkpoint(source: Server) -> None:
    """Wait until a MariaDB source has written about its newest file that recovery needs no older one: it does so up to a second after a
    rotation, as the last event that it writes by itself."""
    if not source.name.startswith("mariadb"):
        return
    newest = source.master_status().file

    def is_written() -> bool:
        events = source.sql(f"SHOW BINLOG EVENTS IN '{newest}'")
        return any((event[2], event[5]) == ("Binlog_checkpoint", newest) for event in events)

    wait_until(is_written, "the newest file has its checkpoint")


def purge_before_newest(source: Server) -> None:
    """Remove all binlogs except the newest. MariaDB keeps a file until its storage engines have synced its content."""
    newest = source.master_status().file

    def is_purged() -> bool:
        source.sql(f"PURGE BINARY LOGS TO '{newest}'")
        return source.binlogs()[0].name == newest

    wait_until(is_purged, "the older files are purged", 30)


# A server itself writes these at the ends of a file, in no transaction.
_OF_THE_FILE = {"Format_desc", "Previous_gtids", "Gtid_list", "Binlog_checkpoint", "Rotate", "Stop"}


def last_group_end(source: Server) -> BinlogPosition:
    """Return the end of the newest transaction, which semi-sync replicas acknowledge. A source that ends with a MariaDB checkpoint,
    which comes up to a second after a rotation, ends later."""
    for binlog in reversed(source.binlogs()):
        ends = [
            int(row[4]) for row in source.sql(f"SHOW BINLOG EVENTS IN '{binlog.name}'") if row[2] not in _OF_THE_FILE
        ]
        if ends:
            return BinlogPosition(binlog.name, ends[-1])
    raise AssertionError(f"{source!r} has no transaction")
