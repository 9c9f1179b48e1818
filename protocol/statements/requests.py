"""Requests that only the running relay can answer: each statement of that kind as a value.

The words of a statement (SLAVE or REPLICA, MASTER or SOURCE) decide the names of its result's columns, so they are part of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, Literal

from protocol.errors import StatementRefused
from protocol.resultset import Value
from protocol.statements.expression.row_filter import RowFilter
from protocol.statements.translation.sqlite_text import ResultColumn, TableName


class Words(Enum):
    """The dialect a statement was written in."""

    MASTER_SLAVE = "MASTER/SLAVE"
    SOURCE_REPLICA = "SOURCE/REPLICA"


Thread = Literal["IO", "SQL"]
ChangeValue = str | int | None | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """The base of all requests. `privilege` is the one that a server requires; only admin accounts have it. Empty: none is required."""

    privilege: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class KillConnection(Request):
    """KILL [CONNECTION | QUERY]. The answerer decides whose connections an account may end."""

    connection_id: int
    query_only: bool = False


@dataclass(frozen=True, slots=True)
class ShowBinaryLogs(Request):
    """SHOW BINARY LOGS, SHOW MASTER LOGS."""


@dataclass(frozen=True, slots=True)
class ShowMasterStatus(Request):
    """SHOW MASTER STATUS; SHOW BINARY LOG STATUS (MySQL 8.2), SHOW BINLOG STATUS (MariaDB 10.5.2)."""

    words: Words


@dataclass(frozen=True, slots=True)
class ShowBinlogEvents(Request):
    """SHOW BINLOG EVENTS [IN file] [FROM position] [LIMIT [offset,] count].

    `file` None is the first one; `count` None is all that follow.
    """

    file: str | None = None
    position: int = 4
    offset: int = 0
    count: int | None = None


@dataclass(frozen=True, slots=True)
class AskGtidPosition(Request):
    """SELECT BINLOG_GTID_POS('file', position) of MariaDB: the GTIDs of a replica at that place. `label` is the column's."""

    file: str
    position: int
    label: str


@dataclass(frozen=True, slots=True)
class ShowReplicaStatus(Request):
    """SHOW SLAVE | REPLICA STATUS; with `all_channels`, MariaDB's SHOW ALL SLAVES STATUS, which has more columns.

    `channel` is MySQL's FOR CHANNEL or MariaDB's connection name; empty: the default one, or all in MySQL.
    """

    words: Words
    channel: str = ""
    all_channels: bool = False


@dataclass(frozen=True, slots=True)
class ShowReplicas(Request):
    """SHOW SLAVE HOSTS, SHOW REPLICAS: the registered replicas."""

    words: Words


@dataclass(frozen=True, slots=True)
class ShowProcesslist(Request):
    """SHOW [FULL] PROCESSLIST, COM_PROCESS_INFO. Accounts without `admin` see their own connections, as in a server."""

    full: bool = False


@dataclass(frozen=True, slots=True)
class ShowStatus(Request):
    """SHOW [GLOBAL | SESSION] STATUS: the status variables that `wanted` accepts, as rows of name and value."""

    wanted: RowFilter = field(default_factory=RowFilter)
    is_global: bool = False


@dataclass(frozen=True, slots=True)
class QueryTables(Request):
    """A SELECT from servers' own tables, or of expressions that only such a SELECT may contain.

    `text` is in the words of SQLite (`protocol/statements/translation`), with `parameters`. `tables` are (schema, table), lower case;
    the schema is empty if none was named and none is chosen. `columns` is None if a star means some of them.
    `variables` are system variables by name, for the tables that list them. `about` is the schema, or schema and table, that must
    exist, as the statement spells them; an empty table is none. `named` is the schema and table, lower case, of all rows in the
    result; empty: any. `not_understood` is the error for a text that SQLite does not understand either.
    """

    text: str
    parameters: tuple[Value, ...] = ()
    tables: tuple[TableName, ...] = ()
    columns: tuple[ResultColumn, ...] | None = None
    variables: tuple[tuple[str, str], ...] = ()
    about: TableName | None = None
    named: TableName = ("", "")
    not_understood: StatementRefused = field(compare=False, repr=False, kw_only=True)


class LockAction(Enum):
    """The functions of locks that are only names."""

    GET = "GET_LOCK"
    RELEASE = "RELEASE_LOCK"
    RELEASE_ALL = "RELEASE_ALL_LOCKS"
    IS_FREE = "IS_FREE_LOCK"
    IS_USED = "IS_USED_LOCK"


@dataclass(frozen=True, slots=True)
class LockCall:
    """One call. `name` None: the argument was NULL. `timeout_s` below 0: as long as a server waits. `label` is its column's."""

    action: LockAction
    name: str | None = None
    timeout_s: float = 0.0
    label: str = ""


