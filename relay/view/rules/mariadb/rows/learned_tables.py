"""What a statement that defines tables makes of what is known of them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from protocol.sql.lexer import NotSure
from relay.schema_history.tables.altered_table import alter_table, table_of
from relay.schema_history.tables.ddl_statement import (
    AddColumn,
    AddForeignKey,
    AlterDatabase,
    AlterTable,
    ChangeColumn,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTables,
    ForeignKeyDefinition,
    RenameTables,
    Statement,
)
from relay.schema_history.tables.source_table import CharsetDefault, ForeignKey, Table, TableName
from relay.view.rules.mariadb.rows.known_table import KnownTable, as_replicas_have, sequence
from relay.view.rules.mariadb.statement.known_program import KnownProgram, ProgramName
from relay.view.stops import definition_stops


class ToldDefinition(NamedTuple):
    """A statement as it was translated. source: what it says as the source understands it; None: nothing of tables. replica: the
    same of each statement of the view; None: what it says is not known. versioned: the tables that have system versioning from now on.
    thread_id: of the session, whose temporary tables hide others. programs: views, triggers and routines that it makes, or replaces.
    server_default: what a database has that names no character set; ("", ""): not known.
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


class LearningTables(Protocol):
    """What is known of tables, for changing it."""

    def get(self, name: TableName) -> KnownTable | None:
        """None: nobody knows the table, or it is not there."""

    def is_there(self, name: TableName) -> bool | None:
        """None: nobody knows."""

    def put(self, name: TableName, known: KnownTable) -> None:
        """The table is there, and is this one."""

    def remove(self, name: TableName) -> None:
        """The table is not there."""

    def forget(self, name: TableName) -> None:
        """Nobody knows any more whether the table is there, nor what it is."""

    def rename(self, old: TableName, new: TableName) -> None:
        """The table is called otherwise."""

    def drop_schema(self, schema: str) -> None:
        """The schema is gone, or was made now: it has no tables."""

    def charset_of(self, schema: str) -> CharsetDefault:
        """What new tables have that say nothing; ("", ""): not known."""

    def note_charset(self, schema: str, default: CharsetDefault) -> None:
        """New tables have it from now on."""

    def note_temporary(self, thread_id: int, name: TableName, *, is_there: bool) -> None:
        """A session made or dropped a temporary table."""

    def is_temporary(self, thread_id: int, name: TableName) -> bool:
        """Whether a name means a temporary table of the session."""

    def put_program(self, name: ProgramName, program: KnownProgram | None) -> None:
        """A view, a trigger or a routine is this one; None: it is not there."""


def learn_definition(tables: LearningTables, told: ToldDefinition) -> None:
    """The tables are what the statement made of them. Raises: CannotBeKept where the replica's would be other ones."""
    for name in told.sequences_dropped:
        tables.remove(name)
    for name in told.sequences_made:
        tables.put(name, sequence(name))
    for dropped in told.programs_dropped:
        tables.put_program(dropped, None)
    for program in told.programs:
        tables.put_program(program.name, program)
    made = told.source
    if made is None:
        _learn_from_replica(tables, told)
    elif isinstance(made, CreateTable):
        _create(tables, made, told)
    elif isinstance(made, AlterTable):
        _alter(tables, made, told)
    elif isinstance(made, DropTables):
        _drop(tables, made, told.thread_id)
    elif isinstance(made, RenameTables):
        for old, new in made.pairs:
            if not tables.is_temporary(told.thread_id, old) and (
                tables.is_there(old) is not False or not made.if_exists
            ):
                tables.rename(old, new)
    elif isinstance(made, CreateDatabase | AlterDatabase | DropDatabase):
        _database(tables, made, told.server_default)


def _learn_from_replica(tables: LearningTables, told: ToldDefinition) -> None:
    """Of a definition that is not known as the source understands it, such as WITH SYSTEM VERSIONING: what replicas make of it."""
    created, altered = _last(told.replica, CreateTable), _last(told.replica, AlterTable)
    if isinstance(created, CreateTable):
        _create(tables, created, told)
    elif isinstance(altered, AlterTable):
        _alter(tables, altered, told)


def _create(tables: LearningTables, made: CreateTable, told: ToldDefinition) -> None:
    name = made.name
    if made.temporary:
        tables.note_temporary(told.thread_id, name, is_there=True)
        return
    if made.if_not_exists and not made.or_replace:
        is_there = tables.is_there(name)
        if is_there:
            return
        if is_there is None:
            tables.forget(name)
            _note_references(tables, name, _keys_of_created(made))
            return
    if made.like is not None:
        like = None if tables.is_temporary(told.thread_id, made.like) else tables.get(made.like)
        if like is None:
            tables.put(name, KnownTable(Table(*name)))
        else:
            copied = replace(like.table, schema=name[0], name=name[1], foreign_keys=())
            tables.put(name, KnownTable(copied, like.kind, like.is_versioned, is_recorded=like.is_recorded))
        return
    table = _made_by(tables, made)
    if table is None:
        # Of a statement that was looked at as any that changes rows: no column of it is another on the replicas.
        is_plain = name not in told.versioned
        tables.put(name, KnownTable(Table(*name), is_versioned=not is_plain, is_plain=is_plain))
        return
    replica = _last(told.replica, CreateTable)
    replica_table = _made_by(tables, replica) if isinstance(replica, CreateTable) else None
    _put(tables, table, replica_table, is_versioned=name in told.versioned)


