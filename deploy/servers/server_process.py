"""One server process: its data directory, made from a template, its start and its end."""

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
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from .location import ServerUnavailable, locked, root_directory, server_account, unreachable_part
from .process import run_tool, start_process

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
# Unix socket paths end at 107 bytes.
SOCKET_PATH_BYTES = 100
# They are below Linux's ephemeral range (32768 and up), so that no outgoing connection takes a stopped server's port.
PORTS = range(20000, 32000)
# A server writes so many lines about its own crash: the stack is among them.
_CRASH_LINES = 60
# It is part of every template's name: raise it when the content of templates changes.
TEMPLATE_VERSION = 1


class ServerError(Exception):
    """The error that a server did not do what was asked; the text has the end of its error log if that helps."""


class ServerProcess(ABC):
    """One server process with its own data directory; which starts from a template in about a second or two.

    `directory` must be reachable by the account that servers run as (mysql when root); without one a temporary
    directory is made, and removed by `close`. `with` starts nothing but closes at its end.
    """

    name: ClassVar[str]
    flavour: ClassVar[str]
    # Every template contains this account for replicas (and relays), so that it is in no binlog.
    replication_user: ClassVar[str] = "repl"
    replication_password: ClassVar[str] = "repl-password"

    # ---- what differs by product -------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """Return None if this server can be started here, else one sentence with what is missing."""

    @classmethod
    @abstractmethod
    def install(cls) -> None:
        """Install the binaries if they are absent. Raises: ServerUnavailable with one sentence."""

    @classmethod
    @abstractmethod
    def read_version(cls) -> str:
        """Return the server's version as it prints it, like "10.11.14"."""

    @classmethod
    @abstractmethod
    def program(cls) -> list[str]:
        """Return the command for the server, up to and without --no-defaults."""

    @classmethod
    @abstractmethod
    def _make_data(cls, data: Path, work: Path) -> None:
        """Fill the empty directory `data` with a fresh system schema; it belongs to the servers' account."""

    @classmethod
    def template_name(cls) -> str:
        """Return what the name of its template begins with: what no other server's does."""
        return cls.name

    @classmethod
    def environment(cls) -> dict[str, str]:
        """Return the environment variables that the program needs."""
        return {}

    @classmethod
    def working_directory(cls) -> Path:
        """Return the directory in which the program is started."""
        return Path("/")

    @classmethod
    def mysqlbinlog(cls) -> list[str]:
        """Return the command for this product's mysqlbinlog. Raises: ServerUnavailable if the package has none."""
        raise ServerUnavailable(f"{cls.name} has no mysqlbinlog in its package")

    @classmethod
    def mysql_client(cls) -> list[str]:
        """Return the command for this product's mysql client. Raises: ServerUnavailable if the package has none."""
        raise ServerUnavailable(f"{cls.name} has no mysql client in its package")

    @classmethod
    def mysqladmin(cls) -> list[str]:
        """Return the command for this product's mysqladmin. Raises: ServerUnavailable if the package has none."""
        raise ServerUnavailable(f"{cls.name} has no mysqladmin in its package")

    @classmethod
    def mysqldump(cls) -> list[str]:
        """Return the command for this product's mysqldump. Raises: ServerUnavailable if the package has none."""
        raise ServerUnavailable(f"{cls.name} has no mysqldump in its package")

    @classmethod
    def _own_options(cls) -> list[str]:
        """Return the options that this product needs to start at all."""
        return []

    @classmethod
    def _default_options(cls) -> list[str]:
        """Return options that suit tests; the caller's come after them and win."""
        return []

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
        """True if the process exists."""
        if self._process is None:
            return False
        return self._process.poll() is None

    def start(self, server_id: int | None = None, options: Sequence[str] | None = None) -> Self:
        """Start, from a fresh data directory the first time; return when the server accepts connections.

        `options` like "--binlog-format=ROW" come after the defaults and win over them. Options that are not given stay as at the last
        start. Raises: ServerError with the end of the error log.
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
                # Another process took the port between our check and the server's bind.
                if self._port_given or attempt == 4 or "already in use" not in str(error):
                    raise
                self.port = _free_port()
            else:
                return self
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """Stop in order (SIGTERM) and wait. Raises: ServerError, and kills, if that takes over a minute."""
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
        """Return the full command line that `start` uses."""
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
            # Interrupted handshakes are normal in tests; the default blocks the host after 100.
            "--max-connect-errors=1000000",
            "--innodb-buffer-pool-size=64M",
            # It is written to the system at each commit, so that kill -9 loses nothing, and synced only now and then.
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
        """Return whether the server sends its greeting: it listens long before it answers."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                link.connect(str(self.socket))
                head = link.recv(5)
            except OSError:
                return False
            return len(head) == 5 and head[4] == 10

    def _end_told(self, within_s: float = 0.0) -> str:
        """Return how a process ended that was not stopped, for a message; empty if it runs, and does not end within that time."""
        if self._process is None:
            return ""
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return ""
        return f"; it ended with status {self._process.returncode}{self._log_tail()}"

    def _log_tail(self, lines: int = 15) -> str:
        """Return the error log since the last start, for a message: its errors, else its last lines."""
        try:
            with self.error_log.open("rb") as log:
                log.seek(self._log_start)
                text = log.read().decode("utf-8", "replace").strip()
        except FileNotFoundError:
            return ""
        if not text:
            return ""
        said = text.splitlines()
        crashed = next((number for number, line in enumerate(said) if " got signal " in line), None)
        if crashed is not None:
            return "; from its error log:\n" + "\n".join(said[crashed:][:_CRASH_LINES])
        errors = [line for line in said if "[ERROR]" in line]
        return "; from its error log:\n" + "\n".join((errors or said)[-lines:])

    # ---- template ----------------------------------------------------------------------------------------------

    @classmethod
    def template(cls) -> Path:
        """Return a data directory to copy: accounts `root` without and `repl` with a password. It is made at the first call."""
        account = server_account()
        version = re.sub(r"[^0-9A-Za-z.]+", "-", cls.read_version())
        templates = root_directory() / "templates"
        # Templates differ by account too: a root directory may be used as root and as another user.
        made = templates / f"{cls.template_name()}-{version}-{account.pw_name}-{TEMPLATE_VERSION}"
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
                # --init-file requires one statement per line.
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
