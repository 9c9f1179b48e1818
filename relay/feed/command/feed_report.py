"""The progress of a feed: each table's place and state, and how much of the archive is not in the lake yet."""

import time
from collections.abc import Mapping
from typing import Any

from relay.binlog_tables import arrow
from relay.feed.command.relay_word import RelayWord
from relay.feed.engine import FeedEngine
from relay.feed.lake.lake_table import STALE_FROM, STALE_REASON, LakeTable
from relay.feed.progress_table import SET_ASIDE, current_state
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.invalid_dates import null_dates
from relay.report.text import moment


def feed_report(engine: FeedEngine, word: RelayWord) -> list[dict[str, Any]]:
    """Return one object per table. `behind_…` are against the archive's end; `source_behind_s` is against the source, None if unknown."""
    end = engine.reading.newest()
    fed = engine.places()
    found = []
    for key in sorted({*engine.tables, *engine.aside}):
        table = engine.table(key)
        aside = engine.aside.get(key)
        place = fed.get(key, engine.place) if aside is None else aside.place
        behind_s = _behind_s(engine, place, end)
        stale = table.current or table.history
        properties: Mapping[str, str] = stale.properties if stale is not None else {}
        found.append(
            {
                "table": table.name,
                "state": current_state(table, end) if aside is None else SET_ASIDE,
                "place": engine.reading.told(place),
                "behind_bytes": bytes_between(engine, place, end),
                "behind_s": behind_s,
                "source_behind_s": None if word.behind_s is None else round(behind_s + word.behind_s, 1),
                "relay_follows": word.follows,
                "stale_from": properties.get(STALE_FROM),
                "stale_reason": properties.get(STALE_REASON),
                "null_dates": null_dates(properties, stale.place if stale is not None else None),
                "aside": {**aside.stop.facts(), "seen": aside.seen} if aside is not None else None,
                "current": _address(engine, "current", key, table.current),
                "changes": _address(engine, "changes", key, table.history),
            }
        )
    return found


def archive_end(engine: FeedEngine) -> str:
    """Return where the archive ends, and when its last binlog was written to, if it is a local file."""
    end = engine.reading.newest()
    written = engine.reading.written(end)
    return engine.reading.told(end) + (f", written {moment(written)} UTC" if written is not None else "")


def _address(engine: FeedEngine, kind: str, key: tuple[str, str], table: LakeTable | None) -> str | None:
    return None if table is None else engine.lake.address(kind, *key)


def bytes_between(engine: FeedEngine, start: FeedOffset, end: FeedOffset) -> int:
    """Return how many bytes of binlog are between two places, as far as their files exist."""
    return engine.reading.bytes_between(start, end)


def _behind_s(engine: FeedEngine, start: FeedOffset, end: FeedOffset) -> float:
    """Return the age in seconds of the first transaction that is not in the lake; 0 if there is none."""
    if start >= end:
        return 0.0
    with arrow.read(
        engine.reading.path,
        "transactions",
        columns=("last_time",),
        start=engine.reading.text(start),
        end=engine.reading.text(end),
        overlap="executed",
    ) as reader:
        for batch in reader:
            for one in batch.column("last_time").to_pylist():
                if one is not None:
                    return max(0.0, round(float(time.time() - one.timestamp()), 1))
    return 0.0
