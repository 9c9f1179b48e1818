"""SHOW STATUS and COM_STATISTICS: the counters that monitors read, and the relay's own facts.

Names and spelling are the servers' if a relay has such a thing. Its own begin with Binlog_relay_.
"""

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from protocol.resultset import Rows, Value
from protocol.statements import StatisticsText
from protocol.statements.expression.row_filter import RowSearch
from protocol.statements.requests import ShowStatus
from protocol.statements.show_variables import name_and_value_columns
from relay.admin.dialect import Dialect
from relay.admin.surroundings import Connections
from relay.archive.archive import Archive
from relay.archive_inspection.scrub import ScrubStatus
from relay.downstream.connection.client_status import ClientStatus
from relay.process.memory_budget import MemoryFacts
from relay.upstream.source.source_status import SourceStatus
from relay.view.shown_view import ShownView
from relay.view.translate.wait_counts import WaitCounts
from relay.view.unopened_view import UnopenedView

LEDGER_NAMES: Final = ("Binlog_relay_ledger_rows", "Binlog_relay_violations")
VIOLATION: Final = "boundary_violation"
_OF_THE_FILES: Final = "Binlog_relay_archive_"
_MOST_TABLES: Final = 10
"""The most variables with a table's name."""
_NO_WORD: Final = re.compile("[^a-z0-9_]")


@dataclass(frozen=True, slots=True)
class StatusFacts:
    """The input of the variables. `ledger`: rows by kind, None if they were not requested. `view`: whose archive it is, None: the
    mirror."""

    archive: Archive
    source: SourceStatus
    connections: Connections
    seconds_behind: int | None
    ledger: Mapping[str, int] | None
    scrub: ScrubStatus = field(default_factory=ScrubStatus)
    view: ShownView | None = None


def status_rows(values: Sequence[tuple[str, str]], search: RowSearch, request: ShowStatus, asker: ClientStatus) -> Rows:
    """Return the wanted ones of the variables (`shown_status`), in their order."""
    rows = tuple(row for row in values if search.accepts(row))
    return Rows(name_and_value_columns(asker.facts, "STATUS", is_global=request.is_global), rows)


def shown_status(facts: StatusFacts, dialect: Dialect, asker: ClientStatus) -> list[tuple[str, str]]:
    """Return all variables by name, with their values as text. `asker`: whose TLS is shown."""
    tls = {"Ssl_cipher": asker.channel.cipher, "Ssl_version": asker.channel.tls}
    values = status_values(facts, dialect) | tls
    return [(name, _text(values[name])) for name in sorted(values, key=str.lower)]


def _text(value: Value) -> str:
    return "" if value is None else str(value)


def status_values(facts: StatusFacts, dialect: Dialect) -> dict[str, Value]:
    """Return all variables."""
    traffic = facts.connections.traffic
    clients = facts.connections.statuses()
    now = time.monotonic()
    dumping = [client for client in clients if client.sent_position is not None]
    values: dict[str, Value] = {
        "Aborted_clients": traffic.aborted_clients,
        "Aborted_connects": traffic.aborted_connects,
        "Bytes_received": traffic.bytes_received,
        "Bytes_sent": traffic.bytes_sent + sum(client.sent_bytes for client in dumping),
        "Connections": traffic.connections,
        "Max_used_connections": traffic.most_connections,
        "Queries": traffic.commands,
        "Questions": traffic.statements,
        "Slow_queries": 0,
        "Threads_cached": 0,
        "Threads_connected": len(clients),
        "Threads_created": traffic.connections,
        "Threads_running": len(dumping) + 1,
        "Uptime": int(now - traffic.started_at),
        "Uptime_since_flush_status": int(now - traffic.flushed_at),
        **_semi_sync_values(facts, dialect),
        **_replica_values(facts, clients, dialect),
        **_relay_values(facts, dumping),
        **_memory_values(facts.connections.memory.facts()),
    }
    return values


def _semi_sync_values(facts: StatusFacts, dialect: Dialect) -> dict[str, Value]:
    """Return the variables of a source, if acknowledgements are requested, and of a replica: whether the relay acknowledges to its
    source."""
    source, replica = f"Rpl_semi_sync_{dialect.source_word}_", f"Rpl_semi_sync_{dialect.replica_word}_"
    values: dict[str, Value] = {source + name: value for name, value in facts.connections.semi_sync_status.items()}
    values[replica + "status"] = "ON" if facts.source.semi_sync else "OFF"
    return values


def _replica_values(facts: StatusFacts, clients: Sequence[ClientStatus], dialect: Dialect) -> dict[str, Value]:
    """Return the variables of a server as a replica. MySQL from 8.0 on has none of these."""
    if dialect.is_mysql(8):
        return {}
    source = facts.source
    is_stopped = facts.view is not None and facts.view.status.stop is not None
    both = source.io_running == "Yes" and facts.archive.current.write_trouble is None and not is_stopped
    values: dict[str, Value] = {
        "Slave_heartbeat_period": f"{source.heartbeat_period_s:.3f}",
        "Slave_open_temp_tables": 0,
        "Slave_received_heartbeats": source.received_heartbeats,
        "Slave_retried_transactions": 0,
        "Slave_running": "ON" if both else "OFF",
    }
    if dialect.is_mariadb:
        values["Slaves_connected"] = sum(1 for client in clients if client.registered is not None)
        values["Slaves_running"] = int(both)
    return values


