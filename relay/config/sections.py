"""The sections of relay.toml as data. Secrets are SecretStr: they never appear in a repr, a log line or a message.

The texts under the keys are for users: `relay.config.reference` generates docs/CONFIGURATION.md from them. Each says what the key
does, and ends with `Example:` and a value as it is written in the file.
"""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    SecretStr,
    Tag,
)

from protocol.auth.authenticator import Plugin
from protocol.auth.credentials import Credentials
from relay.config.collation_names import numbered_collations
from relay.config.http_section import HttpSection
from relay.config.memory_section import MemorySection
from relay.config.replica_section import ReplicaSection
from relay.config.retention_section import RetentionSection
from relay.config.server_security import ServerSecurity
from relay.config.text.passwords import password_text
from relay.config.text.problems import Problem, Wrong
from relay.config.text.source_list import OTHERS
from relay.config.tiers_section import BucketSection, EncryptionSection, MirrorSection, TiersSection
from relay.config.toml_section import TomlSection
from relay.config.values import (
    HostName,
    NonEmpty,
    PathText,
    Port,
    Seconds,
    UserName,
    checked_accepted,
    checked_binlog_name,
    checked_collations,
    checked_engines,
    checked_gtids,
    checked_hash,
    checked_host,
    checked_interval,
    checked_kinds,
    checked_plain_tables,
    checked_printable,
    checked_source_name,
    checked_target,
    checked_uuid,
    checked_version,
    checked_view_name,
)
from relay.process.certificates import ServerTls
from relay.process.descriptors import Descriptors
from relay.view.rules.settings import (
    AccountStatementPolicy,
    DependencyPolicy,
    EnginePolicy,
    ForeignKeyPolicy,
    GtidPolicy,
    JsonPolicy,
    TableKind,
)

ViolationPolicy = Literal["warn", "stop"]
Markers = Literal["tbm", "edges", "strip"]
AckPolicy = Literal["none", "synced"]
PresentAs = Literal["source", "relay"]
InsideTransactions = Literal["known", "all"]

FailoverMode = Literal["manual", "automatic"]

SERVER_ID_MAX: Final = 2**32 - 1


class StartPosition(TomlSection):
    """The place where the first run begins: a binlog of the source and an offset at a transaction boundary."""

    file: Annotated[str, AfterValidator(checked_binlog_name)]
    """The name of a binlog of the source, without a path. Example: `"mysql-bin.000042"`"""
    position: Annotated[int, Field(ge=4)] = 4
    """A position in this file. It is noted in the log and has no other effect: the whole file is archived. Example: `4`"""


class StartGtid(TomlSection):
    """The place where the first run begins: the source's file before which not all of these transactions are contained."""

    gtid: Annotated[str, AfterValidator(checked_gtids)]
    """A set of MySQL transactions, or a MariaDB position. The archive begins with the file in which a replica that has
    these transactions would start. Example: `"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77"`"""


def start_tag(value: object) -> str:
    """Return which form of `start` this is, or was meant to be."""
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


