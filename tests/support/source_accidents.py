"""A source has an accident, the relay stops by name, an operator accepts the gap, and each replica continues as far as it can.

along    a replica that followed the relay all the time, so that it has what the source loses
behind   one that was stopped before that

Both by file and position, or both by GTID. The power fails as it does for a server without sync_binlog=1: the data
directory is put back to a moment before (the process was frozen while it was copied), binlogs and tables alike.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deploy.servers import Server
from relay.archive_inspection.listing import read_ledgers
from tests.support.chain import purge_before_newest, wait_for_checkpoint, wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess, wait_for_line
from tests.support.source_changes import applied, follow_by_gtid

OPTIONS: Final = {
    "mysql56": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates"],
    "mysql97": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
    "mariadb": ["--log-slave-updates"],
}
_WITHOUT_GTIDS: Final = {"mysql56": [], "mysql97": ["--gtid-mode=OFF"], "mariadb": []}
_TOLD: Final = re.compile(r"MASTER_LOG_FILE='([^']+)', MASTER_LOG_POS=(\d+)")
_REFUSED: Final = (1236, 13114)
_WAIT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Case:
    """One accident, for one kind of server and of replicas."""

    server: str
    accident: str
    by: str

    def __str__(self) -> str:
        return f"{self.server}-{self.accident}-{self.by}"


ACCIDENTS: Final = ("purged", "tail_lost", "tail_cut", "newest_lost", "reset", "restored", "copy")
CASES: Final = (
    *(Case("mysql56", accident, "position") for accident in ACCIDENTS),
    *(Case("mysql97", accident, "gtid") for accident in ACCIDENTS),
    *(Case("mariadb", accident, "gtid") for accident in ("purged", "tail_lost", "newest_lost", "reset")),
    *(Case("mariadb", accident, "position") for accident in ("tail_cut", "restored", "copy")),
    *(Case(server, "promoted", "gtid") for server in ("mysql56", "mysql97", "mariadb")),
    *(Case("mysql56", accident, "gtid") for accident in ("tail_lost", "purged")),
)
"""Return all of them."""
STOPS: Final = {
    "purged": ("position_purged",),
    "tail_lost": ("source_lost_its_tail",),
    "tail_cut": ("source_lost_its_tail",),
    "newest_lost": ("source_lost_its_tail", "source_was_reset", "position_gone", "source_lacks_transactions"),
    "reset": ("source_lost_its_tail", "source_was_reset", "position_gone", "source_lacks_transactions"),
    "restored": ("source_lost_its_tail", "source_was_reset", "position_gone", "source_lacks_transactions"),
    "promoted": ("source_lacks_transactions", "source_lost_its_tail", "source_file_differs", "position_gone"),
    "copy": ("source_lacks_transactions", "source_file_differs", "source_lost_its_tail", "position_gone"),
}


class AccidentRun:
    """A run of one case by `run`; `servers` makes servers, which belong to it; the relay lives in `directory`. Raises:
    AssertionError."""

    def __init__(self, servers: Callable[[str], Server], case: Case, directory: Path) -> None:
        self._servers = servers
        self.case = case
        self._by_gtid = case.by == "gtid"
        self._directory = directory
        options = OPTIONS[case.server] if self._by_gtid else _WITHOUT_GTIDS[case.server]
        self._options = options
        self.source = servers(case.server).start(server_id=1, options=options)
        sections: dict[str, dict[str, Any]] = {"[account]": {"admin": True}, "source": {"record_schema": True}}
        self.relay = RelayProcess(directory / "relay", self.source, port=free_port(), sections=sections)
        self.told: dict[str, str] = {}
        self.along, self.behind = (servers(case.server).start(server_id=number, options=options) for number in (3, 4))

    def run(self) -> None:
        source, relay = self.source, self.relay
        with relay:
            source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (a INT NOT NULL PRIMARY KEY) ENGINE=InnoDB"])
            self._write(1, 2)
            for replica in (self.along, self.behind):
                self._follow(replica)
                self._wait_rows(replica, 2)
            self.behind.stop_replica()
            getattr(self, f"_{self.case.accident}")()
            self._check_stop()
            self._accept()
            self._check_archive()
            getattr(self, f"_after_{self.case.accident}", self._after_a_loss)()

    # --- the accidents -----------------------------------------------------------------------------------------------

    def _purged(self) -> None:
        """Purge binlogs while the relay is down. `behind` gets them from the source itself."""
        self._write(3)
        self._wait_rows(self.along, 3)
        assert self.relay.stop() == 0
        source = self.source
        source.sql("FLUSH BINARY LOGS")
        self._write(10, 11)
        if self._by_gtid:
            user, password = source.replication_user, source.replication_password
            follow_by_gtid(self.behind, source.port, user, password)
            self._wait_rows(self.behind, 5)
            self.behind.stop_replica()
        source.sql("FLUSH BINARY LOGS")
        purge_before_newest(source)
        self._write(20)
        self.relay.start()

    def _tail_lost(self) -> None:
        with self._put_back():
            self._write(10, 11)
            self._wait_rows(self.along, 5)
        self._write(20, 21)

    def _tail_cut(self) -> None:
        """Cut the newest file inside an event; the tables keep what was in it."""
        self._write(3, 10, 11)
        self._wait_rows(self.along, 5)
        if self.case.server == "mysql97":
            last = f"{self.source.sql('SELECT @@GLOBAL.server_uuid')[0][0]}:7"
            written = (
                "SELECT COUNT(*) FROM mysql.gtid_executed WHERE "
                f"GTID_SUBSET('{last}', CONCAT(source_uuid, ':', interval_start, '-', interval_end))"
            )
            wait_until(lambda: self.source.sql(written)[0][0], "InnoDB has noted what was executed", _WAIT_S)
        self.source.kill()
        newest = self.source.binlogs()[-1]
        os.truncate(newest, newest.stat().st_size - 40)
        self.source.start()
        self._write(20, 21)

    def _newest_lost(self) -> None:
        """Reuse the name of the file that was lost."""
        with self._put_back():
            self.source.sql("FLUSH BINARY LOGS")
            self._write(10, 11)
            self._wait_rows(self.along, 5)
        self._write(20, 21)

    def _restored(self) -> None:
        """Restore from a backup of the whole directory: several files differ now."""
        with self._put_back():
            for row in (10, 11, 12):
                self._write(row)
                self.source.sql("FLUSH BINARY LOGS")
            self._wait_rows(self.along, 6)
        for row in (20, 21, 22):
            self.source.sql("FLUSH BINARY LOGS")
            self._write(row)

    def _reset(self) -> None:
        self._write(3)
        self._wait_rows(self.along, 3)
        self.relay.sql("STOP SLAVE")
        into_another_second()
        self.source.sql(self._reset_words)
        self._write(20, 21)
        self.relay.sql("START SLAVE")

    def _copy(self) -> None:
        """Use a copy of the disk that is older than the archive, under another name."""
        kept = self._frozen_copy()
        self._write(10, 11)
        self._wait_rows(self.along, 5)
        self.source.kill()
        into_another_second()
        copy = self._servers(self.case.server)
        _copy(kept, copy.datadir)
        (copy.datadir / "auto.cnf").unlink(missing_ok=True)
        # On another machine it would be at the same place.
        index = copy.datadir / "mysql-bin.index"
        index.write_text(index.read_text().replace(str(self.source.datadir), str(copy.datadir)))
        self.source = copy.start(server_id=2, options=self._options)
        self._write(20, 21)
        self._change_relay()

    def _promoted(self) -> None:
        """Promote a replica that had not received everything; its binlogs are its own."""
        other = self._servers(self.case.server).start(server_id=2, options=self._options)
        other.sql("FLUSH BINARY LOGS")
        follow_by_gtid(other, self.source.port, self.source.replication_user, self.source.replication_password)
        self._write(3)
        self._wait_rows(other, 3)
        self._wait_rows(self.along, 3)
        other.stop_replica()
        self._write(10, 11)
        self._wait_rows(self.along, 5)
        self.source.kill()
        self.source = other
        self._write(20, 21)
        self._change_relay()

    def _change_relay(self) -> None:
        relay = self.relay
        relay.sql("STOP SLAVE")
        relay.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={self.source.port}")
        relay.sql("START SLAVE")

    @property
    def _reset_words(self) -> str:
        return "RESET BINARY LOGS AND GTIDS" if self.case.server == "mysql97" else "RESET MASTER"

    @contextlib.contextmanager
    def _put_back(self) -> Iterator[None]:
        """Lose at the source what happens inside, after it is archived."""
        kept = self._frozen_copy()
        yield
        self.source.kill()
        into_another_second()
        shutil.rmtree(self.source.datadir)
        _copy(kept, self.source.datadir)
        self.source.start()

    def _frozen_copy(self) -> Path:
        """Return the source's data as they are, with row 3, which `behind` lacks."""
        self._write(3)
        self._wait_rows(self.along, 3)
        wait_for_checkpoint(self.source)
        kept = self._directory / "kept"
        pid = self.source.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            _copy(self.source.datadir, kept)
        finally:
            os.kill(pid, signal.SIGCONT)
        return kept

    # --- the relay ---------------------------------------------------------------------------------------------------

    def _check_stop(self) -> None:
        relay = self.relay
        wait_for_line(relay, "source_given_up", timeout_s=_WAIT_S)
        line = relay.logged("source_given_up")[-1]
        wanted = STOPS[self.case.accident]
        assert line["trouble"] in wanted, line
        assert "CALL binlog_relay.accept_gap()" in line["advice"], line
        (status,) = relay.sql("SHOW SLAVE STATUS")
        assert any("CALL binlog_relay.accept_gap()" in str(value) for value in status), status

    def _accept(self) -> None:
        self.told = {str(what): str(text) for what, text in self.relay.sql("CALL binlog_relay.accept_gap()")}
        assert self.told["State"] == "the archive goes on there", (self.told, self.relay.log_tail())

    def _check_archive(self) -> None:
        relay = self.relay
        rows = [row for number, row in read_ledgers(relay.archive) if row.kind == "gap_accepted" and number == 2]
        assert len(rows) == 1 and "Accepted by 'replica'@" in rows[0].text, rows
        details: dict[str, Any] = json.loads(rows[0].details)
        if self.case.accident in ("tail_lost", "newest_lost", "restored", "copy"):
            # `along` was sent what the source lost, `behind` was not.
            (sent,) = details["replicas"]
            assert sent.startswith("server_id 3") and sent in rows[0].text, sent
        assert details["stop"] in STOPS[self.case.accident]
        assert bool(details["lost"] or self.told["Lost by the source"].startswith("the source")) is (
            self.case.accident != "purged"
            and not (self.case.accident == "reset" and not self._by_gtid)
            and not (self.case.accident == "tail_cut" and self.case.server == "mysql97")
        ), self.told
        end = self.source.master_status()
        path = relay.archive / "g0002" / end.file
        wait_until(
            lambda: path.exists() and path.stat().st_size >= end.position, f"{path} has all:\n{relay.log_tail()}", 30
        )

    # --- the replicas ------------------------------------------------------------------------------------------------

    def _after_purged(self) -> None:
        """Check that a replica without the missing part is stopped; one that has it from elsewhere continues."""
        text = self._refusal(self.along)
        assert "binlogs are missing up to" in text, text
        if self._by_gtid:
            self._follow(self.behind)
            self._equal(self.behind)
        else:
            # By hand, knowingly: what is missing, then the place that the error names.
            self.along.execute_many(["SET sql_log_bin = 0", "INSERT INTO d.t VALUES (10), (11)"])
            self._go_where_told(self.along, text)
            self._equal(self.along)

    def _after_a_loss(self) -> None:
        """Check that a replica with what the source lost is stopped by name, whatever it asks for; others continue."""
        self._refused_as_ahead(self.along)
        self.along.stop_replica()
        self.along.start_replica()
        self._refused_as_ahead(self.along)
        self._behind_goes_on()
        if self._by_gtid:
            # The source has given the numbers again that it lost; who has the new ones is no stranger.
            self._wait_rows(self.behind, len(self._rows(self.source)))
            self.behind.stop_replica()
            self.behind.start_replica()
        self._equal(self.behind)

    def _after_tail_cut(self) -> None:
        """Check the end: the tables of the source may have what its binlog lost; then it is missing from `behind`, as in a direct
        replica."""
        if self.case.server == "mysql97":
            # InnoDB tells it what was executed, and it gives no number again: nothing was lost but binlog.
            assert self.told["Lost by the source"] == "nothing that is known", self.told
            self.behind.start_replica()
            self._equal(self.behind)
            self._equal(self.along, 91)
            return
        self._refused_as_ahead(self.along)
        self._behind_goes_on()
        wait_until(lambda: {20, 21} <= set(self._rows(self.behind)), "it has what came after", _WAIT_S)
        assert {10, 20, 21} <= set(self._rows(self.behind)) <= set(self._rows(self.source))

    def _after_reset(self) -> None:
        """Check the end: the binlogs do not show whether the data were reset too; people know. Here they were not."""
        if self._by_gtid:
            self._refused_as_ahead(self.along)
            self.along.stop_replica()
            if self.case.server == "mariadb":
                self.along.execute_many([self._reset_words, "SET GLOBAL gtid_slave_pos = ''"])
            else:
                replica = "SLAVE" if self.case.server == "mysql56" else "REPLICA"
                self.along.execute_many([f"RESET {replica}", self._reset_words])
            self.along.start_replica()
        else:
            self._go_where_told(self.along, self._refusal(self.along))
        self._equal(self.along)

    def _behind_goes_on(self) -> None:
        self.behind.start_replica()
        if self._by_gtid:
            return
        text = self._refusal(self.behind)
        assert "Nothing is missing there" in text, text
        self._go_where_told(self.behind, text)

    def _refused_as_ahead(self, replica: Server) -> None:
        text = self._refusal(replica)
        assert "has transactions that the source has lost" in text, text

    def _refusal(self, replica: Server) -> str:
        def status() -> dict[str, Any]:
            return replica.replica_status()

        wait_until(
            lambda: status()["io_errno"] in _REFUSED, f"{replica!r} is refused:\n{self.relay.log_tail()}", _WAIT_S
        )
        text = str(status()["io_error"])
        assert "accepted gap" in text, text
        return text

    def _go_where_told(self, replica: Server, text: str) -> None:
        status = replica.replica_status()
        wait_until(lambda: _has_applied_all(replica), f"all that was received is applied: {status}", _WAIT_S)
        told = _TOLD.search(text)
        assert told is not None, text
        replica.attach("127.0.0.1", self.relay.port, REPLICA_USER, REPLICA_PASSWORD, told[1], int(told[2]))

    def _follow(self, replica: Server) -> None:
        if self._by_gtid:
            follow_by_gtid(replica, self.relay.port, REPLICA_USER, REPLICA_PASSWORD)
        else:
            first = self.source.binlogs()[0].name
            replica.attach("127.0.0.1", self.relay.port, REPLICA_USER, REPLICA_PASSWORD, first, 4)

    def _equal(self, replica: Server, row: int = 90) -> None:
        self._write(row)
        wanted = self._rows(self.source)

        def has_all() -> bool:
            status = replica.replica_status()
            assert status["io_errno"] not in _REFUSED and not status["sql_errno"], status
            return self._rows(replica) == wanted

        wait_until(has_all, f"it has {wanted}: {applied(replica) if self._by_gtid else ''}", _WAIT_S)
        assert replica.checksum_tables(["d"]) == self.source.checksum_tables(["d"])

    def _write(self, *rows: int) -> None:
        self.source.execute_many(f"INSERT INTO d.t VALUES ({row})" for row in rows)

    def _rows(self, server: Server) -> list[int]:
        return [int(row[0]) for row in server.sql("SELECT a FROM d.t ORDER BY a")]

    def _wait_rows(self, replica: Server, count: int) -> None:
        def has_them() -> bool:
            with contextlib.suppress(Exception):
                return len(self._rows(replica)) >= count
            return False

        wait_until(has_them, f"{count} rows at {replica!r}:\n{self.relay.log_tail()}", _WAIT_S)


def into_another_second() -> None:
    """Wait for another second: the creation time in seconds distinguishes a file from another of its name."""
    made = int(time.time())
    wait_until(lambda: int(time.time()) > made, "the next second")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def _has_applied_all(replica: Server) -> bool:
    status = replica.replica_status()
    assert not status["sql_errno"], status["sql_error"]
    return bool((status["source_file"], status["read_position"]) == (status["exec_file"], status["exec_position"]))
