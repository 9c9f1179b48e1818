"""ALTER TABLE that converts the values of a column: replicas convert them themselves, also where the source logs rows."""

from protocol.errors import ProtocolError
from protocol.sql.expressions.constructs import UsedConstruct
from protocol.sql.expressions.readers.column_scope import kind_of_type
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.sql_mode import STRICT
from protocol.sql.survey.value_class import ANY
from protocol.sql.tables.ddl_statement import AlterTable, ChangeColumn
from relay.view.rules.judged.known_source import KnownSource
from relay.view.rules.judged.statement_judge import StatementJudge
from relay.view.rules.statement.logged_query import LoggedQuery


def check_conversions(query: LoggedQuery, known: KnownSource, judge: StatementJudge) -> None:
    """Check each MODIFY and CHANGE that gives a column another type. Raises: Untranslatable."""
    if query.kind.verb != "ALTER":
        return
    try:
        made = query.definition
    except (UnsupportedSyntax, ProtocolError):
        return
    if not isinstance(made, AlterTable):
        return
    columns = known.columns_of(made.name)
    for clause in made.clauses:
        if not isinstance(clause, ChangeColumn):
            continue
        kind = kind_of_type(clause.definition.column.type)
        before = columns.get(clause.old.lower()) if columns is not None else None
        if before is not None and before.kind == kind:
            continue
        classes = before.classes if before is not None else ANY
        unknown = frozenset((made.name,)) if columns is None else frozenset()
        judge.judge_one(query, UsedConstruct(f"convert {kind}", (classes,), 0, unknown, bool(query.sql_mode & STRICT)))