def _made_by(tables: LearningTables, made: CreateTable) -> Table | None:
    """None: not known, as of CREATE TABLE ... SELECT."""
    default = tables.charset_of(made.name[0])
    try:
        return table_of(made, *made.charset.resolved(default, default))
    except NotSure:
        return None


def _alter(tables: LearningTables, made: AlterTable, told: ToldDefinition) -> None:
    name = made.name
    if tables.is_temporary(told.thread_id, name):
        return
    known = tables.get(name)
    if known is not None and known.columns:
        default = tables.charset_of(name[0])
        table = _altered(known.table, made, default)
        if table is None:
            less = Table(*name, foreign_keys=known.table.foreign_keys)
            tables.put(name, KnownTable(less, known.kind, known.is_versioned))
            _note_references(tables, name, _keys_added(made))
        else:
            replica = _last(told.replica, AlterTable)
            # nothing is left of the statement: an IF EXISTS that did nothing, or only words that the target does not have
            behind = _altered(known.table, replica, default) if isinstance(replica, AlterTable) else known.table
            known_so_far = bool(told.replica) and replica is None
            _put(
                tables, table, None if known_so_far else behind,
                is_versioned=known.is_versioned or name in told.versioned, is_recorded=known.is_recorded,
            )  # fmt: skip
    else:
        _note_references(tables, name, _keys_added(made))
    if made.rename is not None and made.rename != name:
        tables.rename(name, made.rename)


def _note_references(tables: LearningTables, name: TableName, keys: Sequence[ForeignKey]) -> None:
    """A table of which no more is known refers to these, or may: REPLACE and DELETE of what it refers to change it."""
    if not keys:
        return
    known = tables.get(name) or KnownTable(Table(*name))
    before = known.table.foreign_keys or ()
    added = [(f"of a definition {len(before) + number}", key) for number, key in enumerate(keys)]
    tables.put(name, known._replace(table=replace(known.table, foreign_keys=(*before, *added))))


def _keys_of_created(made: CreateTable) -> list[ForeignKey]:
    found = [column.references for column in made.columns if column.references is not None]
    return [*found, *(one.key for one in made.keys if isinstance(one, ForeignKeyDefinition))]


def _keys_added(made: AlterTable) -> list[ForeignKey]:
    found = [clause.definition.key for clause in made.clauses if isinstance(clause, AddForeignKey)]
    columns = [clause.definition for clause in made.clauses if isinstance(clause, AddColumn | ChangeColumn)]
    return [*found, *(column.references for column in columns if column.references is not None)]


def _altered(table: Table, made: AlterTable, default: CharsetDefault) -> Table | None:
    """None: what becomes of it is not known."""
    try:
        return alter_table(table, made.clauses, default)
    except NotSure:
        return None


def _put(
    tables: LearningTables, source: Table, replica: Table | None, *, is_versioned: bool, is_recorded: bool = False
) -> None:
    """replica: None: what it is there is not known. Raises: CannotBeKept where the two have other columns."""
    if replica is not None:
        names = [column.name for column in replica.columns]
        left = iter(column.lower() for column in names)
        if not all(column.name.lower() in left for column in source.columns) or (
            len(names) != len(source.columns) and not is_versioned
        ):
            what = f"the source's table has the columns {_listed(column.name for column in source.columns)}"
            raise definition_stops.table_differs((source.schema, source.name), what, names)
        source = as_replicas_have(source, replica.columns)
    tables.put((source.schema, source.name), KnownTable(source, is_versioned=is_versioned, is_recorded=is_recorded))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _last(statements: Sequence[Statement | None], kind: type[CreateTable] | type[AlterTable]) -> Statement | None:
    """The last of that kind: of a statement that became several."""
    return next((one for one in reversed(statements) if isinstance(one, kind)), None)


def _drop(tables: LearningTables, made: DropTables, thread_id: int) -> None:
    for name in made.names:
        if tables.is_temporary(thread_id, name):
            tables.note_temporary(thread_id, name, is_there=False)
        elif not made.temporary:
            tables.remove(name)


def _database(
    tables: LearningTables, made: CreateDatabase | AlterDatabase | DropDatabase, server_default: CharsetDefault
) -> None:
    unknown = ("", "")
    if isinstance(made, AlterDatabase):
        if made.charset.charset is not None or made.charset.default or made.charset.collated:
            tables.note_charset(made.name, made.charset.resolved(unknown, unknown))
        return
    if isinstance(made, CreateDatabase) and made.if_not_exists and not made.or_replace:
        return
    tables.drop_schema(made.name)
    if isinstance(made, CreateDatabase):
        tables.note_charset(made.name, made.charset.resolved(server_default, server_default))
