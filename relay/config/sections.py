"""The sections of relay.toml as data. Secrets are SecretStr: they never appear in a repr, a log line or a message."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, PrivateAttr, SecretStr, Tag

from protocol.auth.authenticator import Plugin
from protocol.auth.credentials import Credentials
from relay.config.passwords import password_text
from relay.config.problems import Problem, Wrong
from relay.config.source_list import OTHERS
from relay.config.values import (
    NonEmpty,
    PathText,
    Port,
    Seconds,
    checked_binlog_name,
    checked_gtids,
    checked_hash,
    checked_host,
    checked_source_name,
    checked_version,
)
from relay.process.certificates import ServerTls

SyncPolicy = Literal["transaction", "interval", "none"]
PublishPolicy = Literal["written", "synced"]
ViolationPolicy = Literal["warn", "stop"]
Markers = Literal["tbm", "edges", "strip"]
AckPolicy = Literal["none", "synced"]
SslMode = Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"]
PresentAs = Literal["source", "relay"]

FailoverMode = Literal["manual", "automatic"]

SERVER_ID_MAX: Final = 2**32 - 1


class _Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, populate_by_name=True
    )


class StartPosition(_Section):
    """Where the first run begins: a binlog of the source and an offset at a transaction boundary."""

    file: Annotated[str, AfterValidator(checked_binlog_name)]
    position: Annotated[int, Field(ge=4)] = 4


class StartGtid(_Section):
    """Where the first run begins: the source's file in which these transactions are not all contained before it."""

    gtid: Annotated[str, AfterValidator(checked_gtids)]


def start_tag(value: object) -> str:
    """Which form of `start` this is, or was meant to be."""
    if isinstance(value, StartGtid) or (isinstance(value, dict) and "gtid" in value):
        return "gtid"
    return "place" if isinstance(value, (dict, StartPosition)) else "word"


Start = Annotated[
    Annotated[Literal["earliest", "latest"], Tag("word")]
    | Annotated[StartPosition, Tag("place")]
    | Annotated[StartGtid, Tag("gtid")],
    Discriminator(start_tag),
]


def _without_gtid(start: Start) -> Start:
    if isinstance(start, StartGtid):
        raise Wrong("only a running source can be asked by GTID", 'Write start = { file = "mysql-bin.000042" }')
    return start


class ServerSource(_Section):
    """A running source that the relay attaches to as a replica."""

    kind: Literal["server"] = "server"
    name: Annotated[str, AfterValidator(checked_source_name)] = "source"
    host: NonEmpty
    port: Port = 3306
    user: NonEmpty
    password: SecretStr | None = None
    password_file: PathText | None = None
    password_env: NonEmpty | None = None
    start: Start = "earliest"
    server_id: Annotated[int, Field(ge=1, le=SERVER_ID_MAX)]
    heartbeat_period_s: Annotated[float, Field(ge=0.1, le=3600, allow_inf_nan=False)] = 10.0
    connect_timeout_s: Seconds = 10.0
    ssl_mode: SslMode = "preferred"
    ssl_ca: PathText | None = None
    ssl_cert: PathText | None = None
    ssl_key: PathText | None = None
    ack: AckPolicy = "none"
    on_violation: ViolationPolicy = "warn"
    record_schema: bool = True

    def password_text(self) -> str:
        """The password in clear, read from its file or variable now.

        Raises: OSError for a file that cannot be read, KeyError for a variable that is not set.
        """
        return password_text(self.password, self.password_file, self.password_env) or ""


class DirectorySource(_Section):
    """The binlogs of a source that is gone, or copied from one while they grow."""

    kind: Literal["directory"]
    name: Annotated[str, AfterValidator(checked_source_name)] = "source"
    path: PathText
    start: Annotated[Start, AfterValidator(_without_gtid)] = "earliest"
    poll_interval_s: Annotated[float, Field(ge=0.001, le=3600, allow_inf_nan=False)] = 0.2
    on_violation: ViolationPolicy = "warn"


