"""Applies a statement to the book of a MariaDB's view, whose replicas get another statement than the source's."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.altered_table import alter_table, table_of
from protocol.sql.tables.ddl_statement import (
    AddColumn,
    AddForeignKey,
    AlterTable,
    ChangeColumn,
    CreateTable,
    ForeignKeyDefinition,
    Statement,
)
from protocol.sql.tables.source_table import CharsetDefault, Column, ForeignKey, Table, TableName
from relay.schema_history.table_agreement import type_parts
from relay.source_tables.applied_definition import DefiningSession, apply_definition
from relay.source_tables.known_table import VERSIONED, KnownTable, sequence
from relay.source_tables.programs import VIEW, KnownProgram, ProgramName
from relay.source_tables.table_book import SourceTables
from relay.view.stops import definition_stops


class ToldDefinition(NamedTuple):
    """A statement as it was translated. `source` is its definition as the source understands it; None: it defines no tables. `replica`
    is the same for each statement of the view; None: it is not known. `versioned` are the tables that have system versioning from now
    on. `thread_id` is that of the session, whose temporary tables hide others. `programs` are views, triggers and routines that it
    creates, or replaces. `server_default` applies to a database that names no character set; ("", ""): not known.
    """

    source: Statement | None
    replica: Sequence[Statement | None] = ()
    sequences_made: Sequence[TableName] = ()
    sequences_dropped: Sequence[TableName] = ()
    versioned: Sequence[TableName] = ()
    thread_id: int = 0
    programs: Sequence[KnownProgram] = ()
    programs_dropped: Sequence[ProgramName] = ()
    server_default: CharsetDefault = ("", "")


def learn_definition(tables: SourceTables, told: ToldDefinition) -> None:
    """Apply the statement to the tables. Raises: Untranslatable where the replica's would differ."""
    for name in told.sequences_dropped:
        tables.remove(name)
    for name in told.sequences_made:
        tables.put(name, sequence(name))
    for kind, *dropped in told.programs_dropped:
        if kind == VIEW:
            tables.drop_view((dropped[0], dropped[1]))
        else:
            tables.put_program((kind, dropped[0], dropped[1]), None)
    for program in told.programs:
        tables.put_program(program.name, program)
    made = told.source
    if made is None:
        # It is not known as the source understands it, such as WITH SYSTEM VERSIONING: the replicas' definition is used.
        made = _last(told.replica, CreateTable) or _last(told.replica, AlterTable)
    session = DefiningSession(told.thread_id, *told.server_default)
    if isinstance(made, CreateTable):
        _create(tables, made, told, session)
    elif isinstance(made, AlterTable):
        _alter(tables, made, told, session)
    elif made is not None:
        apply_definition(tables, made, session)


def _create(tables: SourceTables, made: CreateTable, told: ToldDefinition, session: DefiningSession) -> None:
    def adjusted(known: KnownTable) -> KnownTable:
        replica = _last(told.replica, CreateTable)
        table = _created(tables, replica) if isinstance(replica, CreateTable) else None
        return _as_replicas_have(known, table, told)

    try:
        apply_definition(tables, made, session, adjusted)
    except UnsupportedSyntax:
        _create_unsure(tables, made, told)


def _create_unsure(tables: SourceTables, made: CreateTable, told: ToldDefinition) -> None:
    """Note that the table exists, and its columns are not known, as after CREATE TABLE ... SELECT; or that it is doubtful."""
    name = made.name
    if made.if_not_exists and not made.or_replace and tables.exists(name) is None:
        tables.doubt(name)
        keys = [column.references for column in made.columns if column.references is not None]
        _note_references(
            tables, name, [*keys, *(one.key for one in made.keys if isinstance(one, ForeignKeyDefinition))]
        )
        return
    if made.like is not None:
        known = None if tables.is_temporary(told.thread_id, made.like) else tables.get(made.like)
        copied = Table(*name) if known is None else Table(*name, foreign_keys=(), type=known.table.type)
        tables.put(name, KnownTable(copied))
        return
    # The statement was checked as any that changes rows: no column of it differs on the replicas.
    is_plain = name not in told.versioned
    tables.put(name, KnownTable(Table(*name, type="" if is_plain else VERSIONED), is_plain=is_plain))