class ServerSource(ServerSecurity):
    """A running source that the relay attaches to as a replica."""

    kind: Literal["server"] = "server"
    """Must be `"server"`, or be left out. Example: `"server"`"""
    name: Annotated[str, AfterValidator(checked_source_name)] = "source"
    """The name of the directory in the archive where the binlogs of this source are kept: 1 to 64 letters, digits,
    `_`, `-` or `.`. Example: `"shop"`"""
    host: HostName
    """Name or address of the source. Example: `"db-old.example"`"""
    port: Port = 3306
    """The port of the source. Example: `3306`"""
    user: UserName
    """The account at the source. It needs REPLICATION SLAVE. REPLICATION CLIENT lets the relay look at the list of
    binlogs before it asks for one, REFERENCES lets it record columns for audits. Example: `"repl"`"""
    password: SecretStr | None = None
    """The password of this account, in clear. Write exactly one of `password`, `password_file`, `password_env`
    and `password_credential`. Example: `"secret"`"""
    password_file: PathText | None = None
    """A file that contains the password and nothing else. A newline at its end is not part of the password. It is read again for each
    connection. Example: `"/etc/binlog-relay/source.password"`"""
    password_env: NonEmpty | None = None
    """The name of an environment variable that holds the password. Example: `"SOURCE_PASSWORD"`"""
    password_credential: NonEmpty | None = None
    """The name of a credential of the service that holds the password: `LoadCredential=` in the unit of systemd. Example:
    `"source.password"`"""
    start: Start = "earliest"
    """The beginning of an empty archive: the oldest binlog of the source, the newest, a file, or the file for a set of GTIDs. Files
    are copied whole. An archive that has files continues at its end, whatever is set here. Example: `{ file = "mysql-bin.000042",
    position = 4 }`"""
    server_id: Annotated[int, Field(ge=1, le=SERVER_ID_MAX)]
    """The server_id of the relay as a replica. No other server of this replication may have it. Example: `4242`"""
    heartbeat_period_s: Annotated[float, Field(ge=0.1, le=3600, allow_inf_nan=False)] = 10.0
    """The relay asks the source to send a sign of life after so long without events. It gives a connection up and
    connects again when nothing has come for three times as long. Example: `10`"""
    connect_timeout_s: Seconds = 10.0
    """The time that the relay waits for the source when it connects, logs in and sends its queries. Example: `10`"""
    ack: AckPolicy = "none"
    """`"synced"`: the relay is a semi-synchronous replica. The source waits with each commit until the relay has the
    transaction on stable storage (fdatasync), whatever `archive.sync` says. `"none"`: the source does not wait.
    Example: `"synced"`"""
    on_violation: ViolationPolicy = "warn"
    """The reaction to an event at a place where the rules of transaction boundaries do not allow it. `"warn"`: it is passed on
    unchanged, and written to the ledger. `"stop"`: the relay stops following the source. Example: `"stop"`"""
    record_schema: bool = True
    """`true`: the relay asks the source for the columns, keys, foreign keys and engines of its tables and stores them in
    `source-schema.jsonl`, for audits and Spark. Example: `false`"""

    def password_text(self) -> str:
        """Return the password in clear, read from its file or variable now.

        Raises: OSError for a file or credential that cannot be read, KeyError for a variable that is not set.
        """
        return password_text(self.password, self.password_file, self.password_env, self.password_credential) or ""


class DirectorySource(TomlSection):
    """The binlogs of a source that no longer exists, or copied from one while they grow."""

    kind: Literal["directory"]
    """Must be `"directory"`. Example: `"directory"`"""
    name: Annotated[str, AfterValidator(checked_source_name)] = "source"
    """The name of the directory in the archive where these binlogs are kept: 1 to 64 letters, digits, `_`, `-` or `.`.
    Example: `"shop"`"""
    path: PathText
    """The directory with the binlogs. Files may grow and new ones may come: the relay follows them. Example:
    `"/var/backups/binlogs"`"""
    start: Annotated[Start, AfterValidator(_without_gtid)] = "earliest"
    """The beginning of an empty archive: the oldest binlog, the newest, or a file. Example: `"earliest"`"""
    poll_interval_s: Annotated[float, Field(ge=0.001, le=3600, allow_inf_nan=False)] = 0.2
    """The interval in which the relay checks whether the files have grown. Example: `0.2`"""
    unended_files: list[Annotated[str, AfterValidator(checked_binlog_name)]] = []
    """Files that have no Rotate or Stop at their end and get none, though their server was not started after them: it could not write
    the end (a full disk), or the end is lost. Without their names here the relay waits for the rest. Example: `["mysql-bin.000042"]`"""
    on_violation: ViolationPolicy = "warn"
    """The reaction to an event at a place where the rules of transaction boundaries do not allow it. `"warn"`: it is passed on
    unchanged, and written to the ledger. `"stop"`: the relay stops following the directory. Example: `"stop"`"""


Source = Annotated[ServerSource | DirectorySource, Field(discriminator="kind")]


