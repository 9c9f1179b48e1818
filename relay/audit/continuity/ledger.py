"""The gaps and cuts in an archive's ledger: findings of `continuity`, and a listing of all rows."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.storage.files import CATALOG_NAME
from relay.archive.storage.ledger_kinds import GAP_ACCEPTED
from relay.archive_inspection.listing import read_ledger
from relay.audit.runner.audit_result import AuditFinding, Place
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.series_files import SeriesFile
from relay.binlog_tables.plan.store import LocalStore, plain_path
from relay.report.content import ReportTable, Section

# This maps a kind to its meaning. Rows of other kinds (a purge, a new name, a source that was given up) are listed, and are no
# findings: nothing of the archive is missing because of them.
GAPS: Final = {
    "gap": "Files that the archive knows to be missing",
    GAP_ACCEPTED: "Gaps in the source's binlogs that somebody accepted",
    "file_missing": "Files that were archived and are lost",
    "damaged": "Files that the archive found damaged",
    "cut_group": "Transactions that the source's crash cut",
    "unannounced_cut": "Files that ended inside a transaction",
    "trim_failed": "Half-written ends that could not be cut back",
    "foreign_file": "Files of another source",
    "gtid_head_differs": "Heads that contradict the files before them",
    "gtid_unreadable": "Files whose GTIDs could not be read",
    "boundary_violation": "Events that could not stand where they came",
    "source_changed": "Changes of the source",
}


def read_ledgers(archive: str, files: list[SeriesFile], *, of_these: bool) -> list[LedgerRow]:
    """Return the ledgers of the archive that contains `files`, of all its sources, oldest first; nothing if they are no archive.

    Files of a later source have the names that the audit uses. With `of_these` only rows about `files` are returned. Raises:
    ArchiveError.
    """
    if not isinstance(store_of(archive), LocalStore):
        return []
    directories: dict[Path, str] = {}
    for file in files:
        directory = Path(plain_path(file.path)).parent
        if file.generation:
            directories.setdefault(directory.parent, "")
        directories.setdefault(directory, f"{file.generation}/" if file.generation else "")
    rows = [
        replace(row, file=f"{prefix}{row.file}" if row.file else "")
        for directory, prefix in directories.items()
        if (directory / CATALOG_NAME).exists()
        for row in read_ledger(directory)
    ]
    names = {file.name for file in files}
    return sorted((row for row in rows if not of_these or row.file in names), key=lambda row: row.time)


def ledger_findings(ledger: list[LedgerRow], limit: int) -> Iterator[AuditFinding]:
    """Yield a finding for each kind in which something of the archive is missing or changed."""
    for kind, title in GAPS.items():
        rows = [row for row in ledger if row.kind == kind]
        if rows:
            yield AuditFinding(
                f"ledger_{kind}",
                "warning",
                f"{title}, by the ledger",
                "The relay met this when it happened, and noted it. What it could not repair is still so.",
                len(rows),
                [
                    Place(row.file, row.offset if row.offset >= 0 else None, row.text, _time(row))
                    for row in rows[:limit]
                ],
            )


def gap_before(ledger: list[LedgerRow], file: str) -> str:
    """Return what the ledger says about missing files before `file`, as the end of a sentence; "" without a ledger."""
    if not ledger:
        return ""
    told = [row for row in ledger if row.kind in ("gap", "file_missing") and row.file == file]
    return f"; noted in the ledger {_time(told[-1]):%Y-%m-%d}" if told else "; the ledger has no note of it"


def ledger_sections(ledger: list[LedgerRow], limit: int) -> list[Section]:
    """Return the newest rows of the ledger."""
    if not ledger:
        return []
    rows = [
        (_time(row), row.kind, f"{row.file}:{row.offset}" if row.offset >= 0 else row.file, row.text)
        for row in reversed(ledger[-limit:])
    ]
    table = ReportTable(
        "", {"time": "time", "kind": "text", "place": "place", "what": "text"}, rows, len(ledger) - len(rows)
    )
    return [
        Section(
            "The archive's ledger",
            "What the relay noted while it wrote this archive, the newest first.",
            tables=[table],
        )
    ]


def _time(row: LedgerRow) -> datetime:
    return datetime.fromtimestamp(row.time).astimezone()
