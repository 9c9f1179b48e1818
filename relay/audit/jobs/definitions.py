"""definitions: every statement that defines something, in order, with its changes to tables, and the differences between the beginning
and the end."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from protocol.sql.tables.source_table import Table
from relay.audit.definitions.schema_changes import SchemaChange, schema_changes
from relay.audit.definitions.table_differences import table_differences
from relay.audit.readiness.checks import shown
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, AuditResult
from relay.audit.runner.job import Job
from relay.audit.runner.look_alikes import look_alikes
from relay.audit.shared.statement_tables import defined_thing, head_of, named_table
from relay.binlog_tables.plan.packed_store import store_of
from relay.report.content import Bars, Kind, OverTime, ReportTable, Section
from relay.report.text import number_of
from relay.report.time_steps import time_step

_SHOWN_STATEMENT: Final = 400
_SHOWN_CHANGES: Final = 12
_CONDITIONS: Final = ("temporary", "if_not_exists")
_NOT_FOLLOWED: Final = (
    "error_code = 0 AND (what = 'ALTER TABLE' AND NOT known "
    "OR what = 'CREATE TABLE' AND known IS NULL AND table IS NOT NULL AND NOT temporary AND NOT if_not_exists)"
)
_CHANGES: Final = "file string, position bigint, table string, known boolean, changes array<string>"


def run(audit: Audit) -> AuditResult:
    """Make one pass over the statements; the tables are followed on the driver, through all files."""
    audit.step("Following definitions of tables")
    changes = schema_changes(store_of(audit.options.archive), audit.files)
    audit.step("Reading definitions")
    statements = _statements(audit)
    every = audit.keep(_with_changes(audit, statements, changes))
    rows = every.groupBy("what").agg(F.count("*").alias("n")).orderBy(F.desc("n"), "what").collect()
    kinds = [(row["what"], row["n"]) for row in rows]
    count = sum(number for _, number in kinds)
    listed = every.orderBy(*audit.file_order, "position", "table").limit(audit.options.limit).collect()
    places = {
        (row["file"], row["position"], row["table"])
        for row in every.where("size(changes) > 0").select("file", "position", "table").collect()
    }
    happened = [one for one in changes if (one.file, one.position, one.table) in places]
    differs = _differences(happened)
    findings = [*_failed(audit, every), *_not_followed(audit, every)]
    sections = [
        _over_time(every, kinds),
        _beginning_and_end(differs, audit.options.limit),
        Section("Timeline", tables=[_timeline(listed, count)]),
    ]
    figures: dict[str, object] = {"definitions": count, "by_kind": dict(kinds), "tables_that_differ": len(differs)}
    return AuditResult(_verdict(count, differs), findings, sections, {"definitions": every}, figures=figures)


def _verdict(count: int, differs: Sequence[object]) -> str:
    if not count:
        return "No statement defines anything in these files."
    tables = number_of(len(differs), "table")
    return (
        f"{number_of(count, 'definition')}; {tables} {'is' if len(differs) == 1 else 'are'} not what they were."
        if differs
        else (f"{number_of(count, 'definition')}; no table is known to be another than before.")
    )


def _statements(audit: Audit) -> DataFrame:
    read = audit.read("statements", "file", "position", "time", "thread_id", "error_code", "schema", "digest_text")
    return (
        read.where("digest_text IS NOT NULL")
        .withColumn("what", defined_thing())
        .where("what IS NOT NULL")
        .withColumn("named", named_table())
        .withColumns({name: head_of()[name] for name in _CONDITIONS})
        .withColumn("statement", F.udf(_shown, "string", useArrow=False)("digest_text"))
        .drop("digest_text")
    )


def _shown(text: str) -> str:
    return shown(text, _SHOWN_STATEMENT)


def _with_changes(audit: Audit, statements: DataFrame, changes: list[SchemaChange]) -> DataFrame:
    """Return a row for each table that a statement changes; for one that changes no known table, one row."""
    rows = [(one.file, one.position, one.table, one.after is not None, one.told) for one in changes]
    known = audit.frame_of(_CHANGES, rows).where(audit.wants_table(F.col("table")))
    joined = statements.join(F.broadcast(known), ["file", "position"], "left")
    return (
        joined.withColumn("table", F.coalesce("table", "named"))
        .where(audit.wants_table(F.coalesce("table", F.lit(""))) if audit.options.tables else F.lit(True))
        .select(
            *("file", "position", "time", "what", "schema", "table", "changes", "statement", "thread_id", "error_code"),
            *("known", *_CONDITIONS),
        )
    )


def _failed(audit: Audit, every: DataFrame) -> list[AuditFinding]:
    failed = every.where("error_code <> 0")
    count = failed.count()
    if not count:
        return []
    places, rows = look_alikes(
        audit,
        failed,
        ("error_code", "statement"),
        lambda row: f"error {row['error_code']}: {row['statement']}",
        position="position",
    )
    text = "They did a part of what they say: what the tables are behind them is not known."
    title = "Definitions that ended with an error"
    return [AuditFinding("definition_failed", "note", title, text, count, places, rows)]


def _not_followed(audit: Audit, every: DataFrame) -> list[AuditFinding]:
    """Return statements after which a known table is unknown, and those that create one that is unknown then."""
    lost = every.where(_NOT_FOLLOWED)
    count = lost.count()
    if not count:
        return []
    places, rows = look_alikes(
        audit, lost, ("table", "what"), lambda row: f"{row['what']} {row['table']}", position="position"
    )
    text = (
        "What they say is not understood for certain, so the table is not known behind them. A relay that is connected to the source "
        "records the columns."
    )
    title = "Definitions of tables whose changes could not be told"
    return [AuditFinding("definition_not_followed", "note", title, text, count, places, rows)]


def _differences(changes: list[SchemaChange]) -> list[tuple[SchemaChange, SchemaChange, list[str]]]:
    """Return for each table its first change, its last, and the differences after the last compared with before the first."""
    first: dict[tuple[str, str], SchemaChange] = {}
    last: dict[tuple[str, str], SchemaChange] = {}
    for one in changes:
        first.setdefault(one.name, one)
        last[one.name] = one
    found = []
    for name, one in sorted(first.items()):
        told = _told(one.before, last[name].after)
        if told:
            found.append((one, last[name], told))
    return found


def _told(before: Table | None, after: Table | None) -> list[str]:
    if before is not None and after is None:
        return ["gone, or not known any more"]
    told = table_differences(before, after)
    return [f"made, or known from here on: {told[0]}"] if before is None and told else told


def _beginning_and_end(differs: list[tuple[SchemaChange, SchemaChange, list[str]]], limit: int) -> Section:
    columns: dict[str, Kind] = {
        "table": "code",
        "first change": "place",
        "last change": "place",
        "what is another": "text",
    }
    rows = [
        (first.table, f"{first.file}:{first.position}", f"{last.file}:{last.position}", _cut(told))
        for first, last, told in differs[:limit]
    ]
    text = (
        "Tables before their first definition here and behind their last: with --since and --until, what is another at the one time "
        "than at the other. A table that was renamed is gone by its old name, and made by its new one."
    )
    return Section(
        "At the end and at the beginning", text, tables=[ReportTable("", columns, rows, len(differs) - len(rows))]
    )


def _cut(told: Sequence[str]) -> str:
    more = f"; {len(told) - _SHOWN_CHANGES} more" if len(told) > _SHOWN_CHANGES else ""
    return "; ".join(told[:_SHOWN_CHANGES]) + more


def _timeline(rows: list[Row], count: int) -> ReportTable:
    columns: dict[str, Kind] = {
        "place": "place",
        "time": "time",
        "what": "word",
        "table": "code",
        "what it changes": "text",
        "statement": "code",
    }
    cells = [
        (
            f"{row['file']}:{row['position']}",
            row["time"],
            row["what"],
            row["table"] or row["schema"],
            _cut(row["changes"]) if row["changes"] else None,
            row["statement"],
        )
        for row in rows
    ]
    note = "Statements are shown without their literals. A statement that changes several tables has a row for each."
    return ReportTable("", columns, cells, count - len(cells), note)


def _over_time(every: DataFrame, kinds: list[tuple[str, int]]) -> Section:
    times = every.agg(F.min("time"), F.max("time")).collect()[0]
    if times[0] is None:
        return Section("Over time")
    step = time_step(times[0], times[1])
    at = F.expr(f"timestamp_seconds(floor(CAST(time AS DOUBLE) / {step}) * {step})").alias("at")
    rows = every.where("time IS NOT NULL").groupBy(at).agg(F.count("*").alias("n")).orderBy("at").collect()
    points: list[tuple[datetime, float]] = [(row["at"], row["n"]) for row in rows]
    counted = Counter(dict(kinds)).most_common()
    return Section(
        "Over time", charts=[OverTime("Definitions", {"definitions": points}, step), Bars("By kind", counted)]
    )


JOB: Final = Job(
    "definitions",
    "Definitions",
    "Statements that define tables and all else, in the order of the binlog, and what they changed in tables.",
    run,
    takes_tables=True,
)