class ArchiveSection(TomlSection):
    """The place where relayed binlogs are kept, and when a written byte counts."""

    dir: PathText
    """The directory of the archive. The binlogs of the source are in a directory of their own in it, named by
    `source.name`. Example: `"/var/lib/binlog-relay"`"""
    sync: Literal["transaction", "interval", "none"] = "interval"
    """The time when written bytes are forced to the disk (fdatasync). `"transaction"`: at the end of each transaction; one sync
    covers all that are waiting. `"interval"`: every `sync_interval_s`. `"none"`: when a file is complete, and when `source.ack` needs
    it. Example: `"transaction"`"""
    publish: Literal["written", "synced"] = "written"
    """The time from which on replicas may see a transaction. `"written"`: when the operating system has it. `"synced"`: when it is
    forced to the disk; this needs another `sync` than `"none"`. Example: `"synced"`"""
    scrub: Annotated[str, AfterValidator(checked_interval)] = "30d"
    """Within this time everything that is archived is read once and compared with its checksums, so slowly that it is not noticed.
    Damage is reported in the log, the ledger and `SHOW STATUS`. Days (`d`), hours (`h`) or `"off"`. Example: `"7d"`"""
    sync_interval_s: Seconds = 1.0
    """The time between two syncs with `sync = "interval"`. A crash of the machine can cost about this much of the
    archive; the relay asks the source for it again. Example: `1`"""
    bucket: BucketSection | None = None
    """Object storage, as a section `[archive.bucket]`. Example: `{ url = "s3://binlogs/relay-a" }`"""
    mirror: MirrorSection | None = None
    """The bucket as a second copy, as a section `[archive.mirror]`. Example: `{ interval_s = 2 }`"""
    encryption: EncryptionSection | None = None
    """Keys for packed binlogs, as a section `[archive.encryption]`. Example:
    `{ active = "2026-11", key = [{ id = "2026-11", env = "RELAY_KEY" }] }`"""
    tiers: TiersSection | None = None
    """The times when binlogs are packed, and when they leave the disk, as a section `[archive.tiers]`. Example: `{ cold_after = "2d"
    }`"""