Source = Annotated[ServerSource | DirectorySource, Field(discriminator="kind")]


class ArchiveSection(_Section):
    """Where relayed binlogs are kept and when a written byte counts."""

    dir: PathText
    sync: SyncPolicy = "interval"
    publish: PublishPolicy = "written"
    sync_interval_s: Seconds = 1.0


class ListenSection(_Section):
    """Where replicas connect, and how long they may take or wait."""

    host: NonEmpty = "0.0.0.0"
    port: Port = 3307
    position_wait_s: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] = 10.0
    max_connections: Annotated[int, Field(ge=1, le=100_000)] = 500
    handshake_timeout_s: Seconds = 10.0
    present_as: PresentAs = "source"
    version: Annotated[str, AfterValidator(checked_version)] | None = None
    demand_acks: bool = False
    tls_cert: PathText | None = None
    tls_key: PathText | None = None
    tls_client_ca: PathText | None = None
    max_login_failures: Annotated[int, Field(ge=0, le=1_000_000)] = 20
    login_block_s: Seconds = 60.0


class Account(_Section):
    """A login for replicas."""

    # 96 bytes: the longest user name of any server that can become a replica (MySQL 9: 32 characters).
    user: Annotated[str, Field(min_length=1, max_length=96)]
    password: SecretStr | None = None
    password_file: PathText | None = None
    password_env: NonEmpty | None = None
    password_hash: Annotated[SecretStr, AfterValidator(checked_hash)] | None = None
    plugin: Plugin | None = None
    host: Annotated[NonEmpty, AfterValidator(checked_host)] = "%"
    markers: Markers = "tbm"
    admin: bool = False
    require_tls: bool = False
    require_client_cert: bool = False

    def password_text(self) -> str | None:
        """The password in clear, read from its file or variable now; None when only its hash is known.

        Raises: OSError for a file that cannot be read, KeyError for a variable that is not set.
        """
        return password_text(self.password, self.password_file, self.password_env)

    def credentials(self) -> Credentials:
        """What a login is checked with.

        Raises: as `password_text`.
        """
        if self.password_hash is not None:
            return Credentials.from_stored(self.password_hash.get_secret_value())
        return Credentials.from_password(self.password_text() or "")


class FailoverSection(_Section):
    """Whether another [[source]] is taken when the one that is followed cannot be reached, and after how long."""

    mode: FailoverMode = "manual"
    after_s: Annotated[float, Field(ge=1, le=86400, allow_inf_nan=False)] = 60.0


class Config(_Section):
    """All of relay.toml. Relative paths in the file were resolved against the file's own directory."""

    source: Source
    others: Annotated[tuple[ServerSource, ...], Field(alias=OTHERS, strict=False)] = ()
    failover: FailoverSection = FailoverSection()
    archive: ArchiveSection
    listen: ListenSection = ListenSection()
    accounts: Annotated[tuple[Account, ...], Field(alias="account", strict=False)] = ()
    _warnings: tuple[Problem, ...] = PrivateAttr(default=())
    _server_tls: ServerTls | None = PrivateAttr(default=None)

    @property
    def server_tls(self) -> ServerTls | None:
        """What replicas are offered, made from the files as they were when the configuration was read; None: no TLS."""
        return self._server_tls

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What works but should be changed."""
        return self._warnings

    def remember(self, warnings: tuple[Problem, ...], server_tls: ServerTls | None) -> None:
        """What was found besides when it was read."""
        self._warnings, self._server_tls = warnings, server_tls

    @property
    def sources(self) -> tuple[ServerSource, ...]:
        """All that may be followed, in the order of preference; none where the source is a directory."""
        return (self.source, *self.others) if isinstance(self.source, ServerSource) else ()

    @property
    def archive_directory(self) -> Path:
        """The source's own directory in the archive."""
        return self.archive.dir / self.source.name
