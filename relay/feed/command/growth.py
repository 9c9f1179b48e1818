"""Estimates of how fast the archive and the lake's tables grow, by a straight line over some days, and when a disk will be full."""

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from relay.binlog_tables.plan.store import plain_path
from relay.feed.archive_reading import StoredBinlog
from relay.feed.lake.lake_table import LakeTable
from relay.report.content import ReportTable, Section
from relay.report.text import number_of, size, span

LEAST: Final = timedelta(days=2)
"""A shorter time says nothing about the growth of a day."""
_DAY: Final = timedelta(days=1)
_TOP: Final = 20
_NO_DATA: Final = "not enough data"


@dataclass(frozen=True, slots=True)
class Growth:
    """The size of something and its growth per day: None if less than LEAST is known. `over` is the time that was looked at."""

    name: str
    bytes: int
    per_day: float | None
    over: timedelta

    @classmethod
    def between(cls, name: str, held: int, grown: float, over: timedelta) -> "Growth":
        """Return the growth of something that grew by so many bytes in a time."""
        return cls(name, held, grown / (over / _DAY) if over >= LEAST else None, over)


def archive_growth(files: Sequence[StoredBinlog], since: datetime, now: datetime) -> Growth:
    """Return the growth of the archive's binlogs (oldest first) since a time. A file that was begun before it counts for its later part."""
    begun = [(file.begun, file.bytes) for file in files if file.begun is not None]
    grown = 0.0
    for (start, held), (end, _next) in pairwise([*begun, (now, 0)]):
        if end > since:
            grown += held * ((end - max(start, since)) / (end - start)) if end > start else held
    start = max(since, begun[0][0]) if begun else now
    return Growth.between("archive", sum(file.bytes for file in files), grown, max(timedelta(), now - start))


def table_growth(name: str, tables: Iterable[LakeTable | None], since: datetime, now: datetime) -> Growth:
    """Return the growth of a table and its changes, by the bytes of their newest versions."""
    found = []
    for table in tables:
        if table is not None:
            held = table.facts()["bytes"]
            time, before = table.size_at(since) or (now, held)
            found.append(Growth.between(name, held, held - before, now - max(time, since)))
    return _together(name, found)


def _together(name: str, parts: Sequence[Growth]) -> Growth:
    known = [one.per_day for one in parts if one.per_day is not None]
    over = min((one.over for one in parts if one.per_day is not None), default=timedelta())
    return Growth(name, sum(one.bytes for one in parts), sum(known) if known else None, over)


def growth_section(archive: tuple[str, Growth], lake: tuple[str, Sequence[Growth]], days: int) -> Section:
    """Return the chapter of the report from the locations of the archive and the lake, and their growth."""
    tables = sorted(lake[1], key=lambda one: one.per_day or 0, reverse=True)
    whole = _together("lake, all tables", tables)
    young = sum(one.per_day is None for one in tables)
    listing = ReportTable(
        "Growth",
        {"what": "code", "holds": "bytes", "grows by": "text", "seen over": "text"},
        [_told(one) for one in (archive[1], whole, *tables[:_TOP])],
        left_out=max(0, len(tables) - _TOP),
        note=f"{number_of(young, 'table')} without enough data {'is' if young == 1 else 'are'} not in the sum." if young else "",
    )  # fmt: skip
    disks = _disks([(archive[0], archive[1]), (lake[0], whole)])
    told = ReportTable("Disks", {"disk of": "text", "free": "bytes", "grows by": "text", "full in": "text"}, disks)
    return Section(
        "Growth",
        f"A straight line over the last {number_of(days, 'day')}: it knows nothing of weekends, of loads that come once, nor of what "
        f"retention and compaction take away. Of less than {LEAST.days} days nothing is said. Tables: what their newest versions hold; "
        "older versions, until feed compact removes them, come on top. Archive: its binlogs as they lie there, packed or not.",
        tables=[listing, told] if disks else [listing],
    )


def _told(one: Growth) -> tuple[str, int, str, str]:
    over = "-" if one.per_day is None else span(one.over.total_seconds())
    return one.name, one.bytes, _rate(one.per_day), over


def _rate(per_day: float | None) -> str:
    return _NO_DATA if per_day is None else f"{size(per_day)} a day"


def _disks(places: Sequence[tuple[str, Growth]]) -> list[tuple[str, int, str, str]]:
    """Return a row for each disk of this machine; the capacity of buckets is unknown."""
    found: dict[int, tuple[list[Growth], str]] = {}
    for path, growth in places:
        if "://" not in plain_path(path) and os.path.exists(plain_path(path)):
            local = plain_path(path)
            found.setdefault(os.stat(local).st_dev, ([], local))[0].append(growth)
    rows = []
    for parts, path in found.values():
        free = shutil.disk_usage(path).free
        known = all(one.per_day is not None for one in parts)
        per_day = sum(one.per_day or 0 for one in parts) if known else None
        names = ", ".join(one.name.partition(",")[0] for one in parts)
        full = _NO_DATA if per_day is None else "it does not grow" if per_day <= 0 else span(free / per_day * 86400)
        rows.append((names, free, _rate(per_day), full))
    return rows
