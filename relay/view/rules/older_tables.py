"""Tables from before the archive that a group needs: the rules look up what the relay recorded of them, and continue."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, Protocol

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import OF_ONE_CONNECTION
from protocol.errors import ProtocolError
from protocol.sql.tables.source_table import Table, TableName
from relay.source_tables.table_book import NameWanted, SourceTables
from relay.view.rules.group import OutGroup, SourceGroup
from relay.view.stops import statement_stops, transaction_stops
from relay.view.stops.stop_reason import TableUnknown, TableWanted, Untranslatable

_QUERIES: Final = (EventType.QUERY, EventType.QUERY_COMPRESSED)


class TablesBefore(Protocol):
    """Tables that existed before the archive."""

    def around(self, name: TableName, file: str, offset: int) -> list[Table] | None:
        """Return the table as it is for a statement at this place, and all that refer to it; none of them has triggers. None: that is
        not known for certain.

        Raises: OSError.
        """

    def exists(self, name: TableName, file: str, offset: int) -> bool | None:
        """Return whether a table exists before a statement at this place, or, for an empty name, the schema; None: it is not certain.

        Raises: OSError.
        """


def plan_with_recorded(
    plan: Callable[[SourceGroup], list[OutGroup]],
    group: SourceGroup,
    before: TablesBefore | None,
    book: SourceTables,
) -> list[OutGroup]:
    """Return the result of `plan` for the group; where it stops at a table that the book does not know, that table is looked up in
    `before`, noted in the book, and the group is planned again; so is a name of IF NOT EXISTS that is not known. Nothing else is looked
    up, so that the same bytes give the same view.

    Raises: Untranslatable, and the book learns nothing of the group; OSError.
    """
    with ExitStack() as given_up:
        return _planned(plan, group, before, book, given_up)


def _planned(
    plan: Callable[[SourceGroup], list[OutGroup]],
    group: SourceGroup,
    before: TablesBefore | None,
    book: SourceTables,
    given_up: ExitStack,
) -> list[OutGroup]:
    """Implement `plan_with_recorded`. What is given up is for this group alone: another one may find it, and a view that was begun
    again would."""
    looked_up: set[TableName] = set()
    asked: set[TableName] = set()
    absent: set[TableName] = set()
    looks_up = before is not None and not _names_temporary(group)
    while True:
        try:
            book.begin()
            for name in sorted(absent):
                book.note_absent(name)
            with book.asking(asked if looks_up else None):
                made = plan(group)
            book.keep()
            return made
        except NameWanted as wanted:
            book.take_back()
            assert before is not None
            if not _may_ask(before):
                raise statement_stops.unknown_table_definition(b"", wanted.name, "") from wanted
            asked.add(wanted.name)
            exists = before.exists(wanted.name, group.file, group.start)
            if exists is False:
                absent.add(wanted.name)
            elif exists and wanted.name[1]:
                book.note_recorded(before.around(wanted.name, group.file, group.start) or [])
        except ProtocolError as error:
            book.take_back()
            raise transaction_stops.malformed(str(error)) from error
        except TableUnknown as stopped:
            book.take_back()
            found = None
            if before is not None and looks_up and stopped.table not in looked_up:
                found = before.around(stopped.table, group.file, group.start)
            if found is None:
                if not isinstance(stopped, TableWanted):
                    raise
                if looks_up and not _may_ask(before):
                    raise statement_stops.unknown_table_definition(b"", stopped.table, "") from stopped
                given_up.callback(stopped.give_up(stopped.table if looks_up else None))
                continue
            looked_up.add(stopped.table)
            book.note_recorded(found)
        except Untranslatable:
            book.take_back()
            raise


def _may_ask(before: TablesBefore | None) -> bool:
    """Return whether a look-up may block; otherwise a group that stops is planned again where it may."""
    return getattr(before, "may_ask", True)


def _names_temporary(group: SourceGroup) -> bool:
    """Return whether the table may be a temporary one, whose creation is not in the archive."""
    return any(event.type in _QUERIES and event.flags & OF_ONE_CONNECTION for event in group.events)
