"""Cases that look alike as one row: how many there are, the first, the last, and a statement as an example."""

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from relay.audit.readiness.checks import shown
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import Place

_EXAMPLE_CHARACTERS = 300


def look_alikes(
    audit: Audit,
    cases: DataFrame,
    keys: Sequence[str],
    text: Callable[[Row], str],
    *,
    position: str = "start",
    time: str = "time",
    example: str | None = None,
) -> tuple[list[Place], int]:
    """Return the cases (`file`, `position`, `time`), those with the same `keys` as one place, the most frequent first, and how many
    there are without --limit.

    `example` is the column with the position of a statement that illustrates the case.
    """
    told = [position, time, *([example] if example and example != position else [])]
    kept = cases.groupBy(*keys).agg(
        F.count("*").alias("cases"),
        audit.first_of(*told).alias("first"),
        F.max(F.struct(*audit.file_order, *told)).alias("last"),
    )
    kept = audit.keep(kept)
    rows = kept.orderBy(F.desc("cases"), "first").limit(audit.options.limit).collect()
    texts = _statements(audit, [(row["first"]["file"], row["first"][example]) for row in rows]) if example else {}
    places = []
    for row in rows:
        first, last = row["first"], row["last"]
        more = row["cases"] > 1
        places.append(
            Place(
                first["file"],
                first[position],
                text(row),
                first[time],
                row["cases"],
                f"{last['file']}:{last[position]}" if more else "",
                last[time] if more else None,
                texts.get((first["file"], first[example]), "") if example else "",
            )
        )
    return places, len(rows) if len(rows) < audit.options.limit else kept.count()


def _statements(audit: Audit, places: list[tuple[str, int | None]]) -> dict[tuple[str, int | None], str]:
    """Return the statements at these places, without their literals."""
    wanted = [(file, position) for file, position in places if position is not None]
    if not wanted:
        return {}
    rows = audit.read_places("statements", wanted, "file", "position", "digest_text").collect()
    return {
        (row["file"], row["position"]): shown(row["digest_text"], _EXAMPLE_CHARACTERS)
        for row in rows
        if row["digest_text"]
    }
