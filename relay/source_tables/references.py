"""Foreign keys as the definitions of the archive tell them, and what servers that carry them out otherwise do otherwise.

Before 9.6 InnoDB carries them out. From 9.6 on the server does, unless innodb_native_foreign_keys is ON, and then (tried: 9.7.4)

- REPLACE leaves rows alone that refer to the row by a value that stays, where InnoDB deletes or empties them;
- a DELETE whose cascade comes to a table twice, and from there on to another, does not go on the second time.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from protocol.sql.tables.source_table import CASCADE, SET_NULL, ForeignKey, TableName
from relay.source_tables.names import in_lower_case

T = TypeVar("T")
_ACTING: Final = (CASCADE, SET_NULL)
"""All others refuse: RESTRICT, NO ACTION, and SET DEFAULT, which InnoDB does not have."""


class _Reference(NamedTuple):
    child: TableName
    on_delete: str


class References:
    """Which tables refer to which, names without regard to case. keys: foreign keys by the table that has them.

    A schema may have thousands: one definition changes what is said of its tables alone.
    """

    def __init__(self, keys: Mapping[TableName, Iterable[ForeignKey]]) -> None:
        self._by_parent: dict[TableName, list[_Reference]] = {}
        """Of those that act."""
        self._parents: dict[TableName, list[TableName]] = {}
        """The other way round: by child."""
        self._deep: dict[TableName, None] = {}
        for child, some in keys.items():
            self.change(child, (), some)

    def change(self, child: TableName, before: Iterable[ForeignKey], after: Iterable[ForeignKey]) -> None:
        """The foreign keys of `child` are others."""
        name = in_lower_case(child)
        touched: dict[TableName, None] = {}
        for keys, is_added in ((before, False), (after, True)):
            for key in keys:
                if key.on_delete in _ACTING:
                    parent = in_lower_case((key.schema, key.table))
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
        """The tables with whose rows others go, or change."""
        return list(self._by_parent)

    @property
    def deep_parents(self) -> list[TableName]:
        """Those of them from which a cascade may go on; for all others `left_unfinished` is empty."""
        return list(self._deep)

    def changed_with(self, parent: TableName) -> list[TableName]:
        """The tables whose rows go, or lose a value, with a row of `parent`."""
        return sorted({one.child for one in self._acting(in_lower_case(parent))})

    def reached_from(self, top: TableName) -> set[TableName]:
        """The tables in which a DELETE of `top` may delete or change rows, without it; in lower case."""
        found: set[TableName] = set()
        deleted = {in_lower_case(top)}
        open_ends = list(deleted)
        while open_ends:
            for one in self._acting(open_ends.pop()):
                found.add(one.child)
                # It may refer twice: of some rows a value goes, others go.
                if one.on_delete == CASCADE and one.child not in deleted:
                    deleted.add(one.child)
                    open_ends.append(one.child)
        return found

    def left_unfinished(self, top: TableName) -> list[TableName]:
        """The tables that the cascade of a row of `top` may come to again after it went on from there: rows of these stay behind."""
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
    """Once more, or once less."""
    if is_added:
        into.setdefault(key, []).append(value)
        return
    into[key].remove(value)
    if not into[key]:
        del into[key]
