"""The chain of an archive's files: whether each ends as a finished one does, which one follows, and who wrote them."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from protocol.binlog.event_type import EventType, event_type_name
from protocol.binlog.layout import HEADER_SIZE, event_size
from protocol.binlog.rotate import decode_rotate
from protocol.errors import ProtocolError
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.storage.ledger_kinds import GAP_ACCEPTED
from relay.audit.continuity.ledger import gap_before
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, Place, found_at
from relay.audit.shared.event_counts import event_counts
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.series_head import SeriesHead
from relay.report.content import OverTime, ReportTable, Section
from relay.report.text import moment, span
from relay.report.time_steps import time_step

_NAME: Final = re.compile(r"(.+)\.(\d{6,})")
_LONGEST_ROTATE: Final = 4096
_ENDS: Final = frozenset({event_type_name(EventType.ROTATE), event_type_name(EventType.STOP)})


def file_ends(audit: Audit) -> DataFrame:
    """Return for each file its events, its last one, and how many have no CRC."""
    if not audit.options.timed:
        return (
            event_counts(audit)
            .groupBy("file")
            .agg(
                F.sum("events").alias("events"),
                F.max("last_position").alias("last_position"),
                F.max("last_end").alias("last_end"),
                F.max_by("type", "last_position").alias("last_type"),
                F.max("last_time").alias("last_time"),
                F.sum("unchecked").alias("unchecked"),
            )
        )
    return (
        audit.read_whole("events", "file", "position", "end", "time", "type", "crc")
        .where("type IS NOT NULL")
        .groupBy("file")
        .agg(
            F.count("*").alias("events"),
            F.max("position").alias("last_position"),
            F.max("end").alias("last_end"),
            F.max_by("type", "position").alias("last_type"),
            F.max("time").alias("last_time"),
            F.count_if(F.expr("crc = 'none'")).alias("unchecked"),
        )
    )


def chain_findings(
    audit: Audit, heads: list[SeriesHead], ends: dict[str, Row], ledger: list[LedgerRow]
) -> Iterator[AuditFinding]:
    """Yield findings where a file does not lead to the next. No file leads to another where the archive went on with another source."""
    missing: list[Place] = []
    unended: list[Place] = []
    unlinked: list[Place] = []
    renamed: list[Place] = []
    lost = 0
    for head, following in _of_one_source(heads):
        before, after = _NAME.fullmatch(head.name), _NAME.fullmatch(following.name)
        if before and after and before[1] != after[1]:
            renamed.append(Place(following.name, None, f"before it the files were {before[1]}.*"))
        elif before and after and int(after[2]) != int(before[2]) + 1:
            count = int(after[2]) - int(before[2]) - 1
            lost += count
            first, last = (f"{before[1]}.{number:06}" for number in (int(before[2]) + 1, int(after[2]) - 1))
            names = first if count == 1 else f"{first} to {last}"
            missing.append(Place(following.name, None, f"{names} before it{gap_before(ledger, following.name)}"))
        end = ends.get(head.name)
        if end is None or end["last_type"] not in _ENDS:
            if not (head.file.damaged or head.file.cut):
                what = "no event can be read" if end is None else f"its last event is {end['last_type']}"
                unended.append(Place(head.name, None if end is None else end["last_position"], what))
        elif end["last_type"] == event_type_name(EventType.ROTATE):
            named = _rotates_to(audit, head, end["last_position"])
            if named is not None and named != following.base:
                text = f"goes on in {named}; the next file here is {following.base}"
                unlinked.append(Place(head.name, end["last_position"], text))
    limit = audit.options.limit
    yield from found_at(
        "file_missing",
        "error",
        "Files that are missing",
        "The numbers of the files have a gap: the transactions in it are not here. Look for them on the source or in a backup.",
        missing,
        limit,
        lost,
    )
    yield from found_at(
        "chain_broken",
        "error",
        "Files that do not lead to the next",
        "The Rotate at a file's end names another file than the next one here: a file is missing, or is of another source.",
        unlinked,
        limit,
    )
    yield from found_at(
        "file_unfinished",
        "warning",
        "Files without an end",
        "A finished binlog ends with Rotate or Stop. The source crashed while it wrote this one, or the file was cut later.",
        unended,
        limit,
    )
    yield from found_at(
        "files_renamed",
        "note",
        "Files have another name from here on",
        "The source's setting log_bin changed, or it is another source.",
        renamed,
        limit,
    )


def _of_one_source(heads: list[SeriesHead]) -> Iterator[tuple[SeriesHead, SeriesHead]]:
    """Return consecutive files of the same source."""
    return (pair for pair in pairwise(heads) if pair[0].generation == pair[1].generation)


def _rotates_to(audit: Audit, head: SeriesHead, position: int) -> str | None:
    """Return the file that the Rotate at `position` names; None if it cannot be read, which the reader of all events reports."""
    try:
        reader = store_of(audit.options.archive).open(head.file.path)
    except OSError:
        return None
    try:
        data = bytearray(_LONGEST_ROTATE)
        event = bytes(data[: reader.read_into(memoryview(data), position)])
        event = event[: event_size(event)]
        return decode_rotate(event[HEADER_SIZE : len(event) - (4 if head.checksum else 0)]).file
    except (OSError, ProtocolError):
        return None
    finally:
        reader.close()


def identity_findings(heads: list[SeriesHead], ledger: list[LedgerRow], limit: int) -> Iterator[AuditFinding]:
    """Compare who wrote each file, and when it was begun, with the previous file. After an accepted gap, which is a separate finding,
    the source is the same one, or is named there."""
    behind_gap = {row.file for row in ledger if row.kind == GAP_ACCEPTED}
    changed: list[Place] = []
    versions: list[Place] = []
    back: list[Place] = []
    known = [head for head in heads if head.version is not None]
    replaced = [
        Place(after.name, 4, f"server {after.server_id} ({after.version}); {_server(before)}", after.begun)
        for before, after in pairwise(known)
        if before.generation != after.generation and after.name not in behind_gap
    ]
    for before, after in _of_one_source(known):
        if before.server_id != after.server_id or before.flavour != after.flavour:
            text = f"server {after.server_id} ({after.version}); {_server(before)}"
            changed.append(Place(after.name, 4, text, after.begun))
        elif before.version != after.version:
            versions.append(Place(after.name, 4, f"{after.version}; before it {before.version}", after.begun))
        if before.begun and after.begun and after.begun < before.begun:
            seconds = (before.begun - after.begun).total_seconds()
            text = f"was begun at {moment(after.begun)}, {span(seconds)} before {before.name}"
            back.append(Place(after.name, 4, text, after.begun))
    yield from found_at(
        "identity_changed",
        "warning",
        "Files that another server wrote",
        "The server id in the head of the file is another one: its server_id was changed, or the file is not of this source.",
        changed,
        limit,
    )
    yield from found_at(
        "version_changed",
        "note",
        "The source has another version from here on",
        "It was upgraded, or downgraded.",
        versions,
        limit,
    )
    yield from found_at(
        "begun_earlier",
        "warning",
        "Files that were begun before the file before them",
        "The source's clock was set back, or the file is of another source or another time. Searches by time miss events.",
        back,
        limit,
    )
    yield from found_at(
        "source_replaced",
        "note",
        "The archive goes on with another source",
        "The relay was told to. The first file of the new source may repeat transactions of the one before.",
        replaced,
        limit,
    )


def _server(head: SeriesHead) -> str:
    return f"before it server {head.server_id} ({head.version})"


def files_frame(audit: Audit, heads: list[SeriesHead], ends: dict[str, Row]) -> DataFrame:
    """Return a row for each file."""
    rows = []
    for head in heads:
        end = ends.get(head.name)
        facts = (None,) * 4 if end is None else (end["events"], end["last_end"], end["last_type"], end["last_time"])
        rows.append((head.name, head.bytes, head.begun, head.version, head.server_id, *facts))
    return audit.frame_of(
        "file string, bytes bigint, begun timestamp, version string, server_id bigint, events bigint, last_end bigint, "
        "last_type string, last_time timestamp",
        rows,
    )


def files_section(heads: list[SeriesHead], ends: dict[str, Row], limit: int) -> Section:
    """Return a section with the files, and their bytes over time."""
    rows = []
    for head in heads[:limit]:
        end = ends.get(head.name)
        facts = (None,) * 4 if end is None else (end["last_time"], end["events"], end["last_type"], end["unchecked"])
        rows.append((head.name, head.bytes, head.begun, *facts, head.server_id, head.version))
    table = ReportTable(
        "",
        {
            "file": "code",
            "bytes": "bytes",
            "begun": "time",
            "last event": "time",
            "events": "count",
            "ends with": "text",
            "without CRC": "count",
            "server": "text",
            "version": "text",
        },
        rows,
        max(len(heads) - limit, 0),
    )
    begun = [(head.begun, float(head.bytes)) for head in heads if head.begun is not None]
    charts = []
    if len(begun) > 1:
        step = time_step(min(time for time, _ in begun), max(time for time, _ in begun))
        charts = [OverTime("Bytes of the files, by when each was begun", {"bytes": begun}, step, "bytes")]
    return Section("Files", charts=charts, tables=[table])
