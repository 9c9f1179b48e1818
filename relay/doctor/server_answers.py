"""The doctor's queries to a server: read only, each in bounded time; a refusal is an answer."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pymysql.err

from relay.upstream.source.connect_errors import server_text
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.identity import ListedReplica
from relay.upstream.source.source_errors import UpstreamError

VARIABLES: Final = (
    "binlog_checksum",
    "binlog_encryption",
    "binlog_expire_logs_auto_purge",
    "binlog_expire_logs_seconds",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "encrypt_binlog",
    "expire_logs_days",
    "gtid_mode",
    "gtid_strict_mode",
    "innodb_flush_log_at_trx_commit",
    "log_bin",
    "log_replica_updates",
    "log_slave_updates",
    "lower_case_table_names",
    "max_allowed_packet",
    "read_only",
    "relay_log_recovery",
    "replica_max_allowed_packet",
    "replica_net_timeout",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_source_enabled",
    "server_id",
    "slave_max_allowed_packet",
    "slave_net_timeout",
    "sync_binlog",
)


@dataclass(frozen=True, slots=True)
class BinlogStatus:
    """The newest binlog, and the databases that the server filters as it writes."""

    file: str
    position: int
    filters: str


@dataclass(frozen=True, slots=True)
class ServerAnswers:
    """None: the server did not answer; `refusals` has its words, by the statement.

    privileges: on all databases, in capitals, without roles that are not active. ahead_s: the lead of the server's clock before ours,
    `ahead_give_s` either way. binlogs: name and bytes, oldest first. received: from the row of SHOW SLAVE STATUS, by its older names;
    empty: it is no replica.
    """

    flavour: str
    version: str
    server_id: int
    server_uuid: str | None
    security: tuple[str, str] | None
    certificate: bytes | None
    variables: dict[str, str]
    privileges: frozenset[str] | None
    ahead_s: float | None
    ahead_give_s: float
    binlogs: list[tuple[str, int]] | None
    newest: BinlogStatus | None
    replicas: list[ListedReplica] | None
    received: dict[str, str] | None
    dumping: list[str] = field(default_factory=list)
    """The addresses, HOST:PORT, from which this account reads binlogs there now."""
    refusals: dict[str, str] = field(default_factory=dict)

    def variable(self, *names: str) -> str | None:
        """Return the first of these that the server has, in capitals."""
        return next((self.variables[name].upper() for name in names if name in self.variables), None)

    def number(self, *names: str) -> int | None:
        """Return the number of `variable`, if it is one."""
        text = self.variable(*names)
        return int(float(text)) if text is not None and text.replace(".", "", 1).isdigit() else None


class Questions:
    """Sends the queries over one connection. `refusals` has those that are refused."""

    def __init__(self, connection: SourceConnection) -> None:
        self._connection = connection
        self.refusals: dict[str, str] = {}

    async def answers(self) -> ServerAnswers:
        """Return all answers. Raises: UpstreamError if the connection ends or the server takes too long."""
        connection, facts = self._connection, self._connection.facts
        ahead_s, give_s = await self._clock()
        return ServerAnswers(
            flavour=facts.flavour,
            version=facts.version,
            server_id=facts.server_id,
            server_uuid=facts.server_uuid,
            security=connection.security,
            certificate=connection.certificate,
            variables=await self._variables(),
            privileges=await self._privileges(),
            ahead_s=ahead_s,
            ahead_give_s=give_s,
            newest=await self._newest(),
            replicas=await self._replicas(),
            received=await self._received(),
            binlogs=await self._binlogs(),
            dumping=await connection.dumping_hosts(own_account=True),
            refusals=self.refusals,
        )

    async def _rows(self, *statements: str) -> list[tuple[Any, ...]] | None:
        """Return the answer to the first statement that the server knows; None: it refuses all of them."""
        for statement in statements:
            try:
                return await self._connection.query(statement)
            except pymysql.err.MySQLError as error:
                self.refusals[statements[0]] = server_text(error)
        return None

    async def _variables(self) -> dict[str, str]:
        try:
            found = await self._connection.variables(VARIABLES)
            if self._connection.facts.flavour == "mariadb":
                # It shows its replication to few accounts, but the number of running replications to all.
                rows = await self._connection.query("SHOW GLOBAL STATUS LIKE 'Slaves_running'")
                if rows:
                    found["slaves_running"] = str(rows[0][1])
            return found
        except pymysql.err.MySQLError as error:
            self.refusals["SHOW GLOBAL VARIABLES"] = server_text(error)
            return {}

    async def _clock(self) -> tuple[float | None, float]:
        before = time.time()
        rows = await self._rows("SELECT UNIX_TIMESTAMP(NOW(6))", "SELECT UNIX_TIMESTAMP(NOW())")
        after = time.time()
        if rows is None:
            return None, 0.0
        return clock_difference(float(rows[0][0]), before, after)

    async def _privileges(self) -> frozenset[str] | None:
        rows = await self._rows("SHOW GRANTS")
        if rows is None:
            return None
        found = privileges_in(str(row[0]) for row in rows)
        if self._connection.facts.flavour == "mysql" and any(" ON " not in str(row[0]) for row in rows):
            active = await self._rows("SELECT CURRENT_ROLE()")
            # MySQL shows `NONE` for an account without a role.
            if active and active[0][0] and str(active[0][0]).upper() != "NONE":
                more = await self._rows(f"SHOW GRANTS FOR CURRENT_USER() USING {active[0][0]}")
                found |= privileges_in(str(row[0]) for row in more or [])
        return found

    async def _newest(self) -> BinlogStatus | None:
        rows = await self._rows("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS")
        if not rows:
            return None
        row = rows[0]
        filters = "; ".join(
            f"{name} {row[index]}"
            for index, name in ((2, "binlog_do_db"), (3, "binlog_ignore_db"))
            if len(row) > index and row[index]
        )
        return BinlogStatus(str(row[0]), int(row[1]), filters)

    async def _replicas(self) -> list[ListedReplica] | None:
        if await self._rows("SHOW REPLICAS", "SHOW SLAVE HOSTS") is None:
            return None
        return await self._connection.replicas()

    async def _received(self) -> dict[str, str] | None:
        statement = "SHOW SLAVE STATUS" if self._connection.facts.flavour == "mariadb" else "SHOW REPLICA STATUS"
        rows = await self._rows(statement, "SHOW SLAVE STATUS")
        if rows is None:
            return None
        return received_state(rows[0]) if rows else {}

    async def _binlogs(self) -> list[tuple[str, int]] | None:
        rows = await self._rows("SHOW BINARY LOGS")
        return None if rows is None else [(str(row[0]), int(row[1])) for row in rows]


def clock_difference(theirs: float, before: float, after: float) -> tuple[float, float]:
    """Return the seconds by which their clock is before ours, and the error either way, of an answer that came between two looks at
    ours."""
    return theirs - (before + after) / 2, (after - before) / 2


def privileges_in(grants: Sequence[str] | Any) -> frozenset[str]:
    """Return the privileges on all databases in the rows of SHOW GRANTS, in capitals, without what is in brackets or after TO."""
    found: set[str] = set()
    for text in grants:
        head, on, _rest = text.partition(" ON *.* TO ")
        if on and head.upper().startswith("GRANT "):
            found.update(part.strip().upper() for part in head[len("GRANT ") :].split(","))
    return frozenset(found)


# Places in the row of SHOW SLAVE STATUS that every server since 5.0 has kept.
_RECEIVED: Final = {"Master_Host": 1, "Master_Port": 3, "Slave_IO_Running": 10, "Slave_SQL_Running": 11}
_LATER: Final = {"Last_Errno": 18, "Last_Error": 19}


def received_state(row: tuple[Any, ...]) -> dict[str, str]:
    """Return the fields of a replica's row, by the older names. For MySQL and for MariaDB without the preceding columns of channels
    or connections."""
    return {name: str(row[at]) for name, at in (_RECEIVED | _LATER).items() if len(row) > at and row[at] is not None}


async def ask(connection: SourceConnection) -> ServerAnswers | UpstreamError:
    """Return all answers, or the error that prevented them."""
    try:
        return await Questions(connection).answers()
    except UpstreamError as error:
        return error
