"""continuity: whether an archive is complete from its first byte to its last, and what is missing where it is not.

CRCs and positions are checked by the reader of all events (the frame's own findings). Here: the chain of files, who wrote
them, times that go back, GTIDs, and what the archive's ledger says of gaps.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from protocol.binlog.event_type import EventType, event_type_name
from protocol.binlog.rotate import decode_rotate
from protocol.errors import ProtocolError
from relay.archive.archive import read_ledger
from relay.archive.catalog import LedgerRow
from relay.archive.files import CATALOG_NAME
from relay.audit.jobs.audit import FILE_ORDER, Audit
from relay.audit.jobs.files_read import FileHead
from relay.audit.jobs.gtid_continuity import FileRange, GtidReport, compare, head_state
from relay.audit.jobs.job import AuditFinding, AuditResult, Job, Place
from relay.audit.report.charts import time_step
from relay.audit.report.content import OverTime, Section, Table
from relay.audit.report.text import moment, number_of, span
from relay.audit.store import LocalStore, plain_path, store_of

_BACK_NOTED_S: Final = 60
_BACK_FOUND_S: Final = 3600
_PIECE_BYTES: Final = 256 << 10
_MOST_RANGES: Final = 500_000
_NAME: Final = re.compile(r"(.+)\.(\d{6,})")
_HEADER_BYTES: Final = 19
_LONGEST_ROTATE: Final = 4096
_ENDS: Final = frozenset({event_type_name(EventType.ROTATE), event_type_name(EventType.STOP)})

# What the ledger tells: kind -> how much it matters here, and what it is. Other kinds are told as notes.
_LEDGER_GAPS: Final = {
    "gap": "Files that the archive knows to be missing",
    "damaged": "Files that the archive found damaged",
    "cut_group": "Transactions that the source's crash cut",
    "foreign_file": "Files of another source",
    "gtid_head_differs": "Heads that contradict the files before them",
    "boundary_violation": "Events that could not stand where they came",
    "source_changed": "Changes of the source",
}

# Numbers without a gap, each once, are known by their count, their sum and the squares of their remainders.
_CYCLE: Final = 65536
_MYSQL_KEY: Final = r"^(.*):(\d+)$"
_MARIADB_KEY: Final = r"^(\d+)-\d+-(\d+)$"


def run(audit: Audit) -> AuditResult:
    """One pass over events for the files' ends, one over transactions for times and GTIDs, and the frame's over all bytes."""
    audit.step("Looking at the ends of files")
    ends = {row["file"]: row for row in audit.keep(_ends(audit)).collect()}
    heads = audit.heads
    findings = [*_file_chain(audit, heads, ends), *_identities(heads, audit.options.limit)]
    audit.step("Looking at times")
    transactions = audit.read("transactions", "file", "start", "last_time", "gtid", "events").where(
        "events IS NOT NULL"
    )
    findings += _times(audit, transactions)
    audit.step("Comparing GTIDs")
    gtids = _gtids(audit, transactions, heads)
    findings += _gtid_findings(gtids, audit.options.limit)
    ledger = _ledger(audit)
    findings += _ledger_findings(ledger, audit.options.limit)
    broken = [finding for finding in [*findings, *audit.unreadable] if finding.severity != "note"]
    files = _files_frame(audit, heads, ends)
    sections = [_files_section(heads, ends, audit.options.limit), *_gtid_sections(gtids, audit.options.limit)]
    sections += _ledger_sections(ledger, audit.options.limit)
    return AuditResult(_verdict(heads, ends, broken), findings, sections, {"files": files})


# ---- files -----------------------------------------------------------------------------------------------------------


def _ends(audit: Audit) -> DataFrame:
    return (
        audit.read("events", "file", "position", "end", "time", "type", "crc")
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


def _file_chain(audit: Audit, heads: list[FileHead], ends: dict[str, Row]) -> Iterator[AuditFinding]:
    missing: list[Place] = []
    unended: list[Place] = []
    unlinked: list[Place] = []
    renamed: list[Place] = []
    lost = 0
    for head, following in pairwise(heads):
        before, after = _NAME.fullmatch(head.name), _NAME.fullmatch(following.name)
        if before and after and before[1] != after[1]:
            renamed.append(Place(following.name, None, f"before it the files were {before[1]}.*"))
        elif before and after and int(after[2]) != int(before[2]) + 1:
            count = int(after[2]) - int(before[2]) - 1
            lost += count
            first, last = (f"{before[1]}.{number:06}" for number in (int(before[2]) + 1, int(after[2]) - 1))
            names = first if count == 1 else f"{first} to {last}"
            missing.append(Place(following.name, None, f"{names} before it"))
        end = ends.get(head.name)
        if end is None or end["last_type"] not in _ENDS:
            if not (head.file.damaged or head.file.cut):
                what = "no event can be read" if end is None else f"its last event is {end['last_type']}"
                unended.append(Place(head.name, None if end is None else end["last_position"], what))
        elif end["last_type"] == event_type_name(EventType.ROTATE):
            named = _rotates_to(audit, head, end["last_position"])
            if named is not None and named != following.name:
                text = f"goes on in {named}; the next file here is {following.name}"
                unlinked.append(Place(head.name, end["last_position"], text))
    limit = audit.options.limit
    yield from _one(
        "file_missing",
        "error",
        "Files that are missing",
        "The numbers of the files have a gap: the transactions in it are not here. Look for them on the source or in a backup.",
        missing,
        limit,
        lost,
    )
    yield from _one(
        "chain_broken",
        "error",
        "Files that do not lead to the next",
        "The Rotate at a file's end names another file than the next one here: a file is missing, or is of another source.",
        unlinked,
        limit,
    )
    yield from _one(
        "file_unfinished",
        "warning",
        "Files without an end",
        "A finished binlog ends with Rotate or Stop. The source crashed while it wrote this one, or the file was cut later.",
        unended,
        limit,
    )
    yield from _one(
        "files_renamed",
        "note",
        "Files have another name from here on",
        "The source's setting log_bin changed, or it is another source.",
        renamed,
        limit,
    )


def _rotates_to(audit: Audit, head: FileHead, position: int) -> str | None:
    """The file that the Rotate at `position` names; None: it cannot be read, which the reader of all events reports."""
    try:
        reader = store_of(audit.options.archive).open(head.file.path)
    except OSError:
        return None
    try:
        data = bytearray(_LONGEST_ROTATE)
        event = bytes(data[: reader.read_into(memoryview(data), position)])
        event = event[: int.from_bytes(event[9:13], "little")]
        return decode_rotate(event[_HEADER_BYTES : len(event) - (4 if head.checksum else 0)]).file
    except (OSError, ProtocolError):
        return None
    finally:
        reader.close()


def _identities(heads: list[FileHead], limit: int) -> Iterator[AuditFinding]:
    changed: list[Place] = []
    versions: list[Place] = []
    back: list[Place] = []
    known = [head for head in heads if head.version is not None]
    for before, after in pairwise(known):
        if before.server_id != after.server_id or before.flavour != after.flavour:
            text = f"server {after.server_id} ({after.version}); before it server {before.server_id} ({before.version})"
            changed.append(Place(after.name, 4, text, after.begun))
        elif before.version != after.version:
            versions.append(Place(after.name, 4, f"{after.version}; before it {before.version}", after.begun))
        if before.begun and after.begun and after.begun < before.begun:
            seconds = (before.begun - after.begun).total_seconds()
            text = f"was begun at {moment(after.begun)}, {span(seconds)} before {before.name}"
            back.append(Place(after.name, 4, text, after.begun))
    yield from _one(
        "identity_changed",
        "warning",
        "Files that another server wrote",
        "The server id in the head of the file is another one: its server_id was changed, or the file is not of this source.",
        changed,
        limit,
    )
    yield from _one(
        "version_changed",
        "note",
        "The source has another version from here on",
        "It was upgraded, or downgraded.",
        versions,
        limit,
    )
    yield from _one(
        "begun_earlier",
        "warning",
        "Files that were begun before the file before them",
        "The source's clock was set back, or the file is of another source or another time. Searches by time miss events.",
        back,
        limit,
    )


# ---- times -----------------------------------------------------------------------------------------------------------


def _times(audit: Audit, transactions: DataFrame) -> Iterator[AuditFinding]:
    """Pieces of a file whose earliest transaction ended before what came earlier: exact to the piece, and cheap.

    Of pieces that stay behind only the first is told.
    """
    pieces = (
        transactions.where("last_time IS NOT NULL AND CAST(last_time AS BIGINT) > 0")
        .withColumn("piece", F.expr(f"CAST(start DIV {_PIECE_BYTES} AS BIGINT)"))
        .groupBy("file", "piece")
        .agg(
            F.min("last_time").alias("time"),
            F.max("last_time").alias("newest"),
            F.min_by("start", "last_time").alias("position"),
        )
    )
    order = Window.orderBy(*map(F.expr, FILE_ORDER), "piece")
    level = f"CASE WHEN seconds >= {_BACK_FOUND_S} THEN 2 WHEN seconds >= {_BACK_NOTED_S} THEN 1 ELSE 0 END"
    back = audit.keep(
        pieces.withColumn("before", F.max("newest").over(order.rowsBetween(Window.unboundedPreceding, -1)))
        .withColumn("seconds", F.expr("CAST(before AS BIGINT) - CAST(time AS BIGINT)"))
        .withColumn("level", F.expr(level))
        .withColumn("level_before", F.coalesce(F.lag("level").over(order), F.lit(0)))
        .where("level > level_before")
    )
    counts = back.agg(F.count("*"), F.count_if(F.expr(f"seconds >= {_BACK_FOUND_S}"))).collect()[0]
    for name, severity, count, condition in (
        ("time_backwards", "warning", counts[1], f"seconds >= {_BACK_FOUND_S}"),
        ("time_behind", "note", counts[0] - counts[1], f"seconds < {_BACK_FOUND_S}"),
    ):
        if not count:
            continue
        places = audit.first_places(
            back.where(condition),
            lambda row: f"{span(row['seconds'])} earlier than {moment(row['before'])}, which came before",
        )
        yield AuditFinding(
            name,
            "warning" if severity == "warning" else "note",
            f"Times that go back, {'an hour or more' if severity == 'warning' else 'a minute or more'}",
            "The source's clock was set back, or a statement ran that long: events carry the time at which their statement "
            "began. A search by time may start too late here.",
            count,
            places,
        )


# ---- GTIDs -----------------------------------------------------------------------------------------------------------


def _gtids(audit: Audit, transactions: DataFrame, heads: list[FileHead]) -> tuple[GtidReport, int, int]:
    """What was found, how many transactions have no GTID, how many have one."""
    mysql = F.regexp_extract("gtid", _MYSQL_KEY, 1)
    is_mysql = F.col("gtid").contains(":")
    key = F.when(is_mysql, mysql).otherwise(F.regexp_extract("gtid", _MARIADB_KEY, 1))
    number = F.when(is_mysql, F.regexp_extract("gtid", _MYSQL_KEY, 2)).otherwise(
        F.regexp_extract("gtid", _MARIADB_KEY, 2)
    )
    numbered = transactions.select("file", key.alias("key"), number.try_cast("decimal(20,0)").alias("number"), "gtid")
    sums = audit.keep(
        numbered.groupBy("file", "key").agg(
            F.count("*").alias("count"),
            F.min("number").alias("first"),
            F.max("number").alias("last"),
            F.sum("number").alias("sum"),
            F.sum(F.expr(f"CAST(number % {_CYCLE} AS BIGINT) * CAST(number % {_CYCLE} AS BIGINT)")).alias("squares"),
        )
    )
    anonymous = with_gtid = 0
    ranges: list[FileRange] = []
    torn: list[tuple[str, str]] = []
    for row in sums.collect():
        if row["key"] is None:
            anonymous += row["count"]
            continue
        with_gtid += row["count"]
        if _is_whole(row):
            ranges.append(FileRange(row["file"], row["key"], int(row["first"]), int(row["last"])))
        else:
            torn.append((row["file"], row["key"]))
    if torn:
        pairs = F.broadcast(audit.frame_of("file string, key string", torn))
        ranges += _islands(numbered.join(pairs, ["file", "key"], "left_semi"))
    store = store_of(audit.options.archive)
    states = [head_state(store, head) for head in heads]
    return compare([head.name for head in heads], states, ranges), anonymous, with_gtid


def _is_whole(row: Row) -> bool:
    """Whether the numbers are first, first + 1, … last, each once, by their count and two sums."""
    first, last, count = int(row["first"]), int(row["last"]), row["count"]
    if last - first + 1 != count or int(row["sum"]) != (first + last) * count // 2:
        return False

    def squares(n: int) -> int:
        """Of the remainders of 0 to n."""
        cycles, rest = divmod(n + 1, _CYCLE)
        return cycles * _squares_below(_CYCLE) + _squares_below(rest)

    return int(row["squares"]) == squares(last) - squares(first - 1)


def _squares_below(n: int) -> int:
    return (n - 1) * n * (2 * n - 1) // 6


def _islands(numbered: DataFrame) -> Iterator[FileRange]:
    """Ranges without a gap, of the sequences in which something is missing or comes twice."""
    order = Window.partitionBy("file", "key").orderBy("number")
    once = numbered.groupBy("file", "key", "number").agg((F.count("*") - 1).alias("extra"))
    islands = (
        once.withColumn("island", F.col("number") - F.row_number().over(order))
        .groupBy("file", "key", "island")
        .agg(F.min("number").alias("first"), F.max("number").alias("last"), F.sum("extra").alias("extra"))
        .limit(_MOST_RANGES)
    )
    for row in islands.collect():
        yield FileRange(row["file"], row["key"], int(row["first"]), int(row["last"]), int(row["extra"]))


def _gtid_findings(gtids: tuple[GtidReport, int, int], limit: int) -> Iterator[AuditFinding]:
    report, anonymous, with_gtid = gtids
    yield from _one(
        "gtid_missing",
        "error",
        "GTIDs that are missing",
        "Numbers between those in the archive are not in it. A replica that positions itself by GTID may wait for them, or "
        "lacks them for ever. Numbers that were given up on the source, or filtered before it, look the same.",
        report.missing,
        limit,
    )
    yield from _one(
        "gtid_twice",
        "error",
        "GTIDs that come more than once",
        "A replica skips a transaction whose GTID it has executed: of two that share one, only the first is applied.",
        report.twice,
        limit,
    )
    yield from _one(
        "gtid_head_differs",
        "error",
        "Heads of files that contradict the files before them",
        "What the head of the file says was executed before it is not what the files before it hold: a file is missing "
        "between them, or it is of another source.",
        report.differs,
        limit,
    )
    if anonymous and with_gtid:
        yield AuditFinding(
            "gtid_partly",
            "note",
            "Transactions without a GTID among others with one",
            "A replica with auto-position does not get them.",
            anonymous,
            [],
        )


def _gtid_sections(gtids: tuple[GtidReport, int, int], limit: int) -> list[Section]:
    report, anonymous, with_gtid = gtids
    if not with_gtid:
        return []
    rows = [
        (
            key,
            there[0][0],
            there[-1][1],
            sum(last - first + 1 for first, last in there),
            sum(last - first + 1 for first, last in report.gaps.get(key, [])),
        )
        for key, there in sorted(report.sequences.items())
    ]
    table = Table(
        "",
        {"source": "code", "first": "count", "last": "count", "transactions": "count", "missing": "count"},
        rows[:limit],
        max(len(rows) - limit, 0),
    )
    text = f"{number_of(with_gtid, 'transaction')} with a GTID, {number_of(anonymous, 'transaction')} without."
    return [Section("GTIDs", text, tables=[table])]


# ---- the ledger ------------------------------------------------------------------------------------------------------


def _ledger(audit: Audit) -> list[LedgerRow]:
    """The archive's ledger; nothing where the files are no archive."""
    if not audit.files or not isinstance(store_of(audit.options.archive), LocalStore):
        return []
    directory = Path(plain_path(audit.files[0].path)).parent
    return read_ledger(directory) if (directory / CATALOG_NAME).exists() else []


