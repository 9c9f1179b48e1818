"""Statements change what is known of tables."""

from typing import Final

from protocol.sql.engines import takes_foreign_keys
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.server_version import version_numbers
from protocol.sql.statements.named_tables import read_tables
from protocol.sql.statements.program_statements import DroppedPrograms, WrittenProgram, body_of, read_program
from protocol.sql.statements.statement_names import defined_names
from protocol.sql.tables.altered_table import table_of
from protocol.sql.tables.ddl_parser import read_statement
from protocol.sql.tables.ddl_statement import (
    AlterTable,
    CreateDatabase,
    CreateTable,
    RenameTables,
    TableDefinition,
    needs,
    needs_everything,
)
from protocol.sql.tables.source_table import RESTRICT, Column, ForeignKey, TableName
from relay.source_tables.applied_definition import DefiningSession, apply_definition
from relay.source_tables.programs import TRIGGER, VIEW, KnownProgram, RoutineBody
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.match_clauses import forgets_actions
from relay.view.rules.statement.routine_body import read_routine_body
from relay.view.rules.tables.table_engines import TableEngines

_INLINE_KEYS_SINCE: Final = (9, 0, 0)
"""The version from which REFERENCES after a column creates a foreign key; before, servers read and ignore it."""
_DATABASE: Final = frozenset(("DATABASE", "SCHEMA"))
_OF_TABLES: Final = _DATABASE | {"TABLE", "TABLES", "TEMPORARY"}


def learn(engines: TableEngines, query: LoggedQuery) -> None:
    """Move the book after a statement; one that defines nothing changes nothing, and one that cannot be read makes the tables that it
    may name doubtful."""
    if not query.kind.may_define:
        return
    try:
        definition = query.definition
        if definition is not None:
            needs(definition, "ENGINE", "TYPE", "FOREIGN", "REFERENCES", "RENAME")
            _learn_table(engines, query, definition)
            return
        program = read_program(query)
        if isinstance(program, WrittenProgram):
            _learn_program(engines, query, program)
        elif isinstance(program, DroppedPrograms):
            for name in program.names:
                engines.drop_program(program.kind, name)
        elif _is_about_tables(query):
            _learn_tables(engines, query)
    except UnsupportedSyntax:
        engines.doubt_words(defined_names(query.raw, query.sql_mode), references=b"references" in query.raw.lower())


def _is_about_tables(query: LoggedQuery) -> bool:
    """Return whether it creates a database, or drops or renames tables or a database."""
    first, *following = (token.upper for token in query.tokens[:4])
    if first == "CREATE":
        return not _DATABASE.isdisjoint(following[:1] if following[:1] != ["OR"] else following[2:])
    return first in ("DROP", "RENAME") and not _OF_TABLES.isdisjoint(following[:1])


def _learn_table(engines: TableEngines, query: LoggedQuery, made: TableDefinition) -> None:
    if isinstance(made, AlterTable):
        engines.alter_columns(made.name, made, query.thread_id)
        if made.engine:
            engines.alter_engine(made.name, made.engine, query.thread_id)
        facts = engines.facts(made.name, query.thread_id)
        takes = facts is None or takes_foreign_keys(facts.engine or facts.default_engine)
        engines.alter_foreign_keys(
            made.name, dropped=made.dropped_constraints, added=_foreign_keys(query, made) if takes else ()
        )
        if made.rename is not None:
            engines.rename_table(made.name, made.rename, query.thread_id)
    elif query.error:
        return
    elif made.like is not None:
        engines.create_like(
            made.name,
            made.like,
            query.thread_id,
            temporary=made.temporary,
            if_not_exists=made.if_not_exists,
            checked=query.foreign_key_checks,
        )
    elif made.temporary:
        engines.create_temporary(query.thread_id, made.name, made.engine, query.server_version, _columns(made))
    else:
        engines.create(
            made.name,
            made.engine,
            query.server_version,
            if_not_exists=made.if_not_exists,
            keys=_foreign_keys(query, made) if takes_foreign_keys(made.engine) else (),
            checked=query.foreign_key_checks,
            columns=_columns(made),
        )


def _columns(made: CreateTable) -> tuple[Column, ...]:
    """Return the table's columns; none where some are not known."""
    try:
        needs_everything(made)
        return () if made.written.queried else table_of(made, "").columns
    except UnsupportedSyntax:
        return ()


def _foreign_keys(query: LoggedQuery, made: TableDefinition) -> list[tuple[str, ForeignKey]]:
    defined = made.written.foreign_keys
    if version_numbers(query.server_version) >= _INLINE_KEYS_SINCE:
        defined = [*defined, *made.written.inline]
    forgets = forgets_actions(query, made)
    said = [(name, clause.before_match if forgets and clause.before_match else clause) for name, clause in defined]
    return [
        (
            name,
            ForeignKey(
                (),
                *clause.parent,
                tuple(map(query.name, clause.columns)),
                clause.on_delete or RESTRICT,
                clause.on_update or RESTRICT,
            ),
        )
        for name, clause in said
    ]


def _learn_tables(engines: TableEngines, query: LoggedQuery) -> None:
    made = read_statement(query.tokens, query.text, query.schema, query.sql_mode, query.server_version, query.name)
    if isinstance(made, RenameTables):
        for old, new in made.pairs:
            engines.rename_table(old, new, query.thread_id)
    elif not isinstance(made, CreateDatabase):
        apply_definition(engines, made, DefiningSession(query.thread_id))
    elif not query.error:
        engines.create_schema(made.name, if_not_exists=made.if_not_exists and not made.or_replace)


def _learn_program(engines: TableEngines, query: LoggedQuery, made: WrittenProgram) -> None:
    """Learn a view, a trigger or a routine; functions of shared libraries change no tables."""
    if made.name is None:
        return
    if made.kind == VIEW:
        _learn_view(engines, query, made.name)
        return
    body = _body_of(query, made, made.name[0])
    if made.kind == TRIGGER:
        key = (TRIGGER, *made.name)
    else:
        key = (made.kind, made.name[0], made.name[1].lower())
    first = made.body if made.parameters < 0 else made.parameters
    text = query.text[query.tokens[first].start :] if first >= 0 else ""
    timing = next((token.upper for token in query.tokens[: made.body] if token.upper in ("BEFORE", "AFTER")), "")
    learned = KnownProgram(key, table=made.table, event=made.event, text=text, body=body, timing=timing)
    engines.put_program(key, learned._replace(sql_mode=query.sql_mode))


def _learn_view(engines: TableEngines, query: LoggedQuery, name: TableName) -> None:
    try:
        engines.put_program((VIEW, *name), KnownProgram((VIEW, *name), reads=read_tables(query)))
    except UnsupportedSyntax:
        engines.drop_program(VIEW, name)
        engines.doubt(name)


def _body_of(query: LoggedQuery, made: WrittenProgram, schema: str) -> RoutineBody:
    """Return the body; an empty one where it cannot be read."""
    try:
        return read_routine_body(query, body_of(query, made), schema)
    except UnsupportedSyntax:
        return RoutineBody()
