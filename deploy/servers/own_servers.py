"""Servers of one's own: `BINLOG_RELAY_SERVER_MYSQL57=/opt/mysql-5.7` makes that installation the server `mysql57`.

The name says product and series: MYSQL57 is MySQL 5.7, MYSQL80 is MySQL 8.0, MARIADB106 is MariaDB 10.6. A name that deploy.servers
installs itself, such as MYSQL56, is then taken from the directory instead.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from .location import ServerUnavailable, server_account, unreachable_part
from .mariadb import MariaDB
from .mariadb118 import MariaDB118
from .mariadb_bootstrap import make_system_schema
from .mysql97 import MySQL97
from .own_installation import OwnInstallation, stated_version
from .process import run_tool
from .replication_words import ReplicationWords
from .server import Server

PREFIX: Final = "BINLOG_RELAY_SERVER_"
_PRODUCTS: Final = {"mysql": "MySQL", "mariadb": "MariaDB"}

Series = tuple[int, int]


def named_series(name: str) -> tuple[str, Series] | None:
    """Return the product and the series that a name like "mysql57" or "mariadb1011" means, or None if it means none.

    MySQL's first number has one digit. MariaDB's has two from 10.0 on, and one before (MARIADB55).
    """
    match = re.fullmatch(r"mysql(\d)(\d+)|mariadb(\d\d)(\d+)|mariadb(\d)(\d)", name)
    if match is None:
        return None
    product = "mysql" if match[1] else "mariadb"
    major, minor = (number for number in match.groups() if number is not None)
    return product, (int(major), int(minor))


class OwnServer(Server):
    """A server in a directory that an environment variable names."""

    variable: ClassVar[str]
    product: ClassVar[str]
    series: ClassVar[Series]
    installation: ClassVar[OwnInstallation]

    @classmethod
    def missing(cls) -> str | None:
        wanted = f"{_PRODUCTS[cls.product]} {cls.series[0]}.{cls.series[1]}"
        where = f"{cls.variable} should name a directory with {wanted}"
        problem = cls.installation.problem()
        if problem is not None:
            return f"{where}: {problem}"
        account = server_account()
        blocked = unreachable_part(cls.installation.directory.resolve(), account)
        if blocked is not None:
            return f"{where}: the account {account.pw_name} cannot enter {blocked}"
        try:
            product, version = stated_version(cls.installation)
        except ServerUnavailable as error:
            return f"{where}: {error}"
        numbers = tuple(int(number) for number in version.split(".")[:2])
        if (product, numbers) != (cls.product, cls.series):
            return f"{where}: the server in {cls.installation.directory} is {_PRODUCTS[product]} {version}"
        return None

    @classmethod
    def install(cls) -> None:
        reason = cls.missing()
        if reason is not None:
            raise ServerUnavailable(reason)

    @classmethod
    def read_version(cls) -> str:
        return stated_version(cls.installation)[1]

    @classmethod
    def template_name(cls) -> str:
        # Two directories may hold two builds of one version.
        return re.sub(r"[^0-9A-Za-z.]+", "-", f"{cls.name}-{cls.installation.directory}")

    @classmethod
    def program(cls) -> list[str]:
        return cls.installation.command("mariadbd", "mysqld")

    @classmethod
    def environment(cls) -> dict[str, str]:
        return cls.installation.environment()

    @classmethod
    def working_directory(cls) -> Path:
        # MySQL 5.6 of the npm package looks for its parts from there.
        return Path(cls.program()[-1]).parent

    @classmethod
    def mysqlbinlog(cls) -> list[str]:
        return cls.installation.command("mariadb-binlog", "mysqlbinlog")

    @classmethod
    def mysql_client(cls) -> list[str]:
        return cls.installation.command("mariadb", "mysql")

    @classmethod
    def mysqladmin(cls) -> list[str]:
        return cls.installation.command("mariadb-admin", "mysqladmin")

    @classmethod
    def mysqldump(cls) -> list[str]:
        return cls.installation.command("mariadb-dump", "mysqldump")

    @classmethod
    def _own_options(cls) -> list[str]:
        messages, plugins = cls.installation.messages, cls.installation.plugins
        options = [f"--basedir={cls.installation.directory}"]
        if messages is not None:
            options += [f"--lc-messages-dir={messages}", f"--character-sets-dir={messages / 'charsets'}"]
        if plugins is not None:
            options.append(f"--plugin-dir={plugins}")
        return options


class OwnMySQL(OwnServer):
    """A MySQL of one's own: 5.6 or later, or an older one that brings a data directory along."""

    flavour = "mysql"
    product = "mysql"

    @classmethod
    def _own_options(cls) -> list[str]:
        options = super()._own_options()
        # A row of BLOBs may take a tenth of the redo log, and a template has its size.
        options.append("--innodb-redo-log-capacity=256M" if cls.series >= (8, 4) else "--innodb-log-file-size=128M")
        if cls.series >= (5, 7):
            options.append("--secure-file-priv=")
        if cls.series >= (8, 0):
            options.append("--mysqlx=OFF")
        return options

    @classmethod
    def _default_options(cls) -> list[str]:
        if cls.series >= (8, 4):
            return MySQL97._default_options()
        return ["--performance-schema=OFF", "--slave-net-timeout=10", "--relay-log-recovery=ON"]

    @classmethod
    def _make_data(cls, data: Path, work: Path) -> None:
        account = server_account()
        ready = cls.installation.system_schema
        if cls.series >= (5, 7):
            data.rmdir()  # The server makes the directory itself
            user = [f"--user={account.pw_name}"] if account.pw_uid != os.geteuid() else []
            run_tool(
                [
                    *cls.program(),
                    "--no-defaults",
                    "--initialize-insecure",
                    *cls._own_options(),
                    f"--datadir={data}",
                    f"--tmpdir={work}",  # TMPDIR may belong to another account
                    *user,
                ],
                directory=work,
                environment=cls.environment(),
                what="mysqld --initialize-insecure",
            )
        elif ready is not None:
            run_tool(["cp", "-r", f"{ready}/.", str(data)])
            (data / "auto.cnf").unlink(missing_ok=True)
            run_tool(["chown", "-R", f"{account.pw_uid}:{account.pw_gid}", str(data)])
        else:
            cls._run_install_script(data)

    @classmethod
    def _run_install_script(cls, data: Path) -> None:
        """MySQL 5.6 and older are set up by a Perl script."""
        directory = cls.installation.directory
        script = next(
            (
                path
                for place in ("scripts", "bin", "usr/bin")
                if (path := directory / place / "mysql_install_db").is_file()
            ),
            None,
        )
        if script is None:
            raise ServerUnavailable(f"{directory} has no mysql_install_db and no data directory to copy")
        user = server_account().pw_name
        command = [
            str(script),
            "--no-defaults",
            f"--basedir={directory}",
            f"--datadir={data}",
            f"--user={user}",
            "--force",
        ]
        run_tool(command, directory=directory, environment=cls.environment(), what=f"{script}")

    @classmethod
    def _account_statements(cls) -> list[str]:
        statements = super()._account_statements()
        if cls.series >= (5, 7):
            return statements
        # Before 5.7 the system schema has root@127.0.0.1 already, and accounts without a name.
        return [
            "DELETE FROM mysql.user WHERE user = '' OR host NOT IN ('localhost', '127.0.0.1')",
            "FLUSH PRIVILEGES",
            *statements[1:],
        ]


