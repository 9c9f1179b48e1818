"""The result of a view's files on a real replica: a MySQL 5.6 that writes, rules, a relay that serves their result, and a MySQL 9.7."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import pymysql
import pytest

from deploy.servers import Server
from relay.view.stops.stop_reason import StopReason, Untranslatable
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.view_writer import VIEW_UUID, Plans, ViewWriter, groups_of

REPLICA_OPTIONS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--replica-parallel-workers=4")
Rows = dict[str, list[tuple[object, ...]]]


class ViewTrial:
    """A trial. `source` and `replica` run already, and keep running; what earlier trials left in them is removed."""

    def __init__(self, source: Server, replica: Server, directory: Path) -> None:
        self.source, self.replica, self.directory = source, replica, directory
        directory.mkdir(parents=True, exist_ok=True)
        self.executed = ""
        self.gno = 0
        for server in (source, replica):
            with server.connect().cursor() as cursor:
                cursor.execute("SHOW DATABASES")
                for (name,) in cursor.fetchall():
                    if name not in ("mysql", "information_schema", "performance_schema", "sys"):
                        cursor.execute("SET foreign_key_checks = 0")
                        cursor.execute(f"DROP DATABASE `{name}`")
        ((version,),) = source.sql("SELECT VERSION()")
        source.sql("RESET MASTER" if str(version) < "8" else "RESET BINARY LOGS AND GTIDS")
        replica.stop_replica()
        replica.execute_many(["RESET REPLICA ALL", "RESET BINARY LOGS AND GTIDS"])

    def write(self, statements: Sequence[str], binlog_format: str = "STATEMENT") -> Path:
        """Run statements on one connection of the source, including failing ones, and return the binlog with them."""
        with self.source.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SET binlog_format = {binlog_format}")
            for statement in statements:
                try:
                    cursor.execute(statement)
                except pymysql.err.IntegrityError:
                    continue  # what it did before it failed is what is of interest
        self.source.sql("FLUSH LOGS")
        made = self.directory / "source"
        made.mkdir(exist_ok=True)
        shutil.copy(self.source.binlogs()[-2], made)
        return made / self.source.binlogs()[-2].name

    def apply(
        self, rules: Plans, file: Path, *, version: int = 50624, timeout_s: float = 30.0, stop: bool = True
    ) -> int:
        """Make the view of a file and have the replica follow it, to its end or to an error; return the error's number (0: none).

        `version` is the one that GTID events name. With `stop` the replica is stopped then, which waits for the transaction that it
        applies.
        """
        view = self.directory / "view"
        writer = ViewWriter(view, rules, version=version)
        writer.write(file)
        self.gno = writer.gno
        return self.follow(view, file.name, timeout_s=timeout_s, stop=stop)

    def follow(self, view: Path, last: str, *, timeout_s: float = 30.0, stop: bool = True) -> int:
        """Have the replica follow the files of a view up to the end of the last one; return as `apply` does."""
        with RelayProcess(self.directory / "relay", view, port=free_port(), markers="strip") as relay:
            for made in sorted(view.iterdir()):
                relay.wait_archived(made.name, made.stat().st_size)
            self.replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, auto_position=1)
            deadline = time.monotonic() + timeout_s
            try:
                while True:
                    status = self.replica.replica_status()
                    # A receiver that has an error and connects again goes on.
                    error = int(status["sql_errno"] or (status["io_errno"] if status["io_running"] == "No" else 0))
                    ((self.executed,),) = self.replica.sql("SELECT @@GLOBAL.gtid_executed")
                    if error or status["exec_position"] >= (view / last).stat().st_size:
                        return error
                    assert time.monotonic() < deadline, (status, self.executed)
                    time.sleep(0.02)
            finally:
                if stop:
                    self.replica.stop_replica()

    def tables(self, server: Server, schema: str = "d") -> Rows:
        """Return the rows of all tables of a schema."""
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}'")
            names = sorted(name for (name,) in cursor.fetchall())
            found: Rows = {}
            for name in names:
                cursor.execute(f"SELECT * FROM `{schema}`.`{name}`")
                found[name] = sorted(cursor.fetchall(), key=repr)
        return found

    @property
    def equal(self) -> bool:
        """Return whether the replica's tables contain what the source's do."""
        return self.tables(self.source) == self.tables(self.replica)

    @property
    def whole(self) -> bool:
        """Return whether the replica has executed every GTID of the view."""
        return self.executed == (f"{VIEW_UUID}:1-{self.gno}" if self.gno > 1 else f"{VIEW_UUID}:1")


def reason_of(rules: Plans, file: Path) -> StopReason:
    """Return why a view stops somewhere in the file."""
    with pytest.raises(Untranslatable) as raised:
        for group in groups_of(file.name, file.read_bytes()):
            rules.plan(group)
    return raised.value.reason
