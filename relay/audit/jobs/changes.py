"""changes: every change of the rows of chosen tables, in order, with the statement that caused it."""

from collections import Counter
from typing import Final

from pyspark.sql import functions as F

from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, AuditResult
from relay.audit.runner.job import Job
from relay.audit.runner.row_findings import HAS_FINDING, row_findings
from relay.audit.shared.masked_statement import masked_statement
from relay.report.content import ReportTable, Section
from relay.report.text import number_of

_COLUMNS: Final = (
    "file", "position", "transaction", "row", "time", "gtid", "operation", "schema", "table", "before", "after", "statement",
    "finding",
)  # fmt: skip
_SHOWN_CHARACTERS: Final = 400


def run(audit: Audit) -> AuditResult:
    """Write all changes as Parquet, and the first of them in the report."""
    table = F.concat_ws(".", "schema", "table")
    rows = audit.read("rows", *_COLUMNS).where(F.col("table").isNull() | audit.wants_table(table))
    changes = rows.where("operation IS NOT NULL").withColumn("statement", masked_statement())
    audit.step("Counting changes")
    counted = rows.groupBy("operation", F.expr(HAS_FINDING).alias("wrong")).count().collect()
    by_operation: Counter[str] = Counter()
    for row in counted:
        if row["operation"] is not None:
            by_operation[row["operation"]] += row["count"]
    count = by_operation.total()
    audit.step("Reading the first changes")
    order = [*audit.file_order, F.col("transaction"), F.col("row")]
    first = changes.orderBy(*order).limit(audit.options.limit).collect()
    shown = [
        (
            f"{row['file']}:{row['position']}",
            row["time"],
            row["operation"],
            f"{row['schema']}.{row['table']}",
            _cut(row["before"]),
            _cut(row["after"]),
            _cut(row["statement"]),
            row["gtid"],
        )
        for row in first
    ]
    told = ", ".join(f"{by_operation[name]:,} {name}s" for name in sorted(by_operation))
    verdict = f"{number_of(count, 'change')}: {told}." if count else "No row of these tables was changed at that time."
    findings = row_findings(audit, table, values=True) if any(row["wrong"] for row in counted) else []
    if count > len(shown):
        findings.append(
            AuditFinding(
                "report_is_limited",
                "note",
                "Changes that are only in the Parquet file",
                f"The report shows the first {len(shown):,} (--limit); changes.parquet has all.",
                count - len(shown),
                [],
            )
        )
    section = Section(
        "Changes",
        "Before and after are the rows as the event has them, as JSON; @1, @2 … are columns whose names nobody told. A "
        "statement is there where the source logged it (binlog_rows_query_log_events, binlog_annotate_row_events). "
        "Statements that a source logged as such (binlog_format STATEMENT, MIXED) have no rows: they are not among these.",
        tables=[
            ReportTable(
                "Changes",
                {
                    "at": "place",
                    "time": "time",
                    "operation": "word",
                    "table": "code",
                    "before": "code",
                    "after": "code",
                    "statement": "code",
                    "gtid": "code",
                },
                shown,
                left_out=count - len(shown),
            )
        ],
    )
    figures: dict[str, object] = {
        "changes": count,
        **{f"{name}s": number for name, number in sorted(by_operation.items())},
    }
    return AuditResult(verdict, findings, [section], {"changes": changes}, figures=figures)


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


JOB: Final = Job(
    "changes",
    "Changes of rows",
    "Every change of the rows of the chosen tables, in the order of the binlog.",
    run,
    takes_tables=True,
    not_in_all="It writes every change of every row. Name tables with --tables.",
)
