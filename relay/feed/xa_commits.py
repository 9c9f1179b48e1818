"""Rows that XA COMMIT brings: they are logged where the transaction was prepared, perhaps before the contents of a snapshot or a dump."""

import re
from collections.abc import Iterable
from typing import Final

from protocol.sql.tables.source_table import TableName
from relay.feed.archive_reading import ArchiveReading
from relay.feed.rows.feed_place import FeedPlace
from relay.feed.statements.logged_changes import UnseenChange

# The forms in which servers write them: XA END X'61',X'',1
_ENDS: Final = re.compile(r"XA\s+(END|COMMIT)\s+(\S.*)", re.IGNORECASE | re.DOTALL)


def xa_commits(reading: ArchiveReading, start: FeedPlace, end: FeedPlace) -> list[UnseenChange]:
    """Return each XA COMMIT in [start, end) as a change of the tables whose rows its transaction has, wherever that was prepared.

    If the archive does not contain the transaction, it is a change of any table.
    """
    prepared: dict[str, FeedPlace] = {}
    commits: list[tuple[FeedPlace, str]] = []
    found: list[UnseenChange] = []
    tables = reading.prepared_tables(start, end)
    for place, text in reading.xa_statements(start, end):
        word, name = _parts(text)
        if word == "END":
            prepared[name] = place
        elif word == "COMMIT" and name in prepared:
            found.append(_change(place, tables.get(prepared.pop(name))))
        elif word == "COMMIT":
            commits.append((place, name))
    before = _prepared_before(reading, start, {name for _place, name in commits})
    return found + [_change(place, before.get(name)) for place, name in commits]


def _prepared_before(reading: ArchiveReading, start: FeedPlace, names: set[str]) -> dict[str, frozenset[TableName]]:
    """Return the tables of the newest transactions of these names that were prepared before a place."""
    found: dict[str, frozenset[TableName]] = {}
    if not names:
        return found
    for low, high in reading.stretches_before(start):
        newest = {name: place for place, text in reading.xa_statements(low, high) for _word, name in (_parts(text),)}
        wanted = names & newest.keys()
        if wanted:
            tables = reading.prepared_tables(low, high)
            found |= {name: tables[newest[name]] for name in wanted if newest[name] in tables}
            names = names - wanted
        if not names:
            break
    return found


def _parts(text: str) -> tuple[str, str]:
    match = _ENDS.match(text)
    return (match[1].upper(), match[2].strip()) if match is not None else ("", "")


def _change(place: FeedPlace, tables: Iterable[TableName] | None) -> UnseenChange:
    if tables is None:
        return UnseenChange(place, None, "XA COMMIT of a transaction that was prepared before the archive begins")
    words = frozenset(part.lower() for key in tables for part in key)
    return UnseenChange(place, words, "XA COMMIT of a transaction that was prepared before", of_rows=True)
