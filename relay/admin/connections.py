"""SHOW SLAVE HOSTS and SHOW PROCESSLIST: the connections, what each does, and the position of each replica."""

import asyncio
import time
from collections.abc import Iterable
from typing import Final

from protocol.printable import printable
from protocol.resultset import Rows, Value
from relay.admin.dialect import Dialect
from relay.downstream.connection.client_status import ClientStatus
from relay.downstream.request.refusal import shown_name
from relay.upstream.source.source_status import SourceStatus

_SHORT_INFO: Final = 100
"""The characters of Info without FULL."""


def replicas(connections: Iterable[ClientStatus], dialect: Dialect, master_id: int) -> Rows:
    """Return the connected clients that registered as replicas. `master_id`: the server_id that replicas see here.

    MySQL has the last column since 5.6, and newer names since 8.0.22.
    """
    with_uuid = dialect.is_mysql(5, 6)
    if dialect.says_source:
        columns: tuple[str, ...] = ("Server_Id", "Host", "Port", "Source_Id", "Replica_UUID")
    else:
        columns = ("Server_id", "Host", "Port", "Master_id", "Slave_UUID")
    rows: list[tuple[Value, ...]] = []
    for connection in sorted(connections, key=lambda item: item.server_id):
        replica = connection.registered
        if replica is not None:
            row: tuple[Value, ...] = (replica.server_id, printable(replica.host), replica.port, master_id)
            rows.append((*row, connection.replica_uuid) if with_uuid else row)
    return Rows(columns if with_uuid else columns[:4], tuple(rows))


def processlist(
    connections: Iterable[ClientStatus], asker: ClientStatus, source: SourceStatus, dialect: Dialect, *, full: bool
) -> Rows:
    """Return all connections, and the one to the source; without admin those of the asker's own account, as in a server.

    Info of a replica is the position it has reached, and the one that a semi-sync replica acknowledged; of one that waits, the one it
    requested. MariaDB has the column Progress since 5.3.
    """
    now = asyncio.get_running_loop().time()
    rows: list[tuple[Value, ...]] = []
    if asker.is_admin and source.attached_at is not None:
        rows.append(_source_row(source, dialect))
    for connection in sorted(connections, key=lambda item: item.connection_id):
        if asker.is_admin or (connection.user and connection.user == asker.user):
            rows.append(_row(connection, asker, dialect, now, full=full))
    columns: tuple[str, ...] = ("Id", "User", "Host", "db", "Command", "Time", "State", "Info")
    if dialect.is_mariadb:
        return Rows((*columns, "Progress"), tuple((*row, "0.000") for row in rows))
    return Rows(columns, tuple(rows))


def _source_row(source: SourceStatus, dialect: Dialect) -> tuple[Value, ...]:
    assert source.attached_at is not None
    command = "Slave_IO" if dialect.is_mariadb else "Connect"
    since = max(0, int(time.time() - source.attached_at))
    state = source.state_in(dialect.source_word)
    return (0, "system user", "", None, command, since, state, _place(source.received_file, source.received_offset))


def _row(
    connection: ClientStatus, asker: ClientStatus, dialect: Dialect, now: float, *, full: bool
) -> tuple[Value, ...]:
    info: str | None = None
    since = connection.last_heard_at
    if connection.connection_id == asker.connection_id:
        command, state = "Query", "starting" if dialect.is_mariadb else "init"
        info = "SHOW FULL PROCESSLIST" if full else "SHOW PROCESSLIST"
    elif connection.sent_position is not None:
        command, since = "Binlog Dump", connection.dump_began_at
        state = _dump_state(connection, dialect)
        info = _place(*connection.sent_position)
        if connection.acknowledged_position is not None:
            info = f"{info}, acknowledged {_place(*connection.acknowledged_position)}"
    elif connection.waits_for_position:
        command, state = "Binlog Dump", f"Waiting for the {dialect.source_word} to reach the position asked for"
        asked = connection.requested_position
        info = _place(*asked) if asked is not None else None
    elif connection.user:
        command, state = "Sleep", ""
    else:
        command, state = "Connect", "login"
    if info is not None and not full:
        info = info[:_SHORT_INFO]
    user = printable(connection.user) or "unauthenticated user"
    database = None if connection.database is None else printable(connection.database)
    waited_s = max(0, int(now - since))
    identity = (connection.connection_id, user, connection.address, database)
    return (*identity, command, waited_s, state, info)


def _dump_state(connection: ClientStatus, dialect: Dialect) -> str:
    source, replica = dialect.source_word.capitalize(), dialect.replica_word
    if connection.is_at_end:
        return f"{source} has sent all binlog to {replica}; {dialect.waits_for_updates}"
    return "Writing to net" if dialect.is_mariadb else f"Sending binlog event to {replica}"


def _place(file: str | None, offset: int | None) -> str | None:
    return f"{shown_name(file)}:{offset or 0}" if file else None
