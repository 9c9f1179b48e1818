"""The tables that there are behind a statement, worked out from those before it."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from protocol.sql.engines import takes_foreign_keys
from protocol.sql.lexer import NotSure
from protocol.sql.tables.altered_keys import renamed_foreign_keys
from protocol.sql.tables.altered_table import alter_table, table_of
from protocol.sql.tables.ddl_statement import (
    AddForeignKey,
    AlterDatabase,
    AlterTable,
    ChangeColumn,
    CharsetOption,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTables,
    NoTable,
    RenameColumn,
    RenameTables,
    Statement,
)
from protocol.sql.tables.source_table import CharsetDefault, ForeignKey, Table, TableName

_MOST_TEMPORARY: Final = 10_000
_MOST_NAMES: Final = 100_000
"""Of tables that are not there, or may be, and of schemas: where a table is made each night and dropped, they become ever more."""


@dataclass(frozen=True, slots=True)
class Teller:
    """Who said a statement: the connection's number, and the character set and collation that its server gives new databases
    ('': not known).
    """

    thread_id: int = 0
    server_charset: str = ""
    server_collation: str = ""


@dataclass
class SchemaState:
    """What is known at one place of the binlogs. `tables`: those that are there. What is neither there nor absent is not known.

    `touched`: the tables that what was applied since the last `take_touched` was about.
    """

    tables: dict[TableName, Table] = field(default_factory=dict)
    lineages: dict[TableName, int] = field(default_factory=dict)
    """Which tables were derived of one another: what is wrong with one of them is wrong with all."""
    _absent: set[TableName] = field(default_factory=set)
    _complete: dict[str, int] = field(default_factory=dict)
    """Schemas all of whose tables are known: since when."""
    _unsure: dict[str | TableName, int] = field(default_factory=dict)
    """Names, in lower case, that statements had which nobody understands: such tables may be there in every schema since then.
    And tables of which it is not known."""
    _statement: int = 0
    _charsets: dict[str, CharsetDefault] = field(default_factory=dict)
    _temporary: set[tuple[int, TableName]] = field(default_factory=set)
    _referring: dict[TableName, set[TableName]] = field(default_factory=dict)
    """Tables, in lower case, to those whose foreign keys named them once."""
    _touched: set[TableName] = field(default_factory=set)
    _newest_lineage: int = 0

    def take_touched(self) -> set[TableName]:
        """Tables that changed, or of which nothing is known any more, since the last call."""
        touched, self._touched = self._touched, set()
        return touched

    def clear(self) -> None:
        """Nothing is known."""
        self._touched |= set(self.tables)
        self.tables.clear()
        self.lineages.clear()
        for known in (self._absent, self._complete, self._unsure, self._temporary, self._referring):
            known.clear()
        self._charsets.clear()

    def forget(self, names: Iterable[str] | None) -> None:
        """A statement that nobody understands had these names, in lower case, of tables or schemas; None: any."""
        if names is None:
            self.clear()
            return
        gone = set(names)
        self._statement += 1
        self._forget_many_names()
        self._unsure |= dict.fromkeys(gone, self._statement)
        for key in [key for key in (*self.tables, *self._absent) if key[1].lower() in gone]:
            self._forget(key)
        for parent in [parent for parent in self._referring if parent[1] in gone]:
            self._doubt_references(parent)
        for schema in [schema for schema in self._charsets if schema.lower() in gone]:
            del self._charsets[schema]

    def forget_tables(self, statement: Statement) -> None:
        """It is known which tables the statement is about, and not what becomes of them."""
        for key in _tables_of(statement):
            self._forget(key)
            if _renames(statement):
                self._doubt_references(key)

    def is_of_tables(self, statement: Statement) -> bool:
        """Whether the statement is about single tables, and not about a database."""
        return not isinstance(statement, CreateDatabase | AlterDatabase | DropDatabase)

    @property
    def temporary(self) -> frozenset[tuple[int, TableName]]:
        """Temporary tables, each with the connection that it is of."""
        return frozenset(self._temporary)

    def note_temporary(self, tables: Iterable[tuple[int, TableName]]) -> None:
        """These temporary tables are there."""
        self._temporary |= set(tables)

    def note_tables(self, tables: Iterable[Table]) -> None:
        """Somebody knows all these, of which nothing was known here."""
        for table in tables:
            key = (table.schema, table.name)
            self.tables[key] = table
            self._new_lineage(key)
            for parent in table.parents:
                self._referring.setdefault(parent, set()).add(key)

    def note_table(self, table: Table) -> None:
        """Somebody else knows the table as it is here; of foreign keys that he does not know what is known stays."""
        key = (table.schema, table.name)
        known = self.tables.get(key)
        if known is not None:
            generated = {(name, one.columns): one.generated for name, one in known.keys}
            keys = tuple((name, replace(one, generated=generated.get((name, one.columns)))) for name, one in table.keys)
            foreign = known.foreign_keys if table.foreign_keys is None else table.foreign_keys
            table = replace(table, keys=keys, foreign_keys=foreign)
        self._put(key, table)
        self._new_lineage(key)

    @property
    def charsets(self) -> dict[str, CharsetDefault]:
        """Of each schema, for new tables."""
        return dict(self._charsets)

    def note_absent(self, key: TableName) -> None:
        """Somebody else knows that there is no such table."""
        self._remove(key)

    def note_charset(self, schema: str, charset: str, collation: str = "") -> None:
        """The character set and collation of new tables in a schema."""
        self._charsets[schema] = (charset, collation)

    def apply(self, statement: Statement, teller: Teller) -> None:
        """Goes on to behind the statement. Raises: NotSure, and nothing has changed: then `forget`."""
        self._statement += 1
        self._forget_many_names()
        match statement:
            case NoTable():
                return
            case CreateTable():
                self._create(statement, teller)
            case AlterTable():
                self._alter(statement, teller)
            case DropTables():
                self._drop(statement, teller)
            case RenameTables():
                self._rename(statement, teller)
            case CreateDatabase() | AlterDatabase() | DropDatabase():
                self._database(statement, teller)

    # ---- as lines of a file ----

    def kept(self) -> dict[str, Any]:
        """For JSON: all that it matters for later statements to know, beside `tables`."""
        return {
            "statement": self._statement,
            "absent": sorted(self._absent),
            "complete": self._complete,
            "unsure": list(self._unsure.items()),
            "charsets": self._charsets,
            "temporary": [(thread, *key) for thread, key in sorted(self._temporary)],
            "generated": [
                (*key, name, one.generated)
                for key, table in sorted(self.tables.items())
                for name, one in table.keys
                if one.generated is not None
            ],
        }

    @classmethod
    def of_kept(cls, kept: Mapping[str, Any], tables: Iterable[Table]) -> "SchemaState":
        """What `kept` told, with these tables. Raises: KeyError, TypeError, ValueError for what is no such thing."""
        state = cls()
        generated = {(schema, table, name): bool(is_so) for schema, table, name, is_so in kept["generated"]}
        state.note_tables(_with_generated(table, generated) for table in tables)
        state._statement = int(kept["statement"])
        state._absent = {(str(schema), str(name)) for schema, name in kept["absent"]}
        state._complete = {str(schema): int(since) for schema, since in kept["complete"].items()}
        state._unsure = {
            name if isinstance(name, str) else (str(name[0]), str(name[1])): int(since)
            for name, since in kept["unsure"]
        }
        state._charsets = {str(schema): (str(one[0]), str(one[1])) for schema, one in kept["charsets"].items()}
        state._temporary = {(int(thread), (str(schema), str(name))) for thread, schema, name in kept["temporary"]}
        return state

    # ---- what is known ----

    def _forget_many_names(self) -> None:
        """Which tables there are not is not known any more."""
        if max(len(self._absent), len(self._unsure), len(self._complete)) > _MOST_NAMES:
            self._absent.clear()
            self._unsure.clear()
            self._complete.clear()

    def _exists(self, key: TableName) -> bool | None:
        if key in self.tables:
            return True
        if key in self._absent or self._doubted(key) < self._complete.get(key[0], -1):
            return False
        return None

    def _doubted(self, key: TableName) -> int:
        """The statement since which it is not known whether the table is there."""
        return max(self._unsure.get(key, 0), self._unsure.get(key[1].lower(), 0))

    def _put(self, key: TableName, table: Table) -> None:
        self.tables[key] = table
        self._absent.discard(key)
        self._touched.add(key)
        for parent in table.parents:
            self._referring.setdefault(parent, set()).add(key)
        self._doubt_others(key)

    def _remove(self, key: TableName) -> None:
        self.tables.pop(key, None)
        self.lineages.pop(key, None)
        self._absent.add(key)
        self._touched.add(key)
        self._doubt_others(key)

    def _forget(self, key: TableName) -> None:
        self.tables.pop(key, None)
        self.lineages.pop(key, None)
        self._absent.discard(key)
        self._unsure[key] = self._statement
        self._touched.add(key)
        self._doubt_others(key)

    def _doubt_others(self, key: TableName) -> None:
        """Servers with lower_case_table_names mean the same table by names that differ in case."""
        name = (key[0].lower(), key[1].lower())
        for other in [one for one in self.tables if one != key and (one[0].lower(), one[1].lower()) == name]:
            del self.tables[other]
            self.lineages.pop(other, None)
            self._touched.add(other)

    def _new_lineage(self, key: TableName) -> None:
        self._newest_lineage += 1
        self.lineages[key] = self._newest_lineage

    def _check_temporary(self, keys: Iterable[TableName], teller: Teller) -> None:
        for key in keys:
            if (teller.thread_id, key) in self._temporary:
                raise NotSure("it may be about a temporary table")

    # ---- foreign keys ----

    def _children(self, parent: TableName) -> list[TableName]:
        """The tables that are known whose foreign keys refer to one, whatever the case of its name."""
        name = (parent[0].lower(), parent[1].lower())
        found = [
            key for key in self._referring.get(name, ()) if key in self.tables and name in self.tables[key].parents
        ]
        if name in self._referring:
            self._referring[name] = set(found)
        return found

    def _doubt_references(self, parent: TableName) -> None:
        """A table may be called otherwise now, or its columns: what refers to it is not known."""
        for child in self._children(parent):
            if child in self.tables:  # and was not forgotten with another, whose name differs in case alone
                self._put(child, replace(self.tables[child], foreign_keys=None))

    def _refer_to(self, parent: TableName, engine: str | None, change: Callable[[ForeignKey], ForeignKey]) -> None:
        """Foreign keys that refer to a table are changed with it. Names that differ in case may be those of others.

        `engine`: the table's; None: not known. A foreign key may refer to a table that is none of InnoDB: it means one that is gone.
        """
        if engine is None:
            self._doubt_references(parent)
            return
        if not takes_foreign_keys(engine):
            return
        for child in self._children(parent):
            if child not in self.tables:
                continue
            foreign = self.tables[child].foreign_keys or ()
            changed = tuple((name, change(one) if (one.schema, one.table) == parent else one) for name, one in foreign)
            name = (parent[0].lower(), parent[1].lower())
            doubtful = any(
                (one.schema.lower(), one.table.lower()) == name and (one.schema, one.table) != parent
                for _name, one in foreign
            )
            self._put(child, replace(self.tables[child], foreign_keys=None if doubtful else changed))

    def _with_primary_keys(self, table: Table) -> Table:
        """The table, whose foreign keys to primary keys name the columns of these where they are known."""
        if table.foreign_keys is None or all(one.referenced for _name, one in table.foreign_keys):
            return table
        foreign = []
        for name, one in table.foreign_keys:
            parent = (
                table
                if (one.schema, one.table) == (table.schema, table.name)
                else self.tables.get((one.schema, one.table))
            )
            referenced = one.referenced or (parent.primary_key if parent is not None else ())
            foreign.append((name, replace(one, referenced=referenced)))
        return replace(table, foreign_keys=tuple(foreign))

    # ---- statements ----

    def _create(self, made: CreateTable, teller: Teller) -> None:
        key = made.name
        if made.temporary:
            if len(self._temporary) >= _MOST_TEMPORARY:
                raise NotSure("too many temporary tables")
            self._temporary.add((teller.thread_id, key))
            return
        if made.like is not None:
            self._check_temporary([made.like], teller)
        if made.if_not_exists and not made.or_replace:
            exists = self._exists(key)
            if exists:
                return
            if exists is None:
                raise NotSure("the table may have been there before")
        if made.like is not None:
            source = self.tables.get(made.like)
            if source is None:
                raise NotSure("it is made like a table that nobody knows")
            lineage = self.lineages[made.like]  # which is forgotten with a name that differs in case alone
            self._put(key, replace(source, schema=key[0], name=key[1], foreign_keys=()))
            self.lineages[key] = lineage
            return
        default = self._charsets.get(key[0], ("", ""))
        self._put(key, self._with_primary_keys(table_of(made, *made.charset.resolved(default, default))))
        self._new_lineage(key)

    def _alter(self, made: AlterTable, teller: Teller) -> None:
        self._check_temporary([made.name, *([made.rename] if made.rename else [])], teller)
        table = self.tables.get(made.name)
        if table is None:
            if made.if_exists and self._exists(made.name) is False:
                return
            raise NotSure("a table that nobody knows")
        altered = alter_table(table, made.clauses, self._charsets.get(made.name[0], ("", "")))
        self._put(made.name, self._with_primary_keys(altered))
        if names := _renamed_columns(made):
            self._refer_to(
                made.name, altered.engine, lambda one: replace(one, referenced=_named_anew(one.referenced, names))
            )
        if made.rename is not None and made.rename != made.name:
            self._move(made.name, made.rename)
            if any(isinstance(clause, AddForeignKey) for clause in made.clauses):
                # servers differ in what it is called, and in what it refers to if that is the table itself
                self._put(made.rename, replace(self.tables[made.rename], foreign_keys=None))

    def _move(self, old: TableName, new: TableName) -> None:
        table, lineage = self.tables[old], self.lineages[old]
        self._remove(old)
        foreign = renamed_foreign_keys(table, new[1])
        self._put(new, replace(table, schema=new[0], name=new[1], foreign_keys=foreign))
        self.lineages[new] = lineage
        self._refer_to(old, table.engine, functools.partial(replace, schema=new[0], table=new[1]))

    def _drop(self, made: DropTables, teller: Teller) -> None:
        temporary = {(teller.thread_id, key) for key in made.names} & self._temporary
        self._temporary -= temporary
        if made.temporary:
            return
        for key in made.names:
            if (teller.thread_id, key) in temporary:
                self._forget(key)
            else:
                self._remove(key)

    def _rename(self, made: RenameTables, teller: Teller) -> None:
        self._check_temporary((key for pair in made.pairs for key in pair), teller)
        if made.if_exists and any(self._exists(old) is None for old, _new in made.pairs):
            raise NotSure("it is not known which of the tables are there")
        for old, new in made.pairs:
            if old in self.tables:
                self._move(old, new)
            elif not (made.if_exists and self._exists(old) is False):
                self._remove(old)
                self._forget(new)
                self._doubt_references(old)

    def _database(self, made: CreateDatabase | AlterDatabase | DropDatabase, teller: Teller) -> None:
        if isinstance(made, AlterDatabase):
            if made.charset.charset is not None or made.charset.default or made.charset.collated:
                self._set_charset(made.name, made.charset, teller)
            return
        if isinstance(made, CreateDatabase) and made.if_not_exists and not made.or_replace:
            if made.name not in self._complete:
                self._charsets.pop(made.name, None)  # which it may have had before
                return
            if made.name in self._charsets:
                return  # it is there
        for key in [key for key in self.tables if key[0] == made.name]:
            self._remove(key)
        self._absent = {key for key in self._absent if key[0] != made.name}
        self._charsets.pop(made.name, None)
        self._complete[made.name] = self._statement
        if isinstance(made, CreateDatabase):
            self._set_charset(made.name, made.charset, teller)

    def _set_charset(self, schema: str, option: CharsetOption, teller: Teller) -> None:
        server = (teller.server_charset, teller.server_collation)
        default = option.resolved(server, server)
        if default[0]:
            self._charsets[schema] = default
        else:
            self._charsets.pop(schema, None)


def _with_generated(table: Table, generated: Mapping[tuple[str, str, str], bool]) -> Table:
    keys = tuple(
        (name, replace(one, generated=generated.get((table.schema, table.name, name)))) for name, one in table.keys
    )
    return replace(table, keys=keys)


def _tables_of(statement: Statement) -> list[TableName]:
    match statement:
        case CreateTable():
            return [] if statement.temporary else [statement.name]
        case AlterTable():
            return [statement.name, *([statement.rename] if statement.rename else [])]
        case DropTables():
            return list(statement.names)
        case RenameTables():
            return [key for pair in statement.pairs for key in pair]
    return []


def _renames(statement: Statement) -> bool:
    """Whether tables or columns, which foreign keys of others may name, are called otherwise by it."""
    match statement:
        case RenameTables():
            return True
        case AlterTable():
            return statement.rename is not None or bool(_renamed_columns(statement))
    return False


def _renamed_columns(made: AlterTable) -> dict[str, str]:
    """Lower-case names of columns to what they are called then."""
    names = {}
    for clause in made.clauses:
        match clause:
            case ChangeColumn(old, definition) if definition.column.name != old:
                names[old.lower()] = definition.column.name
            case RenameColumn(old, new) if new != old:
                names[old.lower()] = new
    return names


def _named_anew(columns: tuple[str, ...], names: dict[str, str]) -> tuple[str, ...]:
    return tuple(names.get(column.lower(), column) for column in columns)