def _ledger_findings(ledger: list[LedgerRow], limit: int) -> Iterator[AuditFinding]:
    for kind, title in _LEDGER_GAPS.items():
        places = [
            Place(row.file, row.offset if row.offset >= 0 else None, row.text, _time(row.time))
            for row in ledger
            if row.kind == kind
        ]
        yield from _one(
            f"ledger_{kind}",
            "warning",
            f"{title}, by the ledger",
            "The relay met this when it happened, and noted it. What it could not repair is still so.",
            places,
            limit,
        )


def _ledger_sections(ledger: list[LedgerRow], limit: int) -> list[Section]:
    if not ledger:
        return []
    newest = ledger[-limit:]
    rows = [
        (_time(row.time), row.kind, f"{row.file}:{row.offset}" if row.offset >= 0 else row.file, row.text)
        for row in reversed(newest)
    ]
    table = Table("", {"time": "time", "kind": "text", "place": "code", "what": "text"}, rows, len(ledger) - len(rows))
    return [
        Section(
            "The archive's ledger",
            "What the relay noted while it wrote this archive, the newest first.",
            tables=[table],
        )
    ]


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds).astimezone()


# ---- the report ------------------------------------------------------------------------------------------------------


def _one(
    name: str, severity: Any, title: str, advice: str, places: list[Place], limit: int, count: int | None = None
) -> Iterator[AuditFinding]:
    if places:
        yield AuditFinding(name, severity, title, advice, len(places) if count is None else count, places[:limit])


