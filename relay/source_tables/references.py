"""Foreign keys from the definitions in the archive, and the different effects on servers that execute them differently.

Before 9.6 InnoDB executes them. From 9.6 on the server does, unless innodb_native_foreign_keys is ON, and then (tried: 9.7.4)

- REPLACE does not touch rows that refer to the row by a value that stays, where InnoDB deletes or empties them;
- a DELETE whose cascade reaches a table twice, and from there another, does not continue the second time;
- an UPDATE IGNORE of a row whose new key another row has changes the rows that refer to it, although it leaves the row itself;
- INSERT … ON DUPLICATE KEY UPDATE is refused (1452) where the row that is not inserted would refer to none.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple, TypeVar

from protocol.sql.tables.source_table import CASCADE, SET_NULL, ForeignKey, TableName
from relay.source_tables.names import in_lower_case

T = TypeVar("T")
BY_THE_SERVER_SINCE: Final = (9, 6)
"""The version from which the server and not InnoDB executes foreign keys, where innodb_native_foreign_keys is OFF."""
_ACTING: Final = (CASCADE, SET_NULL)
"""The actions that change rows. All others refuse: RESTRICT, NO ACTION, and SET DEFAULT, which InnoDB does not have."""


class _Reference(NamedTuple):
    child: TableName
    on_delete: str


class _UpdatedWith(NamedTuple):
    """A table whose rows change with the columns `referenced`, in lower case; none: those of the primary key."""

    child: TableName
    referenced: frozenset[str]


class References:
    """The references between tables, by names without regard to case. `keys` are foreign keys by the table that has them.

    A schema may have thousands: one definition changes only the references of its tables.
    """

    def __init__(self, keys: Mapping[TableName, Iterable[ForeignKey]]) -> None:
        self._by_parent: dict[TableName, list[_Reference]] = {}
        """The references by parent that act where a row is deleted."""
        self._updated: dict[TableName, list[_UpdatedWith]] = {}
        """Those that act where a row is updated."""
        self._referring: dict[TableName, list[TableName]] = {}
        """The tables that have foreign keys, with those to which they refer."""
        self._parents: dict[TableName, list[TableName]] = {}
        """The parents by child."""
        self._deep: dict[TableName, None] = {}
        for child, some in keys.items():
            self.change(child, (), some)

    def change(self, child: TableName, before: Iterable[ForeignKey], after: Iterable[ForeignKey]) -> None:
        """Replace the foreign keys of `child`."""
        name = in_lower_case(child)
        touched: dict[TableName, None] = {}
        for keys, is_added in ((before, False), (after, True)):
            for key in keys:
                parent = in_lower_case((key.schema, key.table))
                _put(self._referring, name, parent, is_added=is_added)
                if key.on_update in _ACTING:
                    columns = frozenset(one.lower() for one in key.referenced)
                    _put(self._updated, parent, _UpdatedWith(name, columns), is_added=is_added)
                if key.on_delete in _ACTING:
                    touched[parent] = None
                    _put(self._by_parent, parent, _Reference(name, key.on_delete), is_added=is_added)
                    _put(self._parents, name, parent, is_added=is_added)
        for parent in [*touched, *(further for one in touched for further in self._parents.get(one, ()))]:
            if self._is_deep(parent):
                self._deep[parent] = None
            else:
                self._deep.pop(parent, None)

    def _is_deep(self, parent: TableName) -> bool:
        return any(one.child != parent and self._goes_on(one.child) for one in self._acting(parent))

    def _goes_on(self, table: TableName) -> bool:
        return any(one.child != table for one in self._acting(table))

    @property
    def acting_parents(self) -> list[TableName]:
        """The tables with whose rows others are deleted or changed."""
        return list(self._by_parent)

    @property
    def deep_parents(self) -> list[TableName]:
        """Those of them from which a cascade may continue; for all others `left_unfinished` is empty."""
        return list(self._deep)

    def changed_with(self, parent: TableName) -> list[TableName]:
        """Return the tables whose rows are deleted, or lose a value, with a row of `parent`."""
        return sorted({one.child for one in self._acting(in_lower_case(parent))})

    @property
    def updated_parents(self) -> list[TableName]:
        """The tables with whose rows others are updated."""
        return list(self._updated)

    def refers(self, child: TableName) -> bool:
        """Return whether the table is known to have foreign keys."""
        return in_lower_case(child) in self._referring

    def updated_with(self, parent: TableName, columns: Set[str], every: Set[str]) -> list[TableName]:
        """Return the tables whose rows may change with these columns of a row of `parent`, which has the columns `every`, all in lower
        case. A column to which a key refers may have got another name since: then it may be any.
        """
        some = self._updated.get(in_lower_case(parent), ())
        return sorted(
            {one.child for one in some if not one.referenced or one.referenced & columns or not one.referenced <= every}
        )

    def reached_from(self, top: TableName) -> set[TableName]:
        """Return the tables in which a DELETE of `top` may delete or change rows, without it; in lower case."""
        found: set[TableName] = set()
        deleted = {in_lower_case(top)}
        open_ends = list(deleted)
        while open_ends:
            for one in self._acting(open_ends.pop()):
                found.add(one.child)
                # It may refer twice: some rows lose a value, others are deleted.
                if one.on_delete == CASCADE and one.child not in deleted:
                    deleted.add(one.child)
                    open_ends.append(one.child)
        return found

    def left_unfinished(self, top: TableName) -> list[TableName]:
        """Return the tables that the cascade of a row of `top` may reach again after it continued there: rows of these are left."""
        first = in_lower_case(top)
        deleted = {first}
        open_ends = [first]
        while open_ends:
            for one in self._acting(open_ends.pop()):
                if one.on_delete == CASCADE and one.child not in deleted:
                    deleted.add(one.child)
                    open_ends.append(one.child)
        found = set()
        for table in deleted:
            if not any(one.child != table for one in self._acting(table)):
                continue
            ways = [(parent, one) for parent in deleted for one in self._acting(parent) if one.child == table != parent]
            again = any(parent != first or self._refers_to_itself(first) for parent, _ in ways)
            if ways and (again or len(ways) > 1 or table == first):
                found.add(table)
        return sorted(found)

    def _refers_to_itself(self, table: TableName) -> bool:
        return any(one.child == table and one.on_delete == CASCADE for one in self._acting(table))

    def _acting(self, parent: TableName) -> Sequence[_Reference]:
        return self._by_parent.get(parent, ())


def _put(into: dict[TableName, list[T]], key: TableName, value: T, *, is_added: bool) -> None:
    """Add the value once, or remove it once."""
    if is_added:
        into.setdefault(key, []).append(value)
        return
    into[key].remove(value)
    if not into[key]:
        del into[key]
