"""The book of a MariaDB's tables, with the answers that the translation of statements needs."""

from collections.abc import Iterable, Mapping

from protocol.sql.tables.source_table import TableName
from relay.source_tables.known_table import TableKind
from relay.source_tables.table_book import SourceTables
from relay.view.stops.stop_reason import named


class TablesAtSource(SourceTables):
    """The tables at the place of the statement, as the source has them. `told_kinds` maps `shop.s` from before the archive to its kind,
    a table or a sequence. `plain` are those from before it, as `shop.t`, that do not differ on the replicas ("*": all).
    """

    certain = False
    learns_views = True

    def __init__(self, told_kinds: Mapping[str, TableKind] | None = None, plain: Iterable[str] = ()) -> None:
        super().__init__()
        self._plain = frozenset(plain)
        self._told_kinds = dict(told_kinds or {})

    def is_sequence(self, name: TableName) -> bool:
        """Return whether it is known, or configured, to be a sequence."""
        known = self.get(name)
        return (known.kind if known is not None else self._told_kinds.get(named(name))) == "sequence"

    def is_versioned(self, name: TableName) -> bool:
        """Return whether it is known to have system versioning."""
        known = self.get(name)
        return known is not None and known.is_versioned

    def is_known_plain(self, name: TableName) -> bool:
        """Return whether it does not differ on the replicas, although its columns are not known."""
        known = self.get(name)
        return (known is not None and known.is_plain) or not self._plain.isdisjoint((named(name), "*"))
