"""Tables that were set aside: trouble with one table stops that table, and the others go on.

A record in `_feed` has the reason and the place up to which the table is complete. It only saves work: if it is lost, the feed continues at the table's
own place, meets the same trouble there, and records it again. A table whose place in the lake is after the recorded one was loaded again meanwhile.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from protocol.errors import ExitCode, RelayError
from protocol.sql.tables.source_table import TableName
from relay.feed.progress_table import ProgressTable
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop

_SHOWN_TABLES: Final = 10


@dataclass(frozen=True, slots=True)
class AsideTable:
    """The record of one table: it is complete up to `place`; `stop` says why it goes no further, `seen` when that was found."""

    place: FeedOffset
    stop: FeedStop
    seen: str


class TablesSetAside(RelayError):
    """The error that a feed reached the archive's end with all tables but some, which were set aside."""

    exit_code = ExitCode.FINDINGS

    def __init__(self, stops: list[FeedStop]) -> None:
        names = [f"{one.table} ({one.name} at {one.place})" for one in stops[:_SHOWN_TABLES]]
        more = f" and {len(stops) - len(names)} more" if len(stops) > len(names) else ""
        are = "1 table is" if len(stops) == 1 else f"{len(stops)} tables are"
        super().__init__(
            f"{are} set aside, and the others are fed: {', '.join(names)}{more}.",
            "`binlog-relay feed status` has each table's reason and next step.",
        )


def aside_text(stop: FeedStop) -> str:
    """Return a table's stop as a message."""
    return f"{stop.table}: set aside at {stop.place}, {stop.name}: {stop.what} {stop.advice}"


class TablesAside:
    """The fed tables that are set aside. `terms` names the settings and the version: a table is tried again when they have changed, as
    that may be what was to be done; with None it stays aside, for observers."""

    def __init__(self, progress: ProgressTable, is_fed: Callable[[TableName], bool], terms: str | None) -> None:
        self._progress = progress
        self._terms = terms
        self._tables: dict[TableName, AsideTable] = {}
        self._new: list[FeedStop] = []
        for key, text in progress.aside().items():
            facts = json.loads(text)
            if is_fed(key) and (terms is None or facts["terms"] == terms):
                place = FeedOffset.of_version(facts["place"])
                self._tables[key] = AsideTable(place, FeedStop.of_facts(facts["stop"]), facts["seen"])

    def __contains__(self, key: TableName) -> bool:
        return key in self._tables

    def __iter__(self) -> Iterator[TableName]:
        return iter(sorted(self._tables))

    def __len__(self) -> int:
        return len(self._tables)

    def get(self, key: TableName) -> AsideTable | None:
        """Return a table's record; None if it is not set aside."""
        return self._tables.get(key)

    def add(self, found: Mapping[TableName, tuple[FeedOffset, FeedStop]], place: FeedOffset) -> None:
        """Set tables aside, each with the place up to which it is complete. `place` is the feed's. An observer records nothing."""
        seen = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        for key, (complete, stop) in found.items():
            self._tables[key] = AsideTable(complete, stop, seen)
            self._new.append(stop)
        records = {key: (self._tables[key].place, self._text(self._tables[key])) for key in found}
        if records and self._terms is not None:
            self._progress.note_aside(records, place)

    def _text(self, one: AsideTable) -> str:
        facts = {"terms": self._terms, "place": one.place.version, "seen": one.seen, "stop": one.stop.facts()}
        return json.dumps(facts, ensure_ascii=False)

    def release(self, key: TableName, place: FeedOffset) -> None:
        """Feed a table again from a place: it was loaded from elsewhere, or is emptied there."""
        if self._tables.pop(key, None) is not None:
            self._progress.forget_aside(key, place)

    def release_loaded(self, places: Mapping[TableName, FeedOffset]) -> None:
        """Feed the tables again whose place in the lake is after the one where they were set aside."""
        for key, one in list(self._tables.items()):
            if key in places and places[key] > one.place:
                del self._tables[key]

    def check(self, key: TableName) -> None:
        """Raise the FeedStop of a table that is set aside."""
        one = self._tables.get(key)
        if one is not None:
            raise one.stop.without_trace()

    def new_texts(self) -> list[str]:
        """Return a message for each table that was set aside since the last call."""
        new, self._new = self._new, []
        return [aside_text(one) for one in new]

    def check_none(self) -> None:
        """Raise TablesSetAside if there are any."""
        if self._tables:
            raise TablesSetAside([self._tables[key].stop for key in self])
