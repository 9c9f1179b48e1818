"""The common part of all servers: SQL, and replication by file and position."""

import contextlib
import socket
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from .replication_words import ReplicationWords
from .server_process import ServerError, ServerProcess

_LOST: Final = 2013
"""Clients report this error for a connection that ended while they read."""
_LAST_BREATH_S: Final = 5.0
"""A process that ends closes its connections some time before it disappears."""


class CatchUpError(ServerError):
    """The error that a replica stopped with an error, or did not reach a position in time."""


class BinlogPosition(NamedTuple):
    """A file name and the offset in bytes of the next event in it."""

    file: str
    position: int


class Server(ServerProcess):
    """A server that can be queried, followed, and made to follow."""

    _words: ClassVar[ReplicationWords] = ReplicationWords()
    # These settings make CHECKSUM TABLE comparable between products.
    _CHECKSUM_SETTINGS: ClassVar[Sequence[str]] = ()

    @property
    def replica_word(self) -> str:
        """How its statements spell a replica: SLAVE or REPLICA."""
        return self._words.replica

    # ---- SQL ---------------------------------------------------------------------------------------------------

    def connect(self, database: str | None = None, **options: Any) -> Any:
        """Return a new PyMySQL connection as root over the socket, autocommit on. Close it, or use it with `with`. `options` are
        PyMySQL's. Raises: pymysql.err.OperationalError if the server is down."""
        import pymysql

        connection = pymysql.connect(
            **{
                "host": "127.0.0.1",
                "port": self.port,
                "user": "root",
                "password": "",
                "database": database,
                "charset": "utf8mb4",
                "autocommit": True,
                "max_allowed_packet": 64 * 1024 * 1024,
                # A socket has nothing to hide, and MySQL 5.6's TLS is too old for this Python.
                "ssl_disabled": True,
                **options,
                "defer_connect": True,
            }
        )
        # It is connected here, because PyMySQL leaves the socket open if the server is down.
        link = socket.socket(socket.AF_UNIX)
        try:
            link.settimeout(10)
            link.connect(str(self.socket))
            link.settimeout(None)
            connection.connect(link)
        except OSError as error:
            link.close()
            text = f"cannot connect to {self!r}: {error}{self._end_told()}"
            raise pymysql.err.OperationalError(2003, text) from error
        except pymysql.err.OperationalError as error:
            link.close()
            if error.args[0] != _LOST:
                raise
            # It listened, and did not greet: its process is ending, or has ended.
            text = f"{error.args[1]}{self._end_told(_LAST_BREATH_S)}"
            raise pymysql.err.OperationalError(_LOST, text) from error
        except BaseException:
            link.close()
            raise
        return connection

    def sql(self, statement: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own; return its rows, or an empty list."""
        return self.execute_many([statement], database)

    def execute_many(self, statements: Iterable[str], database: str | None = None) -> list[tuple[Any, ...]]:
        """Run statements one after the other on one connection; return the last one's rows."""
        rows: list[tuple[Any, ...]] = []
        with contextlib.closing(self.connect(database)) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall())
                while cursor.nextset():
                    pass
        return rows

    def _row(self, statement: str) -> dict[str, Any]:
        """Return the first row of a statement by column name, or an empty dictionary."""
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            row = cursor.fetchone()
            if row is None:
                return {}
            return dict(zip((column[0] for column in cursor.description), row, strict=True))

    # ---- as a source -------------------------------------------------------------------------------------------

    def master_status(self) -> BinlogPosition:
        """Return the end of the newest binlog."""
        row = self._row(self._words.binlog_status)
        if not row:
            raise ServerError(f"{self!r} writes no binlog")
        return BinlogPosition(row["File"], int(row["Position"]))

    def binlogs(self) -> list[Path]:
        """Return the binlog files, oldest first, by the index file; also of a server that does not run."""
        index = self.binlog_base.with_name(self.binlog_base.name + ".index")
        if not index.exists():
            return []
        return [self.datadir / Path(line).name for line in index.read_text().splitlines() if line]

    # ---- as a replica ------------------------------------------------------------------------------------------

    def attach(
        self,
        host: str,
        port: int,
        user: str | None = None,
        password: str | None = None,
        file: str | None = None,
        position: int | None = None,
        *,
        start: bool = True,
        **extra: object,
    ) -> None:
        """Follow a source by file and position, and start by default.

        Without file and position they stay as they were. Without user, it uses the account that all servers here have. `extra` are more
        options of the statement without its prefix, in any case: heartbeat_period=2, ssl=1. Names are translated to the product's
        spelling. Raises: PyMySQL's errors.
        """
        options: dict[str, object] = {
            "host": host,
            "port": port,
            "user": self.replication_user if user is None else user,
            "password": self.replication_password if password is None else password,
        }
        if file is not None:
            options["log_file"] = file
        if position is not None:
            options["log_pos"] = position
        self.stop_replica()
        self.sql(self._words.change_statement(options | extra))
        if start:
            self.start_replica()

    def attach_to(self, source: "Server", at: BinlogPosition | None = None, **extra: Any) -> None:
        """Follow another of these servers directly, from `at` or from its newest end."""
        at = source.master_status() if at is None else at
        self.attach("127.0.0.1", source.port, file=at.file, position=at.position, **extra)

    def start_replica(self) -> None:
        """Run START SLAVE / START REPLICA."""
        self.sql(f"START {self._words.replica}")

    def stop_replica(self) -> None:
        """Run STOP SLAVE / STOP REPLICA; nothing happens if none runs."""
        self.sql(f"STOP {self._words.replica}")

    def replica_status(self) -> dict[str, Any]:
        """Return the replica's status, in the same words for all products; empty if nothing is configured.

        io_running ("Yes", "No", "Connecting"; MariaDB also "Preparing"), sql_running (bool), io_errno, io_error,
        sql_errno, sql_error, source_file, read_position, exec_file, exec_position, relay_log_file, raw (as shown).
        """
        row = self._row(self._words.replica_status)
        if not row:
            return {}

        def column(*names: str) -> Any:
            return next(row[name] for name in names if name in row)

        return {
            "io_running": column("Slave_IO_Running", "Replica_IO_Running"),
            "sql_running": column("Slave_SQL_Running", "Replica_SQL_Running") == "Yes",
            "io_errno": int(row["Last_IO_Errno"]),
            "io_error": row["Last_IO_Error"],
            "sql_errno": int(row["Last_SQL_Errno"]),
            "sql_error": row["Last_SQL_Error"],
            "source_file": column("Master_Log_File", "Source_Log_File"),
            "read_position": int(column("Read_Master_Log_Pos", "Read_Source_Log_Pos")),
            "exec_file": column("Relay_Master_Log_File", "Relay_Source_Log_File"),
            "exec_position": int(column("Exec_Master_Log_Pos", "Exec_Source_Log_Pos")),
            "relay_log_file": row["Relay_Log_File"],
            "raw": row,
        }

    def wait_caught_up(self, file: str, position: int, timeout: float = 60.0) -> None:
        """Wait until the replica has applied everything before this position of its source.

        Raises: CatchUpError at once when a replication thread has stopped, and after `timeout` seconds; the text has both threads'
        errors and positions.
        """
        deadline = time.monotonic() + timeout
        pause = 0.01
        while True:
            status = self.replica_status()
            if not status:
                raise CatchUpError(f"{self!r} is no replica")
            if _order(status["exec_file"], status["exec_position"]) >= _order(file, position):
                return
            stopped = status["io_running"] == "No" or not status["sql_running"]
            if stopped or time.monotonic() > deadline:
                what = "stopped" if stopped else f"did not reach {file}:{position} within {timeout:g} s"
                told = {key: value for key, value in status.items() if key != "raw" and value not in ("", 0)}
                raise CatchUpError(f"{self!r} {what}: {told}{self._log_tail(5)}")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)

    def wait_for_source(self, source: "Server", timeout: float = 60.0) -> None:
        """Wait until all that `source` has written by now is applied here."""
        self.wait_caught_up(*source.master_status(), timeout=timeout)

    def wait_io_error(self, timeout: float = 30.0) -> tuple[int, str]:
        """Wait until the receiving thread reports an error; return its number and text. Raises: CatchUpError."""
        deadline = time.monotonic() + timeout
        while True:
            status = self.replica_status()
            if status.get("io_errno"):
                return status["io_errno"], status["io_error"]
            if time.monotonic() > deadline:
                raise CatchUpError(f"{self!r} reported no error within {timeout:g} s")
            time.sleep(0.05)

    # ---- comparing ---------------------------------------------------------------------------------------------

    def checksum_tables(self, databases: Iterable[str]) -> dict[str, int]:
        """Return CHECKSUM TABLE of every base table of these databases, by "database.table"."""
        tables: dict[str, int] = {}
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            for setting in self._CHECKSUM_SETTINGS:
                cursor.execute(setting)
            for database in databases:
                cursor.execute(
                    "SELECT table_name FROM information_schema.tables"
                    " WHERE table_schema = %s AND table_type = 'BASE TABLE' ORDER BY table_name",
                    (database,),
                )
                names = [f"`{database}`.`{row[0]}`" for row in cursor.fetchall()]
                if names:
                    cursor.execute(f"CHECKSUM TABLE {', '.join(names)} EXTENDED")
                    for table, checksum in cursor.fetchall():
                        if checksum is None:
                            raise ServerError(f"{self!r} gives no checksum for the table {table}")
                        tables[table] = int(checksum)
        return tables


def _order(file: str, position: int) -> tuple[int, int]:
    """Return a key for positions in the order of the stream: names are compared by number, .1000000 follows .999999."""
    suffix = file.rpartition(".")[2]
    return (int(suffix) if suffix.isdigit() else -1, position)
