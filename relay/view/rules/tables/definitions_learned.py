"""Statements change what is known of tables."""

from typing import Final

from protocol.sql.engines import takes_foreign_keys
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.server_version import version_numbers
from protocol.sql.statements.named_tables import read_tables
from protocol.sql.statements.statement_names import defined_names
from protocol.sql.statements.statement_words import StatementWords
from protocol.sql.tables.ddl_parser import read_statement
from protocol.sql.tables.ddl_statement import AlterTable, RenameTables, TableDefinition, needs
from protocol.sql.tables.source_table import RESTRICT, ForeignKey, TableName
from relay.source_tables.applied_definition import DefiningSession, apply_definition
from relay.source_tables.programs import TRIGGER, VIEW, KnownProgram, RoutineBody
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.match_clauses import forgets_actions
from relay.view.rules.statement.routine_body import read_routine_body
from relay.view.rules.tables.table_engines import TableEngines

_INLINE_KEYS_SINCE: Final = (9, 0, 0)
"""The version from which REFERENCES after a column creates a foreign key; before, servers read and ignore it."""
_OF_TABLES: Final = frozenset(("TABLE", "TABLES", "TEMPORARY", "DATABASE", "SCHEMA"))


def learn(engines: TableEngines, query: LoggedQuery) -> None:
    """Move the book after a statement; one that defines nothing changes nothing, and one that cannot be read makes the tables that it
    may name doubtful."""
    if not query.kind.may_define:
        return
    try:
        words = StatementWords(query)
        verb = words.word()
        definition = query.definition
        if definition is not None:
            needs(definition, "ENGINE", "TYPE", "FOREIGN", "REFERENCES", "RENAME")
            _learn_table(engines, query, definition)
        elif verb == "CREATE" and words.word(1) in ("DATABASE", "SCHEMA"):
            words.at = 2
            if_not_exists = words.accept("IF", "NOT", "EXISTS")
            if not query.error:
                engines.create_schema(words.name(), if_not_exists=if_not_exists)
        elif verb == "CREATE":
            _learn_body(engines, words)
        elif verb in ("DROP", "RENAME") and words.word(1) in _OF_TABLES:
            _learn_removal(engines, query)
        elif verb == "DROP":
            _learn_drop(engines, words)
        elif verb == "ALTER":
            while not words.ended and words.word() not in ("VIEW", "AS"):
                words.take()
            if words.accept("VIEW"):
                _learn_view(engines, words)
    except UnsupportedSyntax:
        engines.doubt_words(defined_names(query.raw, query.sql_mode), references=b"references" in query.raw.lower())


def _learn_table(engines: TableEngines, query: LoggedQuery, made: TableDefinition) -> None:
    if isinstance(made, AlterTable):
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
        engines.create_temporary(query.thread_id, made.name, made.engine, query.server_version)
    else:
        engines.create(
            made.name,
            made.engine,
            query.server_version,
            if_not_exists=made.if_not_exists,
            keys=_foreign_keys(query, made) if takes_foreign_keys(made.engine) else (),
            checked=query.foreign_key_checks,
        )


def _foreign_keys(query: LoggedQuery, made: TableDefinition) -> list[tuple[str, ForeignKey]]:
    defined = made.written.foreign_keys
    if version_numbers(query.server_version) >= _INLINE_KEYS_SINCE:
        defined = [*defined, *made.written.inline]
    forgets = forgets_actions(query, made)
    said = [(name, clause.before_match if forgets and clause.before_match else clause) for name, clause in defined]
    return [
        (name, ForeignKey((), *clause.parent, (), clause.on_delete or RESTRICT, clause.on_update or RESTRICT))
        for name, clause in said
    ]


def _learn_body(engines: TableEngines, words: StatementWords) -> None:
    """Learn from CREATE [DEFINER = …] TRIGGER name BEFORE INSERT ON table FOR EACH ROW …, a routine or a view; skip others."""
    words.expect("CREATE")
    words.accept("OR", "REPLACE")
    if words.accept("ALGORITHM", "="):
        words.take()
    if words.accept("DEFINER"):
        words.accept("=")
        while not words.ended and words.word() not in ("TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "VIEW", "SQL"):
            words.take()
    if words.accept("SQL", "SECURITY"):
        words.take()
    if words.accept("VIEW"):
        words.accept("IF", "NOT", "EXISTS")
        _learn_view(engines, words)
        return
    if words.word() in ("FUNCTION", "PROCEDURE"):
        _learn_routine(engines, words)
        return
    if not words.accept("TRIGGER"):
        return
    words.accept("IF", "NOT", "EXISTS")
    name = words.table_name()
    words.take()
    event = words.take().upper
    words.expect("ON")
    table = words.table_name()
    text = words.query.text[words.peek().start :]
    body = _body_of(words, name[0])
    engines.put_program(
        (TRIGGER, *name), KnownProgram((TRIGGER, *name), table=table, event=event, text=text, body=body)
    )


def _learn_view(engines: TableEngines, words: StatementWords) -> None:
    """Learn a view from its name on."""
    name = words.table_name()
    try:
        engines.put_program((VIEW, *name), KnownProgram((VIEW, *name), reads=read_tables(words.query)))
    except UnsupportedSyntax:
        engines.drop_program(VIEW, name)
        engines.doubt(name)


def _learn_routine(engines: TableEngines, words: StatementWords) -> None:
    kind = words.take().upper
    words.accept("IF", "NOT", "EXISTS")
    name = _routine_name(words)
    if name is not None and words.word() == "(":
        words.skip_brackets()
        key, body = (kind, name[0], name[1].lower()), _body_of(words, name[0])
        engines.put_program(key, KnownProgram(key, body=body) if any(body) else None)


def _routine_name(words: StatementWords) -> TableName | None:
    """Return the routine's name; None: it is in no schema, as functions of shared libraries are."""
    try:
        return words.table_name()
    except UnsupportedSyntax:
        return None


def _body_of(words: StatementWords, schema: str) -> RoutineBody:
    """Return the body after the cursor; an empty one where it cannot be read."""
    try:
        return read_routine_body(words.query, words.tokens[words.at :], schema)
    except UnsupportedSyntax:
        return RoutineBody()


def _learn_removal(engines: TableEngines, query: LoggedQuery) -> None:
    made = read_statement(query.tokens, query.text, query.schema, query.sql_mode, query.server_version, query.name)
    if isinstance(made, RenameTables):
        for old, new in made.pairs:
            engines.rename_table(old, new, query.thread_id)
    else:
        apply_definition(engines, made, DefiningSession(query.thread_id))


def _learn_drop(engines: TableEngines, words: StatementWords) -> None:
    """Learn from DROP of a trigger, a view or a routine; skip others."""
    words.expect("DROP")
    if words.accept("TRIGGER"):
        words.accept("IF", "EXISTS")
        engines.drop_program(TRIGGER, words.table_name())
    elif words.accept("VIEW"):
        words.accept("IF", "EXISTS")
        engines.drop_program(VIEW, words.table_name())
        while words.accept(","):
            engines.drop_program(VIEW, words.table_name())
    elif words.word() in ("FUNCTION", "PROCEDURE"):
        kind = words.take().upper
        words.accept("IF", "EXISTS")
        name = _routine_name(words)
        if name is not None:
            engines.drop_program(kind, name)
