"""The GTIDs of an archive's transactions, as ranges of each file, and what `gtid_continuity` finds with them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from relay.audit.continuity.gtid_continuity import FileRange, GtidReport, compare, head_state
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, Place, found_at
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.series_head import SeriesHead
from relay.report.content import ReportTable, Section
from relay.report.text import number_of

_MOST_RANGES: Final = 500_000

# Numbers without a gap, each once, are recognized by their count, their sum and the squares of their remainders.
_CYCLE: Final = 65536
_MYSQL_KEY: Final = r"^(.*):(\d+)$"
_MARIADB_KEY: Final = r"^(\d+)-\d+-(\d+)$"


@dataclass(frozen=True, slots=True)
class Gtids:
    """The result: the report, how many transactions have no GTID, and one; sequences too scattered to be compared, with their files."""

    report: GtidReport
    anonymous: int
    with_gtid: int
    scattered: list[Place]


def gtids_of(audit: Audit, transactions: DataFrame, heads: list[SeriesHead]) -> Gtids:
    """Compare the GTIDs of `transactions` (file, gtid) with each other and with the files' heads."""
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
    many: dict[tuple[str, str], Row] = {}
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
        islands = audit.keep(_islands(numbered.join(pairs, ["file", "key"], "left_semi")))
        many = {(row["file"], row["key"]): row for row in _too_many(islands)}
        pairs = F.broadcast(audit.frame_of("file string, key string", list(set(torn) - many.keys())))
        for row in islands.join(pairs, ["file", "key"], "left_semi").collect():
            ranges.append(FileRange(row["file"], row["key"], int(row["first"]), int(row["last"]), int(row["extra"])))
        for row in many.values():
            ranges.append(FileRange(row["file"], row["key"], int(row["first"]), int(row["last"])))
    scattered = [
        Place(file, None, f"{number_of(row['islands'], 'range')} of {key}:{row['first']}-{row['last']}")
        for (file, key), row in sorted(many.items())
    ]
    store = store_of(audit.options.archive)
    states = [head_state(store, head) for head in heads]
    report = compare([head.name for head in heads], states, ranges, audit.options.limit)
    return Gtids(report, anonymous, with_gtid, scattered)


def _too_many(islands: DataFrame) -> list[Row]:
    """Return the sequences in files that have most of the ranges, if all together are more than can be compared here."""
    counted = islands.groupBy("file", "key").agg(
        F.count("*").alias("islands"), F.min("first").alias("first"), F.max("last").alias("last")
    )
    rows = counted.orderBy("islands", "file", "key").collect()
    room = _MOST_RANGES
    found = []
    for row in rows:
        room -= row["islands"]
        if room < 0:
            found.append(row)
    return found


def _is_whole(row: Row) -> bool:
    """Return whether the numbers are first, first + 1, … last, each once, by their count and two sums."""
    first, last, count = int(row["first"]), int(row["last"]), row["count"]
    if last - first + 1 != count or int(row["sum"]) != (first + last) * count // 2:
        return False

    def squares(n: int) -> int:
        """Return the sum of the squares of the remainders of 0 to n."""
        cycles, rest = divmod(n + 1, _CYCLE)
        return cycles * _squares_below(_CYCLE) + _squares_below(rest)

    return int(row["squares"]) == squares(last) - squares(first - 1)


def _squares_below(n: int) -> int:
    return (n - 1) * n * (2 * n - 1) // 6


def _islands(numbered: DataFrame) -> DataFrame:
    """Return ranges without a gap, of the sequences in which something is missing or repeated."""
    order = Window.partitionBy("file", "key").orderBy("number")
    once = numbered.groupBy("file", "key", "number").agg((F.count("*") - 1).alias("extra"))
    return (
        once.withColumn("island", F.col("number") - F.row_number().over(order))
        .groupBy("file", "key", "island")
        .agg(F.min("number").alias("first"), F.max("number").alias("last"), F.sum("extra").alias("extra"))
    )


def gtid_findings(gtids: Gtids, limit: int) -> Iterator[AuditFinding]:
    """Yield findings about what is missing, repeated, contradictory, or could not be checked."""
    report = gtids.report
    if report.missing:
        yield AuditFinding(
            "gtid_missing",
            "error",
            "GTIDs that are missing",
            "Numbers between those in the archive are not in it. A replica that positions itself by GTID may wait for them, or "
            "lacks them for ever. Numbers that were given up on the source, or filtered before it, look the same.",
            report.missing_count,
            report.missing[:limit],
        )
    yield from found_at(
        "gtid_twice",
        "error",
        "GTIDs that come more than once",
        "A replica skips a transaction whose GTID it has executed: of two that share one, only the first is applied.",
        report.twice,
        limit,
    )
    yield from found_at(
        "gtid_head_differs",
        "error",
        "Heads of files that contradict the files before them",
        "What the head of the file says was executed before it is not what the files before it hold: a file is missing "
        "between them, or it is of another source.",
        report.differs,
        limit,
    )
    yield from found_at(
        "gtid_not_compared",
        "warning",
        "GTIDs that are too scattered to be compared",
        f"The archive's GTIDs fall into more than {_MOST_RANGES:,} stretches. Inside of these sequences of a file gaps and "
        "repetitions were not looked for. Look at fewer files at a time: --since and --until, or a pattern.",
        gtids.scattered,
        limit,
    )
    if gtids.anonymous and gtids.with_gtid:
        yield AuditFinding(
            "gtid_partly",
            "note",
            "Transactions without a GTID among others with one",
            "A replica with auto-position does not get them.",
            gtids.anonymous,
            [],
        )


def gtid_sections(gtids: Gtids, limit: int) -> list[Section]:
    """Return a section on each sequence: its first and last number, and how much of it exists."""
    report = gtids.report
    if not gtids.with_gtid:
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
    table = ReportTable(
        "",
        {"source": "code", "first": "count", "last": "count", "transactions": "count", "missing": "count"},
        rows[:limit],
        max(len(rows) - limit, 0),
    )
    text = (
        f"{number_of(gtids.with_gtid, 'transaction')} with a GTID, {number_of(gtids.anonymous, 'transaction')} without."
    )
    return [Section("GTIDs", text, tables=[table])]
