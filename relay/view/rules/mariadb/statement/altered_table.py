"""The table that an ALTER TABLE changes, and its rows: clauses whose effect on them differs between the servers stop a view."""

from collections.abc import Callable
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.tables.source_table import Column, Table, TableName
from relay.view.rules.mariadb.differences.conversions import conversion_differs
from relay.view.rules.mariadb.differences.differing_functions import differing_function, unsafe_function
from relay.view.rules.mariadb.differences.stored_order import IsSame, order_differs
from relay.view.rules.mariadb.statement.column_rewriting import DefinedColumn
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.key_rewriting import is_left_out
from relay.view.rules.mariadb.statement.known_tables import TablesAtSource
from relay.view.stops import definition_stops

BYTES_BECOME: Final = frozenset(("UUID", "INET4", "INET6"))


class AlteredTable:
    """The table of an ALTER TABLE before the statement, as far as it is known, and the checks that need it."""

    def __init__(self, words: EditableStatement, name: TableName, known: TablesAtSource) -> None:
        self._words = words
        self._name = name
        self._known = known
        self.table = known.table(name)
        """None: its columns are not known."""

    def has_column(self, name: str, needed: str) -> bool:
        """Return whether it has a column, which the clause `needed` requires to know. Raises: Untranslatable."""
        if self.table is None:
            raise definition_stops.condition_unknown(self._words.query, self._name, needed)
        return any(column.name.lower() == name.lower() for column in self.table.columns)

    def has_key(self, name: str, needed: str, *, foreign: bool = False) -> bool:
        """Return whether it has a key, or a foreign one, of this name. Raises: Untranslatable."""
        table = self.table
        if table is None or (foreign and table.foreign_keys is None):
            raise definition_stops.condition_unknown(self._words.query, self._name, needed)
        if foreign:
            return any(one.lower() == name.lower() for one, _key in table.foreign_keys or ())
        return any(one.lower() == name.lower() for one, _key in table.keys)

    def is_left_out(self, name: str) -> bool:
        """Return whether the replica does not have that key."""
        table = self.table
        return table is not None and any(
            one.lower() == name.lower() and is_left_out(key, table) for one, key in table.keys
        )

    def check_place(self, clause: str, why: Callable[[Table, IsSame], str]) -> None:
        """Check a clause whose effect on rows depends on their place."""
        table, words = self.table, self._words
        if table is None:
            if not self._known.is_known_plain(self._name):
                raise definition_stops.order_unknown(words.query, self._name, clause)
            return
        differs = why(table, self._is_same)
        if differs:
            raise definition_stops.rows_not_in_order(words.query, clause, differs)

    def check_added(self, column: DefinedColumn) -> None:
        """Check the value of a new column in existing rows."""
        words = self._words
        if "AUTO_INCREMENT" in column.attributes:
            self.check_place("ADD of an AUTO_INCREMENT column", order_differs)
        if column.default is not None:
            unsafe = unsafe_function(words, *column.default)
            if unsafe:
                what = f"the default {unsafe}() for rows that are there"
                raise definition_stops.clause_unknown(
                    words.context.target_title, words.query, what, ErrorCode.ER_BINLOG_UNSAFE_SYSTEM_FUNCTION
                )
            differing = differing_function(words, *column.default)
            if differing:
                what = f"{differing} in the default of {column.name}"
                raise definition_stops.definition_differs(words.context.target_title, words.query, what)

    def check_conversion(self, old: str, column: DefinedColumn) -> None:
        """Check for different conversions of existing values: UUID and INET are bytes at the replica."""
        table, words = self.table, self._words
        was = next((one for one in (table.columns if table else ()) if one.name.lower() == old.lower()), None)
        differs = conversion_differs(was, column.type, words.context.sql_mode) if was is not None else ""
        if differs:
            what = f"the conversion of {old} to {column.type} ({differs})"
            raise definition_stops.definition_differs(words.context.target_title, words.query, what)
        before = was.type.upper() if was is not None else ""
        if before == column.type or not {before, column.type} & BYTES_BECOME:
            return
        raise definition_stops.definition_differs(
            words.context.target_title, words.query, f"the conversion of {old} from or to {column.type}"
        )

    def _is_same(self, column: Column) -> bool:
        context = self._words.context
        return context.collations.is_same_named(column.collation, column.charset, context.defaults)
