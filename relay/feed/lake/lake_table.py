"""The interface of a table in a lake that the feed uses, whatever its format."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

import pyarrow as pa

from protocol.errors import RelayError
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.spool.changes_spilled import SpooledNet

APP_ID: Final = "binlog-relay"
STALE_FROM: Final = "binlog-relay.stale-from"
STALE_REASON: Final = "binlog-relay.stale-reason"
SNAPSHOT: Final = "binlog-relay.snapshot"
"""Properties of a table: since when it may be wrong, why, and how far its snapshot is."""
LOADED: Final = "binlog-relay.loaded"
"""This property contains the version that the last snapshot completed, its place, and when that binlog was begun, unless the table was stale then."""


STRAY_HOURS: Final = 24
"""A file that no version contains is kept for so many hours: a commit that names it may be under way."""


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table to create, fed up to `place`. `name` is schema and table; each of its files belongs to one day of the column `day_of`."""

    kind: str
    name: tuple[str, str]
    schema: pa.Schema
    place: FeedOffset
    properties: Mapping[str, str] = field(default_factory=dict)
    day_of: str = ""


@dataclass(frozen=True, slots=True)
class ColumnsChange:
    """A change of a table's columns: the new `schema`, `renamed` {new: old} and `filled` {column: value of all existing rows}.

    With `emptied` no row is kept. With `numbered` the rows have no key any more and get their own names.
    """

    schema: pa.Schema
    renamed: Mapping[str, str] = field(default_factory=dict)
    filled: Mapping[str, Any] = field(default_factory=dict)
    emptied: bool = False
    numbered: bool = False


class CannotEvolve(RelayError):
    """The error that the lake's format cannot change a column's type to the other."""


class LakeTable(Protocol):
    """One table. Every method that takes a place commits it with its effect, in one commit: all of it or nothing."""

    @property
    def place(self) -> FeedOffset | None:
        """The place up to which it was fed; None if it was not fed."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""

    @property
    def version(self) -> int:
        """Its newest version, for time travel."""

    def merge(self, changes: pa.Table, key: Sequence[str], place: FeedOffset) -> None:
        """Merge net changes: rows by key with _deleted."""

    def merge_spooled(self, changes: SpooledNet, key: Sequence[str], place: FeedOffset) -> None:
        """Merge net changes that do not fit into memory, still in one commit."""

    def append(self, rows: pa.Table | pa.RecordBatchReader, place: FeedOffset) -> None:
        """Append rows."""

    def replace(self, rows: pa.Table, place: FeedOffset) -> None:
        """Replace all rows by these."""

    def clear(self, place: FeedOffset) -> None:
        """Remove all rows."""

    def evolve(self, change: ColumnsChange, place: FeedOffset) -> None:
        """Change the columns."""

    def rebuild(self, schema: pa.Schema, rows: Iterable[pa.RecordBatch], place: FeedOffset) -> None:
        """Replace the columns and all rows."""

    def advance(self, place: FeedOffset) -> None:
        """Commit a place without data."""

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set properties; '' removes one. This is a separate commit without a place."""

    def scan(self, columns: Sequence[str] | None = None, version: int | None = None) -> pa.RecordBatchReader:
        """Return its rows, of its newest version or an older one."""

    def scan_since(self, columns: Sequence[str], column: str, since: datetime) -> pa.RecordBatchReader:
        """Return its rows whose time is `since` or later."""

    def facts(self) -> Mapping[str, int]:
        """Return the rows, files and bytes of its newest version, and the number of commits."""

    def size_at(self, moment: datetime) -> tuple[datetime, int] | None:
        """Return the time and the bytes of the version that was the newest at a moment, or else of the oldest. None means unknown."""

    def rows_of(self, keys: pa.Table) -> pa.Table:
        """Return the rows that have one of these keys, with all columns."""

    def compact(self, target_bytes: int) -> Mapping[str, Any]:
        """Merge small files into larger ones."""

    def expire(self, keep_hours: int) -> Mapping[str, Any]:
        """Remove files that only versions older than so many hours contain, and old files that no version ever contained."""

    def forget(self, column: str, before: datetime) -> None:
        """Remove rows whose time is before `before`. This commit has no place."""

    def places(self) -> Iterable[tuple[int, FeedOffset]]:
        """Yield (version, place) of the versions that still exist, oldest first."""


class Lake(Protocol):
    """A container of tables. `kind` is current, changes or state."""

    def open(self, kind: str, schema: str, table: str) -> LakeTable | None:
        """Open a table that exists."""

    def create(self, new: NewTable) -> LakeTable:
        """Create an empty table."""

    def missing(self, names: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        """Return those of the tables (kind, schema, table) that do not exist, as far as that is known without asking for each."""

    def address(self, kind: str, schema: str, table: str) -> str:
        """Return where others find it: a path, a URL or a name."""

    def beside(self, name: str) -> "Lake":
        """Return a lake of its own in the same place, which no reader of this one sees; it may not exist yet."""

    def remove_beside(self, name: str, first: str) -> None:
        """Remove all of a lake beside this one; before anything else its state table `first`."""


def loaded_properties(table: LakeTable, begun: Callable[[FeedOffset], datetime | None]) -> dict[str, str]:
    """Return the properties of a table whose snapshot is complete. `begun` returns when the binlog of a place was begun."""
    place = table.place
    if place is None or table.properties.get(STALE_FROM):
        return {SNAPSHOT: ""}
    facts = {"version": table.version, "place": place.version, "begun": str(begun(place))}
    return {SNAPSHOT: "", LOADED: json.dumps(facts)}
