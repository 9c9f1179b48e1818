"""Rows that XA COMMIT brings: they are logged where the transaction was prepared, perhaps before the contents of a snapshot or a
dump."""

from collections.abc import Iterable

from protocol.sql.control import Control, control_of
from protocol.sql.tables.source_table import TableName
from relay.feed.archive_reading import ArchiveReading
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.statements.logged_changes import UnseenChange


def xa_commits(reading: ArchiveReading, start: FeedOffset, end: FeedOffset) -> list[UnseenChange]:
    """Return each XA COMMIT in [start, end) as a change of the tables whose rows its transaction has, wherever that was prepared.

    If the archive does not contain the transaction, it is a change of any table.
    """
    prepared: dict[str, FeedOffset] = {}
    commits: list[tuple[FeedOffset, str]] = []
    found: list[UnseenChange] = []
    tables = reading.prepared_tables(start, end)
    for place, text in reading.xa_statements(start, end):
        control, name = _ends(text)
        if control is Control.XA_END:
            prepared[name] = place
        elif control is Control.XA_COMMIT and name in prepared:
            found.append(_change(place, tables.get(prepared.pop(name))))
        elif control is Control.XA_COMMIT:
            commits.append((place, name))
    before = _prepared_before(reading, start, {name for _place, name in commits})
    return found + [_change(place, before.get(name)) for place, name in commits]


def _prepared_before(reading: ArchiveReading, start: FeedOffset, names: set[str]) -> dict[str, frozenset[TableName]]:
    """Return the tables of the newest transactions of these names that were prepared before a place."""
    found: dict[str, frozenset[TableName]] = {}
    if not names:
        return found
    for low, high in reading.stretches_before(start):
        newest = {name: place for place, text in reading.xa_statements(low, high) for _control, name in (_ends(text),)}
        wanted = names & newest.keys()
        if wanted:
            tables = reading.prepared_tables(low, high)
            found |= {name: tables[newest[name]] for name in wanted if newest[name] in tables}
            names = names - wanted
        if not names:
            break
    return found


def _ends(text: str) -> tuple[Control | None, str]:
    """Return XA_END or XA_COMMIT and the transaction's name, as servers write it: X'61',X'',1; else None and no name."""
    found = control_of(text.encode())
    if found is None or found.control not in (Control.XA_END, Control.XA_COMMIT):
        return None, ""
    return found.control, found.name.decode()


def _change(place: FeedOffset, tables: Iterable[TableName] | None) -> UnseenChange:
    if tables is None:
        return UnseenChange(place, None, "XA COMMIT of a transaction that was prepared before the archive begins")
    words = frozenset(part.lower() for key in tables for part in key)
    return UnseenChange(place, words, "XA COMMIT of a transaction that was prepared before", of_rows=True)
