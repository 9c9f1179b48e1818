"""Tables from before the archive that a group needs: the rules look up what the relay recorded of them, and continue."""

from collections.abc import Callable
from typing import Final, Protocol

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import OF_ONE_CONNECTION
from protocol.errors import ProtocolError
from protocol.sql.tables.source_table import Table, TableName
from relay.source_tables.table_book import SourceTables
from relay.view.rules.group import OutGroup, SourceGroup
from relay.view.stops import transaction_stops
from relay.view.stops.stop_reason import TableUnknown, Untranslatable

_QUERIES: Final = (EventType.QUERY, EventType.QUERY_COMPRESSED)


class TablesBefore(Protocol):
    """Tables that existed before the archive."""

    def around(self, name: TableName, file: str, offset: int) -> list[Table] | None:
        """Return the table as it is for a statement at this place, and all that refer to it; none of them has triggers. None: that is
        not known for certain.

        Raises: OSError.
        """


def plan_with_recorded(
    plan: Callable[[SourceGroup], list[OutGroup]],
    group: SourceGroup,
    before: TablesBefore | None,
    book: SourceTables,
) -> list[OutGroup]:
    """Return the result of `plan` for the group; where it stops at a table that the book does not know, that table is looked up in
    `before`, noted in the book, and the group is planned again. Nothing else is looked up, so that the same bytes give the same view.

    Raises: Untranslatable, and the book learns nothing of the group; OSError.
    """
    asked: set[TableName] = set()
    while True:
        try:
            book.begin()
            made = plan(group)
            book.keep()
            return made
        except ProtocolError as error:
            book.take_back()
            raise transaction_stops.malformed(str(error)) from error
        except TableUnknown as stopped:
            book.take_back()
            if before is None or stopped.table in asked or _names_temporary(group):
                raise
            found = before.around(stopped.table, group.file, group.start)
            if found is None:
                raise
            asked.add(stopped.table)
            book.note_recorded(found)
        except Untranslatable:
            book.take_back()
            raise


def _names_temporary(group: SourceGroup) -> bool:
    """Return whether the table may be a temporary one, whose creation is not in the archive."""
    return any(event.type in _QUERIES and event.flags & OF_ONE_CONNECTION for event in group.events)
