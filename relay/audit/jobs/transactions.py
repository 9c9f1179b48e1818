"""transactions: sizes, durations, rates over time, the largest and the longest, rolled-back ones, shares of each kind, and what can be
applied in parallel."""

from collections import Counter
from typing import Any, Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from relay.audit.jobs.transaction_patterns import foremost_table, patterns_table, transaction_patterns
from relay.audit.jobs.transaction_rates import PERCENTILES, busiest_seconds, percentiles, rate_figures, rates_section
from relay.audit.jobs.transaction_waits import dry_run_waits, unread_finding, waits_frames, waits_section
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, AuditResult
from relay.audit.runner.job import Job
from relay.audit.runner.look_alikes import look_alikes
from relay.report.content import Columns, Kind, ReportTable, Section, Shares
from relay.report.text import moment, number, number_of, size, span
from relay.report.time_steps import time_step

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
_KIND_SUMS: Final = ("bytes", "events", "statements", "rows_inserted", "rows_updated", "rows_deleted")
_SUMS: Final = (*_KIND_SUMS, "rows")
_MEASURED: Final = ("bytes", "rows", "duration")
_SAME_TABLES: Final = "Of each kind of transactions that change the same tables one."
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
    """Make passes over the level transactions for sums, for each step of time, second and pattern, and for two lists, and two over the
    files for dependencies."""
    every = (
        audit.read(
            "transactions",
            *("file", "start", "bytes", "first_time", "last_time", "gtid", "kind", "events", "statements"),
            *("rows_inserted", "rows_updated", "rows_deleted", "tables", "rolled_back", "closed_by", "finding"),
        )
        .where(_WHOLE)
        .withColumn("duration", F.expr(_DURATION))
        .withColumn("rows", F.expr("rows_inserted + rows_updated + rows_deleted"))
        .withColumn("tables", F.array_sort("tables"))
    )
    frame = every.where(audit.wants_any_table(F.col("tables")))
    audit.step("Counting transactions")
    total = _total(frame)
    unnamed = _without_tables(every) if audit.options.tables else []
    step = time_step(total["first"], total["last"]) if total["first"] else 1
    cells = audit.keep(_cells(frame, step))
    if not total["transactions"]:
        verdict = "No transaction of these tables was read." if audit.options.tables else "No transaction was read."
        return AuditResult(verdict, unnamed, frames={"rates": cells})
    audit.step("Looking for what they change")
    patterns = transaction_patterns(audit, frame)
    busiest = busiest_seconds(frame)
    audit.step("Looking for the largest")
    largest = audit.keep(_listed(frame, audit, F.desc("bytes")))
    audit.step("Looking for the longest")
    longest = audit.keep(_listed(frame.where("duration > 0"), audit, F.desc("duration")))
    frames = {"rates": cells, "largest": largest, "longest": longest}
    rolled_back = frame.where("rolled_back")
    if total["rolled_back"]:
        frames["rolled_back"] = _listed(rolled_back, audit)
    ahead = dry_run_waits(audit)
    findings = [
        *_rolled_back(audit, rolled_back, total["rolled_back"]),
        *_findings(audit, frame, total),
        *unnamed,
        *unread_finding(ahead, audit.options.limit),
    ]
    sections = [
        *([rates_section(cells, step, total, busiest)] if busiest["most"] else []),
        _sizes(audit, cells, total, patterns),
        _durations(audit, cells, total, patterns),
        _kinds(cells, total),
        Section("What they change", tables=[patterns_table(audit, patterns)]),
    ]
    if ahead.waits.groups:
        sections.append(waits_section(ahead.waits, audit.options.limit))
        frames |= waits_frames(audit, ahead.waits)
    verdict = (
        f"{number_of(total['transactions'], 'transaction')} of {size(total['bytes'])} from {moment(total['first'])} to "
        f"{moment(total['last'])} UTC; {number_of(total['rolled_back'], 'group')} rolled back."
    )
    figures = _figures(total, busiest)
    if ahead.waits.groups:
        figures["dependencies"] = {"told": ahead.waits.told()} | ahead.waits.record()
    return AuditResult(verdict, findings, sections, frames, figures=figures)


def _figures(total: dict[str, Any], busiest: dict[str, Any]) -> dict[str, object]:
    figures: dict[str, object] = {
        "transactions": total["transactions"],
        "rolled_back_groups": total["rolled_back"],
        **{name: total[name] for name in _SUMS},
        **(rate_figures(total, busiest) if busiest["most"] else {}),
    }
    for name, column in (("size_bytes", "bytes"), ("rows", "rows"), ("duration_seconds", "duration")):
        figures[f"transaction_{name}"] = {
            **dict(zip(PERCENTILES, total[f"{column}_percentiles"], strict=True)),
            "max": total[f"{column}_max"],
        }
    return figures


def _cells(frame: DataFrame, step: int) -> DataFrame:
    """Return sums by time, kind, end and class of size and duration: small whatever the archive's size."""
    for name, sql in _CLASSES.items():
        frame = frame.withColumn(name, F.expr(sql))
    at = F.expr(f"timestamp_seconds(floor(CAST(last_time AS DOUBLE) / {step}) * {step})").alias("time")
    return frame.groupBy(at, "kind", "closed_by", "rolled_back", *_CLASSES).agg(
        F.count("*").alias("transactions"),
        *(F.sum(name).alias(name) for name in _SUMS),
        F.min("first_time").alias("first"),
        F.max("last_time").alias("last"),
    )


