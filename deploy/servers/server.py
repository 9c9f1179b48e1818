"""What all servers have in common: a life cycle, SQL, and replication by file and position."""

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self

from .location import ServerUnavailable, locked, root_directory, server_account, unreachable_part
from .process import start_process

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
# Unix socket paths end at 107 bytes.
SOCKET_PATH_BYTES = 100
# Below Linux's ephemeral range (32768 and up), so that no outgoing connection takes a stopped server's port.
PORTS = range(20000, 32000)
# Part of every template's name: raise it when what a template holds changes.
TEMPLATE_VERSION = 1


class ServerError(Exception):
    """A server did not do what was asked; the text has the end of its error log where that helps."""


class CatchUpError(ServerError):
    """A replica stopped with an error, or did not reach a position in time."""


class BinlogPosition(NamedTuple):
    """A file name and the offset in bytes of the next event in it."""

    file: str
    position: int


class Server(ABC):
    """One server process with its own data directory; starts from a template in about a second or two.

    `directory` must be reachable by the account that servers run as (mysql when root); without one a temporary
    directory is made, and removed by `close`. `with` starts nothing but closes at its end.
    """

    name: ClassVar[str]
    flavour: ClassVar[str]
    # The account for replicas (and relays) that every template holds, so that it is in no binlog.
    replication_user: ClassVar[str] = "repl"
    replication_password: ClassVar[str] = "repl-password"

    # ---- what differs by product -------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """None if this server can be started here, else one sentence with what is missing."""

    @classmethod
    @abstractmethod
    def install(cls) -> None:
        """Install the binaries if they are absent. Raises ServerUnavailable with one sentence."""

    @classmethod
    @abstractmethod
    def read_version(cls) -> str:
        """The server's version as it prints it, like "10.11.14"."""

    @classmethod
    @abstractmethod
    def program(cls) -> list[str]:
        """How to call the server, up to and without --no-defaults."""

    @classmethod
    @abstractmethod
    def _make_data(cls, data: Path, work: Path) -> None:
        """Fill the empty directory `data` with a fresh system schema; it belongs to the servers' account."""

    @classmethod
    def environment(cls) -> dict[str, str]:
        """Environment variables the program needs."""
        return {}

    @classmethod
    def working_directory(cls) -> Path:
        """The directory the program is started in."""
        return Path("/")

    @classmethod
    def mysqlbinlog(cls) -> list[str]:
        """How to call this product's mysqlbinlog. Raises ServerUnavailable where the package has none."""
        raise ServerUnavailable(f"{cls.name} has no mysqlbinlog in its package")

    @classmethod
    def mysql_client(cls) -> list[str]:
        """How to call this product's mysql client. Raises ServerUnavailable where the package has none."""
        raise ServerUnavailable(f"{cls.name} has no mysql client in its package")

    @classmethod
    def mysqladmin(cls) -> list[str]:
        """How to call this product's mysqladmin. Raises ServerUnavailable where the package has none."""
        raise ServerUnavailable(f"{cls.name} has no mysqladmin in its package")

    @classmethod
    def _own_options(cls) -> list[str]:
        """Options this product needs to start at all."""
        return []

    @classmethod
    def _default_options(cls) -> list[str]:
        """Options that suit tests; the caller's come after and win."""
        return []

    # Spelling of the replication statements; MySQL 8.4 and later know only the new one.
    _SHOW_BINLOG_STATUS: ClassVar[str] = "SHOW MASTER STATUS"
    _SHOW_REPLICA_STATUS: ClassVar[str] = "SHOW SLAVE STATUS"
    _REPLICA: ClassVar[str] = "SLAVE"
    _CHANGE: ClassVar[str] = "CHANGE MASTER TO"
    _CHANGE_PREFIX: ClassVar[str] = "MASTER_"
    _CHANGE_DEFAULTS: ClassVar[Mapping[str, object]] = {"MASTER_CONNECT_RETRY": 1}
    # What makes CHECKSUM TABLE comparable between products.
    _CHECKSUM_SETTINGS: ClassVar[Sequence[str]] = ()
    _CHANGE_PLAIN: ClassVar[frozenset[str]] = frozenset(
        {
            "RELAY_LOG_FILE",
            "RELAY_LOG_POS",
            "IGNORE_SERVER_IDS",
            "DO_DOMAIN_IDS",
            "IGNORE_DOMAIN_IDS",
            "GET_SOURCE_PUBLIC_KEY",
            "PRIVILEGE_CHECKS_USER",
            "REQUIRE_ROW_FORMAT",
            "REQUIRE_TABLE_PRIMARY_KEY_CHECK",
            "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS",
            "GTID_ONLY",
        }
    )

    # ---- life cycle --------------------------------------------------------------------------------------------

    def __init__(self, directory: Path | None = None, *, port: int | None = None) -> None:
        reason = self.missing()
        if reason is not None:
            raise ServerUnavailable(reason)
        self.version = self.read_version()
        self.server_id = 1
        self.options: list[str] = []
        self._port_given = port is not None
        self.port = port if port is not None else _free_port()
        self._account = server_account()
        self._owns_directory = directory is None
        if directory is None:
            directory = Path(tempfile.mkdtemp(prefix=f"binlog-relay-{self.name}-"))
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory.absolute()
        self.datadir = self.directory / "data"
        self.binlog_base = self.datadir / "mysql-bin"
        self.error_log = self.directory / "error.log"
        self.socket = self.directory / "mysqld.sock"
        self._log_start = 0
        self._socket_directory: Path | None = None
        if len(os.fsencode(self.socket)) > SOCKET_PATH_BYTES:
            self._socket_directory = Path(tempfile.mkdtemp(prefix="binlog-relay-"))
            _give(self._socket_directory, self._account.pw_uid, self._account.pw_gid)
            self.socket = self._socket_directory / "mysqld.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.version} port {self.port}, data in {self.datadir}>"

    @property
    def pid(self) -> int | None:
        """The running process's id, or None."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def running(self) -> bool:
        """Whether the process exists."""
        if self._process is None:
            return False
        return self._process.poll() is None

    def start(self, server_id: int | None = None, options: Sequence[str] | None = None) -> Self:
        """Start, from a fresh data directory the first time; return when the server accepts connections.

        `options` like "--binlog-format=ROW" come after the defaults and win over them. What is not given stays as
        at the last start. Raises ServerError with the end of the error log.
        """
        if self.running:
            raise ServerError(f"{self!r} runs already")
        if server_id is not None:
            self.server_id = server_id
        if options is not None:
            self.options = list(options)
        self._prepare_directory()
        for attempt in range(5):
            try:
                self._start_once()
            except ServerError as error:
                # Another process took the port between our look and the server's bind.
                if self._port_given or attempt == 4 or "already in use" not in str(error):
                    raise
                self.port = _free_port()
            else:
                return self
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """Stop in order (SIGTERM) and wait. Raises ServerError, and kills, if that takes over a minute."""
        if not self.running:
            return
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise ServerError(f"{self!r} did not stop within {STOP_TIMEOUT_S:.0f} s{self._log_tail()}") from error

    def kill(self) -> None:
        """Kill the process (SIGKILL) and wait for its end."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def restart(self, options: Sequence[str] | None = None) -> Self:
        """Stop in order and start again: same data, same port, and same options unless given."""
        self.stop()
        return self.start(options=options)

    def close(self) -> None:
        """Kill the process and remove the directories that this object made."""
        self.kill()
        if self._socket_directory is not None:
            shutil.rmtree(self._socket_directory, ignore_errors=True)
        if self._owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _prepare_directory(self) -> None:
        uid, gid = self._account.pw_uid, self._account.pw_gid
        if self._owns_directory or not self.datadir.exists():
            _give(self.directory, uid, gid)
        blocked = unreachable_part(self.directory, self._account)
        if blocked is not None:
            raise ServerError(
                f"the account {self._account.pw_name} cannot enter {blocked}, so it cannot use {self.directory}; "
                "give the server a directory elsewhere, or none"
            )
        tmp = self.directory / "tmp"
        tmp.mkdir(exist_ok=True)
        _give(tmp, uid, gid)
        if not self.datadir.exists():
            _copy_tree(self.template(), self.datadir)

    def command(self) -> list[str]:
        """The full command line that `start` uses."""
        return [
            *self.program(),
            "--no-defaults",
            *self._own_options(),
            f"--datadir={self.datadir}",
            f"--tmpdir={self.directory / 'tmp'}",
            f"--socket={self.socket}",
            f"--pid-file={self.directory / 'mysqld.pid'}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            f"--server-id={self.server_id}",
            f"--log-bin={self.binlog_base}",
            f"--relay-log={self.datadir / 'relay-bin'}",
            "--max-allowed-packet=64M",
            # Interrupted handshakes are a normal thing in tests; the default blocks the host after 100.
            "--max-connect-errors=1000000",
            "--innodb-buffer-pool-size=64M",
            # Written to the system at each commit, so that kill -9 loses nothing; synced only now and then.
            "--innodb-flush-log-at-trx-commit=2",
            "--sync-binlog=0",
            *self._default_options(),
            *self.options,
        ]

    def _start_once(self) -> None:
        self.socket.unlink(missing_ok=True)
        self._log_start = self.error_log.stat().st_size if self.error_log.exists() else 0
        self._process = start_process(
            self.command(),
            account=self._account,
            log=self.error_log,
            directory=self.working_directory(),
            environment=self.environment(),
        )
        deadline = time.monotonic() + READY_TIMEOUT_S
        try:
            while not self._greets(deadline):
                if self._process.poll() is not None:
                    raise ServerError(
                        f"{self.name} {self.version} ended with status {self._process.returncode} at its start"
                        f"{self._log_tail()}"
                    )
                if time.monotonic() > deadline:
                    raise ServerError(f"{self!r} was not ready in {READY_TIMEOUT_S:.0f} s{self._log_tail()}")
                time.sleep(0.02)
        except BaseException:
            self.kill()
            raise

    def _greets(self, deadline: float) -> bool:
        """Whether the server sends its greeting: it listens long before it answers."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                link.connect(str(self.socket))
                head = link.recv(5)
            except OSError:
                return False
            return len(head) == 5 and head[4] == 10

    def _log_tail(self, lines: int = 15) -> str:
        """What the error log has since the last start, for a message: its errors, else its last lines."""
        try:
            with self.error_log.open("rb") as log:
                log.seek(self._log_start)
                text = log.read().decode("utf-8", "replace").strip()
        except FileNotFoundError:
            return ""
        if not text:
            return ""
        said = text.splitlines()
        errors = [line for line in said if "[ERROR]" in line]
        return "; from its error log:\n" + "\n".join((errors or said)[-lines:])

    # ---- template ----------------------------------------------------------------------------------------------

    @classmethod
    def template(cls) -> Path:
        """A data directory to copy: accounts `root` without and `repl` with a password. Made at the first call."""
        account = server_account()
        version = re.sub(r"[^0-9A-Za-z.]+", "-", cls.read_version())
        templates = root_directory() / "templates"
        # By account too: a root directory may be used as root and as another user.
        made = templates / f"{cls.name}-{version}-{account.pw_name}-{TEMPLATE_VERSION}"
        if made.exists():
            return made
        with locked(f"template-{cls.name}"):
            if made.exists():
                return made
            templates.mkdir(parents=True, exist_ok=True)
            server = cls()
            try:
                _give(server.directory, account.pw_uid, account.pw_gid)
                server.datadir.mkdir()
                _give(server.datadir, account.pw_uid, account.pw_gid)
                cls._make_data(server.datadir, server.directory)
                accounts = server.directory / "accounts.sql"
                # One statement a line: what --init-file wants.
                accounts.write_text("".join(f"{statement};\n" for statement in cls._account_statements()))
                accounts.chmod(0o644)
                server.start(options=["--skip-log-bin", f"--init-file={accounts}"])
                server.stop()
                # A failed statement of an init file is only a line in the log.
                errors = [line for line in server.error_log.read_text().splitlines() if "[ERROR]" in line]
                if errors:
                    raise ServerError(f"no template of {cls.name} could be made: {errors[0]}")
                for name in ("auto.cnf", "mysql-bin.index", "ib_buffer_pool", "ibtmp1"):
                    (server.datadir / name).unlink(missing_ok=True)
                part = made.with_name(f".{made.name}.part")
                shutil.rmtree(part, ignore_errors=True)
                _copy_tree(server.datadir, part)
                part.rename(made)
            finally:
                server.close()
        return made

    @classmethod
    def _account_statements(cls) -> list[str]:
        user, password = f"'{cls.replication_user}'@'%'", cls.replication_password
        return [
            "CREATE USER 'root'@'127.0.0.1'",
            "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION",
            f"CREATE USER {user} IDENTIFIED BY '{password}'",
            f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}",
        ]

    # ---- SQL ---------------------------------------------------------------------------------------------------

    def connect(self, database: str | None = None, **options: Any) -> Any:
        """A new PyMySQL connection as root over the socket, autocommit on. Close it, or use it with `with`.

        `options` are PyMySQL's. Raises pymysql.err.OperationalError where the server is down.
        """
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
                # Nothing to be hidden on a socket, and MySQL 5.6's TLS is too old for this Python.
                "ssl_disabled": True,
                **options,
                "defer_connect": True,
            }
        )
        # Connected here, because PyMySQL leaves the socket open where the server is down.
        link = socket.socket(socket.AF_UNIX)
        try:
            link.settimeout(10)
            link.connect(str(self.socket))
            link.settimeout(None)
            connection.connect(link)
        except OSError as error:
            link.close()
            raise pymysql.err.OperationalError(2003, f"cannot connect to {self!r}: {error}") from error
        except BaseException:
            link.close()
            raise
        return connection

    def sql(self, statement: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own; its rows, or an empty list."""
        return self.execute_many([statement], database)

    def execute_many(self, statements: Iterable[str], database: str | None = None) -> list[tuple[Any, ...]]:
        """Run statements one after the other on one connection; the last one's rows."""
        rows: list[tuple[Any, ...]] = []
        with contextlib.closing(self.connect(database)) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall())
                while cursor.nextset():
                    pass
        return rows

    def _row(self, statement: str) -> dict[str, Any]:
        """The first row of a statement by column name, or an empty dictionary."""
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            row = cursor.fetchone()
            if row is None:
                return {}
            return dict(zip((column[0] for column in cursor.description), row, strict=True))

    # ---- as a source -------------------------------------------------------------------------------------------

    def master_status(self) -> BinlogPosition:
        """The end of the newest binlog."""
        row = self._row(self._SHOW_BINLOG_STATUS)
        if not row:
            raise ServerError(f"{self!r} writes no binlog")
        return BinlogPosition(row["File"], int(row["Position"]))

    def binlogs(self) -> list[Path]:
        """The binlog files, oldest first, by the index file; also of a server that does not run."""
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
        """Follow a source by file and position, and start unless told not to.

        Without file and position they stay as they were. Without user, the account that all servers here have.
        `extra` are more options of the statement without its prefix, in any case: heartbeat_period=2, ssl=1.
        Names are translated to the product's spelling. Raises PyMySQL's errors.
        """
        options: dict[str, object] = {
            **self._CHANGE_DEFAULTS,
            "MASTER_HOST": host,
            "MASTER_PORT": port,
            "MASTER_USER": self.replication_user if user is None else user,
            "MASTER_PASSWORD": self.replication_password if password is None else password,
        }
        if file is not None:
            options["MASTER_LOG_FILE"] = file
        if position is not None:
            options["MASTER_LOG_POS"] = position
        for key, value in extra.items():
            name = key.upper()
            if name not in self._CHANGE_PLAIN and not name.startswith(("MASTER_", "SOURCE_")):
                name = f"MASTER_{name}"
            options[name.replace("SOURCE_", "MASTER_", 1) if name.startswith("SOURCE_") else name] = value
        words = [
            f"{name.replace('MASTER_', self._CHANGE_PREFIX, 1)} = {_literal(value)}" for name, value in options.items()
        ]
        self.stop_replica()
        self.sql(f"{self._CHANGE} {', '.join(words)}")
        if start:
            self.start_replica()

    def attach_to(self, source: "Server", at: BinlogPosition | None = None, **extra: Any) -> None:
        """Follow another of these servers directly, from `at` or from its newest end."""
        at = source.master_status() if at is None else at
        self.attach("127.0.0.1", source.port, file=at.file, position=at.position, **extra)

    def start_replica(self) -> None:
        """START SLAVE / START REPLICA."""
        self.sql(f"START {self._REPLICA}")

    def stop_replica(self) -> None:
        """STOP SLAVE / STOP REPLICA; nothing happens where none runs."""
        self.sql(f"STOP {self._REPLICA}")

    def replica_status(self) -> dict[str, Any]:
        """Where the replica is, in the same words for all products; empty where nothing is configured.

        io_running ("Yes", "No", "Connecting"; MariaDB also "Preparing"), sql_running (bool), io_errno, io_error,
        sql_errno, sql_error, source_file, read_position, exec_file, exec_position, relay_log_file, raw (as shown).
        """
        row = self._row(self._SHOW_REPLICA_STATUS)
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

        Raises CatchUpError at once when a replication thread has stopped, and after `timeout` seconds; the text
        has both threads' errors and positions.
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
        """Wait until the receiving thread reports an error: its number and text. Raises CatchUpError."""
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
        """CHECKSUM TABLE of every base table of these databases, by "database.table"."""
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
    """Positions in the order of the stream: names are compared by number, .1000000 follows .999999."""
    suffix = file.rpartition(".")[2]
    return (int(suffix) if suffix.isdigit() else -1, position)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(_literal, value)) + ")"
    text = str(value)
    if text in ("no", "slave_pos", "current_pos"):  # MASTER_USE_GTID takes bare words
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _free_port() -> int:
    for port in random.sample(PORTS, 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ServerError(f"no free port on 127.0.0.1 between {PORTS.start} and {PORTS.stop}")


def _give(directory: Path, uid: int, gid: int) -> None:
    """Let the servers' account own a directory, and others look into it."""
    directory.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(directory, uid, gid)


def _copy_tree(source: Path, target: Path) -> None:
    """Copy with owners and holes: preallocated redo logs are mostly zeros and cost nothing that way."""
    run_tool(["cp", "-a", "--reflink=auto", "--sparse=always", str(source), str(target)])


def run_tool(
    command: list[str], *, directory: Path | None = None, environment: Mapping[str, str] | None = None, what: str = ""
) -> str:
    """Run a tool to its end; its output. Raises ServerUnavailable with the end of what it said."""
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, **environment} if environment else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    except OSError as error:
        raise ServerUnavailable(f"{what or command[0]} failed: {error}") from error
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        last = " | ".join(line.strip() for line in output.splitlines()[-10:] if line.strip())
        raise ServerUnavailable(f"{what or command[0]} failed with status {done.returncode}: {last}")
    return output
