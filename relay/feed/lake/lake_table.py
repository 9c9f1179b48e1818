"""What the feed wants of a table in a lake, whatever its format."""

from collections.abc import Iterable, Mapping, Sequence
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


STRAY_HOURS: Final = 24
"""A file that no version has is not taken away before: a commit may be on its way that names it."""


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that is to be made, fed up to `place`. `name`: schema and table; `day_of`: its files are of one day of this column each."""

    kind: str
    name: tuple[str, str]
    schema: pa.Schema
    place: FeedOffset
    properties: Mapping[str, str] = field(default_factory=dict)
    day_of: str = ""


@dataclass(frozen=True, slots=True)
class ColumnsChange:
    """What becomes of a table's columns: `schema` behind it, `renamed` {new: old}, `filled` {column: value of all rows there are}.

    `emptied`: no row is kept. `numbered`: the rows have no key any more, and get names of their own.
    """

    schema: pa.Schema
    renamed: Mapping[str, str] = field(default_factory=dict)
    filled: Mapping[str, Any] = field(default_factory=dict)
    emptied: bool = False
    numbered: bool = False


class CannotEvolve(RelayError):
    """The lake's format has no way from a column's type to the other."""


class LakeTable(Protocol):
    """One table. Every method that takes a place commits it with what it does, in one commit: all of it or nothing."""

    @property
    def place(self) -> FeedOffset | None:
        """Up to where it was fed; None: nobody fed it."""

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
        """Net changes: rows by key with _deleted."""

    def merge_spooled(self, changes: SpooledNet, key: Sequence[str], place: FeedOffset) -> None:
        """As `merge`, of more than fits into memory, in one commit all the same."""

    def append(self, rows: pa.Table | pa.RecordBatchReader, place: FeedOffset) -> None:
        """More rows."""

    def replace(self, rows: pa.Table, place: FeedOffset) -> None:
        """These rows in place of all there are."""

    def clear(self, place: FeedOffset) -> None:
        """No row any more."""

    def evolve(self, change: ColumnsChange, place: FeedOffset) -> None:
        """Other columns."""

    def rebuild(self, schema: pa.Schema, rows: Iterable[pa.RecordBatch], place: FeedOffset) -> None:
        """Other columns and these rows in place of all there are."""

    def advance(self, place: FeedOffset) -> None:
        """A commit without data."""

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Sets properties; '' takes one away. A commit of its own, without a place."""

    def scan(self, columns: Sequence[str] | None = None, version: int | None = None) -> pa.RecordBatchReader:
        """Its rows, of its newest version or an older one."""

    def scan_since(self, columns: Sequence[str], column: str, since: datetime) -> pa.RecordBatchReader:
        """Its rows whose time is `since` or later."""

    def facts(self) -> Mapping[str, int]:
        """How many rows, files and bytes its newest version has, and how many commits there were."""

    def size_at(self, moment: datetime) -> tuple[datetime, int] | None:
        """When the version was made that was the newest at a moment, else the oldest there is, and its bytes. None: not known."""

    def rows_of(self, keys: pa.Table) -> pa.Table:
        """The rows that have one of these keys, with all columns."""

    def compact(self, target_bytes: int) -> Mapping[str, Any]:
        """Small files into larger ones."""

    def expire(self, keep_hours: int) -> Mapping[str, Any]:
        """Takes away what only versions older than so many hours have, and files that no version ever had, once they are old."""

    def forget(self, column: str, before: datetime) -> None:
        """Takes rows away whose time is before `before`. A commit without a place."""

    def places(self) -> Iterable[tuple[int, FeedOffset]]:
        """(version, place) of the versions that there still are, oldest first."""


class Lake(Protocol):
    """Where tables are. `kind`: current, changes or state."""

    def open(self, kind: str, schema: str, table: str) -> LakeTable | None:
        """A table that is there."""

    def create(self, new: NewTable) -> LakeTable:
        """The table, empty."""

    def address(self, kind: str, schema: str, table: str) -> str:
        """Where others find it: a path, a URL or a name."""
