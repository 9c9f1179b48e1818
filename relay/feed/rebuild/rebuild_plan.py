"""The plan of a rebuild: from which place of the archive a table is made, and where its rows are known.

Rows are known where the table is created or gets its name, as nothing was in it before that the archive does not have; or where a snapshot was complete,
whose version the lake still has.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow.compute as pc

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.sql.tables.source_table import TableName
from relay.binlog_tables.plan.places import PositionGone
from relay.binlog_tables.plan.read_finding import FileLost
from relay.feed.archive_reading import ArchiveReading
from relay.feed.lake.lake_table import LOADED, LakeTable
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.statements.logged_changes import CREATED, RENAMED, DdlChange, logged_changes

FIRST: Final = "first"
"""This word instead of a place means the first place of the archive."""
_SNAPSHOT: Final = "Load it from the source: `binlog-relay feed snapshot --table {table}`."


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """A version of the lake's current table that a snapshot completed, and its place."""

    version: int
    place: FeedOffset


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    """Changes are made from `start` on. Rows are known from `base` on, or without it from a statement at or after `start`."""

    start: FeedOffset
    base: LoadedVersion | None = None

    def text(self) -> str:
        """Return it as a record in the lake."""
        base = [self.base.version, self.base.place.version] if self.base is not None else None
        return json.dumps({"start": self.start.version, "base": base})

    @classmethod
    def of_text(cls, text: str) -> "RebuildPlan":
        """Return what was recorded."""
        facts = json.loads(text)
        base = facts["base"]
        known = LoadedVersion(base[0], FeedOffset.of_version(base[1])) if base is not None else None
        return cls(FeedOffset.of_version(facts["start"]), known)


def rebuild_plan(
    reading: ArchiveReading, key: TableName, current: LakeTable | None, asked: str | None, *, needs_rows: bool
) -> RebuildPlan:
    """Return the plan for what was `asked`: FILE:POSITION, FIRST, or None for the place where the table was created. Raises: FeedStop.

    Without `needs_rows` only changes are kept.
    """
    oldest = reading.oldest()
    asked_place = None if asked is None else oldest if asked == FIRST else asked_for(reading, asked)
    if not needs_rows:
        return RebuildPlan(asked_place or oldest)
    least = asked_place or oldest
    made = _known_from(reading, key, least)
    if made is not None:
        return RebuildPlan(asked_place or made.start)
    base = loaded_version(reading, current)
    if base is not None and least <= base.place:
        return RebuildPlan(asked_place or base.place, base)
    raise _unknown(reading, key, least, base)


def asked_for(reading: ArchiveReading, text: str) -> FeedOffset:
    """Return the place that FILE:POSITION names. Raises: FeedStop if the archive has no transaction that begins there."""
    oldest, newest = reading.oldest(), reading.newest()
    try:
        place = FeedOffset.of_text(text)
        reading.text(place)
    except (ValueError, Malformed):
        raise _no_place(reading, text, "it is no FILE:POSITION") from None
    except FeedStop:
        raise _no_place(reading, text, "the archive does not have this binlog") from None
    if not oldest <= place <= newest:
        raise _no_place(reading, text, "the archive does not reach there")
    if place.position > FIRST_EVENT and place != newest and not _begins(reading, place):
        raise _no_place(reading, text, "no transaction begins there")
    return place


def _begins(reading: ArchiveReading, place: FeedOffset) -> bool:
    """Return whether a transaction begins at a place, or a binlog ends there."""
    first = FeedOffset(place.generation, place.number, FIRST_EVENT)
    try:
        ends = reading.transactions(first, reading.newest(place, 1))
    except (FeedStop, PositionGone, FileLost):
        return False
    pairs = zip(ends.column("file").to_pylist(), ends.column("end").to_pylist(), strict=True)
    starts = zip(ends.column("file").to_pylist(), ends.column("start").to_pylist(), strict=True)
    known = (FeedOffset.at(file, position) for file, position in (*pairs, *starts) if position is not None)
    return place in set(known)


def _no_place(reading: ArchiveReading, text: str, why: str) -> FeedStop:
    reaches = f"it reaches from {reading.told(reading.oldest())} to {reading.told(reading.newest())}"
    return FeedStop(
        "place_unknown",
        text,
        f"The archive has no such place: {why}; {reaches}.",
        f"Give FILE:POSITION where a transaction begins, `--from {FIRST}`, or no --from: then it is where the table was created.",
    )


def loaded_version(reading: ArchiveReading, current: LakeTable | None) -> LoadedVersion | None:
    """Return the version that the table's last snapshot completed; None if none is recorded of this archive."""
    text = current.properties.get(LOADED) if current is not None else None
    if not text:
        return None
    facts = json.loads(text)
    place = FeedOffset.of_version(facts["place"])
    return LoadedVersion(facts["version"], place) if str(reading.begun(place)) == facts["begun"] else None


def _known_from(reading: ArchiveReading, key: TableName, least: FeedOffset) -> DdlChange | None:
    """Return the first statement from a place on after which the table's rows are known; None if there is none."""
    for start, end in _files_with(reading, key):
        if end <= least:
            continue
        statements = reading.statements(max(start, least), end)
        named = statements.filter(pc.match_substring(statements.column("statement"), key[1], ignore_case=True))
        found = logged_changes(named.to_pylist(), {}, reading.server_version, [key], reading.used_temporary)
        for one in found.definitions:
            if one.key != key:
                continue
            if one.action == RENAMED and one.source is not None:
                return one
            before = FeedOffset(one.start.generation, one.start.number, one.position - 1)
            if one.action == CREATED and (not one.if_not_exists or reading.table(key, before, end) is None):
                return one
    return None


def _files_with(reading: ArchiveReading, key: TableName) -> Iterator[tuple[FeedOffset, FeedOffset]]:
    """Yield the binlogs in which the record of tables has a change of the table, oldest first: each one's start and end."""
    newest = reading.newest()
    changed = reading.definition_files(key, newest)
    for start, end in reversed(list(reading.stretches_before(newest))):
        if (start.generation, start.number) in changed:
            yield start, end


def _unknown(reading: ArchiveReading, key: TableName, least: FeedOffset, base: LoadedVersion | None) -> FeedStop:
    name = ".".join(key)
    snapshot = (
        f"the feed's last snapshot of it was complete at {reading.told(base.place)}, which is before"
        if base is not None
        else "the feed knows no snapshot of it"
    )
    return FeedStop(
        "rows_unknown",
        reading.told(least),
        f"From there on the archive has no CREATE TABLE of {name}, and {snapshot}: the rows that it had are not known.",
        _SNAPSHOT.format(table=name),
        name,
    )
