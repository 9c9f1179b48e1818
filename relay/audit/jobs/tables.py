"""tables: rows inserted, updated and deleted, and bytes, per table and hour; tables without a primary key in row format.

An archive of less than some days is shown in steps shorter than an hour.
"""

from datetime import datetime
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from relay.audit.readiness.defined_tables import NO_PRIMARY_KEY, PRIMARY_KEY_UNKNOWN
from relay.audit.runner.audit import Audit, place_of
from relay.audit.runner.audit_result import AuditFinding, AuditResult
from relay.audit.runner.job import Job
from relay.audit.runner.row_findings import HAS_FINDING, row_findings
from relay.audit.shared.table_keys import mapped_tables
from relay.report.content import Bars, OverTime, ReportTable, Section
from relay.report.text import number_of, span
from relay.report.time_steps import time_step

_HOUR: Final = 3600
_OPERATIONS: Final = {"insert": "inserted", "update": "updated", "delete": "deleted"}
_COUNTS: Final = tuple(_OPERATIONS.values())
_SUMS: Final = tuple(f"SUM({name}) AS {name}" for name in (*_COUNTS, "bytes"))


def run(audit: Audit) -> AuditResult:
    """Make two passes: one over the events for their bytes, one over the rows."""
    audit.step("Counting rows")
    step = _step(audit)
    rows = audit.keep(_rows(audit, step))
    result = _result(audit, audit.keep(_by_step(audit, rows, step)), step)
    if rows.where("wrong > 0").limit(1).collect():
        audit.step("Looking for rows that cannot be read")
        result.findings += row_findings(audit, F.concat_ws(".", "schema", "table"), values=False)
    return result


def _step(audit: Audit) -> int:
    """Return the seconds of a step: an hour at most, which is a multiple of all shorter ones."""
    audit.step("Looking at times")
    times = audit.read("transactions", "first_time", "last_time").agg(F.min("first_time"), F.max("last_time"))
    first, last = times.collect()[0]
    return 1 if first is None or last is None else min(time_step(first, last), _HOUR)


def _rows(audit: Audit, step: int) -> DataFrame:
    """Return begin, schema, table, inserted, updated, deleted and wrong, which counts rows with findings."""
    return (
        audit.read("rows", "time", "operation", "schema", "table", "finding")
        .where(F.col("table").isNull() | audit.wants_table(F.concat_ws(".", "schema", "table")))
        .groupBy(_begin(step), "schema", "table")
        .agg(
            *(F.count_if(F.col("operation") == name).alias(column) for name, column in _OPERATIONS.items()),
            F.count_if(F.expr(HAS_FINDING)).alias("wrong"),
        )
    )


def _begin(step: int) -> Column:
    return F.expr(f"timestamp_seconds(floor(CAST(time AS DOUBLE) / {step}) * {step})").alias("begin")


def _by_step(audit: Audit, rows: DataFrame, step: int) -> DataFrame:
    """Return begin, schema, table, inserted, updated, deleted and bytes."""
    key = ("begin", "schema", "table")
    changed = rows.where("table IS NOT NULL").where(" + ".join(_COUNTS) + " > 0").drop("wrong")
    sizes = (
        audit.once(audit.read("events", "file", "position", "end", "time", "schema", "table"))
        .where("table IS NOT NULL")
        .where(audit.wants_table(F.concat_ws(".", "schema", "table")))
        .groupBy(_begin(step), "schema", "table")
        .agg(F.expr("SUM(end - position) AS bytes"))
    )
    joined = changed.join(sizes, list(key), "full_outer")
    return joined.na.fill(0, [*_COUNTS, "bytes"])


def _hourly(steps: DataFrame) -> DataFrame:
    return steps.groupBy(F.date_trunc("hour", "begin").alias("hour"), "schema", "table").agg(
        *(F.sum(name).alias(name) for name in (*_COUNTS, "bytes"))
    )