class ListenSection(TomlSection):
    """The address at which replicas connect, and the limits of their time."""

    host: NonEmpty = "0.0.0.0"
    """The address at which the relay listens for replicas and clients. `"0.0.0.0"`: all IPv4 addresses, `"::"`: all
    addresses. Example: `"10.0.0.5"`"""
    port: Port = 3307
    """The port at which the relay listens. Example: `3307`"""
    position_wait_s: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] = 10.0
    """A replica may ask for a place that the relay does not have yet. The relay waits so long for it, then tells the
    replica to try again (error 1105). Keep it below the `slave_net_timeout` of the replicas. `0`: no wait. Example:
    `10`"""
    inside_transactions: InsideTransactions = "known"
    """The replicas that may continue by file and position inside a transaction, as those do whose connection broke there. `"known"`:
    those to which this relay was sending that transaction. `"all"`: any that asks for the place of an event, as at a source: useful
    if replicas of another relay come here when that one fails. A wrong position inside a transaction is not refused then. Example:
    `"all"`"""
    max_connections: Annotated[int, Field(ge=1, le=100_000)] = 500
    """Most connections at the same time that have logged in, replicas and clients together. When all are taken, a connection of the
    account that has most is closed for one of an account that has fewer; within one account the same goes for addresses. The account
    and address that have most get error 1040. Each connection may need three file descriptors: the relay raises its own limit as far
    as the system lets it, keeps back what the archive needs, and takes fewer connections if that does not suffice (`few_descriptors`
    in the log). Example: `500`"""
    admin_connections: Annotated[int, Field(ge=0, le=1000)] = 10
    """So many connections more than `max_connections`, for accounts with `admin = true` only: with all others taken, an admin still
    gets in and can end some with `KILL`. Example: `10`"""
    max_unauthenticated: Annotated[int, Field(ge=1, le=100_000)] = 2000
    """Most connections at the same time that have not logged in. They do not count in `max_connections`. When one more comes, the
    address (of IPv6 the /64 network) with most such connections loses its oldest one. Each needs a file descriptor and some KB
    of memory. The more there are, the more connections a second from one address leave others of the same address the time for
    a login: 2,000 are two seconds at 1,000 a second. Example: `2000`"""
    handshake_timeout_s: Seconds = 10.0
    """A connection that has not logged in after so long is closed. Example: `10`"""
    present_as: PresentAs = "source"
    """The server_id and server_uuid that replicas are shown. `"source"`: those of the source, so that a replica can move between
    source and relay. `"relay"`: the own ones of the relay; not possible with a directory. Example: `"source"`"""
    version: Annotated[str, AfterValidator(checked_version)] | None = None
    """The server version that replicas and clients are shown. Left out: the version of the source. From 5.6.2 to 9; only a version
    with `MariaDB` in it may begin with 10 or more. Example: `"5.7.44-log"`"""
    demand_acks: bool = False
    """`true`: replicas with semi-synchronous replication are asked to acknowledge transactions. The relay shows their answers (`SHOW
    STATUS`, `SHOW PROCESSLIST`), and holds nothing back for them. Example: `true`"""
    tls_cert: PathText | None = None
    """PEM file with the certificate of the relay, and those between it and the authority. With `tls_key` it switches
    TLS on. SIGHUP reads it again. Example: `"/etc/binlog-relay/server-cert.pem"`"""
    tls_key: PathText | None = None
    """PEM file with the key of `tls_cert`. SIGHUP reads it again. Example: `"/etc/binlog-relay/server-key.pem"`"""
    tls_client_ca: PathText | None = None
    """PEM file of the authority that signs the certificates of replicas, for accounts with `require_client_cert`.
    SIGHUP reads it again. Example: `"/etc/binlog-relay/replicas-ca.pem"`"""
    max_login_failures: Annotated[int, Field(ge=0, le=1_000_000)] = 20
    """So many failed logins from one address block this address for `login_block_s` (error 1129). `0`: never. SIGHUP
    takes a new value over. Example: `20`"""
    login_block_s: Seconds = 60.0
    """The time for which an address stays blocked. `FLUSH HOSTS` ends it. SIGHUP takes a new value over. Example: `60`"""

    @property
    def descriptors(self) -> Descriptors:
        """The connections of each kind that are allowed, if the system grants enough descriptors."""
        return Descriptors(self.max_connections, self.admin_connections, self.max_unauthenticated)


class ViewStartPlace(TomlSection):
    """The start of a view that does not begin with the archive."""

    file: Annotated[str, AfterValidator(checked_binlog_name)]
    """The name of a binlog of the source, without a path. Example: `"mysql-bin.000042"`"""
    position: Annotated[int, Field(ge=4)] = 4
    """A position between two transactions in this file, as the source counts: the view begins exactly there. `4`: with
    the file. Example: `4`"""
    next: Annotated[int, Field(ge=1, le=2**63 - 2)] = 1
    """The number that the first transaction from there on gets, with `gtids = "assign"`. Example: `1000001`"""


def view_start_tag(value: object) -> str:
    """Return which form of a view's `start` this is, or was meant to be."""
    return "place" if isinstance(value, (dict, ViewStartPlace)) else "word"


