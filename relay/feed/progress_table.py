"""The lake's table `_feed`: how far all tables are, for whoever looks, and so that tables without changes need no commits."""

import json
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from relay.feed.lake.lake_table import SNAPSHOT, STALE_FROM, STALE_REASON, Lake, LakeTable
from relay.feed.rows.feed_place import FeedPlace
from relay.feed.rows.feed_stop import FeedStop
from relay.schema_history.tables.source_table import TableName

if TYPE_CHECKING:
    from relay.feed.fed_table import FedTable

STATE: Final = "_feed"
STOP: Final = "binlog-relay.stop"
"""Property of it: what stopped the feed."""
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
    ]
)
_EVERY_S: Final = 60.0


class ProgressTable:
    """Everything up to its place is in every table. It may be old, or gone: then more is read again, and skipped."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._table: LakeTable | None = lake.open(STATE, "", "")
        self._written = time.monotonic()
        self._noted: tuple[FeedPlace, list[FedTable], str, Any] | None = None

    @property
    def place(self) -> FeedPlace | None:
        """As it was written last."""
        return self._table.place if self._table is not None else None

    def tables(self) -> list[TableName]:
        """The tables that were fed when it was written."""
        if self._table is None:
            return []
        with self._table.scan(["schema", "table"]) as reader:
            return [(one["schema"], one["table"]) for one in reader.read_all().to_pylist()]

    def note(self, place: FeedPlace, tables: "Iterable[FedTable]", told: str, last_time: Any) -> None:
        """All tables are at `place`; written at most each minute."""
        self._noted = (place, list(tables), told, last_time)
        if time.monotonic() - self._written >= _EVERY_S:
            self.write()

    def fall_back(self, place: FeedPlace) -> None:
        """Says less than it did: a table is to be fed from `place` on."""
        done = self.place
        if self._table is not None and done is not None and place < done:
            with self._table.scan() as reader:
                rows = reader.read_all()
            self._table.replace(rows.cast(PROGRESS), place)
            self._noted = None

    @property
    def stop(self) -> dict[str, Any] | None:
        """What stopped the feed where it stands; None: nothing did."""
        text = self._table.properties.get(STOP) if self._table is not None else None
        found: dict[str, Any] | None = json.loads(text) if text else None
        return found

    def note_stop(self, stop: FeedStop, place: FeedPlace) -> None:
        """Writes down what stopped the feed, for whoever looks; it stays until the feed goes on."""
        self.write()
        if self._table is None:
            self._table = self._lake.create(STATE, ("", ""), PROGRESS, {}, place)
        seen = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        facts = {"name": stop.name, "place": stop.place, "text": stop.text, "advice": stop.advice, "table": stop.table}
        known = self.stop
        if known is None or known | {"time": seen} != facts | {"time": seen}:
            self._table.set_properties({STOP: json.dumps({**facts, "time": seen})})

    def write(self) -> None:
        """Writes what was noted, if that is more than there is."""
        if self._noted is None:
            return
        place, tables, told, last_time = self._noted
        self._noted = None
        self._written = time.monotonic()
        rows = [self._row(one, place, told, last_time) for one in tables]
        if self._table is None:
            self._table = self._lake.create(STATE, ("", ""), PROGRESS, {}, place)
        self._table.replace(pa.Table.from_pylist(rows, schema=PROGRESS), place)
        if self._table.properties.get(STOP):
            self._table.set_properties({STOP: ""})

    @staticmethod
    def _row(table: "FedTable", place: FeedPlace, told: str, last_time: Any) -> dict[str, Any]:
        properties = table.current.properties if table.current is not None else {}
        return {
            "schema": table.key[0],
            "table": table.key[1],
            "place": told,
            "time": last_time,
            "current": current_state(table, place),
            "stale_from": properties.get(STALE_FROM),
            "stale_reason": properties.get(STALE_REASON),
            "written": int(time.time() * 1_000_000),
        }


def current_state(table: "FedTable", place: FeedPlace) -> str:
    """How the table's current rows are at `place`, in a word."""
    if table.current is None:
        return "waits for a snapshot" if table.may_have_current else "changes only"
    properties = table.current.properties
    if properties.get(SNAPSHOT):
        return "snapshot runs"
    return "stale" if properties.get(STALE_FROM) else "current"