def _result(audit: Audit, steps: DataFrame, step: int) -> AuditResult:
    limit = audit.options.limit
    by_table = steps.groupBy("schema", "table").agg(
        *(F.sum(name).alias(name) for name in (*_COUNTS, "bytes")),
        F.min("begin").alias("first"),
        F.max("begin").alias("last"),
    )
    audit.step("Adding up")
    totals = by_table.agg(F.count("*").alias("tables"), *map(F.expr, _SUMS)).collect()[0]
    changed = f"({' + '.join(_COUNTS)})"
    largest = by_table.orderBy(F.expr(changed).desc(), F.desc("bytes"), "schema", "table").limit(limit).collect()
    audit.step("Looking for primary keys")
    findings = _key_findings(audit)
    count = sum(totals[name] or 0 for name in _COUNTS)
    verdict = f"{number_of(count, 'row')} of {number_of(totals['tables'], 'table')} changed."
    without = next((finding.count for finding in findings if finding.name == NO_PRIMARY_KEY.name), 0)
    if without:
        verdict += f" {number_of(without, 'table')} without a primary key."
    named = [(f"{row['schema']}.{row['table']}", row) for row in largest]
    sections = [
        _over_time(steps, step),
        Section(
            "Tables",
            "Bytes are those of the tables' own events. What is inside of compressed transactions counts for its rows, "
            "and not for its bytes. Statements that a source logged as such have no rows; nor have TRUNCATE and DROP.",
            charts=[
                Bars("Rows changed", [(name, sum(row[one] for one in _COUNTS)) for name, row in named[:20]]),
                Bars("Bytes", [(name, row["bytes"]) for name, row in named[:20]], "bytes"),
            ],
            tables=[
                ReportTable(
                    "Tables",
                    {
                        "table": "code",
                        "inserted": "count",
                        "updated": "count",
                        "deleted": "count",
                        "grew by": "count",
                        "bytes": "bytes",
                        f"first, to {span(step)}": "time",
                        f"last, to {span(step)}": "time",
                    },
                    [
                        (
                            name,
                            *(row[one] for one in _COUNTS),
                            row["inserted"] - row["deleted"],
                            *(row[one] for one in ("bytes", "first", "last")),
                        )
                        for name, row in named
                    ],
                    left_out=max(0, totals["tables"] - len(named)),
                )
            ],
        ),
    ]
    figures: dict[str, object] = {
        "tables": totals["tables"],
        **{f"rows_{name}": totals[name] or 0 for name in _COUNTS},
        "row_event_bytes": totals["bytes"] or 0,
        "step_seconds": step,
    }
    return AuditResult(verdict, findings, sections, {"by_table_and_hour": _hourly(steps)}, figures=figures)


def _over_time(steps: DataFrame, step: int) -> Section:
    rows = steps.where("begin IS NOT NULL").groupBy("begin").agg(*map(F.expr, _SUMS)).orderBy("begin").collect()
    if not rows:
        return Section("Over time", "No row was changed.")
    series: dict[str, list[tuple[datetime, float]]] = {
        name: [(row["begin"], row[name]) for row in rows] for name in _COUNTS
    }
    sizes: dict[str, list[tuple[datetime, float]]] = {"bytes": [(row["begin"], row["bytes"]) for row in rows]}
    return Section(
        "Over time",
        charts=[OverTime("Rows changed", dict(series), step), OverTime("Bytes", dict(sizes), step, "bytes")],
    )


def _key_findings(audit: Audit) -> list[AuditFinding]:
    wanted = audit.wants_table(F.concat_ws(".", "schema", "table"))
    mapped = mapped_tables(audit).where("schema <> 'mysql'").where(wanted)
    keys = (
        mapped.groupBy("schema", "table")
        .agg(
            F.bool_or(F.expr("has_primary_key = false")).alias("without"),
            F.bool_or(F.expr("has_primary_key IS NULL")).alias("unknown"),
            audit.first_of("position", "time").alias("first"),
        )
        .selectExpr(
            "schema || '.' || table AS name",
            "without",
            "unknown",
            "first.file AS file",
            "first.position AS position",
            "first.time AS time",
        )
        .persist()
    )
    try:
        found = []
        for check, condition, severity in (
            (NO_PRIMARY_KEY, "without", "warning"),
            (PRIMARY_KEY_UNKNOWN, "unknown AND NOT coalesce(without, false)", "note"),
        ):
            chosen = keys.where(condition)
            count = chosen.count()
            if count:
                first: list[Any] = chosen.orderBy("name").limit(audit.options.limit).collect()
                places = [place_of(row, row["name"]) for row in first]
                found.append(AuditFinding(check.name, severity, check.title, check.advice, count, places))  # type: ignore[arg-type]
        return found
    finally:
        keys.unpersist()


JOB: Final = Job(
    "tables",
    "Changes of tables",
    "Rows that were inserted, updated and deleted, and the bytes of their events, were counted per table and hour.",
    run,
    takes_tables=True,
)