class ViewSection(TomlSection):
    """A second set of binlogs, built from the archive: with GTIDs, or for replicas of another version."""

    # `for` cannot be a name here, and `target` is none in the file.
    model_config = ConfigDict(populate_by_name=False)

    name: Annotated[str, AfterValidator(checked_view_name)]
    """The name of the view in `account.view`, in commands and in the log, and of its directory in the archive
    (`<source>/views/<name>`): 1 to 64 letters, digits, `_`, `-` or `.`. Example: `"gtid"`"""
    gtids: GtidPolicy = "assign"
    """`"assign"`: each transaction that has no GTID gets one, of `uuid`, numbered without holes. `"anonymous"`: it gets an event that
    says that it has none, as MySQL from 5.7 on writes. `"keep"`: as the source wrote it. A transaction that has a GTID keeps it,
    except in an anonymous view of a source that is newer than the replicas: those have no other way to follow with gtid_mode=OFF.
    Example: `"assign"`"""
    uuid: Annotated[str, AfterValidator(checked_uuid)] | None = None
    """The uuid of the assigned GTIDs. Left out: one that is derived from the server_id and the server_uuid of the source, so that
    each relay of that source assigns the same; `binlog-relay view list` shows it. It must not be that of any server. Example:
    `"6d0c5a43-9c63-4f4e-8d1f-5a166f0f3cb2"`"""
    target: Annotated[str, Field(alias="for"), AfterValidator(checked_target)] = "mysql-9.7"
    """The version of the replicas that read the view. It decides what must be translated, and what stops the view because it cannot
    be. `"mysql-5.5"`, `"mysql-5.6"`, `"mysql-5.7"`, `"mysql-8.0"`, `"mysql-8.4"` or `"mysql-9.7"`. Example: `"mysql-9.7"`"""
    dependencies: DependencyPolicy = "serial"
    """The transactions that a replica may apply in parallel. `"serial"`: those that the source itself marks so; before MySQL 5.7 no
    source does. `"writeset"`: also those that change no row in common, as far as the keys of the source's tables are known. For
    replicas from MySQL 5.7 on. Example: `"writeset"`"""
    engines: EnginePolicy = "keep"
    """`"innodb"`: tables without transactions (MyISAM, MEMORY and others) become InnoDB on the replicas. Such a table keeps changes
    of a transaction that is rolled back, the replica's does not. `"keep"`: as at the source. Example: `"innodb"`"""
    account_statements: AccountStatementPolicy = "skip"
    """CREATE USER, GRANT and other statements about accounts, which a newer server may not understand. `"skip"`: a transaction
    without statements replaces them. `"keep"`: they are sent. Example: `"skip"`"""
    explicit_defaults_for_timestamp: bool = False
    """The variable of that name at the source, if its binlogs do not contain it: before MySQL 8.0. It decides about TIMESTAMP columns
    without NULL or NOT NULL. Example: `true`"""
    collations: Annotated[dict[str, int], BeforeValidator(numbered_collations), AfterValidator(checked_collations)] = {}
    """For a source that is newer than the replicas, or a MariaDB: the replicas' collation for a collation of the source, by name or
    number. `SELECT ID, COLLATION_NAME FROM information_schema.COLLATIONS` shows those of a MySQL; for a MariaDB's own there are
    [defaults](VIEWS.md#collations-of-a-mariadb). Example: `{ 255 = 45, utf8mb4_uca1400_ai_ci = "utf8mb4_bin" }`"""
    known_engines: Annotated[dict[str, NonEmpty], AfterValidator(checked_engines)] = {}
    """The engines of tables that were created before the archive begins, if a rule must know them: `"*"` means all others. The
    binlogs contain the engines of later ones. Example: `{ "shop.visits" = "MyISAM", "*" = "InnoDB" }`"""
    foreign_keys: ForeignKeyPolicy = "server"
    """The layer that enforces foreign keys on replicas from MySQL 9.6 on. `"server"`: the server, as is the default there; where it
    behaves differently from the source, the view stops. `"innodb"`: InnoDB, as at a source before 9.6: all replicas of the view have
    `innodb_native_foreign_keys = ON` in their my.cnf. Example: `"innodb"`"""
    plain_tables: Annotated[list[NonEmpty], AfterValidator(checked_plain_tables)] = []
    """Tables that were created before the archive begins, to whose rows no other table refers with CASCADE or SET NULL, on delete
    or on update, and which have no DELETE trigger: the view need not stop when their rows are replaced. `"*"` means all of them.
    The binlogs say this of later ones. For a MariaDB source also: tables whose statements mean the same on the replicas (no UUID,
    INET4, INET6, system versioning, UNIQUE key over texts, triggers; collations that MySQL has). Example: `["shop.visits"]`"""
    accept: Annotated[list[NonEmpty], AfterValidator(checked_accepted)] = []
    """Functions, operators and clauses that the replicas may compute otherwise than the source, and that are passed on all the
    same: the names that stops say, such as `regexp`. Whoever accepts one knows that it does not matter for the data. `zero_dates`:
    what differs only for dates with zeros as their month or day, where no column has any. `large_unsigned`: what differs only for
    numbers of BIGINT UNSIGNED from 2^63 on, where no column and no statement has any. Example: `["regexp"]`"""
    json_columns: JsonPolicy = "longtext"
    """For a MariaDB source: the type that columns of type JSON get, which are LONGTEXT there. `"longtext"`: LONGTEXT with the same
    bytes. `"binary"`: JSON of MySQL: the same documents in another encoding; a text that MySQL does not accept as JSON stops the
    view. Example: `"binary"`"""
    known_kinds: Annotated[dict[str, TableKind], AfterValidator(checked_kinds)] = {}
    """For a MariaDB source: the tables created before the archive begins that are sequences, if their rows do not tell. Example: `{
    "shop.numbers" = "sequence" }`"""
    start: Annotated[
        Annotated[Literal["earliest"], Tag("word")] | Annotated[ViewStartPlace, Tag("place")],
        Discriminator(view_start_tag),
    ] = "earliest"
    """The start of the view: the oldest binlog of the archive, or a place, with the number that a former relay, or another one,
    assigned there. Example: `{ file = "mysql-bin.000042", position = 4, next = 1000001 }`"""

    @property
    def collation_numbers(self) -> dict[int, int]:
        """The `collations` by number."""
        return {int(source): target for source, target in self.collations.items()}


