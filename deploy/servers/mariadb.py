"""MariaDB, from the Debian package `mariadb-server` (10.11 in Debian 12) or whatever is on this machine's path."""

import functools
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from . import packages
from .location import ServerUnavailable, server_account
from .process import run_tool
from .replication_words import ReplicationWords
from .server import Server


def _find(*names: str) -> str | None:
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    for name in names:
        found = shutil.which(name) or shutil.which(name, path=path)
        if found:
            return found
    return None


@functools.cache
def version_of(program: tuple[str, ...]) -> str:
    """Return the version of a MariaDB server program, or "" for another product's (a mysqld of MySQL)."""
    text = run_tool([*program, "--no-defaults", "--version"])
    match = re.search(r"Ver ([0-9.]+)-MariaDB", text)
    return match[1] if match else ""


class MariaDB(Server):
    """MariaDB as Debian ships it. Its binlogs carry CRC32 and Annotate_rows events by default."""

    name = "mariadb"
    flavour = "mariadb"

    # Without MASTER_USE_GTID=no a version from 10.10 on would follow by GTID. There is no retry count here before 12.0: it is an option
    # of the server.
    _words = ReplicationWords(defaults={"MASTER_CONNECT_RETRY": 1, "MASTER_USE_GTID": "no"})

    # From 10.9 on, its own treatment of NULLs gives other sums than MySQL's for equal rows.
    _CHECKSUM_SETTINGS: ClassVar[Sequence[str]] = (
        "SET SESSION old_mode = CONCAT_WS(',', NULLIF(@@old_mode, ''), 'COMPAT_5_1_CHECKSUM')",
    )

    @classmethod
    def _binary(cls) -> str | None:
        program = _find("mariadbd", "mysqld")
        return program if program and version_of((program,)) else None

    @classmethod
    def missing(cls) -> str | None:
        if cls._binary() is None:
            return "MariaDB is not installed (Debian package mariadb-server)"
        if _find("mariadb-install-db", "mysql_install_db") is None:
            return "MariaDB's mariadb-install-db is not installed (Debian package mariadb-server)"
        return None

    @classmethod
    def install(cls) -> None:
        if cls.missing() is None:
            return  # A newer one than Debian's stays, too: nothing is ever downgraded
        packages.apt_install(["mariadb-server"], "MariaDB")
        reason = cls.missing()
        if reason is not None:
            raise ServerUnavailable(f"after installing mariadb-server: {reason}")

    @classmethod
    def read_version(cls) -> str:
        return version_of(tuple(cls.program()))

    @classmethod
    def program(cls) -> list[str]:
        binary = cls._binary()
        if binary is None:
            raise ServerUnavailable(cls.missing() or "MariaDB is not installed")
        return [binary]

    @classmethod
    def mysqlbinlog(cls) -> list[str]:
        program = _find("mariadb-binlog", "mysqlbinlog")
        if program is None:
            raise ServerUnavailable("mariadb-binlog is not installed (Debian package mariadb-client)")
        return [program]

    @classmethod
    def mysql_client(cls) -> list[str]:
        program = _find("mariadb", "mysql")
        if program is None:
            raise ServerUnavailable("the mariadb client is not installed (Debian package mariadb-client)")
        return [program]

    @classmethod
    def mysqladmin(cls) -> list[str]:
        program = _find("mariadb-admin", "mysqladmin")
        if program is None:
            raise ServerUnavailable("mariadb-admin is not installed (Debian package mariadb-client)")
        return [program]

    @classmethod
    def mysqldump(cls) -> list[str]:
        program = _find("mariadb-dump", "mysqldump")
        if program is None:
            raise ServerUnavailable("mariadb-dump is not installed (Debian package mariadb-client)")
        return [program]

    @classmethod
    def plugin_directories(cls) -> tuple[Path, Path]:
        """Return the directories of the server's own plugins and of the client library's, which are for logging in."""
        return Path("/usr/lib/mysql/plugin"), Path(f"/usr/lib/{os.uname().machine}-linux-gnu/libmariadb3/plugin")

    def with_client_plugins(self) -> list[str]:
        """Return options with which it can log in to its source by caching_sha2_password, ed25519 and the like.

        The plugins come with the client library and are looked for in the server's plugin_dir: an administrator copies them there; here
        both are linked into a directory of this server.
        """
        place = self.directory / "plugins"
        place.mkdir(exist_ok=True)
        for directory in self.plugin_directories():
            for plugin in directory.glob("*.so"):
                link = place / plugin.name
                if not link.is_symlink():
                    link.symlink_to(plugin)
        return [f"--plugin-dir={place}"]

    @classmethod
    def _make_data(cls, data: Path, work: Path) -> None:
        program = _find("mariadb-install-db", "mysql_install_db")
        assert program is not None
        run_tool(
            [
                program,
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
                # It would refuse to run on a machine that cannot look up its own name.
                "--force",
                f"--datadir={data}",
                f"--user={server_account().pw_name}",
            ],
            directory=Path("/"),
            what="mariadb-install-db",
        )

    @classmethod
    def _account_statements(cls) -> list[str]:
        # mariadb-install-db itself makes root@127.0.0.1.
        statements = super()._account_statements()
        statements[0] = "CREATE USER IF NOT EXISTS 'root'@'127.0.0.1'"
        return statements

    @classmethod
    def _default_options(cls) -> list[str]:
        return [
            "--master-retry-count=1000000",
            "--slave-net-timeout=10",
            "--performance-schema=OFF",
            # Without it, a replica killed while it wrote its relay log would stop with error 1866.
            "--relay-log-recovery=ON",
        ]
