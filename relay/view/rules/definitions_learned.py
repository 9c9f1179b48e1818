"""What a statement does to what is known of tables."""

import re
from typing import Final

from protocol.binlog.schema.definition_names import defined_names
from relay.schema_history.tables.ddl_tokens import NotSure
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.statement_words import StatementWords
from relay.view.rules.statement.table_definition import TableDefinition, read_table_definition
from relay.view.rules.table_engines import TableEngines

# What stands in comments for servers is read; other comments and blanks are passed over.
_DEFINES: Final = re.compile(
    rb"\s*+(?:(?:/\*(?![!M]).*?\*/|/\*M?!\d*|(?:--|#)[^\n]*+\n)\s*+)*+(?:CREATE|ALTER|DROP|RENAME)\b",
    re.IGNORECASE | re.DOTALL,
)


def learn(engines: TableEngines, query: LoggedQuery) -> None:
    """Goes on to behind a statement; one that defines nothing changes nothing. Of what nobody understands nothing is known then."""
    if not _DEFINES.match(query.raw):
        return
    try:
        words = StatementWords(query)
        verb = words.word()
        definition = read_table_definition(query)
        if definition is not None:
            _learn_table(engines, query, definition)
        elif verb == "CREATE" and words.word(1) in ("DATABASE", "SCHEMA"):
            if words.word(2) != "IF" and not query.error:
                words.at = 2
                engines.create_schema(words.name())
        elif verb == "CREATE":
            _learn_trigger(engines, words)
        elif verb == "DROP":
            _learn_drop(engines, words)
        elif verb == "RENAME":
            _learn_rename(engines, words)
    except NotSure:
        engines.doubt(defined_names(query.raw))


def _learn_table(engines: TableEngines, query: LoggedQuery, made: TableDefinition) -> None:
    if query.error and made.verb == "CREATE":
        return
    if made.verb == "ALTER":
        if made.engine:
            engines.alter_engine(made.name, made.engine, query.thread_id)
        if made.rename is not None:
            engines.rename(made.name, made.rename, query.thread_id)
    elif made.like is not None:
        engines.create_like(made.name, made.like, query.thread_id, temporary=made.temporary)
    elif made.temporary:
        engines.create_temporary(query.thread_id, made.name, made.engine, query.server_version)
    else:
        engines.create(made.name, made.engine, query.server_version, if_not_exists=made.if_not_exists)


def _learn_trigger(engines: TableEngines, words: StatementWords) -> None:
    """CREATE [DEFINER = …] TRIGGER name BEFORE INSERT ON table FOR EACH ROW …; anything else that is created is no table."""
    words.expect("CREATE")
    words.accept("OR", "REPLACE")
    if words.accept("DEFINER"):
        words.accept("=")
        while not words.ended and words.word() not in ("TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "VIEW", "SQL"):
            words.take()
    if not words.accept("TRIGGER"):
        return
    words.accept("IF", "NOT", "EXISTS")
    name = words.table_name()
    words.take()
    words.take()
    words.expect("ON")
    table = words.table_name()
    engines.create_trigger(name, table, words.query.text[words.peek().start :])


def _learn_drop(engines: TableEngines, words: StatementWords) -> None:
    words.expect("DROP")
    temporary = words.accept("TEMPORARY")
    if words.accept("TABLE") or words.accept("TABLES"):
        words.accept("IF", "EXISTS")
        names = [words.table_name()]
        while words.accept(","):
            names.append(words.table_name())
        engines.drop(names, words.query.thread_id, temporary_only=temporary)
    elif words.accept("DATABASE") or words.accept("SCHEMA"):
        words.accept("IF", "EXISTS")
        engines.drop_schema(words.name())
    elif words.accept("TRIGGER"):
        words.accept("IF", "EXISTS")
        engines.drop_trigger(words.table_name())


def _learn_rename(engines: TableEngines, words: StatementWords) -> None:
    words.expect("RENAME")
    if not (words.accept("TABLE") or words.accept("TABLES")):
        return
    words.accept("IF", "EXISTS")
    while True:
        old = words.table_name()
        words.expect("TO")
        engines.rename(old, words.table_name(), words.query.thread_id)
        if not words.accept(","):
            return
