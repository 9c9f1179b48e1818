"""The book of a MariaDB's tables, as the translation of statements asks it."""

from collections.abc import Iterable, Mapping

from protocol.sql.tables.source_table import TableName
from relay.source_tables.known_table import TableKind
from relay.source_tables.table_book import SourceTables
from relay.view.stops.stop_reason import named


class TablesAtSource(SourceTables):
    """The tables at the place of the statement, as the source has them. told_kinds: `shop.s` -> whether that is a table or a sequence,
    for those from before the archive. plain: those from before it, as `shop.t`, of which nothing differs on the replicas ("*": all).
    """

    certain = False
    learns_views = True

    def __init__(self, told_kinds: Mapping[str, TableKind] | None = None, plain: Iterable[str] = ()) -> None:
        super().__init__()
        self._plain = frozenset(plain)
        self._told_kinds = dict(told_kinds or {})

    def is_sequence(self, name: TableName) -> bool:
        """Whether it is known, or configured, to be a sequence."""
        known = self.get(name)
        return (known.kind if known is not None else self._told_kinds.get(named(name))) == "sequence"

    def is_versioned(self, name: TableName) -> bool:
        """Whether it is known to have system versioning."""
        known = self.get(name)
        return known is not None and known.is_versioned

    def is_known_plain(self, name: TableName) -> bool:
        """Whether nothing of it is another on the replicas, although its columns are not known."""
        known = self.get(name)
        return (known is not None and known.is_plain) or not self._plain.isdisjoint((named(name), "*"))
