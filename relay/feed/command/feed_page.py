"""The page of `feed report`: what was fed, how far each table is, and what to do."""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from relay.feed.command.feed_report import archive_end, feed_report
from relay.feed.command.growth import LEAST, archive_growth, growth_section, table_growth
from relay.feed.command.relay_word import RelayWord
from relay.feed.engine import FeedEngine
from relay.feed.feed_config import FeedSection
from relay.feed.lake.lake_table import SNAPSHOT, LakeTable
from relay.feed.settings.fed_tables import NothingMatches
from relay.report.content import Bars, Fact, OverTime, Page, ReportTable, Section
from relay.report.page import html
from relay.report.text import moment, number_of, size, span
from relay.report.time_steps import time_step

_FINE: Final = ("current", "changes only")
_MINUTE: Final = 60
_SERIES: Final = ("insert", "update", "delete", "definitions")
_TOP: Final = 20


class RecentChanges:
    """The numbers of changes since a time, by minute and operation, and by table."""

    def __init__(self, since: datetime) -> None:
        self._since = since
        self.by_minute: Counter[tuple[int, str]] = Counter()
        self.by_table: Counter[str] = Counter()

    def add(self, name: str, table: LakeTable) -> None:
        """Count the changes of one table."""
        with table.scan_since(["time", "operation"], "time", self._since) as reader:
            for batch in reader:
                seconds = batch.column("time").cast(pa.timestamp("s", "UTC")).cast(pa.int64())
                minutes = pc.multiply(pc.divide(seconds, _MINUTE), _MINUTE)
                counted = pa.table({"minute": minutes, "operation": batch.column("operation")})
                for one in counted.group_by(["minute", "operation"]).aggregate([([], "count_all")]).to_pylist():
                    if one["minute"] is None:
                        continue
                    operation = one["operation"] if one["operation"] in _SERIES else _SERIES[-1]
                    self.by_minute[one["minute"], operation] += one["count_all"]
                    self.by_table[name] += one["count_all"]

    def charts(self) -> list[OverTime | Bars]:
        """Return a chart over time, and one of the tables with the most changes."""
        if not self.by_minute:
            return []
        minutes = sorted({minute for minute, _operation in self.by_minute})
        step = max(_MINUTE, time_step(_time(minutes[0]), _time(minutes[-1])))
        steps: Counter[tuple[int, str]] = Counter()
        for (minute, operation), count in self.by_minute.items():
            steps[minute // step * step, operation] += count
        series = {
            operation: [(_time(at), float(count)) for (at, one), count in sorted(steps.items()) if one == operation]
            for operation in _SERIES
        }
        told = {name: points for name, points in series.items() if points}
        most = [(name, float(count)) for name, count in self.by_table.most_common(_TOP)]
        return [OverTime("Changes over time", told, step), Bars("Changes by table", most)]


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def feed_page(engine: FeedEngine, section: FeedSection, config: str, days: int, word: RelayWord) -> str:
    """Return the page. Its charts cover the changes of the last `days` days."""
    told = feed_report(engine, word)
    unmatched = engine.unmatched()
    stop = engine.progress.stop
    now = datetime.now(UTC)
    since = now - max(timedelta(days=days), LEAST)
    recent = RecentChanges(now - timedelta(days=days))
    rows, snapshots, growths = [], [], []
    for one, (_key, table) in zip(told, sorted(engine.tables.items()), strict=True):
        current = table.current.facts() if table.current is not None else {}
        changes = table.history.facts() if table.history is not None else {}
        rows.append(
            (one["table"], one["state"], one["place"], one["behind_bytes"], one["behind_s"], current.get("rows"), changes.get("rows"),
             *(_sum(current, changes, name) for name in ("bytes", "files", "commits")))
        )  # fmt: skip
        growths.append(table_growth(one["table"], (table.current, table.history), since, now))
        if table.history is not None:
            recent.add(one["table"], table.history)
        if table.current is not None and table.current.properties.get(SNAPSHOT):
            state = json.loads(table.current.properties[SNAPSHOT])
            last = state.get("after")
            snapshots.append(
                (one["table"], state.get("from"), "all" if state.get("read") else last, current.get("rows"))
            )
    archive = archive_growth(engine.reading.stored(since), since, now)
    growth = growth_section((section.archive, archive), (section.target, growths), (now - since).days)
    page = Page(
        "The feed",
        f"{section.archive} into {section.target}",
        _verdict(told, stop, word, unmatched),
        stop is None and word.follows is not False and not unmatched and all(one["state"] in _FINE for one in told),
        f"The charts have the last {number_of(days, 'day')}.",
        [
            Fact("format", section.format),
            Fact("tables", number_of(len(told), "table")),
            Fact("at", engine.reading.told(engine.place)),
            Fact("archive ends", archive_end(engine)),
            Fact("relay", str(word)),
            Fact("behind the archive", f"{size(max((one['behind_bytes'] for one in told), default=0))}, "
                           f"{span(max((one['behind_s'] for one in told), default=0.0))}"),
            Fact("made", f"{moment(now)} UTC"),
        ],
        [*_sections(told, rows, snapshots, stop, config, recent), growth],
    )  # fmt: skip
    return html(page)


def _verdict(told: list[dict[str, Any]], stop: Mapping[str, Any] | None, word: RelayWord, unmatched: list[str]) -> str:
    if stop is not None:
        of = f", table {stop['table']}" if stop["table"] else ""
        return f"The feed stopped at {stop['place']}{of}: {stop['name']}."
    wrong = [one for one in told if one["state"] not in _FINE]
    if wrong:
        return f"{number_of(len(wrong), 'table')} of {len(told)} {'is' if len(wrong) == 1 else 'are'} not current."
    if unmatched:
        return str(NothingMatches(unmatched))
    if word.follows is False:
        return word.text
    if not told:
        return "No table was fed yet."
    behind = max(one["behind_s"] for one in told)
    late = f", {span(behind)} behind it" if behind else ""
    source = f" The relay is {span(word.behind_s)} behind its source." if word.behind_s is not None else ""
    return f"All {number_of(len(told), 'table')} are as the archive has them{late}.{source}"


def _sections(
    told: list[dict[str, Any]],
    rows: list[tuple[Any, ...]],
    snapshots: list[tuple[Any, ...]],
    stop: Mapping[str, Any] | None,
    config: str,
    recent: RecentChanges,
) -> list[Section]:
    found = []
    if stop is not None:
        listing = ReportTable(
            "",
            {"what": "code", "where": "place", "table": "code", "why": "text", "what to do": "text"},
            [(stop["name"], stop["place"], stop["table"] or None, stop["text"], stop["advice"])],
            note=f"Seen at {stop['time']}. docs/FEED.md, 'What sets a table aside', has all names.",
        )
        found.append(
            Section(
                "What stopped it",
                "Its table has everything before it and nothing behind it; other tables may be a little further.",
                tables=[listing],
            )
        )
    aside = [one["aside"] for one in told if one["aside"] is not None]
    if aside:
        listing = ReportTable(
            "",
            {"table": "code", "what": "code", "where": "place", "why": "text", "what to do": "text", "seen": "text"},
            [tuple(one[name] for name in ("table", "name", "place", "text", "advice", "seen")) for one in aside],
            note="docs/FEED.md, 'What sets a table aside', has all names.",
        )
        text = "Each of these tables has everything before its place and nothing after it. The other tables are fed."
        found.append(Section("Set aside", text, tables=[listing]))
    wrong = [one for one in told if one["state"] not in _FINE]
    if len(wrong) > len(aside):
        listing = ReportTable(
            "",
            {"table": "code", "state": "word", "since": "place", "why": "text", "what to do": "code"},
            [
                (one["table"], one["state"], one["stale_from"], one["stale_reason"] or _WHY.get(one["state"]),
                 f"binlog-relay feed snapshot --config {config} --table {one['table']}")
                for one in wrong
                if one["aside"] is None
            ],
        )  # fmt: skip
        found.append(Section("Not current", "These tables may differ from the source's.", tables=[listing]))
    if snapshots:
        listing = ReportTable(
            "",
            {"table": "code", "begun at": "place", "read up to the key": "code", "rows so far": "count"},
            [(table, begun, None if last is None else str(last), count) for table, begun, last, count in snapshots],
        )
        found.append(Section("Snapshots that run", "Broken off, one goes on where it was.", tables=[listing]))
    columns = {"table": "code", "state": "word", "at": "place", "behind": "bytes", "behind, time": "seconds", "rows": "count",
               "changes": "count", "size": "bytes", "files": "count", "commits": "count"}  # fmt: skip
    found.append(Section("Tables", "", tables=[ReportTable("", columns, rows)]))  # type: ignore[arg-type]
    found.append(Section("Changes", "" if recent.by_table else "There were none.", charts=recent.charts()))
    return found


_WHY: Final = {
    "waits for a snapshot": "Its CREATE TABLE is not in the archive, so the rows that it had are not known.",
    "snapshot runs": "It has a part of its rows.",
}


def _sum(current: Mapping[str, int], changes: Mapping[str, int], name: str) -> int:
    return current.get(name, 0) + changes.get(name, 0)