class Account(TomlSection):
    """A login for replicas."""

    # 96: the bytes of the longest user name of any server that can become a replica (MySQL 9: 32 characters).
    user: Annotated[str, Field(min_length=1, max_length=96), AfterValidator(checked_printable)]
    """The user name. There may be several accounts for one user, each with its own `host`. Example: `"replica"`"""
    password: SecretStr | None = None
    """The password in clear. Write exactly one of `password`, `password_file`, `password_env`,
    `password_credential` and `password_hash`.
    Example: `"secret"`"""
    password_file: PathText | None = None
    """A file that contains the password and nothing else. A newline at its end is not part of the password. Example:
    `"/etc/binlog-relay/replica.password"`"""
    password_env: NonEmpty | None = None
    """The name of an environment variable that holds the password. Example: `"REPLICA_PASSWORD"`"""
    password_credential: NonEmpty | None = None
    """The name of a credential of the service that holds the password: `LoadCredential=` in the unit of systemd. Example:
    `"replica.password"`"""
    password_hash: Annotated[SecretStr, AfterValidator(checked_hash)] | None = None
    """The password as a server stores it, for one plugin: `*` and 40 hexadecimal digits (mysql_native_password),
    `$A$005$…` (caching_sha2_password), 43 characters of base64 (client_ed25519), or `0x` and what `SELECT
    HEX(authentication_string)` shows. Example: `"*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9"`"""
    plugin: Plugin | None = None
    """The only authentication plugin that this account may use. Left out: the client chooses; with `password_hash`,
    the plugin of the hash. Example: `"caching_sha2_password"`"""
    host: Annotated[NonEmpty, AfterValidator(checked_host)] = "%"
    """The hosts from which this account may log in: `%` (everywhere), an address, `localhost`, a network as `10.0.0.0/24` or
    `10.0.0.0/255.255.255.0`, or a pattern as `10.0.%`. Names are not looked up. Of several accounts of a user the one with the most
    specific host counts. Example: `"10.0.0.0/24"`"""
    markers: Markers = "tbm"
    """The marks in the event headers that this account is sent. `"tbm"`: the boundaries of transactions. `"edges"`: those of
    statements too, in another form. `"strip"`: the bytes of the source, unchanged. Example: `"strip"`"""
    view: NonEmpty | None = None
    """The `name` of a `[[view]]`: it is all that this account sees, with its own files, positions and GTIDs. Left out:
    the binlogs of the source. Example: `"gtid"`"""
    admin: bool = False
    """`true`: the account may STOP and START the relay at its source, CHANGE it, PURGE, FLUSH and KILL. Example:
    `true`"""
    max_connections: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Most connections of this account at the same time; one more gets error 1226. Left out: as many as `listen.max_connections`
    lets in, and no more than others leave it when all are taken. SIGHUP takes a new value over. Example: `100`"""
    require_tls: bool = False
    """`true`: the account may log in over TLS only. Needs `listen.tls_cert`. Example: `true`"""
    require_client_cert: bool = False
    """`true`: the client must also show a certificate that `listen.tls_client_ca` has signed. Example: `true`"""

    def password_text(self) -> str | None:
        """Return the password in clear, read from its file or variable now; None when only its hash is known.

        Raises: OSError for a file or credential that cannot be read, KeyError for a variable that is not set.
        """
        return password_text(self.password, self.password_file, self.password_env, self.password_credential)

    def credentials(self) -> Credentials:
        """Return what a login is checked with.

        Raises: as `password_text`.
        """
        if self.password_hash is not None:
            return Credentials.from_stored(self.password_hash.get_secret_value())
        return Credentials.from_password(self.password_text() or "")


class FailoverSection(TomlSection):
    """The automatic change to another [[source]] when the one that is followed cannot be reached, and the time until then."""

    mode: FailoverMode = "manual"
    """`"automatic"`: when the source could not be reached for `after_s`, the first other `[[source]]` that has all that the archive
    has is taken. `"manual"`: the log names those that qualify, and nothing changes. Example: `"manual"`"""
    after_s: Annotated[float, Field(ge=1, le=86400, allow_inf_nan=False)] = 60.0
    """The time for which the source must be unreachable. Example: `60`"""


class Config(TomlSection):
    """All of relay.toml. Relative paths in the file were resolved against the file's own directory."""

    source: Source
    others: Annotated[tuple[ServerSource, ...], Field(alias=OTHERS, strict=False)] = ()
    failover: FailoverSection = FailoverSection()
    archive: ArchiveSection
    retention: RetentionSection = RetentionSection()
    listen: ListenSection = ListenSection()
    http: HttpSection = HttpSection()
    memory: MemorySection = MemorySection()
    accounts: Annotated[tuple[Account, ...], Field(alias="account", strict=False)] = ()
    views: Annotated[tuple[ViewSection, ...], Field(alias="view", strict=False)] = ()
    replicas: Annotated[tuple[ReplicaSection, ...], Field(alias="replica", strict=False)] = ()
    _warnings: tuple[Problem, ...] = PrivateAttr(default=())
    _server_tls: ServerTls | None = PrivateAttr(default=None)
    _http_tls: ServerTls | None = PrivateAttr(default=None)

    @property
    def http_tls(self) -> ServerTls | None:
        """The TLS for HTTP, likewise."""
        return self._http_tls

    @property
    def server_tls(self) -> ServerTls | None:
        """The TLS that replicas are offered, created from the files as they were when the configuration was read; None: no TLS."""
        return self._server_tls

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The settings that work but should be changed."""
        return self._warnings

    def remember(
        self, warnings: tuple[Problem, ...], server_tls: ServerTls | None, http_tls: ServerTls | None = None
    ) -> None:
        """Store what else was found when it was read."""
        self._warnings, self._server_tls, self._http_tls = warnings, server_tls, http_tls

    @property
    def sources(self) -> tuple[ServerSource, ...]:
        """All sources that may be followed, in the order of preference; none if the source is a directory."""
        return (self.source, *self.others) if isinstance(self.source, ServerSource) else ()

    @property
    def archive_directory(self) -> Path:
        """The source's own directory in the archive."""
        return self.archive.dir / self.source.name
