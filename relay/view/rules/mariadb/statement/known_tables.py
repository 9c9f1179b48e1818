"""What a translation may ask about tables of the source that were made before the statement."""

from collections.abc import Sequence
from typing import Protocol

from protocol.sql.tables.source_table import Table, TableName
from relay.source_tables.programs import KnownProgram
from relay.source_tables.references import References


class TablesAtSource(Protocol):
    """The tables of the source at the place of the statement, as the source has them."""

    def table(self, name: TableName) -> Table | None:
        """The table; None: it is not there, or nobody knows it."""

    def exists(self, name: TableName) -> bool | None:
        """Whether there is such a table, view or sequence; None: not known."""

    def is_sequence(self, name: TableName) -> bool:
        """Whether it is known to be a sequence."""

    def is_versioned(self, name: TableName) -> bool:
        """Whether it is known to have system versioning."""

    def is_temporary(self, thread_id: int, name: TableName) -> bool:
        """Whether a name means a temporary table of the session."""

    def is_known_plain(self, name: TableName) -> bool:
        """Whether nothing of it is another on the replicas, although its columns are not known."""

    @property
    def references(self) -> References:
        """Which tables refer to which, as far as their definitions are known."""

    def programs_behind(self, name: TableName) -> Sequence[KnownProgram]:
        """Views, functions and procedures of that name, and the triggers of a table of that name."""


class NoTables:
    """Nothing is known of any table."""

    def table(self, name: TableName) -> Table | None:
        """None."""
        return None

    def exists(self, name: TableName) -> bool | None:
        """None."""
        return None

    def is_sequence(self, name: TableName) -> bool:
        """False."""
        return False

    def is_versioned(self, name: TableName) -> bool:
        """False."""
        return False

    def is_temporary(self, thread_id: int, name: TableName) -> bool:
        """False."""
        return False

    def is_known_plain(self, name: TableName) -> bool:
        """True."""
        return True

    @property
    def references(self) -> References:
        """None do."""
        return References({})

    def programs_behind(self, name: TableName) -> Sequence[KnownProgram]:
        """None."""
        return ()