def _files_frame(audit: Audit, heads: list[FileHead], ends: dict[str, Row]) -> DataFrame:
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


def _files_section(heads: list[FileHead], ends: dict[str, Row], limit: int) -> Section:
    rows = []
    for head in heads[:limit]:
        end = ends.get(head.name)
        facts = (None,) * 4 if end is None else (end["last_time"], end["events"], end["last_type"], end["unchecked"])
        rows.append((head.name, head.bytes, head.begun, *facts, head.server_id, head.version))
    table = Table(
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


def _verdict(heads: list[FileHead], ends: dict[str, Row], broken: list[AuditFinding]) -> str:
    if not heads:
        return "No file was read."
    first, last = heads[0], heads[-1]
    end = ends.get(last.name)
    from_ = f"{first.name}:4 ({moment(first.begun)})"
    to = f"{last.name}:{'?' if end is None else end['last_end']} ({moment(None if end is None else end['last_time'])} UTC)"
    if not broken:
        return f"Complete from {from_} to {to}."
    kinds = "; ".join(f"{finding.title.lower()}: {finding.count}" for finding in broken[:4])
    return f"Not complete from {from_} to {to}: {kinds}{' and more' if len(broken) > 4 else ''}."


JOB: Final = Job(
    "continuity",
    "Continuity",
    "Checksums, positions, the chain of files, the identity of the source, times, GTIDs, and the archive's ledger.",
    run,
)