def _created(tables: SourceTables, made: CreateTable) -> Table | None:
    default = tables.charset_of(made.name[0])
    try:
        return table_of(made, *made.charset.resolved(default, default))
    except UnsupportedSyntax:
        return None


def _alter(tables: SourceTables, made: AlterTable, told: ToldDefinition, session: DefiningSession) -> None:
    before = tables.get(made.name)
    default = tables.charset_of(made.name[0])

    def adjusted(known: KnownTable) -> KnownTable:
        assert before is not None
        replica = _last(told.replica, AlterTable)
        if not isinstance(replica, AlterTable):
            # nothing is left of the statement: an IF EXISTS that did nothing, or only words that the target does not have
            return _as_replicas_have(known, None if told.replica else before.table, told)
        return _as_replicas_have(known, _altered(before.table, replica, default), told)

    try:
        apply_definition(tables, made, session, adjusted)
    except UnsupportedSyntax:
        if before is not None and before.columns:
            table = before.table
            less = Table(table.schema, table.name, foreign_keys=table.foreign_keys, type=table.type)
            tables.put((table.schema, table.name), KnownTable(less))
        _note_references(tables, made.name, _keys_added(made))
        if made.rename is not None and made.rename != made.name:
            tables.rename(made.name, made.rename)


def _altered(table: Table, made: AlterTable, default: CharsetDefault) -> Table | None:
    try:
        return alter_table(table, made.clauses, default)
    except UnsupportedSyntax:
        return None


def _note_references(tables: SourceTables, name: TableName, keys: Sequence[ForeignKey]) -> None:
    """Note that a table of which no more is known refers to these, or may: REPLACE and DELETE of what it refers to change it."""
    if not keys:
        return
    known = tables.get(name) or KnownTable(Table(*name))
    before = known.table.foreign_keys or ()
    added = [(f"of a definition {len(before) + number}", key) for number, key in enumerate(keys)]
    table = replace(known.table, foreign_keys=(*before, *added))
    tables.put((table.schema, table.name), known._replace(table=table))


def _keys_added(made: AlterTable) -> list[ForeignKey]:
    found = [clause.definition.key for clause in made.clauses if isinstance(clause, AddForeignKey)]
    columns = [clause.definition for clause in made.clauses if isinstance(clause, AddColumn | ChangeColumn)]
    return [*found, *(column.references for column in columns if column.references is not None)]


def _as_replicas_have(known: KnownTable, replica: Table | None, told: ToldDefinition) -> KnownTable:
    """Return the source's table with the columns of the replica's: those of the same names with the source's types, but `json` where
    the replica has that; others as they are (row_start and row_end of a versioned table).

    `replica` None: the table is not known there. Raises: Untranslatable where the two have other columns.
    """
    source = known.table
    if (source.schema, source.name) in told.versioned:
        source = replace(source, type=VERSIONED)
    if replica is not None:
        names = [column.name for column in replica.columns]
        left = iter(column.lower() for column in names)
        if not all(column.name.lower() in left for column in source.columns) or (
            len(names) != len(source.columns) and source.type != VERSIONED
        ):
            what = f"the source's table has the columns {', '.join(column.name for column in source.columns)}"
            raise definition_stops.table_differs((source.schema, source.name), what, names)
        own = {column.name.lower(): column for column in source.columns}
        source = replace(source, columns=tuple(_of_both(own, column) for column in replica.columns))
    return known._replace(table=source)


def _of_both(source: dict[str, Column], replica: Column) -> Column:
    return replica if type_parts(replica.type)[0] == "json" else source.get(replica.name.lower(), replica)


def _last(statements: Iterable[Statement | None], kind: type[CreateTable] | type[AlterTable]) -> Statement | None:
    """Return the last of that kind among those that a statement became."""
    return next((one for one in reversed(tuple(statements)) if isinstance(one, kind)), None)
