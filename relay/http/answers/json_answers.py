"""The answers of /api/v1/, as plain values: sections of a snapshot, and pages of lists."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.storage.archived_file import ArchivedFile
from relay.http.answers.applied_answers import replica_row
from relay.http.answers.not_ready import reasons_not_ready
from relay.http.facts.history import History
from relay.http.facts.relay_snapshot import RelaySnapshot
from relay.process.log_setup import PAGE

MOST_ON_A_PAGE: Final = 1000
USUAL_ON_A_PAGE: Final = 100
OF_OVERVIEW: Final = 100
"""The number of replicas in the overview."""
Json = dict[str, Any]


def overview(shot: RelaySnapshot, ready_behind_s: float, version: str) -> Json:
    """Return all that fits on one screen."""
    reasons = [{"name": one.name, "text": one.text} for one in reasons_not_ready(shot, ready_behind_s)]
    return {
        "at": shot.at,
        "version": version,
        "started_at": shot.started_at,
        "ready": not reasons,
        "reasons": reasons,
        "source": source(shot),
        "archive": archive(shot),
        "disk": disk(shot),
        "views": [asdict(one) for one in shot.views],
        "replicas": replicas(shot, 0, OF_OVERVIEW),
        "ledger": dict(shot.slow.ledger) if shot.slow.ledger is not None else None,
        "scrub": scrub(shot),
        "memory": asdict(shot.memory),
    }


def source(shot: RelaySnapshot) -> Json:
    """Return the connection to the source."""
    status, counters = shot.status, shot.counters
    return {
        "kind": status.kind,
        "host": status.host,
        "port": status.port,
        "flavour": status.flavour,
        "version": status.version,
        "server_id": status.server_id,
        "server_uuid": status.server_uuid,
        "running": status.io_running,
        "state": status.state,
        "attached_at": status.attached_at,
        "stopped_by_operator": status.stopped_by_operator,
        "trouble": shot.trouble,
        "error": {"number": status.last_error_number, "text": status.last_error_text, "at": status.last_error_at}
        if status.last_error_number
        else None,
        "retries": status.retries,
        "behind_s": shot.behind_s,
        "behind_bytes": shot.source_lag_bytes,
        "received": _place(status.received_file, status.received_offset),
        "archived": _place(status.archived_file, status.archived_offset),
        "synced": _place(status.synced_file, status.synced_offset),
        "last_event_at": status.last_event_timestamp or None,
        "last_received_at": shot.last_heard_at or None,
        "last_heartbeat_at": shot.last_heartbeat_at or None,
        "heartbeat_period_s": status.heartbeat_period_s,
        "tls": status.tls_version,
        "semi_sync": status.semi_sync,
        "received_bytes": counters.received_bytes,
        "received_transactions": counters.received_transactions,
    }


def archive(shot: RelaySnapshot) -> Json:
    """Return the mirror's files together, and by generation."""
    newest = shot.generations[-1]
    return {
        "state": newest.state,
        "failure": newest.failure or None,
        "files": shot.archive_files,
        "bytes": shot.archive_bytes,
        "purged_bytes": shot.counters.purged_bytes,
        "queued_bytes": shot.queued_bytes,
        "damaged_files": shot.damaged_files,
        "generations": [asdict(one) for one in shot.generations],
    }


def disk(shot: RelaySnapshot) -> Json:
    """Return the archive's file system; unknown values are null."""
    return {
        "asked_at": shot.slow.asked_at or None,
        "free_bytes": shot.slow.free_bytes,
        "size_bytes": shot.slow.size_bytes,
        "growth_bytes_per_s": shot.growth.bytes_per_s,
        "growth_over_s": shot.growth.over_s,
        "full_in_s": shot.full_in_s,
    }


def replicas(shot: RelaySnapshot, offset: int, limit: int) -> Json:
    """Return a page of the replicas, the one with the largest lag first. applied_elsewhere: the replicas of relay.toml that are none of
    those, or of which that is not known."""
    states: dict[str, int] = {}
    for one in shot.replicas:
        states[one.state] = states.get(one.state, 0) + 1
    page = [replica_row(one, shot.applying_elsewhere) for one in shot.replicas[offset : offset + limit]]
    elsewhere = [one.record() for one in shot.applying_elsewhere]
    return {"states": states, "applied_elsewhere": elsewhere, **page_of(page, len(shot.replicas), offset, limit)}


def views(shot: RelaySnapshot) -> Json:
    """Return the views of relay.toml."""
    return {"items": [asdict(one) for one in shot.views]}


def scrub(shot: RelaySnapshot) -> Json:
    """Return the check of all that is archived."""
    return {**asdict(shot.scrub), "oldest": shot.scrub.oldest or None}


def file_row(generation: int, file: ArchivedFile, is_damaged: bool) -> Json:
    """Return one binlog. state: "open", "complete", "cut" by a crash of the source, "damaged"."""
    state = "damaged" if is_damaged or file.damaged else "cut" if file.cut else "complete" if file.sealed else "open"
    return {
        "generation": generation,
        "file": file.name,
        "bytes": file.end,
        "state": state,
        "first_event_at": file.first_timestamp or None,
        "last_event_at": file.last_timestamp or None,
        "events": file.events,
        "transactions": file.groups,
        "server_id": file.server_id,
        "server_version": file.server_version,
        "digest": file.digest,
    }


def ledger_row(generation: int, row: LedgerRow) -> Json:
    """Return one row of the ledger. offset: null if there is none."""
    return {
        "at": row.time,
        "generation": generation,
        "kind": row.kind,
        "file": row.file,
        "offset": row.offset if row.offset >= 0 else None,
        "text": row.text,
        "see": f"{PAGE}#ledger-{row.kind}",
    }


def history(kept: History, resolution: str) -> Json:
    """Return columns of the same length. resolution: "fine" or "coarse"."""
    ring = kept.fine if resolution == "fine" else kept.coarse
    times, columns = ring.columns()
    return {"resolution": resolution, "step_s": ring.step_s, "at": times, "columns": columns}


def page_of(items: list[Any], total: int, offset: int, limit: int) -> Json:
    """Return a part of a list. next_offset: null on the last page."""
    following = offset + len(items)
    return {
        "items": items,
        "total": total,
        "offset": offset,
        "limit": limit,
        "next_offset": following if items and following < total else None,
    }


def _place(file: str | None, offset: int | None) -> Mapping[str, Any] | None:
    return {"file": file, "offset": offset} if file is not None else None
