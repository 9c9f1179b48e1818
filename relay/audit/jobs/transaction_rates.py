"""The rate of transactions per second: over time, in the busiest second, and in most seconds. For the audit `transactions`."""

from collections import defaultdict
from datetime import datetime
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from relay.audit.runner.facts_read import iso
from relay.report.content import OverTime, ReportTable, Section
from relay.report.text import moment, number_of, size
from relay.report.time_steps import seconds_covered

PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_ACCURACY: Final = 10000


def percentiles(column: str) -> Any:
    """Return the `PERCENTILES` of a column, exact to one rank in ten thousand."""
    return F.percentile_approx(column, list(PERCENTILES.values()), _ACCURACY)


def busiest_seconds(transactions: DataFrame) -> dict[str, Any]:
    """Return the busiest of the seconds in which a transaction ended, and percentiles. This takes one pass."""
    seconds = (
        transactions.where("last_time IS NOT NULL")
        .groupBy(F.date_trunc("second", "last_time").alias("second"))
        .agg(F.count("*").alias("transactions"), F.sum("bytes").alias("bytes"))
    )
    row = seconds.agg(
        F.count("*").alias("seconds"),
        F.max(F.struct("transactions", (-F.unix_timestamp("second")).alias("early"), "second")).alias("most"),
        F.max("bytes").alias("most_bytes"),
        percentiles("transactions").alias("transactions"),
        percentiles("bytes").alias("bytes"),
    ).collect()[0]
    return dict(row.asDict())


def rates_section(cells: DataFrame, step: int, total: dict[str, Any], busiest: dict[str, Any]) -> Section:
    """Return the section. `cells` are sums by step of time and kind. Each step is divided by those of its seconds that are in the
    archive."""
    rows = (
        cells.where("time IS NOT NULL")
        .groupBy("time", "kind")
        .agg(F.sum("transactions").alias("transactions"), F.sum("bytes").alias("bytes"))
        .orderBy("time", "kind")
        .collect()
    )
    by_kind: dict[str, list[tuple[datetime, float]]] = {kind: [] for kind in sorted({row["kind"] for row in rows})}
    bytes_: defaultdict[datetime, float] = defaultdict(float)
    for row in rows:
        by_kind[row["kind"]].append((row["time"], row["transactions"]))
        bytes_[row["time"]] += row["bytes"]
    between = (total["first"], total["last"])
    charts = [
        OverTime("Transactions a second", by_kind, step, between=between),
        OverTime("Bytes a second", {"bytes": list(bytes_.items())}, step, "bytes", between),
    ]
    most = busiest["most"]
    text = (
        "By the time of each transaction's last event; times in binlogs are of whole seconds. The busiest second was "
        f"{moment(most['second'])} UTC: {number_of(most['transactions'], 'transaction')}. Percentiles are of the "
        f"{number_of(busiest['seconds'], 'second')} in which a transaction ended."
    )
    return Section("Rates", text, charts, [_table(total, busiest)])


def _table(total: dict[str, Any], busiest: dict[str, Any]) -> ReportTable:
    seconds = seconds_covered(total["first"], total["last"])
    counts = (
        f"{total['transactions']:,}",
        f"{total['transactions'] / seconds:,.2f}",
        *(f"{one:,}" for one in busiest["transactions"]),
        f"{busiest['most']['transactions']:,}",
    )
    sizes = (
        size(total["bytes"]),
        size(total["bytes"] / seconds),
        *(size(one) for one in busiest["bytes"]),
        size(busiest["most_bytes"]),
    )
    headings = (
        "",
        "in all",
        "a second on average",
        *(f"{name} of a second" for name in PERCENTILES),
        "the most in a second",
    )
    return ReportTable("", dict.fromkeys(headings, "text"), [("transactions", *counts), ("bytes", *sizes)])


def rate_figures(total: dict[str, Any], busiest: dict[str, Any]) -> dict[str, object]:
    """Return the same for programs."""
    seconds = seconds_covered(total["first"], total["last"])
    return {
        "first_event": iso(total["first"]),
        "last_event": iso(total["last"]),
        "span_seconds": seconds,
        "transactions_per_second": round(total["transactions"] / seconds, 3),
        "bytes_per_second": round(total["bytes"] / seconds, 3),
        "busiest_second": iso(busiest["most"]["second"]),
        "busiest_second_transactions": busiest["most"]["transactions"],
        "transactions_per_busy_second": dict(zip(PERCENTILES, busiest["transactions"], strict=True)),
    }