class OwnMariaDB(OwnServer, MariaDB):
    """A MariaDB of one's own: 10.0 or later."""

    product = "mariadb"

    @classmethod
    def plugin_directories(cls) -> tuple[Path, Path]:
        own = cls.installation.plugins or cls.installation.directory / "lib/plugin"
        return own, cls.installation.directory / "usr/lib/x86_64-linux-gnu/libmariadb3/plugin"

    @classmethod
    def _make_data(cls, data: Path, work: Path) -> None:
        assert cls.installation.messages is not None
        silent = ["--silent-startup"] if cls.series >= (10, 7) else []
        server = [*cls.program(), "--no-defaults", "--bootstrap", *silent, *cls._own_options()]
        make_system_schema(server, cls.installation.messages, data, work)


def _words(product: str, series: Series) -> ReplicationWords:
    """The statements of replication of that series."""
    if product == "mariadb":
        if series >= (11, 4):
            return MariaDB118._words
        # MASTER_USE_GTID and a connect retry are known since 10.0.
        return MariaDB._words
    if series >= (8, 4):
        return MySQL97._words
    # From 8.0 on, the public key of a caching_sha2_password source is needed without TLS.
    key = {"GET_SOURCE_PUBLIC_KEY": 1} if series >= (8, 0) else {}
    return ReplicationWords(defaults={"MASTER_CONNECT_RETRY": 1, "MASTER_SSL": 0, **key})


def own_servers(environment: Mapping[str, str]) -> dict[str, type[Server]]:
    """Return the servers that these variables name. Raises: ServerUnavailable for a variable that means no server."""
    found: dict[str, type[Server]] = {}
    for variable, value in sorted(environment.items()):
        if not variable.startswith(PREFIX) or not value:
            continue
        name = variable.removeprefix(PREFIX).lower()
        meant = named_series(name)
        if meant is None:
            raise ServerUnavailable(
                f"{variable} names no server: its end should be the product and its series, as in {PREFIX}MYSQL57,"
                f" {PREFIX}MYSQL80 or {PREFIX}MARIADB106"
            )
        product, series = meant
        kind = OwnMySQL if product == "mysql" else OwnMariaDB
        checksums = MariaDB._CHECKSUM_SETTINGS if product == "mariadb" and series >= (10, 9) else ()
        attributes = {
            "__doc__": f"{_PRODUCTS[product]} {series[0]}.{series[1]} in {value}, as {variable} says.",
            "name": name,
            "variable": variable,
            "series": series,
            "installation": OwnInstallation(Path(value).absolute()),
            "_words": _words(product, series),
            "_CHECKSUM_SETTINGS": checksums,
        }
        found[name] = type(f"Own{_PRODUCTS[product]}{series[0]}{series[1]}", (kind,), attributes)
    return found