def _relay_values(facts: StatusFacts, dumping: Sequence[ClientStatus]) -> dict[str, Value]:
    archive, source = facts.archive, facts.source
    generation = archive.current
    oldest = next((one.files[0].name for one in archive.all if one.files), "")
    damaged = [place for generation in archive.all for place in generation.damaged_files.all]
    values: dict[str, Value] = {
        "Binlog_relay_archive_bytes": sum(one.held.total_bytes for one in archive.all),
        "Binlog_relay_archive_files": sum(len(one.files) for one in archive.all),
        "Binlog_relay_archive_generation": archive.current.number,
        "Binlog_relay_archive_generations": len(archive.all),
        "Binlog_relay_archive_oldest_file": oldest,
        "Binlog_relay_archive_purged_bytes": archive.purged_bytes,
        "Binlog_relay_archive_queued_bytes": generation.queued_bytes,
        "Binlog_relay_archive_state": generation.state.value,
        "Binlog_relay_archive_damaged_files": len(damaged),
        "Binlog_relay_archive_damaged_first": f"{damaged[0].file}:{damaged[0].offset}" if damaged else "",
        "Binlog_relay_archived_file": source.archived_file,
        "Binlog_relay_archived_position": source.archived_offset,
        "Binlog_relay_received_file": source.received_file,
        "Binlog_relay_received_position": source.received_offset,
        "Binlog_relay_synced_file": source.synced_file,
        "Binlog_relay_synced_position": source.synced_offset,
        "Binlog_relay_replicas_at_end": sum(1 for client in dumping if client.is_at_end),
        "Binlog_relay_replicas_streaming": len(dumping),
        "Binlog_relay_seconds_behind": facts.seconds_behind,
        "Binlog_relay_source_ack": source.ack,
        "Binlog_relay_source_acknowledged": source.acknowledged_count,
        "Binlog_relay_source_error": source.last_error_number,
        "Binlog_relay_source_heartbeats": source.received_heartbeats,
        "Binlog_relay_source_retries": source.retries,
        "Binlog_relay_source_running": source.io_running,
    }
    values |= _scrub_values(facts.scrub)
    if isinstance(facts.view, UnopenedView):
        # Its files are unknown, and those of the mirror are other files.
        values = {name: value for name, value in values.items() if not name.startswith(_OF_THE_FILES)}
    if facts.view is not None:
        values |= _view_values(facts.view)
    if facts.ledger is not None:
        values["Binlog_relay_ledger_rows"] = sum(facts.ledger.values())
        values["Binlog_relay_violations"] = facts.ledger.get(VIOLATION, 0)
    return values


def _memory_values(memory: MemoryFacts) -> dict[str, Value]:
    """Return the memory that clients make the relay hold."""
    return {
        "Binlog_relay_memory_budget": memory.limit_bytes,
        "Binlog_relay_memory_held": memory.used_bytes,
        "Binlog_relay_memory_held_most": memory.most_used_bytes,
        "Binlog_relay_memory_connections_ended": memory.ended,
    }


def _view_values(view: ShownView) -> dict[str, Value]:
    """Return the position up to which the view has the source's binlogs, and where it has stopped."""
    status = view.status
    return {
        "Binlog_relay_view": view.settings.name,
        "Binlog_relay_view_source_file": status.source.file if status.source is not None else "",
        "Binlog_relay_view_source_position": status.source.offset if status.source is not None else 0,
        "Binlog_relay_view_behind_bytes": status.behind_bytes,
        "Binlog_relay_view_stop": status.stop.message if status.stop is not None else "",
        **_wait_values(status.waits),
    }


def _wait_values(waits: WaitCounts | None) -> dict[str, Value]:
    """Return which transactions of the view wait for which, if the view determines that."""
    if waits is None:
        return {}
    values: dict[str, Value] = {
        "Binlog_relay_view_transactions": waits.groups,
        "Binlog_relay_view_transactions_beside": waits.beside,
        "Binlog_relay_view_share_beside": f"{waits.share:.4f}",
        "Binlog_relay_view_batches": waits.batches,
        "Binlog_relay_view_mean_width": f"{waits.width:.2f}",
        "Binlog_relay_view_serial": waits.why_serial(),
    }
    for why, count in waits.by_cause().items():
        values[f"Binlog_relay_view_serial_{why}"] = count
    of_tables: Counter[str] = Counter()
    for why, table, count in waits.of_tables(_MOST_TABLES):
        # Names as exporters build them, which treat two equal ones as an error.
        of_tables[f"Binlog_relay_view_serial_{why}_of_{_NO_WORD.sub('_', table.lower())}"] += count
    return values | of_tables


def _scrub_values(scrub: ScrubStatus) -> dict[str, Value]:
    oldest = datetime.fromtimestamp(scrub.oldest, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if scrub.oldest else ""
    return {
        "Binlog_relay_scrub_state": scrub.state,
        "Binlog_relay_scrub_files_due": scrub.due,
        "Binlog_relay_scrub_checked_bytes": scrub.checked_bytes,
        "Binlog_relay_scrub_total_bytes": scrub.total_bytes,
        "Binlog_relay_scrub_oldest_check": oldest,
        "Binlog_relay_scrub_last": scrub.last,
    }


def statistics_text(connections: Connections, dialect: Dialect) -> StatisticsText:
    """Return the text of COM_STATISTICS, with the fields that `mysqladmin status` prints for such a server."""
    traffic = connections.traffic
    up_s = max(1, int(time.monotonic() - traffic.started_at))
    flush = "" if dialect.is_mariadb else "Flush tables: 0  "
    return StatisticsText(
        f"Uptime: {up_s}  Threads: {connections.connected}  Questions: {traffic.statements}  Slow queries: 0  "
        f"Opens: 0  {flush}Open tables: 0  Queries per second avg: {traffic.statements / up_s:.3f}"
    )


def asks_for_ledger(search: RowSearch) -> bool:
    """Return whether an answer needs the ledger, which is a look into the catalog."""
    return any(search.may_accept(0, name) for name in LEDGER_NAMES)
