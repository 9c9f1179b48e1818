"""Applies a statement that defines tables or databases to the book of tables."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from protocol.sql.lexer import UnsupportedSyntax
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
    RenameColumn,
    RenameTables,
    Statement,
)
from protocol.sql.tables.source_table import Table, TableName
from relay.source_tables.known_table import KnownTable
from relay.source_tables.table_book import SourceTables

_Adjusted = Callable[[KnownTable], KnownTable]


@dataclass(frozen=True, slots=True)
class DefiningSession:
    """The session of a statement: the connection's number, and the server's character set and collation for new databases ("": not
    known).
    """

    thread_id: int = 0
    server_charset: str = ""
    server_collation: str = ""


def apply_definition(
    tables: SourceTables,
    statement: Statement,
    session: DefiningSession,
    adjusted: _Adjusted = lambda known: known,
) -> None:
    """Move the book to the place after the statement. `adjusted` returns the book's version of a table that is created or altered.

    Raises: UnsupportedSyntax, and nothing has changed; errors of `adjusted`, likewise.
    """
    match statement:
        case CreateTable():
            _create(tables, statement, session, adjusted)
        case AlterTable():
            _alter(tables, statement, session, adjusted)
        case DropTables():
            _drop(tables, statement, session)
        case RenameTables():
            _rename(tables, statement, session)
        case CreateDatabase() | AlterDatabase() | DropDatabase():
            _database(tables, statement, session)


def forget_tables(tables: SourceTables, statement: Statement) -> None:
    """Forget the tables of a statement whose effect on them is unknown."""
    if isinstance(statement, CreateTable) and statement.if_not_exists and not statement.or_replace:
        if not statement.temporary:
            tables.doubt(statement.name)
        return
    for name in _tables_of(statement):
        tables.forget(name)
        if _renames(statement):
            tables.doubt_references(name)


def is_about_tables(statement: Statement) -> bool:
    """Return whether the statement is about single tables, and not about a database."""
    return not isinstance(statement, CreateDatabase | AlterDatabase | DropDatabase)


def note_table(tables: SourceTables, table: Table) -> None:
    """Note the table as the source reported it here; foreign keys that it did not report stay as they are known."""
    name = (table.schema, table.name)
    known = tables.exact(name)
    if known is not None:
        generated = {(key, one.columns): one.generated for key, one in known.keys}
        keys = tuple((key, replace(one, generated=generated.get((key, one.columns)))) for key, one in table.keys)
        foreign = known.foreign_keys if table.foreign_keys is None else table.foreign_keys
        table = replace(table, keys=keys, foreign_keys=foreign)
    tables.put(name, KnownTable(table))
    tables.new_lineage(name)


def _is_hidden(tables: SourceTables, name: TableName, session: DefiningSession) -> bool:
    """Return whether the statement means a temporary table.

    Raises: UnsupportedSyntax where it may mean one that was dropped with its session.
    """
    if not tables.is_temporary(session.thread_id, name):
        return False
    if tables.certain:
        raise UnsupportedSyntax("it may be about a temporary table")
    return True


def _create(tables: SourceTables, made: CreateTable, session: DefiningSession, adjusted: _Adjusted) -> None:
    name = made.name
    if made.temporary:
        tables.put_temporary(session.thread_id, name, KnownTable(Table(*name, made.engine)))
        return
    source = None
    if made.like is not None and not _is_hidden(tables, made.like, session):
        source = tables.get(made.like)
    if made.if_not_exists and not made.or_replace:
        exists = tables.exists(name)
        if exists:
            return
        if exists is None:
            tables.want(name)
            raise UnsupportedSyntax("the table may have existed before")
    if made.like is not None:
        if source is None or not source.columns:
            raise UnsupportedSyntax("it is made like a table that is not known")
        lineage = tables.lineages.get((source.table.schema, source.table.name), 0)
        copied = replace(source.table, schema=name[0], name=name[1], foreign_keys=())
        tables.put(name, source._replace(table=copied), is_new=not made.or_replace)
        if lineage:
            tables.lineages[name] = lineage
        return
    default = tables.charset_of(name[0])
    table = table_of(made, *made.charset.resolved(default, default))
    known = adjusted(KnownTable(_with_primary_keys(tables, table)))
    tables.put(name, known, is_new=not made.or_replace)
    tables.new_lineage(name)


def _alter(tables: SourceTables, made: AlterTable, session: DefiningSession, adjusted: _Adjusted) -> None:
    if _is_hidden(tables, made.name, session):
        return
    if made.rename is not None and tables.certain:
        _is_hidden(tables, made.rename, session)
    known = tables.get(made.name)
    if known is None or not known.columns:
        if made.if_exists and tables.exists(made.name) is False:
            return
        raise UnsupportedSyntax("a table that is not known")
    name = (known.table.schema, known.table.name)
    if not made.clauses and made.rename is not None and tables.meant_by_rename(made.name) != name:
        raise UnsupportedSyntax("it may rename a view")
    tables.note_meant(made.name, name)
    altered = alter_table(known.table, made.clauses, tables.charset_of(name[0]))
    tables.put(name, adjusted(known._replace(table=_with_primary_keys(tables, altered))))
    if names := _renamed_columns(made):
        tables.refer_to(
            name, altered.engine, lambda one: replace(one, referenced=_with_new_names(one.referenced, names))
        )
    if made.rename is not None and made.rename != name:
        tables.rename(name, made.rename)
        if tables.certain and any(isinstance(clause, AddForeignKey) for clause in made.clauses):
            # servers differ in its name, and in the table that it refers to if that is the table itself
            renamed = tables.get(made.rename)
            assert renamed is not None
            tables.put(made.rename, renamed._replace(table=replace(renamed.table, foreign_keys=None)))


def _with_primary_keys(tables: SourceTables, table: Table) -> Table:
    """Return the table; its foreign keys to primary keys name the columns of these where they are known."""
    if table.foreign_keys is None or all(one.referenced for _name, one in table.foreign_keys):
        return table
    foreign = []
    for name, one in table.foreign_keys:
        is_own = (one.schema, one.table) == (table.schema, table.name)
        parent = table if is_own else tables.exact((one.schema, one.table))
        referenced = one.referenced or (parent.primary_key if parent is not None else ())
        foreign.append((name, replace(one, referenced=referenced)))
    return replace(table, foreign_keys=tuple(foreign))


def _drop(tables: SourceTables, made: DropTables, session: DefiningSession) -> None:
    for name in made.names:
        if tables.drop_temporary(session.thread_id, name):
            if tables.certain and not made.temporary:
                tables.forget(name)  # the session may have ended, and with it the temporary table
        elif not made.temporary:
            tables.remove(name, if_exists=made.if_exists)


def _rename(tables: SourceTables, made: RenameTables, session: DefiningSession) -> None:
    hidden = [_is_hidden(tables, old, session) for old, _new in made.pairs]
    if tables.certain:
        for _old, new in made.pairs:
            _is_hidden(tables, new, session)
        if made.if_exists and any(tables.exists(old) is None for old, _new in made.pairs):
            raise UnsupportedSyntax("it is not known which of the tables exist")
    for (old, new), is_hidden in zip(made.pairs, hidden, strict=True):
        if not is_hidden and not (made.if_exists and tables.exists(old) is False):
            tables.rename(old, new)


def _database(
    tables: SourceTables, made: CreateDatabase | AlterDatabase | DropDatabase, session: DefiningSession
) -> None:
    if isinstance(made, AlterDatabase):
        if made.charset.charset is not None or made.charset.default or made.charset.collated:
            _set_charset(tables, made.name, made.charset, session)
        return
    if isinstance(made, DropDatabase):
        tables.drop_schema(made.name)
        return
    if tables.create_schema(made.name, if_not_exists=made.if_not_exists and not made.or_replace):
        _set_charset(tables, made.name, made.charset, session)


def _set_charset(tables: SourceTables, schema: str, option: CharsetOption, session: DefiningSession) -> None:
    server = (session.server_charset, session.server_collation)
    tables.alter_charset(schema, option.resolved(server, server))


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
    """Return whether it renames tables or columns, which foreign keys of others may name."""
    match statement:
        case RenameTables():
            return True
        case AlterTable():
            return statement.rename is not None or bool(_renamed_columns(statement))
    return False


def _renamed_columns(made: AlterTable) -> dict[str, str]:
    """Return a map of lower-case names of columns to their new names."""
    names = {}
    for clause in made.clauses:
        match clause:
            case ChangeColumn(old, definition) if definition.column.name != old:
                names[old.lower()] = definition.column.name
            case RenameColumn(old, new) if new != old:
                names[old.lower()] = new
    return names


def _with_new_names(columns: tuple[str, ...], names: dict[str, str]) -> tuple[str, ...]:
    return tuple(names.get(column.lower(), column) for column in columns)
