"""The source as its replicas see it through the relay."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from protocol.sql.server_version import version_numbers
from protocol.statements.session.gtid_variables import GtidVariables

_RENAMED_SINCE: Final = (8, 0)
# What every MariaDB can do, for one that is started with another version than its own.
_LEAST_OF_UNNAMED_MARIADB: Final = (10, 2, 2)


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The facts on which answers depend.

    `version` is `SELECT VERSION()`, e.g. `10.11.19-MariaDB-log`. `checksum` is the newest file's. With `semi_sync` replicas are
    offered semi-synchronous replication. `hostname`, `port`, `data_directory`, `max_connections` are the relay's own, for monitors.
    `unreached` returns in one sentence why nothing is known of the source yet; None: it is known. `binlog_base_name` is the part of
    file names before their numbers. `gtids`, and `settings`, the reported texts of the source's own global variables by name, are
    called for each answer, as they change while a client is connected.
    """

    flavour: Literal["mysql", "mariadb"]
    version: str
    server_id: int
    server_uuid: str | None = None
    checksum: Literal["CRC32", "NONE"] = "NONE"
    gtids: Callable[[], GtidVariables] = GtidVariables
    settings: Callable[[], Mapping[str, str]] = dict
    semi_sync: bool = False
    hostname: str = ""
    port: int = 3306
    data_directory: str = ""
    binlog_base_name: str = "mysql-bin"
    max_connections: int = 500
    unreached: Callable[[], str] | None = None

    @property
    def gtid_mode(self) -> str:
        """The current GTID_MODE of MySQL."""
        return self.gtids().mode

    @property
    def version_numbers(self) -> tuple[int, int, int]:
        """The numbers of the version: (5, 6, 24) for `5.6.24-log`.

        A MariaDB without its name in the version was started with another one (`--version=5.7.99`), which does not show what it can
        do.
        """
        numbers = version_numbers(self.version)
        if self.is_mariadb and "mariadb" not in self.version.lower():
            return max(numbers, _LEAST_OF_UNNAMED_MARIADB)
        return numbers

    @property
    def is_mariadb(self) -> bool:
        """True if its results look like MariaDB's."""
        return self.flavour == "mariadb"

    @property
    def has_uca1400(self) -> bool:
        """True for a MariaDB whose default collations are the UCA 14.0.0 ones."""
        return self.is_mariadb and self.version_numbers >= (11, 5)

    @property
    def says_utf8mb3(self) -> bool:
        """True for a server that calls the set of three bytes utf8mb3, not utf8."""
        return self.version_numbers >= ((10, 6) if self.is_mariadb else (8, 0, 30))

    @property
    def is_mysql_8(self) -> bool:
        """True if its results look like those of MySQL 8.0 and newer."""
        return self.flavour == "mysql" and self.version_numbers >= _RENAMED_SINCE
