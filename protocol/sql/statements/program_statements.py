"""The reader of statements that create, alter or drop views, triggers, functions and procedures, up to their bodies."""

from typing import Final, NamedTuple

from protocol.sql.lexer import SqlToken, UnsupportedSyntax
from protocol.sql.statements.statement import SqlStatement
from protocol.sql.statements.statement_words import StatementWords
from protocol.sql.tables.source_table import TableName

VIEW: Final = "VIEW"
TRIGGER: Final = "TRIGGER"
ROUTINES: Final = ("FUNCTION", "PROCEDURE")
_KINDS: Final = (VIEW, TRIGGER, *ROUTINES)
_BEFORE_KIND: Final = (*_KINDS, "EVENT", "SQL")


class WrittenProgram(NamedTuple):
    """A view, trigger, function or procedure as a statement defines it. `kind` is VIEW, TRIGGER, FUNCTION or PROCEDURE.

    `name` is None for a function of a shared library, which is in no schema. `event` and `table` are those of a trigger. `body` is the
    index of the first token of its body, -1: it has none; `parameters` that of the bracket before a routine's parameters.
    """

    kind: str
    name: TableName | None
    event: str = ""
    table: TableName | None = None
    body: int = -1
    parameters: int = -1


class DroppedPrograms(NamedTuple):
    """DROP of views, of a trigger, a function or a procedure."""

    kind: str
    names: tuple[TableName, ...]


def read_program(query: SqlStatement) -> WrittenProgram | DroppedPrograms | None:
    """Read CREATE, ALTER VIEW or DROP; None: it is a statement about something else. Raises: UnsupportedSyntax."""
    words = StatementWords(query)
    if words.accept("CREATE"):
        words.accept("OR", "REPLACE")
        return _created(words)
    if words.accept("ALTER"):
        _pass_attributes(words)
        return WrittenProgram(VIEW, words.table_name()) if words.accept(VIEW) else None
    return _dropped(words) if words.accept("DROP") else None


def body_of(query: SqlStatement, program: WrittenProgram) -> list[SqlToken]:
    """Return the tokens of its body."""
    return query.tokens[program.body :] if program.body >= 0 else []


def _pass_attributes(words: StatementWords) -> None:
    """Pass ALGORITHM, DEFINER and SQL SECURITY."""
    if words.accept("ALGORITHM", "="):
        words.take()
    if words.accept("DEFINER"):
        words.accept("=")
        while not words.ended and words.word() not in _BEFORE_KIND:
            words.take()
    if words.accept("SQL", "SECURITY"):
        words.take()


def _created(words: StatementWords) -> WrittenProgram | None:
    _pass_attributes(words)
    kind = words.word()
    if kind not in _KINDS:
        return None
    words.take()
    words.accept("IF", "NOT", "EXISTS")
    if kind == VIEW:
        return WrittenProgram(kind, words.table_name())
    if kind == TRIGGER:
        name = words.table_name()
        words.take()
        event = words.take().upper
        words.expect("ON")
        return WrittenProgram(kind, name, event, words.table_name(), words.at)
    routine = _routine_name(words)
    if routine is None or words.word() != "(":
        return WrittenProgram(kind, None)
    parameters = words.at
    words.skip_brackets()
    return WrittenProgram(kind, routine, body=words.at, parameters=parameters)


def _dropped(words: StatementWords) -> DroppedPrograms | None:
    kind = words.word()
    if kind not in _KINDS:
        return None
    words.take()
    words.accept("IF", "EXISTS")
    if kind in ROUTINES:
        name = _routine_name(words)
        return DroppedPrograms(kind, () if name is None else (name,))
    names = [words.table_name()]
    while kind == VIEW and words.accept(","):
        names.append(words.table_name())
    return DroppedPrograms(kind, tuple(names))


def _routine_name(words: StatementWords) -> TableName | None:
    """Return the routine's name; None: it is in no schema, as functions of shared libraries are."""
    try:
        return words.table_name()
    except UnsupportedSyntax:
        return None
