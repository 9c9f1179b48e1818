"""Transactions by the tables that they change: those of one kind that change the same tables are one row. For the audit
`transactions`."""

from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from relay.audit.runner.audit import Audit
from relay.report.content import Kind, ReportTable

_SHOWN_TABLES: Final = 10
# These columns of the largest and the longest are enough to find it, and to recognize it.
_EXAMPLE: Final = ("start", "first_time", "events", "rows", "gtid")


def transaction_patterns(audit: Audit, transactions: DataFrame) -> DataFrame:
    """Return kind, tables, how many, their bytes, the largest, the longest, the first and the last. This takes one pass."""
    return audit.keep(
        transactions.groupBy("kind", "tables").agg(
            F.count("*").alias("transactions"),
            F.sum("bytes").alias("all_bytes"),
            F.sum("rows").alias("all_rows"),
            _foremost(audit, "bytes").alias("largest"),
            _foremost(audit, "duration").alias("longest"),
            audit.first_of("start").alias("first"),
            F.max(F.struct(*audit.file_order, "start")).alias("last"),
        )
    )


def _foremost(audit: Audit, column: str) -> Column:
    """Return the one with the most of `column`; of several the first in the archive."""
    return F.min(F.struct((-F.col(column)).alias("less"), *audit.file_order, *_EXAMPLE))


def patterns_table(audit: Audit, patterns: DataFrame) -> ReportTable:
    """Return the patterns, those with the most bytes first."""
    columns: dict[str, Kind] = {
        "tables": "code",
        "kind": "word",
        "transactions": "count",
        "bytes": "bytes",
        "rows": "count",
        "largest": "bytes",
        "largest at": "place",
        "first": "place",
        "last": "place",
    }
    rows = [
        (
            _tables(row),
            row["kind"],
            row["transactions"],
            row["all_bytes"],
            row["all_rows"],
            -row["largest"]["less"],
            _place(row["largest"]),
            _place(row["first"]),
            _place(row["last"]),
        )
        for row in _first(audit, patterns, F.desc("all_bytes"))
    ]
    left_out = _left_out(audit, patterns, rows)
    return ReportTable("Patterns", columns, rows, left_out, "Transactions of one kind that change the same tables.")


def foremost_table(audit: Audit, patterns: DataFrame, what: str, title: str, note: str) -> ReportTable:
    """Return the `largest` or the `longest` of each pattern, the foremost first; those without a value are left out."""
    kind: Kind = "bytes" if what == "largest" else "seconds"
    columns: dict[str, Kind] = {
        ("bytes" if what == "largest" else "duration"): kind,
        "place": "place",
        "time": "time",
        "events": "count",
        "rows": "count",
        "kind": "word",
        "tables": "code",
        "GTID": "code",
        "of such": "count",
    }
    chosen = patterns.where(F.col(f"{what}.less") < 0)
    rows = []
    for row in _first(audit, chosen, F.col(f"{what}.less")):
        one = row[what]
        facts = (one["first_time"], one["events"], one["rows"], row["kind"], _tables(row), one["gtid"])
        rows.append((-one["less"], _place(one), *facts, row["transactions"]))
    return ReportTable(title, columns, rows, _left_out(audit, chosen, rows), note)


def _first(audit: Audit, patterns: DataFrame, order: Column) -> list[Row]:
    return patterns.orderBy(order, "first").limit(audit.options.limit).collect()


def _left_out(audit: Audit, patterns: DataFrame, rows: list[Any]) -> int:
    return patterns.count() - len(rows) if len(rows) == audit.options.limit else 0


def _place(one: Row) -> str:
    return f"{one['file']}:{one['start']}"


def _tables(row: Row) -> str | None:
    tables = row["tables"]
    more = f" and {len(tables) - _SHOWN_TABLES} more" if len(tables) > _SHOWN_TABLES else ""
    return ", ".join(tables[:_SHOWN_TABLES]) + more or None
