"""A relay whose source changes under load between two servers of a replication pair, and replicas that must not notice.

always      a replica by GTID that is attached all the time, on one connection, which acknowledges, and which has TLS
away        one that is disconnected at each change, and back after it
late        one that is empty when all changes are over: it needs the first generation first
watcher     a connection that asked for everything once, and notes each transaction that it is sent
positioned  a replica by file and position: at each change it is told where to go on, and goes on there
"""

import contextlib
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pymysql

from deploy.servers import Server
from protocol.binlog.event_type import EventType
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidPosition
from protocol.gtid.mysql_gtid import Tsid
from tests.support.certificates import Authority
from tests.support.chain import last_group_end, wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient
from tests.support.workload import SteadyWriter

OPTIONS: Final = {
    "mysql56": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates", "--binlog-format=ROW"],
    "mysql97": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
    "mariadb": ["--log-slave-updates", "--binlog-format=ROW"],
}
# The MySQL 5.6 of these tests has no plugin for it, and its TLS is older than what the relay takes.
_SEMI_SYNC: Final = {
    "mysql97": [
        "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'",
        "SET GLOBAL rpl_semi_sync_replica_enabled = 1",
    ],
    "mariadb": ["SET GLOBAL rpl_semi_sync_slave_enabled = 1"],
}
_TLS: Final = _SEMI_SYNC
_DATABASE: Final = "steady"
_WAIT_S: Final = 90.0
_COM_BINLOG_DUMP_GTID: Final = 0x1E
_TOLD: Final = re.compile(r"MASTER_LOG_FILE='([^']+)', MASTER_LOG_POS=(\d+)")


class Watcher:
    """A connection that is sent everything from the first transaction on, in a thread. `with` starts and ends it."""

    def __init__(self, port: int, flavour: str) -> None:
        self.seen: list[str] = []
        """The transactions, in the order of the stream."""
        self.rotates: list[str] = []
        """The files that artificial Rotates named."""
        self.error: Exception | None = None
        self._flavour = flavour
        self._client = ReplicaClient(port, user=REPLICA_USER, password=REPLICA_PASSWORD, timeout_s=60)
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def __enter__(self) -> Self:
        client = self._client
        if self._flavour == "mariadb":
            client.query("SET @master_binlog_checksum='CRC32', @mariadb_slave_capability=4, @slave_connect_state=''")
            client.query("SET @master_heartbeat_period=500000000")
            client.ask_dump("", 4, server_id=900)
        else:
            client.query("SET @master_binlog_checksum='CRC32', @source_binlog_checksum='CRC32'")
            client.query("SET @master_heartbeat_period=500000000, @source_heartbeat_period=500000000")
            body = encode_binlog_dump_gtid(encode_gtid_set(GtidSet()), flags=0, server_id=900)
            client.command(_COM_BINLOG_DUMP_GTID, body)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending = True
        self._client.cut()
        self._thread.join(10)

    def _run(self) -> None:
        try:
            while (event := self._client.event()) is not None:
                data = event.data
                if event.kind == EventType.GTID:
                    tsid = Tsid.from_key(data[20:36])
                    self.seen.append(f"{tsid}:{int.from_bytes(data[36:44], 'little')}")
                elif event.kind == EventType.MARIADB_GTID:
                    number, domain = int.from_bytes(data[19:27], "little"), int.from_bytes(data[27:31], "little")
                    self.seen.append(f"{domain}-{int.from_bytes(data[5:9], 'little')}-{number}")
                elif event.kind == EventType.ROTATE and not event.end_log_pos:
                    self.rotates.append(data[27:-4].decode())
        except (pymysql.MySQLError, OSError, AttributeError, ValueError) as error:
            if not self._ending:
                self.error = error


@dataclass
class Outcome:
    """The result of a run. `told` are the places that the replica by file and position was told."""

    changes: int = 0
    transactions: int = 0
    told: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """The time from the order to change to the first transaction of the new source at `always`, once for each change."""


def executed(server: Server) -> str:
    """Return all that it executed, in its own notation."""
    name = "gtid_binlog_pos" if server.flavour == "mariadb" else "gtid_executed"
    return str(server.sql(f"SELECT @@GLOBAL.{name}")[0][0])


def applied(replica: Server) -> str:
    """Return the same for a replica."""
    name = "gtid_slave_pos" if replica.flavour == "mariadb" else "gtid_executed"
    return str(replica.sql(f"SELECT @@GLOBAL.{name}")[0][0])


