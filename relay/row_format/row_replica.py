"""The advice for a source that logs statements: a replica of its own version that logs rows, between it and the relay."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from protocol.sql.server_version import version_numbers
from relay.archive.catalog.catalog import Catalog
from relay.archive.storage.files import CATALOG_NAME
from relay.upstream.source.source_settings import kept_source_settings

PAGE: Final = "VIEWS.md, Sources that log statements"
_ROW: Final = "ROW"
_NEW_WORDS: Final = (8, 0, 23)
_NEW_NAME: Final = (8, 0, 26)
"""The version from which log_slave_updates is called log_replica_updates."""
_LONG: Final = 86_400


class LoggedFormat(NamedTuple):
    """What a source logs: `flavour`, `version` as the server states it, and its binlog_format in upper case."""

    flavour: str
    version: str
    binlog_format: str

    @property
    def logs_statements(self) -> bool:
        """True unless all changes of rows are logged as rows."""
        return self.binlog_format != _ROW

    @property
    def product(self) -> str:
        """The product and its version, for people."""
        return f"{'MariaDB' if self.flavour == 'mariadb' else 'MySQL'} {self.version.partition('-')[0]}"

    def warning(self) -> str:
        """Return what it means for a view, in a sentence."""
        return (
            f"binlog_format is {self.binlog_format}: the source logs statements, which a newer server may compute otherwise, and at "
            "which a view may stop"
        )

    def answer(self) -> str:
        """Return the first answer, in a sentence."""
        return (
            f"Put a {self.product} between, a replica of the source with {', '.join(self.options())}: it logs rows, and the relay "
            f"follows it ({PAGE})."
        )

    def options(self) -> list[str]:
        """Return the lines of that replica's my.cnf."""
        mysql = self.flavour == "mysql"
        name = "log_replica_updates" if mysql and version_numbers(self.version) >= _NEW_NAME else "log_slave_updates"
        return ["log_bin = mysql-bin", f"binlog_format = {_ROW}", f"{name} = ON"]

    def statements(self, host: str, port: int) -> list[str]:
        """Return the statements for that replica, with its dump restored: file and position are those of the dump."""
        new = self.flavour == "mysql" and version_numbers(self.version) >= _NEW_WORDS
        word = "SOURCE" if new else "MASTER"
        options = [
            f"{word}_HOST = '{host}'",
            f"{word}_PORT = {port}",
            f"{word}_USER = 'row_replica'",
            f"{word}_PASSWORD = 'PASSWORD'",
            f"{word}_LOG_FILE = 'FILE OF THE DUMP'",
            f"{word}_LOG_POS = 0",
            f"{word}_CONNECT_RETRY = 10",
        ]
        if self.flavour == "mariadb":
            options.append("MASTER_USE_GTID = no")
        else:
            options.append(f"{word}_RETRY_COUNT = {_LONG}")
        verb = "CHANGE REPLICATION SOURCE TO" if new else "CHANGE MASTER TO"
        return [f"{verb} {', '.join(options)}", f"START {'REPLICA' if new else 'SLAVE'}"]


def logged_format(archive: Path) -> LoggedFormat | None:
    """Return what the archive's source said it logs when it was last asked; None: it was not, or is a directory. Blocking.

    Raises: CatalogUnreadable.
    """
    if not (archive / CATALOG_NAME).exists():
        return None
    settings: Mapping[str, str] = kept_source_settings(archive)
    found = settings.get("binlog_format")
    catalog = Catalog.open_read_only(archive / CATALOG_NAME)
    try:
        identity = catalog.identity()
    finally:
        catalog.close()
    if found is None or identity is None:
        return None
    return LoggedFormat(identity.flavour, identity.version, found.upper())
