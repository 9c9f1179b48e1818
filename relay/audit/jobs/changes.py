"""changes: every change of the rows of chosen tables, in order, with the statement behind it."""

from typing import Final

from pyspark.sql import functions as F

from relay.audit.jobs.audit import FILE_ORDER, Audit
from relay.audit.jobs.job import AuditFinding, AuditResult, Job
from relay.audit.report.content import Section, Table
from relay.audit.report.text import number_of

_COLUMNS: Final = (
    "file", "position", "transaction", "row", "time", "gtid", "operation", "schema", "table", "before", "after", "statement",
)  # fmt: skip
_SHOWN_CHARACTERS: Final = 400
# As protocol.statements.secrets has it, in Java's spelling.
_ABOUT_SECRETS: Final = "(?i)password|identified"
_STRINGS: Final = r"""'(?:[^'\\]++|\\.|'')*+(?:'|\\?$)|"(?:[^"\\]++|\\.|"")*+(?:"|\\?$)"""


def run(audit: Audit) -> AuditResult:
    """All changes as Parquet, the first of them in the report."""
    changes = (
        audit.read("rows", *_COLUMNS)
        .where("operation IS NOT NULL")
        .where(audit.wants_table(F.concat_ws(".", "schema", "table")))
        .withColumn(
            "statement",
            F.when(
                F.col("statement").rlike(_ABOUT_SECRETS), F.regexp_replace("statement", f"(?s){_STRINGS}", "'***'")
            ).otherwise(F.col("statement")),
        )
    )
    audit.step("Counting changes")
    by_operation = changes.groupBy("operation").count().orderBy("operation").collect()
    count = sum(row["count"] for row in by_operation)
    audit.step("Reading the first changes")
    order = [*map(F.expr, FILE_ORDER), F.col("transaction"), F.col("row")]
    first = changes.orderBy(*order).limit(audit.options.limit).collect()
    rows = [
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
    told = ", ".join(f"{row['count']:,} {row['operation']}s" for row in by_operation)
    verdict = f"{number_of(count, 'change')}: {told}." if count else "No row of these tables was changed at that time."
    findings = []
    if count > len(rows):
        findings.append(
            AuditFinding(
                "report_is_limited",
                "note",
                "Changes that are only in the Parquet file",
                f"The report shows the first {len(rows):,} (--limit); changes.parquet has all.",
                count - len(rows),
                [],
            )
        )
    section = Section(
        "Changes",
        "Before and after are the rows as the event has them, as JSON; @1, @2 … are columns whose names nobody told. A "
        "statement is there where the source logged it (binlog_rows_query_log_events, binlog_annotate_row_events).",
        tables=[
            Table(
                "Changes",
                {
                    "at": "code",
                    "time": "time",
                    "operation": "text",
                    "table": "code",
                    "before": "code",
                    "after": "code",
                    "statement": "code",
                    "gtid": "code",
                },
                rows,
                left_out=count - len(rows),
            )
        ],
    )
    return AuditResult(verdict, findings, [section], {"changes": changes})


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


JOB: Final = Job(
    "changes",
    "Changes of rows",
    "Every change of the rows of the chosen tables, in the order of the binlog.",
    run,
    takes_tables=True,
)
