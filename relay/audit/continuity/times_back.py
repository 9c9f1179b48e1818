"""Times that go back: a part of a file ended before what came earlier in the archive."""

from collections.abc import Iterator
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, Place
from relay.report.text import moment, span

_BACK_NOTED_S: Final = 60
_BACK_FOUND_S: Final = 3600
_PIECE_BYTES: Final = 256 << 10
_ADVICE: Final = (
    "The source's clock was set back, or a statement ran that long: events carry the time at which their statement began. A "
    "search by time may start too late here."
)


def times_back(audit: Audit, transactions: DataFrame) -> Iterator[AuditFinding]:
    """Yield findings about pieces of a file whose earliest transaction ended before what came earlier: exact to the piece, and cheap.

    Of consecutive late pieces only the first is reported. The files of each source of the archive are treated separately.
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
    source = F.regexp_extract("file", "^(.*)/", 1)
    order = Window.partitionBy(source).orderBy(*audit.file_order, "piece")
    level = f"CASE WHEN seconds >= {_BACK_FOUND_S} THEN 2 WHEN seconds >= {_BACK_NOTED_S} THEN 1 ELSE 0 END"
    back = audit.keep(
        pieces.withColumn("before", F.max("newest").over(order.rowsBetween(Window.unboundedPreceding, -1)))
        .withColumn("seconds", F.expr("CAST(before AS BIGINT) - CAST(time AS BIGINT)"))
        .withColumn("level", F.expr(level))
        .withColumn("level_before", F.coalesce(F.lag("level").over(order), F.lit(0)))
        .where("level > level_before")
    )
    counts = back.agg(F.count("*"), F.count_if(F.expr(f"seconds >= {_BACK_FOUND_S}"))).collect()[0]
    if counts[1]:
        places = _first(audit, back.where(f"seconds >= {_BACK_FOUND_S}"))
        title = "Times that go back, an hour or more"
        yield AuditFinding("time_backwards", "warning", title, _ADVICE, counts[1], places)
    if counts[0] > counts[1]:
        places = _first(audit, back.where(f"seconds < {_BACK_FOUND_S}"))
        title = "Times that go back, a minute or more"
        yield AuditFinding("time_behind", "note", title, _ADVICE, counts[0] - counts[1], places)


def _first(audit: Audit, back: DataFrame) -> list[Place]:
    return audit.first_places(
        back, lambda row: f"{span(row['seconds'])} earlier than {moment(row['before'])}, which came before"
    )