def _total(frame: DataFrame) -> dict[str, Any]:
    row = frame.agg(
        F.count("*").alias("transactions"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _SUMS),
        F.count_if(F.expr("rolled_back")).alias("rolled_back"),
        F.count_if(F.expr(f"bytes >= {_LARGE_BYTES}")).alias("large"),
        F.count_if(F.expr(f"duration >= {_LONG_S}")).alias("long"),
        F.min("first_time").alias("first"),
        F.max("last_time").alias("last"),
        *(percentiles(name).alias(f"{name}_percentiles") for name in _MEASURED),
        *(F.max(name).alias(f"{name}_max") for name in _MEASURED),
    ).collect()[0]
    return dict(row.asDict())


def _listed(frame: DataFrame, audit: Audit, *order: Any) -> DataFrame:
    return frame.select(*_FRAME).orderBy(*order, *audit.file_order, "start").limit(audit.options.limit)


def _rolled_back(audit: Audit, rolled_back: DataFrame, count: int) -> list[AuditFinding]:
    if not count:
        return []
    audit.step("Looking for what was rolled back")
    places, rows = look_alikes(audit, rolled_back, ("kind", "tables"), _pattern, time="first_time")
    text = (
        "The source wrote changes that it rolled back, since some of them could not be: tables of engines without "
        "transactions, or temporary tables. A replica does the same only if its tables have the same engines."
    )
    return [AuditFinding("rolled_back", "warning", "Groups closed by ROLLBACK", text, count, places, rows)]


def _findings(audit: Audit, frame: DataFrame, total: dict[str, Any]) -> list[AuditFinding]:
    found = []
    if total["large"]:
        places, rows = look_alikes(
            audit, frame.where(f"bytes >= {_LARGE_BYTES}"), ("kind", "tables"), _pattern, time="first_time"
        )
        found.append(
            AuditFinding(
                "large_transaction",
                "note",
                f"Transactions of {size(_LARGE_BYTES)} and more",
                "A replica applies each as one piece: it lags behind by that, and needs memory or disk for it.",
                total["large"],
                places,
                rows,
            )
        )
    if total["long"]:
        places, rows = look_alikes(
            audit, frame.where(f"duration >= {_LONG_S}"), ("kind", "tables"), _pattern, time="first_time"
        )
        found.append(
            AuditFinding(
                "long_transaction",
                "note",
                "Transactions whose events span an hour and more",
                "They were open that long on the source, with their locks.",
                total["long"],
                places,
                rows,
            )
        )
    return found


def _without_tables(every: DataFrame) -> list[AuditFinding]:
    """Return a finding about what --tables leaves out because it is unknown whether it concerns them."""
    count = every.where("size(tables) = 0").count()
    text = (
        "Only row events name their tables. Transactions of statements, and definitions, are left out with --tables, whatever they "
        "change; the audit mixing looks into statements."
    )
    return [AuditFinding("tables_unknown", "note", "Transactions that name no table", text, count, [])] if count else []


def _pattern(row: Row) -> str:
    tables = ", ".join(row["tables"][:8])
    return f"{row['kind']} format" + (f", {tables}" if tables else "")


def _sizes(audit: Audit, cells: DataFrame, total: dict[str, Any], patterns: DataFrame) -> Section:
    counted = {row["size_class"]: row["n"] for row in _sum_by(cells, "size_class")}
    least, most = min(counted), max(counted)
    values = [(f"≤ {size(1 << power).replace('.0', '')}", counted.get(power, 0)) for power in range(least, most + 1)]
    table = foremost_table(audit, patterns, "largest", "The largest of each kind", _SAME_TABLES)
    return Section("Sizes", "", [Columns("Transactions by size", values)], [_percentile_table(total), table])


def _percentile_table(total: dict[str, Any]) -> ReportTable:
    """Return the maximum of half of the transactions, of 95 % of them, and of 99 % of them."""
    columns: dict[str, Kind] = dict.fromkeys(("of a transaction", *PERCENTILES, "most", "mean"), "text")
    rows = []
    for label, name, text in (("bytes", "bytes", size), ("rows", "rows", number), ("duration", "duration", span)):
        values = [*total[f"{name}_percentiles"], total[f"{name}_max"]]
        mean = "-" if name == "duration" else text(total[name] / total["transactions"])
        rows.append((label, *("-" if value is None else text(value) for value in values), mean))
    note = "p95: 95 % of the transactions have no more. Where nothing tells rows (statements), a transaction has none."
    return ReportTable("", columns, rows, note=note)


def _durations(audit: Audit, cells: DataFrame, total: dict[str, Any], patterns: DataFrame) -> Section:
    counted = {row["span_class"]: row["n"] for row in _sum_by(cells, "span_class")}
    values = [(label, counted.get(number, 0)) for number, label in enumerate(_SPANS)]
    text = "From the earliest to the latest time in a transaction's events. Times in binlogs are of whole seconds."
    note = f"{_SAME_TABLES} Those within a second are left out."
    table = foremost_table(audit, patterns, "longest", "The longest of each kind", note)
    return Section("Durations", text, [Columns("Transactions by duration", values)], [table])


def _sum_by(cells: DataFrame, column: str) -> list[Row]:
    return cells.groupBy(column).agg(F.sum("transactions").alias("n")).collect()


def _kinds(cells: DataFrame, total: dict[str, Any]) -> Section:
    rows = (
        cells.groupBy("kind", "closed_by")
        .agg(
            F.sum("transactions").alias("transactions"),
            *(F.sum(name).alias(name) for name in _KIND_SUMS),
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
            "kind": "word",
            "closed by": "word",
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
                *(row[name] for name in _KIND_SUMS),
            )
            for row in rows
        ],
    )
    return Section("Kinds", charts=[Shares("Transactions by kind", kinds.most_common())], tables=[table])


JOB: Final = Job(
    "transactions",
    "Transactions",
    "How large, how long, how many, of which kind, and what became of them.",
    run,
    takes_tables=True,
)
