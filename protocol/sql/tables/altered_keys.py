"""The effects of CREATE and ALTER on a table's keys and foreign keys."""

import re
from dataclasses import replace
from typing import Final

from protocol.sql.engines import takes_foreign_keys
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.ddl_statement import ColumnDefinition, ForeignKeyDefinition, KeyDefinition
from protocol.sql.tables.foreign_key_names import last_number, made_up_name, made_up_number, name_in_renamed
from protocol.sql.tables.source_table import Column, ForeignKey, Key, Table, whole_key

_WITH_PREFIX: Final = re.compile(r"(?:(?:var)?(?:char|binary)|(?:tiny|medium|long)?(?:text|blob))\b")
_PLAIN: Final = re.compile(r"[\w$]+", re.ASCII)
_FUNCTIONAL: Final = "functional_index"
_SIZED: Final = re.compile(r"(?:var)?(?:char|binary)\((\d+)\)")


def renamed_foreign_keys(table: Table, name: str) -> tuple[tuple[str, ForeignKey], ...] | None:
    """Return the foreign keys of a table that is called `name` now: names that the server made up change with it."""
    if table.foreign_keys is None:
        return None
    renamed = {name_in_renamed(key, table.name, name): foreign for key, foreign in table.foreign_keys}
    return tuple(sorted(renamed.items()))


