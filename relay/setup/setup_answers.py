"""The answers of the person who sets a relay up, by options or at the terminal."""

from dataclasses import dataclass
from pathlib import Path

from protocol.position import binlog_number
from protocol.sql.server_version import version_numbers
from relay.row_format.row_replica import LoggedFormat


@dataclass(frozen=True, slots=True)
class SetupAnswers:
    """The answers for a first relay.toml."""

    config: Path
    """The future place of relay.toml."""
    source_host: str
    source_port: int
    source_user: str
    source_password_file: Path
    archive: Path
    listen_host: str
    listen_port: int
    relay_host: str
    replica_user: str
    replica_password_file: Path
    admin_password_file: Path
    """The password of the account `dba`, for the person in front of it."""
    server_id: int | None = None
    """None: one is chosen."""
    ssl_mode: str | None = None
    """None: by the other answers."""
    ssl_ca: Path | None = None
    public_key: Path | None = None
    """Like `ssl_ca`, a file by which the source proves its identity; None: it does not."""
    view: str | None = None
    """The version of the replicas for which a view is wanted, None: none."""
    replica_version: str | None = None
    """Such as "mysql-9.7"; None: as the source."""
    ask_user: str | None = None
    ask_password_file: Path | None = None
    """With `ask_user`, the account for queries if the relay's account does not exist yet."""

    @property
    def security(self) -> dict[str, object]:
        """The keys of [source] that were given, and those that follow from them."""
        found: dict[str, object] = {"ssl_ca": self.ssl_ca, "public_key": self.public_key, "ssl_mode": self.ssl_mode}
        if self.ssl_mode is None and (self.ssl_ca is not None or self.public_key is not None):
            found["ssl_mode"] = "verify_ca" if self.ssl_ca is not None else "disabled"
        return {key: value for key, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class SourceSurvey:
    """The source's answers. version None: it could not be reached. server_ids: taken ones that are known.

    oldest: its oldest binlog; None: unknown. why: what could not be asked, and why; empty: everything was answered.
    """

    flavour: str | None
    version: str | None
    gtid_mode: str | None
    server_ids: frozenset[int]
    oldest: str | None
    binlogs: int | None
    why: str
    binlog_format: str | None = None
    """In upper case; None: unknown."""

    @property
    def has_older_data(self) -> bool:
        """True if the source has had binlogs that are not there any more: what they wrote is only in its data."""
        return self.oldest is not None and binlog_number(self.oldest) > 1

    @property
    def logged(self) -> LoggedFormat | None:
        """What the source logs, if it logs statements; None: rows, or it is unknown."""
        if self.flavour is None or self.version is None or self.binlog_format is None:
            return None
        logged = LoggedFormat(self.flavour, self.version, self.binlog_format)
        return logged if logged.logs_statements else None

    @property
    def number(self) -> tuple[int, ...]:
        """The version as numbers, three of them; zeros if it is unknown."""
        return version_numbers(self.version or "")

    @property
    def shown(self) -> str:
        """The text for people."""
        if self.version is None:
            return "not known"
        return f"{'MariaDB' if self.flavour == 'mariadb' else 'MySQL'} {self.version}"
