"""transactions: sizes, durations, rates over time, the largest and the longest, what was rolled back, shares of each kind, and what may
be applied side by side."""

import math
from collections import Counter
from datetime import datetime
from typing import Any, Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from relay.audit.jobs.transaction_waits import unread_finding, waits_ahead, waits_frames, waits_section
from relay.audit.report.charts import time_step
from relay.audit.report.content import Columns, Kind, OverTime, ReportTable, Section, Shares
from relay.audit.report.text import moment, number_of, size, span
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, AuditResult
from relay.audit.runner.job import Job

_LARGE_BYTES: Final = 100 << 20
_LONG_S: Final = 3600

# A stretch that is only a finding of reading is no transaction.
_WHOLE: Final = "events IS NOT NULL AND NOT (kind = 'none' AND finding IS NOT NULL)"
_DURATION: Final = "CAST(last_time AS DOUBLE) - CAST(first_time AS DOUBLE)"
_CLASSES: Final = {
    "size_class": "CAST(ceil(log2(greatest(bytes, 1))) AS INT)",
    "span_class": (
        "CASE WHEN duration < 1 THEN 0 WHEN duration < 2 THEN 1 WHEN duration < 10 THEN 2 WHEN duration < 60 THEN 3 "
        "WHEN duration < 600 THEN 4 WHEN duration < 3600 THEN 5 WHEN duration < 86400 THEN 6 ELSE 7 END"
    ),
}
_SPANS: Final = ("< 1 s", "1 s", "2–9 s", "10–59 s", "1–9 min", "10–59 min", "1–23 h", "≥ 1 d")
_CELL_SUMS: Final = (
    "bytes", "events", "statements", "rows_inserted", "rows_updated", "rows_deleted", "large", "long",
)  # fmt: skip
_LISTED: Final[dict[str, Kind]] = {
    "place": "code",
    "bytes": "bytes",
    "duration": "seconds",
    "time": "time",
    "kind": "text",
    "events": "count",
    "rows": "count",
    "tables": "code",
    "GTID": "code",
}
_FRAME: Final = (
    "file",
    "start",
    "bytes",
    "first_time",
    "duration",
    "kind",
    "events",
    "rows",
    "tables",
    "gtid",
    "closed_by",
)


def run(audit: Audit) -> AuditResult:
    """One pass for all sums; one more for each list; two for what waits for what."""
    every = (
        audit.read(
            "transactions",
            *("file", "start", "bytes", "first_time", "last_time", "gtid", "kind", "events", "statements"),
            *("rows_inserted", "rows_updated", "rows_deleted", "tables", "rolled_back", "closed_by", "finding"),
        )
        .where(_WHOLE)
        .withColumn("duration", F.expr(_DURATION))
        .withColumn("rows", F.expr("rows_inserted + rows_updated + rows_deleted"))
    )
    frame = every.where(audit.wants_any_table(F.col("tables")))
    audit.step("Counting transactions")
    step = _step(audit)
    cells = audit.keep(_cells(frame, step))
    total = _total(cells)
    unnamed = _without_tables(every) if audit.options.tables else []
    if not total["transactions"]:
        verdict = "No transaction of these tables was read." if audit.options.tables else "No transaction was read."
        return AuditResult(verdict, unnamed, frames={"rates": cells.drop("large", "long")})
    audit.step("Looking for the largest")
    largest = audit.keep(_listed(frame, audit, F.desc("bytes")))
    audit.step("Looking for the longest")
    longest = audit.keep(_listed(frame.where("duration > 0"), audit, F.desc("duration")))
    frames = {"rates": cells.drop("large", "long"), "largest": largest, "longest": longest}
    rolled_back = None
    if total["rolled_back"]:
        audit.step("Looking for what was rolled back")
        rolled_back = audit.keep(_listed(frame.where("rolled_back"), audit))
        frames["rolled_back"] = rolled_back
    ahead = waits_ahead(audit)
    findings = [
        *_findings(audit, total, largest, longest, rolled_back),
        *unnamed,
        *unread_finding(ahead, audit.options.limit),
    ]
    sections = [
        _rates(cells, step, total),
        _sizes(cells, total, largest, audit.options.limit),
        _durations(cells, longest, audit.options.limit),
        _kinds(cells, total),
    ]
    if rolled_back is not None:
        listing = _listing("Rolled back", rolled_back.collect(), total["rolled_back"])
        sections.append(Section("Groups closed by ROLLBACK", tables=[listing]))
    if ahead.waits.groups:
        sections.append(waits_section(ahead.waits, audit.options.limit))
        frames |= waits_frames(audit, ahead.waits)
    verdict = (
        f"{number_of(total['transactions'], 'transaction')} of {size(total['bytes'])} from {moment(total['first'])} to "
        f"{moment(total['last'])} UTC; {number_of(total['rolled_back'], 'group')} rolled back."
    )
    return AuditResult(verdict, findings, sections, frames)