class AlteredKeys:
    """The keys of a table while it is altered."""

    def __init__(self, table: Table) -> None:
        self._name = table.name
        self._keys = dict(table.keys)
        self._new: list[tuple[str, Key]] = []
        """The added keys, in their order; without a name those that the server names."""
        self._foreign = dict(table.foreign_keys) if table.foreign_keys is not None else None
        self._last_number = last_number(self._foreign or (), table.name)

    def add_of_column(self, definition: ColumnDefinition) -> None:
        """Add the key of a column's own definition."""
        name = definition.column.name
        if definition.primary:
            self._new.append(("PRIMARY", whole_key((name,), True)))
        if definition.unique:
            self.add(KeyDefinition("", whole_key((name,), True)))

    def add(self, definition: KeyDefinition, *, if_not_exists: bool = False) -> None:
        """Add a key; one without a name is named after its first column."""
        name = definition.name.lower()
        if if_not_exists and (self._named(name) is not None or any(new.lower() == name for new, _key in self._new)):
            return
        self._new.append((definition.name, definition.key))

    def add_foreign(self, definition: ForeignKeyDefinition) -> None:
        """Add a foreign key, and the index that it needs."""
        if not definition.certain:
            self._foreign = None
            return
        if self._foreign is not None:
            name = definition.name
            if not name:
                self._last_number += 1
                name = made_up_name(self._name, self._last_number)
            self._foreign[name] = definition.key
        self._new.append((definition.index, replace(whole_key(definition.key.columns), generated=True)))

    def drop(self, name: str, *, or_constraint: bool) -> None:
        """Drop a key. `or_constraint`: a unique one, a foreign key, or a constraint that is not known here."""
        known = self._named(name)
        if known is not None and (not or_constraint or self._keys[known].unique):
            del self._keys[known]
        elif or_constraint and (self._foreign_named(name) is not None or made_up_number(name, self._name)):
            self.drop_foreign(name)

    def drop_foreign(self, name: str) -> None:
        """Drop a foreign key; its index stays."""
        known = self._foreign_named(name)
        if self._foreign is None or known is None or _PLAIN.fullmatch(name) is None:
            # Another one was dropped. Or none: MariaDB 10.11 does not find names again that it stores as those of files.
            self._foreign = None
        else:
            del self._foreign[known]

    def rename(self, old: str, new: str) -> None:
        """Rename a key."""
        known = self._named(old)
        if known is not None:
            self._keys[new] = self._keys.pop(known)

    def drop_column(self, name: str) -> None:
        """Drop a column from the keys, and the keys that have no other column."""
        for key, value in list(self._keys.items()):
            left = [number for number, column in enumerate(value.columns) if column.lower() != name]
            if not left:
                del self._keys[key]
            elif len(left) < len(value.columns):
                prefixes = tuple(value.prefixes[number] for number in left) if value.prefixes is not None else None
                columns = tuple(value.columns[number] for number in left)
                self._keys[key] = replace(value, columns=columns, prefixes=prefixes)
        if any(name == column.lower() for foreign in (self._foreign or {}).values() for column in foreign.columns):
            self._foreign = None

    def change_column(self, old: Column, new: Column) -> None:
        """Change a column's definition: a prefix that does not fit it any more is removed.

        Source: `mysql_prepare_alter_table` of MySQL 5.6 and 9.7 and of MariaDB 10.11.
        """
        size = _SIZED.match(new.type)
        for key, value in self._keys.items():
            parts = value.parts
            if parts is None:
                continue
            prefixes = [prefix for _column, prefix in parts]
            for number, (column, prefix) in enumerate(parts):
                if column.lower() == old.name.lower() and prefix is not None:
                    both = _WITH_PREFIX.match(old.type) and _WITH_PREFIX.match(new.type)
                    if not both or (size is not None and int(size[1]) < prefix):
                        prefixes[number] = None
            self._keys[key] = replace(value, prefixes=tuple(prefixes))

    def rename_columns(self, names: dict[str, str]) -> None:
        """Rename columns: lower-case names to new ones."""
        for key, value in self._keys.items():
            self._keys[key] = replace(value, columns=_renamed(value.columns, names))
        for name, foreign in (self._foreign or {}).items():
            assert self._foreign is not None
            self._foreign[name] = replace(foreign, columns=_renamed(foreign.columns, names))

    def table(self, table: Table, columns: list[Column]) -> Table:
        """Return the table with these columns and the keys, whose columns have the table's spelling."""
        self._take_new()
        named = {column.name.lower(): column for column in columns}
        keys = tuple(sorted((name, _fitted(key, named)) for name, key in self._keys.items()))
        primary = {column for name, key in keys if name == "PRIMARY" for column in key.columns}
        made = tuple(replace(column, nullable=False) if column.name in primary else column for column in columns)
        foreign = None if self._foreign is None else tuple(sorted(self._foreign.items()))
        if not takes_foreign_keys(table.engine):
            foreign = ()
        return replace(table, columns=made, keys=keys, foreign_keys=foreign)

    def _take_new(self) -> None:
        """Name the added keys, and omit those that foreign keys brought if others serve them as well.

        Source: `mysql_prepare_create_table` of MySQL 5.6 and 9.7 and of MariaDB 10.11.
        """
        kept = list(self._keys.items())
        for name, key in self._new:
            for number, (_other_name, other) in enumerate(kept):
                if not _is_served_by(key, other) and not _is_served_by(other, key):
                    continue
                if other.generated is None and not name:
                    raise UnsupportedSyntax(
                        "a key that may take the place and the name of one that a foreign key brought"
                    )
                if not other.generated or (key.generated and len(key.columns) < len(other.columns)):
                    break
                del kept[number]
                kept.append((name, key))
                break
            else:
                kept.append((name, key))
        self._keys = {}
        for name, key in kept:
            self._keys[name or self._made_up(_FUNCTIONAL if key.has_expression else key.columns[0])] = key

    def _named(self, name: str) -> str | None:
        return next((known for known in self._keys if known.lower() == name.lower()), None)

    def _foreign_named(self, name: str) -> str | None:
        return next((known for known in self._foreign or () if known.lower() == name.lower()), None)

    def _made_up(self, column: str) -> str:
        name, number = column, 2
        while self._named(name) is not None:
            name, number = f"{column}_{number}", number + 1
        return name


def _is_served_by(key: Key, other: Key) -> bool:
    """Return whether a foreign key brought `key`, or may have, and the other begins with all of its columns."""
    if key.generated is False or key.unique or key.prefixes is None or other.prefixes is None:
        return False
    count = len(key.columns)
    return [name.lower() for name in key.columns] == [name.lower() for name in other.columns[:count]] and (
        key.prefixes == other.prefixes[:count]
    )


def _renamed(columns: tuple[str, ...], names: dict[str, str]) -> tuple[str, ...]:
    return tuple(names.get(column.lower(), column) for column in columns)


def _fitted(key: Key, columns: dict[str, Column]) -> Key:
    """Return the key as the table has it. A prefix as long as its column is omitted."""
    names = tuple(columns[one.lower()].name if one.lower() in columns else one for one in key.columns)
    if key.prefixes is None:
        return replace(key, columns=names)
    prefixes = []
    for name, prefix in zip(names, key.prefixes, strict=True):
        size = _SIZED.match(columns[name.lower()].type) if name.lower() in columns else None
        prefixes.append(None if prefix is not None and size is not None and int(size[1]) <= prefix else prefix)
    return replace(key, columns=names, prefixes=tuple(prefixes))
