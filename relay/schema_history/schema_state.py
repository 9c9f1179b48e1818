"""The tables that there are behind a statement, worked out from those before it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from relay.schema_history.tables.altered_table import alter_table, table_of
from relay.schema_history.tables.ddl_statement import (
    AlterDatabase,
    AlterTable,
    CharsetOption,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTables,
    NoTable,
    RenameTables,
    Statement,
)
from relay.schema_history.tables.ddl_tokens import NotSure
from relay.schema_history.tables.source_table import Table, TableName

_MOST_TEMPORARY: Final = 10_000


@dataclass(frozen=True, slots=True)
class Teller:
    """Who said a statement: the connection's number, and the character set that its server gives new databases ('': not known)."""

    thread_id: int = 0
    server_charset: str = ""


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
    _charsets: dict[str, str] = field(default_factory=dict)
    _temporary: set[tuple[int, TableName]] = field(default_factory=set)
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
        for known in (self._absent, self._complete, self._unsure, self._temporary):
            known.clear()
        self._charsets.clear()

    def forget(self, names: Iterable[str] | None) -> None:
        """A statement that nobody understands had these names, in lower case, of tables or schemas; None: any."""
        if names is None:
            self.clear()
            return
        gone = set(names)
        self._statement += 1
        self._unsure |= dict.fromkeys(gone, self._statement)
        for key in [key for key in (*self.tables, *self._absent) if key[1].lower() in gone]:
            self._forget(key)
        for schema in [schema for schema in self._charsets if schema.lower() in gone]:
            del self._charsets[schema]

    def forget_tables(self, statement: Statement) -> None:
        """It is known which tables the statement is about, and not what becomes of them."""
        for key in _tables_of(statement):
            self._forget(key)

    def is_of_tables(self, statement: Statement) -> bool:
        """Whether the statement is about single tables, and not about a database."""
        return not isinstance(statement, CreateDatabase | AlterDatabase | DropDatabase)

    def note_table(self, table: Table) -> None:
        """Somebody else knows the table as it is here."""
        key = (table.schema, table.name)
        self._put(key, table)
        self._new_lineage(key)

    @property
    def charsets(self) -> dict[str, str]:
        """Of each schema, for new tables."""
        return dict(self._charsets)

    def note_absent(self, key: TableName) -> None:
        """Somebody else knows that there is no such table."""
        self._remove(key)

    def note_charset(self, schema: str, charset: str) -> None:
        """The character set of new tables in a schema."""
        self._charsets[schema] = charset

    def apply(self, statement: Statement, teller: Teller) -> None:
        """Goes on to behind the statement. Raises: NotSure, and nothing has changed: then `forget`."""
        self._statement += 1
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

    # ---- what is known ----

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
            self._put(key, replace(source, schema=key[0], name=key[1], foreign_keys=()))
            self.lineages[key] = self.lineages[made.like]
            return
        default = self._charsets.get(key[0], "")
        self._put(key, table_of(made, made.charset.charset or default))
        self._new_lineage(key)

    def _alter(self, made: AlterTable, teller: Teller) -> None:
        self._check_temporary([made.name, *([made.rename] if made.rename else [])], teller)
        table = self.tables.get(made.name)
        if table is None:
            if made.if_exists and self._exists(made.name) is False:
                return
            raise NotSure("a table that nobody knows")
        altered = alter_table(table, made.clauses, self._charsets.get(made.name[0], ""))
        self._put(made.name, altered)
        if made.rename is not None and made.rename != made.name:
            self._move(made.name, made.rename)

    def _move(self, old: TableName, new: TableName) -> None:
        table, lineage = self.tables[old], self.lineages[old]
        self._remove(old)
        self._put(new, replace(table, schema=new[0], name=new[1]))
        self.lineages[new] = lineage

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

    def _database(self, made: CreateDatabase | AlterDatabase | DropDatabase, teller: Teller) -> None:
        if isinstance(made, AlterDatabase):
            if made.charset.charset is not None or made.charset.default:
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
        charset = option.charset or teller.server_charset
        if charset:
            self._charsets[schema] = charset
        else:
            self._charsets.pop(schema, None)


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