def _step(audit: Audit) -> int:
    """Seconds of a step of time, by when the files were begun: a minute at least."""
    begun = [head.begun for head in audit.heads if head.begun is not None]
    return max(60, time_step(min(begun), max(begun))) if begun else 60


def _cells(frame: DataFrame, step: int) -> DataFrame:
    """Sums by time, kind, end and class of size and duration: small whatever the archive's size."""
    frame = frame.withColumn("large", F.expr(f"CAST(bytes >= {_LARGE_BYTES} AS INT)"))
    frame = frame.withColumn("long", F.expr(f"CAST(duration >= {_LONG_S} AS INT)"))
    for name, sql in _CLASSES.items():
        frame = frame.withColumn(name, F.expr(sql))
    at = F.expr(f"timestamp_seconds(floor(CAST(last_time AS DOUBLE) / {step}) * {step})").alias("time")
    return frame.groupBy(at, "kind", "closed_by", "rolled_back", *_CLASSES).agg(
        F.count("*").alias("transactions"),
        *(F.sum(name).alias(name) for name in _CELL_SUMS),
        F.min("first_time").alias("first"),
        F.max("last_time").alias("last"),
    )


def _total(cells: DataFrame) -> dict[str, Any]:
    row = cells.agg(
        F.coalesce(F.sum("transactions"), F.lit(0)).alias("transactions"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _CELL_SUMS),
        F.coalesce(F.sum(F.expr("CASE WHEN rolled_back THEN transactions END")), F.lit(0)).alias("rolled_back"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
    ).collect()[0]
    return dict(row.asDict())


def _listed(frame: DataFrame, audit: Audit, *order: Any) -> DataFrame:
    return frame.select(*_FRAME).orderBy(*order, *audit.file_order, "start").limit(audit.options.limit)


def _findings(
    audit: Audit, total: dict[str, Any], largest: DataFrame, longest: DataFrame, rolled_back: DataFrame | None
) -> list[AuditFinding]:
    found = []
    if rolled_back is not None:
        places = audit.first_places(rolled_back, lambda row: _told(row), "start")
        found.append(
            AuditFinding(
                "rolled_back",
                "warning",
                "Groups closed by ROLLBACK",
                "The source wrote changes that it rolled back, since some of them could not be: tables of engines without "
                "transactions, or temporary tables. A replica does the same only if its tables have the same engines.",
                total["rolled_back"],
                places,
            )
        )
    if total["large"]:
        places = audit.first_places(largest.where(f"bytes >= {_LARGE_BYTES}"), lambda row: _told(row), "start")
        found.append(
            AuditFinding(
                "large_transaction",
                "note",
                f"Transactions of {size(_LARGE_BYTES)} and more",
                "A replica applies each as one piece: it lags behind by that, and needs memory or disk for it.",
                total["large"],
                places,
            )
        )
    if total["long"]:
        places = audit.first_places(longest.where(f"duration >= {_LONG_S}"), lambda row: _told(row), "start")
        found.append(
            AuditFinding(
                "long_transaction",
                "note",
                "Transactions whose events span an hour and more",
                "They were open that long on the source, with their locks.",
                total["long"],
                places,
            )
        )
    return found


def _without_tables(every: DataFrame) -> list[AuditFinding]:
    """What --tables leaves out because nobody can say whether it is about them."""
    count = every.where("size(tables) = 0").count()
    text = (
        "Only row events name their tables. Transactions of statements, and definitions, are left out with --tables, whatever they "
        "change; the audit mixing looks into statements."
    )
    return [AuditFinding("tables_unknown", "note", "Transactions that name no table", text, count, [])] if count else []


def _told(row: Row) -> str:
    tables = ", ".join(row["tables"][:5])
    return f"{size(row['bytes'])}, {span(row['duration'])}, {row['kind']}" + (f", {tables}" if tables else "")


def _rates(cells: DataFrame, step: int, total: dict[str, Any]) -> Section:
    # The steps of the chart: few, whatever times the events say.
    wide = math.ceil(time_step(total["first"], total["last"]) / step) * step
    slot = F.expr(f"timestamp_seconds(floor(CAST(time AS DOUBLE) / {wide}) * {wide})").alias("slot")
    rows = (
        cells.groupBy(slot, "kind")
        .agg(F.sum("transactions").alias("transactions"), F.sum("bytes").alias("bytes"))
        .orderBy("slot")
        .collect()
    )
    busiest = (
        cells.groupBy("time").agg(F.sum("transactions").alias("n")).orderBy(F.desc("n"), "time").limit(1).collect()[0]
    )
    kinds = [kind for kind, _ in Counter({row["kind"]: 0 for row in rows}).items()]
    by_kind: dict[str, list[tuple[datetime, float]]] = {kind: [] for kind in sorted(kinds)}
    bytes_: list[tuple[datetime, float]] = []
    for row in rows:
        by_kind[row["kind"]].append((row["slot"], row["transactions"]))
        bytes_.append((row["slot"], row["bytes"]))
    text = (
        f"By the time of each transaction's last event, in steps of {span(step)}. The busiest began at {moment(busiest['time'])}: "
        f"{number_of(busiest['n'], 'transaction')}, {busiest['n'] / step:,.1f} a second."
    )
    seconds = max((total["last"] - total["first"]).total_seconds(), 1)
    table = ReportTable(
        "",
        {"": "text", "in all": "text", "a second on average": "text"},
        [
            ("transactions", f"{total['transactions']:,}", f"{total['transactions'] / seconds:,.2f}"),
            ("bytes", size(total["bytes"]), size(total["bytes"] / seconds)),
            ("events", f"{total['events']:,}", f"{total['events'] / seconds:,.2f}"),
        ],
    )
    charts = [
        OverTime("Transactions over time", by_kind, wide),
        OverTime("Bytes over time", {"bytes": bytes_}, wide, "bytes"),
    ]
    return Section("Rates", text, charts, [table])


def _sizes(cells: DataFrame, total: dict[str, Any], largest: DataFrame, limit: int) -> Section:
    counted = {row["size_class"]: row["n"] for row in _sum_by(cells, "size_class")}
    least, most = min(counted), max(counted)
    values = [(f"≤ {size(1 << power).replace('.0', '')}", counted.get(power, 0)) for power in range(least, most + 1)]
    text = f"{size(total['bytes'] / total['transactions'])} on average."
    listing = _listing("The largest", largest.collect(), None, f"The first {limit} by size.")
    return Section("Sizes", text, [Columns("Transactions by size", values)], [listing])


def _durations(cells: DataFrame, longest: DataFrame, limit: int) -> Section:
    counted = {row["span_class"]: row["n"] for row in _sum_by(cells, "span_class")}
    values = [(label, counted.get(number, 0)) for number, label in enumerate(_SPANS)]
    text = "From the earliest to the latest time in a transaction's events. Times in binlogs are of whole seconds."
    listing = _listing(
        "The longest", longest.collect(), None, f"The first {limit} by duration; those within a second are left out."
    )
    return Section("Durations", text, [Columns("Transactions by duration", values)], [listing])


def _sum_by(cells: DataFrame, column: str) -> list[Row]:
    return cells.groupBy(column).agg(F.sum("transactions").alias("n")).collect()


def _kinds(cells: DataFrame, total: dict[str, Any]) -> Section:
    rows = (
        cells.groupBy("kind", "closed_by")
        .agg(
            F.sum("transactions").alias("transactions"),
            *(F.sum(name).alias(name) for name in _CELL_SUMS),
        )
        .orderBy(F.desc("transactions"))
        .collect()
    )
    kinds: Counter[str] = Counter()
    for row in rows:
        kinds[row["kind"]] += row["transactions"]
    table = ReportTable(
        "By kind, and by what closes them",
        {
            "kind": "text",
            "closed by": "text",
            "transactions": "count",
            "share": "percent",
            "bytes": "bytes",
            "events": "count",
            "statements": "count",
            "inserted": "count",
            "updated": "count",
            "deleted": "count",
        },
        [
            (
                row["kind"],
                (row["closed_by"] or "nothing").replace("_", " ").upper(),
                row["transactions"],
                row["transactions"] / total["transactions"],
                *(row[name] for name in _CELL_SUMS[:6]),
            )
            for row in rows
        ],
    )
    return Section("Kinds", charts=[Shares("Transactions by kind", kinds.most_common())], tables=[table])


def _listing(title: str, rows: list[Row], count: int | None, note: str = "") -> ReportTable:
    cells = [
        (
            f"{row['file']}:{row['start']}",
            row["bytes"],
            row["duration"],
            row["first_time"],
            row["kind"],
            row["events"],
            row["rows"],
            row["tables"][:10] or None,
            row["gtid"],
        )
        for row in rows
    ]
    return ReportTable(title, _LISTED, cells, 0 if count is None else count - len(cells), note)


JOB: Final = Job(
    "transactions",
    "Transactions",
    "How large, how long, how many, of which kind, and what became of them.",
    run,
    takes_tables=True,
)
