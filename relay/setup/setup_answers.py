"""What somebody who sets a relay up has said, by options or at the terminal."""

from dataclasses import dataclass
from pathlib import Path

from protocol.sql.server_version import version_numbers


@dataclass(frozen=True, slots=True)
class SetupAnswers:
    """config: where relay.toml is to be. server_id None: one is chosen. ssl_mode None: by what else is said.

    ssl_ca, public_key: files by which the source proves to be itself; None: it does not.

    view: for whose replicas there is to be a view, None: none. replica_version: such as "mysql-9.7"; None: as the source.
    ask_user, ask_password_file: who is asked where the relay's account does not exist yet.
    """

    config: Path
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
    server_id: int | None = None
    ssl_mode: str | None = None
    ssl_ca: Path | None = None
    public_key: Path | None = None
    view: str | None = None
    replica_version: str | None = None
    ask_user: str | None = None
    ask_password_file: Path | None = None

    @property
    def security(self) -> dict[str, object]:
        """The keys of [source] that were said, and those that follow from them."""
        found: dict[str, object] = {"ssl_ca": self.ssl_ca, "public_key": self.public_key, "ssl_mode": self.ssl_mode}
        if self.ssl_mode is None and (self.ssl_ca is not None or self.public_key is not None):
            found["ssl_mode"] = "verify_ca" if self.ssl_ca is not None else "disabled"
        return {key: value for key, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class SourceSurvey:
    """What the source told. version None: it could not be reached. server_ids: taken ones that are known.

    oldest: its oldest binlog; None: not told. why: what could not be asked, and why; empty: everything was told.
    """

    flavour: str | None
    version: str | None
    gtid_mode: str | None
    server_ids: frozenset[int]
    oldest: str | None
    binlogs: int | None
    why: str

    @property
    def number(self) -> tuple[int, ...]:
        """The version as numbers, three of them; zeros where it is not known."""
        return version_numbers(self.version or "")

    @property
    def shown(self) -> str:
        """For people."""
        if self.version is None:
            return "not known"
        return f"{'MariaDB' if self.flavour == 'mariadb' else 'MySQL'} {self.version}"
