"""The lake's table `_feed`: how far all tables are, for observers, and so that tables without changes need no commits.

A table that the settings no longer name stays in it with the place up to which it was fed: if it is named again, it continues there. So
do those of another feed with the same target. `begun` is the time of the first event of the binlog of `place`: after RESET MASTER
another binlog has its name.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from protocol.errors import Malformed
from protocol.sql.tables.source_table import TableName
from relay.feed.lake.lake_table import SNAPSHOT, STALE_FROM, STALE_REASON, ColumnsChange, Lake, LakeTable, NewTable
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.settings.feed_settings import CURRENT

if TYPE_CHECKING:
    from relay.feed.sink_table import SinkTable

STATE: Final = "_feed"
STOP: Final = "binlog-relay.stop"
"""This property says what stopped the feed."""
PROGRESS: Final = pa.schema(
    [
        ("schema", pa.string()),
        ("table", pa.string()),
        ("place", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("current", pa.string()),
        ("stale_from", pa.string()),
        ("stale_reason", pa.string()),
        ("written", pa.timestamp("us", "UTC")),
        ("modes", pa.string()),
        ("begun", pa.timestamp("us", "UTC")),
        ("aside", pa.string()),
        ("kinds", pa.string()),
    ]
)
CHOICES: Final = "binlog-relay.choices"
"""This property contains what the settings named, each time that it was something else."""
MISSED: Final = "binlog-relay.missed"
"""This property contains the place of the first change without logged rows, and what it was."""
CAPITALS: Final = "binlog-relay.capitals"
"""This property contains a table with logged rows whose name is not in lower case."""
STARTS: Final = "binlog-relay.starts"
"""This property contains how far a feed was that had no table yet, by what its settings named."""
SET_ASIDE: Final = "set aside"
_WITH_ROWS: Final = ("current", "stale", "snapshot runs")
"""The states of a table whose current rows are in the lake."""
_MOST_CHOICES: Final = 50
_EVERY_S: Final = 60.0


class ProgressTable:
    """A table whose place every fed table has reached. It may be old or missing: then more is read again, and skipped."""

    def __init__(
        self,
        lake: Lake,
        choice: str = "",
        modes: Sequence[str] = (),
        begun: Callable[[FeedOffset], datetime | None] = lambda _place: None,
        told: Callable[[FeedOffset], str] = lambda _place: "",
    ) -> None:
        self._lake = lake
        self._begun = begun
        self._told = told
        self._choice = choice
        self._modes = ",".join(sorted(modes))
        self._table: LakeTable | None = lake.open(STATE, "", "")
        self._rows = self._read()
        self._written = time.monotonic()
        self._noted: tuple[FeedOffset, list[SinkTable], str, Any] | None = None

    @property
    def place(self) -> FeedOffset | None:
        """The place that was written last."""
        return self._table.place if self._table is not None else None

    @property
    def begun_at(self) -> FeedOffset | None:
        """The place of the feed with these settings while it had no table yet; None if there was none, as far as is known."""
        version = self._starts().get(self._choice)
        return FeedOffset.of_version(version) if version is not None else None

    def note_begun(self, place: FeedOffset) -> None:
        """Record how far a feed is that has no table yet: if `start` is the latest, that would be another place the next time."""
        if self._table is None:
            self._create(place, {STARTS: json.dumps({self._choice: place.version})})
            return
        starts = self._starts()
        if starts.pop(self._choice, None) != place.version:
            kept = dict([*starts.items()][1 - _MOST_CHOICES :])
            self._table.set_properties({STARTS: json.dumps({**kept, self._choice: place.version})})

    def _starts(self) -> dict[str, int]:
        text = self._table.properties.get(STARTS) if self._table is not None else None
        found: dict[str, int] = json.loads(text) if text else {}
        return found

    def choices(self) -> list[Any]:
        """Return all that the settings have named since the table was created, including now, as given; if there are too many, an entry
        that names nothing."""
        known = self._table.properties.get(CHOICES) if self._table is not None else None
        found: list[Any] = json.loads(known) if known else []
        if not self._choice or json.loads(self._choice) in found:
            return found
        return [*found, json.loads(self._choice)] if len(found) < _MOST_CHOICES else [[[], []]]

    def note_choice(self) -> None:
        """Record what the settings name, if it has changed, before any table continues without one that they leave out."""
        if self._table is not None and self._table.properties.get(CHOICES) != (found := json.dumps(self.choices())):
            self._table.set_properties({CHOICES: found})

    @property
    def capitals(self) -> str | None:
        """A table with logged rows whose name is not in lower case."""
        return self._table.properties.get(CAPITALS) if self._table is not None else None

    def note_capitals(self, name: str) -> None:
        """Record that there is such a table."""
        if self._table is not None:
            self._table.set_properties({CAPITALS: name})

    @property
    def missed(self) -> tuple[str, str] | None:
        """The place of the first change without logged rows, and what it was, as recorded by `note_missed`."""
        text = self._table.properties.get(MISSED) if self._table is not None else None
        if not text:
            return None
        told, reason = json.loads(text)
        return told, reason

    def note_missed(self, place: FeedOffset, told: str, reason: str) -> None:
        """Record that there was such a change at `told`, unless there was one before."""
        if self._table is None:
            self._create(place)
        if self._table is not None and self.missed is None:
            self._table.set_properties({MISSED: json.dumps([told, reason])})

    def tables(self) -> list[TableName]:
        """Return the tables that were fed when it was written."""
        return list(self._rows)

    def done(self, key: TableName, kind: str = "") -> FeedOffset | None:
        """Return the place up to which a table, or its part of that kind, is complete; None if it is not recorded here."""
        row = self._rows.get(key)
        modes = row.get("modes") if row is not None else None
        if row is None or (kind and modes and kind not in modes.split(",")):
            return None
        try:
            return FeedOffset.of_text(row["place"])
        except (ValueError, Malformed, FeedStop):
            return None

    def kinds(self, key: TableName) -> frozenset[str]:
        """Return which of its two tables the lake had when it was written; empty if that is not recorded."""
        row = self._rows.get(key, {})
        known = row.get("kinds")
        if known is None:  # an earlier version of the feed wrote it
            return frozenset((CURRENT,)) if row.get("current") in _WITH_ROWS else frozenset()
        return frozenset(filter(None, known.split(",")))

    def aside(self) -> dict[TableName, str]:
        """Return the records of the tables that are set aside."""
        return {key: row["aside"] for key, row in self._rows.items() if row.get("aside")}

    def note_aside(self, records: Mapping[TableName, tuple[FeedOffset, str]], place: FeedOffset) -> None:
        """Record tables as set aside, each with the place up to which it is complete, while the feed is at `place`."""
        self._read_again()
        for key, (complete, record) in records.items():
            known = self._rows.get(key, {"schema": key[0], "table": key[1], "modes": self._modes})
            state = {"place": self._told(complete), "current": SET_ASIDE, "written": datetime.now(UTC), "aside": record}
            state["kinds"] = ",".join(sorted(self.kinds(key)))
            self._rows[key] = {**known, **state, "begun": self._begun(complete)}
        if self._noted is not None:  # what is written later says nothing of them
            at, tables, *rest = self._noted
            left = [one for one in tables if one.key not in records]
            self._noted = (at, left, *rest) if left else None
        if self._table is None:
            self._create(place)
        self._replace(place)

    def forget_aside(self, key: TableName, place: FeedOffset) -> None:
        """Record that a table is not set aside any more, and is fed from a place on."""
        row = self._rows.get(key)
        if self._table is not None and self._table.place is not None and row is not None and row.get("aside"):
            self._rows[key] = {
                **row,
                "aside": None,
                "kinds": None,
                "place": self._told(place),
                "begun": self._begun(place),
            }
            self._replace(self._table.place)

    def binlogs(self) -> Iterator[tuple[FeedOffset, datetime]]:
        """Yield the binlogs that tables have reached: a place in each, and the time of its first event."""
        found = {}
        for key, row in self._rows.items():
            done, begun = self.done(key), row.get("begun")
            if done is not None and begun is not None:
                found[done.generation, done.number, begun] = (done, begun)
        yield from found.values()

    def forget_binlogs(self) -> None:
        """Accept the current binlogs as those that are fed."""
        self._rows = {key: {**row, "begun": None} for key, row in self._rows.items()}
        if self._table is not None and self._table.place is not None:
            self._replace(self._table.place)

    def _read(self) -> dict[TableName, dict[str, Any]]:
        if self._table is None:
            return {}
        with self._table.scan() as reader:
            return {(one["schema"], one["table"]): one for one in reader.read_all().to_pylist()}

    def note(self, place: FeedOffset, tables: "Iterable[SinkTable]", told: str, last_time: Any) -> None:
        """Note that all tables are at `place`; this is written at most once a minute."""
        self._noted = (place, list(tables), told, last_time)
        if time.monotonic() - self._written >= _EVERY_S:
            self.write()

    def fall_back(self, place: FeedOffset, told: str) -> None:
        """Lower what is recorded: tables must be fed from `place` on, which is FILE:POSITION."""
        if self._table is None:
            return
        for key, row in self._rows.items():
            done = self.done(key)
            if done is None or place < done:
                self._rows[key] = {**row, "place": told}
        self._replace(place)
        self._noted = None

    @property
    def stop(self) -> dict[str, Any] | None:
        """The stop of the feed at its place; None if nothing stopped it."""
        text = self._table.properties.get(STOP) if self._table is not None else None
        found: dict[str, Any] | None = json.loads(text) if text else None
        return found

    def note_stop(self, stop: FeedStop, place: FeedOffset) -> None:
        """Record what stopped the feed, for observers; it stays until the feed goes on."""
        self.write()
        if self._table is None:
            self._create(place)
        if self._table is None:
            return
        seen = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        facts = stop.facts()
        known = self.stop
        if known is None or known | {"time": seen} != facts | {"time": seen}:
            self._table.set_properties({STOP: json.dumps({**facts, "time": seen})})

    def write(self) -> None:
        """Write what was noted, if it is more than what is recorded."""
        if self._noted is None:
            return
        place, tables, told, last_time = self._noted
        self._noted = None
        self._written = time.monotonic()
        self._read_again()
        if not tables:
            self.note_begun(place)
        begun = self._begun(place)
        self._rows |= {one.key: {**self._row(one, place, told, last_time), "begun": begun} for one in tables}
        if self._table is None:
            self._create(place)
        self._replace(place)
        self.forget_stop()

    def forget_stop(self) -> None:
        """Record that the feed is past what stopped it."""
        if self._table is not None and self._table.properties.get(STOP):
            self._table.set_properties({STOP: ""})

    def _read_again(self) -> None:
        """Read the rows that another feed of this target may have written."""
        if self._table is not None:
            self._table = self._lake.open(STATE, "", "") or self._table
            self._rows = self._read()

    def _create(self, place: FeedOffset, more: Mapping[str, str] | None = None) -> None:
        properties = {CHOICES: json.dumps([json.loads(self._choice)])} if self._choice else {}
        self._table = self._lake.create(NewTable(STATE, ("", ""), PROGRESS, place, {**properties, **(more or {})}))

    def _replace(self, place: FeedOffset) -> None:
        if self._table is None:
            return
        if self._table.schema.names != PROGRESS.names:  # an earlier version of the feed made it
            self._table.evolve(ColumnsChange(PROGRESS), place)
        self._table.replace(pa.Table.from_pylist(list(self._rows.values()), schema=PROGRESS), place)

    def upkeep(self, keep_hours: int) -> dict[str, Any]:
        """Remove what only old versions contain."""
        return dict(self._table.expire(keep_hours)) if self._table is not None else {}

    def _row(self, table: "SinkTable", place: FeedOffset, told: str, last_time: Any) -> dict[str, Any]:
        properties = table.current.properties if table.current is not None else {}
        return {
            "schema": table.key[0],
            "table": table.key[1],
            "place": told,
            "time": last_time,
            "current": current_state(table, place),
            "stale_from": properties.get(STALE_FROM),
            "stale_reason": properties.get(STALE_REASON),
            "written": datetime.now(UTC),
            "modes": self._modes,
            "aside": None,
            "kinds": ",".join(sorted(table.kinds)),
        }


def current_state(table: "SinkTable", place: FeedOffset) -> str:
    """Return the state of the table's current rows at `place`, in a few words."""
    if table.current is None:
        return "waits for a snapshot" if table.may_have_current else "changes only"
    properties = table.current.properties
    if properties.get(SNAPSHOT):
        return "snapshot runs"
    return "stale" if properties.get(STALE_FROM) else "current"