@dataclass(frozen=True, slots=True)
class UseLocks(Request):
    """A SELECT, or DO (`shows` False), of GET_LOCK and its like, in their order."""

    calls: tuple[LockCall, ...]
    shows: bool = True


@dataclass(frozen=True, slots=True)
class StopReplica(Request):
    """STOP SLAVE | REPLICA. `threads` are the named ones; empty: both."""

    privilege: ClassVar[str] = "SUPER or REPLICATION_SLAVE_ADMIN"

    words: Words
    threads: frozenset[Thread] = frozenset()
    channel: str = ""
    all_channels: bool = False


@dataclass(frozen=True, slots=True)
class StartReplica(Request):
    """START SLAVE | REPLICA. `threads` are the named ones; empty: both."""

    privilege: ClassVar[str] = "SUPER or REPLICATION_SLAVE_ADMIN"

    words: Words
    threads: frozenset[Thread] = frozenset()
    channel: str = ""
    all_channels: bool = False


@dataclass(frozen=True, slots=True)
class ChangeSource(Request):
    """CHANGE MASTER TO, CHANGE REPLICATION SOURCE TO.

    `options` are by the newer name in upper case, whatever the statement's words: SOURCE_HOST, SOURCE_SSL_CA, RELAY_LOG_FILE. Numbers
    are int, IGNORE_SERVER_IDS a tuple, NULL is None, texts and words such as SLAVE_POS are str. They are not in the repr, as they may
    contain a password.
    """

    privilege: ClassVar[str] = "SUPER or REPLICATION_SLAVE_ADMIN"

    words: Words
    options: Mapping[str, ChangeValue] = field(repr=False)
    channel: str = ""


@dataclass(frozen=True, slots=True)
class AcceptGap(Request):
    """CALL binlog_relay.accept_gap([file [, offset]]): the relay must continue after a gap that its source no longer has.

    `file` empty: it continues with the first file that the source still has. `offset` is between two of its transactions.
    """

    privilege: ClassVar[str] = "SUPER or REPLICATION_SLAVE_ADMIN"

    file: str = ""
    offset: int = 4


@dataclass(frozen=True, slots=True)
class RepairFiles(Request):
    """CALL binlog_relay.repair([file]): damaged archived files are fetched again. `file` empty: all that are known to be damaged."""

    privilege: ClassVar[str] = "SUPER or REPLICATION_SLAVE_ADMIN"

    file: str = ""


@dataclass(frozen=True, slots=True)
class ScrubNow(Request):
    """CALL binlog_relay.scrub(): everything in the archive is checked now."""

    privilege: ClassVar[str] = "SUPER or REPLICATION_SLAVE_ADMIN"


@dataclass(frozen=True, slots=True)
class ListViews(Request):
    """CALL binlog_relay.view_list(): the views of this relay, up to where they are built, and what stops them."""


@dataclass(frozen=True, slots=True)
class FindViewPlace(Request):
    """CALL binlog_relay.view_find(view, 'source' | 'view', file, offset), view_find(view, 'gtid', gtid): one place by all its names.

    `by` says which of the three is given. `text` is a file or a GTID, `offset` one in the file.
    """

    view: str
    by: Literal["source", "view", "gtid"]
    text: str
    offset: int = 4


@dataclass(frozen=True, slots=True)
class SkipInView(Request):
    """CALL binlog_relay.view_skip(view, file, offset): a view omits the transaction of the source at which it has stopped."""

    privilege: ClassVar[str] = "SUPER or REPLICATION_SLAVE_ADMIN"

    view: str
    file: str
    offset: int


@dataclass(frozen=True, slots=True)
class PurgeTo(Request):
    """PURGE BINARY LOGS TO file: everything before it."""

    privilege: ClassVar[str] = "SUPER or BINLOG_ADMIN"

    file: str


@dataclass(frozen=True, slots=True)
class PurgeBefore(Request):
    """PURGE BINARY LOGS BEFORE a time: files that were last written before `unix_s`, seconds since 1970 (UTC)."""

    privilege: ClassVar[str] = "SUPER or BINLOG_ADMIN"

    unix_s: float


@dataclass(frozen=True, slots=True)
class Flush(Request):
    """FLUSH. `what` is in upper case, one of LOGS, BINARY LOGS, RELAY LOGS, ERROR LOGS, ENGINE LOGS, GENERAL LOGS, SLOW LOGS, STATUS,
    HOSTS, PRIVILEGES, TABLES, USER_RESOURCES.
    """

    privilege: ClassVar[str] = "RELOAD"

    what: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShowStatistics(Request):
    """COM_STATISTICS, which is answered with a `StatisticsText`."""
