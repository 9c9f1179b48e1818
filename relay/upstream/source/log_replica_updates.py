"""Transactions that a source executes and writes to no binlog: a server that replicates from it, including this relay, never gets them.

A server that is a replica itself writes what it applies to its own binlog only with log_replica_updates (before MySQL 8.0.26 and on
MariaDB log_slave_updates); the default of MySQL 5.7 and MariaDB is off. With GTIDs, MySQL counts what it did not write as purged
(docs/PROTOCOL.md#mysqls-gtids), so a replica without these transactions is refused when it connects; a connected one notices nothing.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import pymysql.err
import structlog

from protocol.gtid.dump_refusals import shown_set
from protocol.gtid.gtid_set import GtidSet
from relay.archive.generation import Generation
from relay.archive.storage.gtid_facts import GtidValue
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.source.source_gtids import SourceGtids, VariableReader

log = structlog.get_logger()

_NAMES: Final = ("log_replica_updates", "log_slave_updates")
# These are the statement, and the column that says whether what was received is applied. MariaDB shows its replicas' status only to
# accounts with SLAVE MONITOR, how many of them run to all.
_STATUS: Final = {
    "mysql": (("SHOW REPLICA STATUS", 11), ("SHOW SLAVE STATUS", 11)),
    "mariadb": (("SHOW GLOBAL STATUS LIKE 'Slaves_running'", 1),),
}
_NOT_APPLYING: Final = ("No", "0")
_ADVICE: Final = "If it is a replica, set {name}=ON in its configuration and restart it, or name its own source here."


async def switched_off(source: VariableReader) -> str | None:
    """Return the variable that makes the source omit what it applies as a replica; None if it writes that.

    Raises: UpstreamError as `variable` does.
    """
    for name in _NAMES:
        try:
            value = await source.variable(name)
        except pymysql.err.MySQLError:
            value = None
        if value is not None:
            return name if value.upper() in ("0", "OFF") else None
    return None


async def warn_of_a_replica(open_connection: Callable[[], Awaitable[SourceConnection]], where: str, name: str) -> None:
    """Warn if the source, in which `name` is off, applies what another one sends it. Nothing is reported if this is unknown.

    It uses a separate connection: a server that is just ending its replication answers afterwards.
    """
    try:
        connection = await open_connection()
        try:
            applies = await _applies(connection)
        finally:
            connection.close()
    except UpstreamError as error:
        log.info("replica_status_not_seen", source=where, why=str(error))
        return
    if applies:
        log.warning(
            "source_leaves_out_what_it_applies",
            source=where,
            what=f"it is a replica itself, and {name} is OFF there: what it applies is not in its binlog, and comes neither "
            "here nor to replicas of this relay",
            advice=_ADVICE.format(name=name),
        )


async def _applies(connection: SourceConnection) -> bool:
    for statement, column in _STATUS[connection.facts.flavour]:
        try:
            rows = await connection.query(statement)
        except pymysql.err.MySQLError:
            continue  # It is of another version, or for other accounts
        return any(len(row) > column and row[column] not in _NOT_APPLYING for row in rows)
    return False


def note_never_logged(
    generation: Generation, executed: GtidValue | None, source: SourceGtids, where: str, name: str | None
) -> None:
    """Record, in the ledger and a warning, what the source counts as purged and the archive never had.

    It must be called when the archive goes on in the source's own files, with all of it published: what was purged of them came before.
    `executed` is all that is known here; `name` is as in `switched_off`.
    """
    end = generation.end
    if end is None or not isinstance(executed, GtidSet) or not (never := source.purged - executed):
        return
    why = f" ({name} is OFF there)" if name is not None else ""
    text = f"the source {where} has executed what is in no binlog of it{why}: {shown_set(never)}"
    generation.append_ledger("source_never_logged", end.file, end.offset, text)
    log.warning(
        "source_never_logged",
        what=text,
        note="replicas of this relay do not get it; those that ask by GTID and lack it are refused",
        advice=_ADVICE.format(name=name or _NAMES[0])
        + " Make replicas that lack it again from a backup of the source.",
    )