def follow_by_gtid(
    replica: Server, port: int, user: str, password: str, *, was_source: bool = False, tls: bool = False
) -> None:
    """Follow whatever listens there."""
    if replica.flavour != "mariadb":
        options: dict[str, Any] = {"ssl": 1} if tls else {}
        replica.attach("127.0.0.1", port, user, password, auto_position=1, heartbeat_period=1, **options)
        return
    use = "current_pos" if was_source else "slave_pos"
    replica.stop_replica()
    replica.sql(
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{user}', "
        f"MASTER_PASSWORD='{password}', MASTER_USE_GTID={use}, MASTER_HEARTBEAT_PERIOD=1, MASTER_CONNECT_RETRY=1, "
        f"MASTER_SSL={int(tls)}, MASTER_SSL_VERIFY_SERVER_CERT=0"
    )
    replica.start_replica()


class Changes:
    """One run: `servers` makes servers, which belong to it; the relay lives in `directory`."""

    def __init__(
        self, servers: Callable[[str], Server], name: str, directory: Path, *, load_s: float, seed: int
    ) -> None:
        self._servers = servers
        self._name = name
        self._load_s = load_s
        self._chance = random.Random(seed)
        self._next_id = 10
        self.outcome = Outcome()
        self.source, self.other = (servers(name).start(server_id=number, options=OPTIONS[name]) for number in (1, 2))
        for _ in range(2):
            # So that the names of both say nothing of what is in them.
            self.other.sql("FLUSH BINARY LOGS")
        files = Authority.make(directory / "certificates").server()
        listen = {"demand_acks": True, "tls_cert": str(files.certificate), "tls_key": str(files.key)}
        sections: dict[str, dict[str, Any]] = {"[account]": {"admin": True}, "listen": listen}
        self.relay = RelayProcess(directory, self.source, port=free_port(), sections=sections)

    def run(self, changes: int) -> Outcome:
        """Run that many changes. Raises: AssertionError."""
        self._follow(self.other, self.source, was_source=False)
        with self.relay, contextlib.ExitStack() as stack:
            writer = stack.enter_context(SteadyWriter(self.source, database=_DATABASE, pause_s=0.002))
            self._wait_files()
            always, away, positioned = (self._replica() for _ in range(3))
            always.execute_many(_SEMI_SYNC.get(self._name, ()))
            self._follow_relay(always, tls=self._name in _TLS)
            self._follow_relay(away)
            first = self.source.binlogs()[0].name
            positioned.attach("127.0.0.1", self.relay.port, REPLICA_USER, REPLICA_PASSWORD, first, 4)
            watcher = stack.enter_context(Watcher(self.relay.port, self.source.flavour))
            for _ in range(changes):
                self._load()
                away.stop_replica()
                writer = stack.enter_context(self._promote(writer))
                self._load()
                self._change_relay(always)
                self._go_on_by_position(positioned)
                self._load()
                away.start_replica()
                self.outcome.changes += 1
            self._load()
            self.outcome.transactions = writer.stop()
            late = self._replica()
            self._follow_relay(late)
            for replica in (always, away, late, positioned):
                self._check(replica)
            self._check_watcher(watcher)
            self._check_connection(always)
        return self.outcome

    def _load(self) -> None:
        time.sleep(self._load_s * self._chance.uniform(0.5, 1.5))
        if self._chance.random() < 0.5:
            self.source.sql("FLUSH BINARY LOGS")

    def _replica(self) -> Server:
        self._next_id += 1
        return self._servers(self._name).start(server_id=self._next_id, options=OPTIONS[self._name])

    def _follow(self, replica: Server, source: Server, *, was_source: bool) -> None:
        user, password = source.replication_user, source.replication_password
        follow_by_gtid(replica, source.port, user, password, was_source=was_source)

    def _follow_relay(self, replica: Server, *, tls: bool = False) -> None:
        follow_by_gtid(replica, self.relay.port, REPLICA_USER, REPLICA_PASSWORD, tls=tls)

    def _wait_files(self) -> None:
        wait_until(lambda: any(self.relay.archive.glob("*.0*")), "the relay has a file", _WAIT_S)

    def _promote(self, writer: SteadyWriter) -> SteadyWriter:
        """Swap the two servers; the writer continues at once at the new source."""
        writer.stop()
        former, promoted = self.source, self.other
        wanted = executed(former)
        wait_until(lambda: _has(promoted, wanted), "the other server has everything", _WAIT_S)
        promoted.stop_replica()
        promoted.sql("FLUSH BINARY LOGS")
        self._follow(former, promoted, was_source=True)
        self.source, self.other = promoted, former
        return SteadyWriter(promoted, database=_DATABASE, pause_s=0.002)

    def _change_relay(self, always: Server) -> None:
        generation = self.outcome.changes + 2
        began = time.monotonic()
        self.relay.sql("STOP SLAVE")
        self.relay.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={self.source.port}")
        self.relay.sql("START SLAVE")
        directory = self.relay.archive / f"g{generation:04d}"

        def arrived() -> bool:
            assert self.relay.running, self.relay.log_tail()
            return any(directory.glob("*.0*"))

        wait_until(arrived, "the relay follows the other server", _WAIT_S)
        wanted = executed(self.source)
        wait_until(lambda: _has(always, wanted), "the replica has what the new source has", _WAIT_S)
        self.outcome.seconds.append(time.monotonic() - began)

    def _go_on_by_position(self, replica: Server) -> None:
        number, text = replica.wait_io_error(_WAIT_S)
        told = _TOLD.search(text)
        assert number in (1236, 13114) and told is not None, (number, text)
        status = replica.replica_status()
        # Events that it was sent before must be applied first: CHANGE MASTER discards relay logs.
        wait_until(lambda: _applied_all(replica), f"all that was received is applied: {status}", _WAIT_S)
        self.outcome.told.append(f"{told[1]}:{told[2]}")
        replica.attach("127.0.0.1", self.relay.port, REPLICA_USER, REPLICA_PASSWORD, told[1], int(told[2]))

    def _check(self, replica: Server) -> None:
        wanted = executed(self.source)

        def has_all() -> bool:
            status = replica.replica_status()
            assert status["io_errno"] not in (1236, 13114, 1593, 1595), status["io_error"]
            assert not status["sql_errno"], status["sql_error"]
            return _has(replica, wanted) if replica.flavour != "mariadb" else _same_tables(replica, self.source)

        wait_until(has_all, f"{replica!r} has everything", _WAIT_S)
        assert replica.checksum_tables([_DATABASE]) == self.source.checksum_tables([_DATABASE]), f"{replica!r} differs"
        if replica.flavour != "mariadb":
            assert GtidSet.from_text(executed(replica)) == GtidSet.from_text(wanted)

    def _check_connection(self, replica: Server) -> None:
        """Check that it passed from source to source on its first connection, and acknowledged the transactions of each."""
        relay = self.relay
        (server_id,) = replica.sql("SELECT @@GLOBAL.server_id")[0]
        (dump,) = [line for line in relay.logged("dump_started") if line["server_id"] == server_id]
        assert (dump["by_gtid"], dump["semi_sync"]) == (True, self._name in _SEMI_SYNC), dump
        logins = [line for line in relay.logged("replica_logged_in") if line["connection_id"] == dump["connection_id"]]
        assert [bool(line["tls"]) for line in logins] == [self._name in _TLS]
        replica.stop_replica()

        def ended() -> list[dict[str, Any]]:
            return [line for line in relay.logged("dump_ended") if line["connection_id"] == dump["connection_id"]]

        wait_until(lambda: len(ended()) == 1, "the relay has seen the replica leave", _WAIT_S)
        (end,) = ended()
        if dump["semi_sync"]:
            newest = last_group_end(self.source)
            assert (end["unanswered"], end["acknowledged"]) == (0, f"{newest.file}:{newest.position}"), end

    def _check_watcher(self, watcher: Watcher) -> None:
        wanted = executed(self.source)

        def has_all() -> bool:
            assert watcher.error is None, watcher.error
            if self.source.flavour == "mariadb":
                last = {gtid.split("-")[0]: gtid for gtid in watcher.seen[-1:]}
                return set(last.values()) == set(map(str, GtidPosition.from_text(wanted)))
            return len(watcher.seen) >= GtidSet.from_text(wanted).count

        wait_until(has_all, "the watcher saw everything", _WAIT_S)
        assert len(set(watcher.seen)) == len(watcher.seen), "a transaction came twice"
        if self.source.flavour == "mariadb":
            numbers = [int(gtid.split("-")[2]) for gtid in watcher.seen]
            assert numbers == list(range(1, len(numbers) + 1)), "transactions are missing, or in another order"
        else:
            assert GtidSet.from_text(",".join(watcher.seen)) == GtidSet.from_text(wanted)


def _has(server: Server, wanted: str) -> bool:
    if server.flavour == "mariadb":
        have = GtidPosition.from_text(applied(server) or "")
        for gtid in GtidPosition.from_text(wanted):
            last = have.domain(gtid.domain_id)
            if last is None or last.sequence_number < gtid.sequence_number:
                return False
        return True
    return GtidSet.from_text(wanted) <= GtidSet.from_text(executed(server))


def _same_tables(replica: Server, source: Server) -> bool:
    return replica.checksum_tables([_DATABASE]) == source.checksum_tables([_DATABASE])


def _applied_all(replica: Server) -> Any:
    status = replica.replica_status()
    assert not status["sql_errno"], status["sql_error"]
    return (status["source_file"], status["read_position"]) == (status["exec_file"], status["exec_position"])
