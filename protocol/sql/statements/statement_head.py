"""The head of a statement: what it does, and the table that it names first. The rest, which may be long or cut, is not read."""

from typing import Final, NamedTuple

from protocol.sql.kind import DEFINED_OBJECTS, DEFINING_VERBS
from protocol.sql.lexer import ReadAs, SqlToken, UnsupportedSyntax, sql_text
from protocol.sql.statements.named_tables import skip_common_tables
from protocol.sql.tables.ddl_parser import read_table_definition
from protocol.sql.tables.token_cursor import TokenCursor

_MOST_TOKENS: Final = 512
_MOST_OF_DEFINITION: Final = 50_000
_LONGEST_NAME: Final = 256
_BEFORE_TABLE: Final = ("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "QUICK")
_BEFORE_OBJECT: Final = frozenset((
    "ONLINE", "OFFLINE", "IGNORE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "AGGREGATE", "UNDO",
))  # fmt: skip
_CHANGES_ROWS: Final = frozenset(("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"))


class StatementHead(NamedTuple):
    """The head of a statement. `verb` is its first word; "": there is none. `thing` is the object of a definition, as in
    `StatementKind`. `schema`, `table` are the first table that a definition of a table or an index names, or that a change of rows
    names as its target; "": it names none. `engine` is that of a CREATE TABLE or an ALTER TABLE, or of its partitions; "": it
    names none.
    """

    verb: str = ""
    thing: str = ""
    schema: str = ""
    table: str = ""
    temporary: bool = False
    if_not_exists: bool = False
    engine: str = ""

    @property
    def changes_rows(self) -> bool:
        """True if it is INSERT, REPLACE, UPDATE, DELETE or LOAD DATA."""
        return self.verb in _CHANGES_ROWS

    @property
    def defines(self) -> bool:
        """True if it is CREATE, ALTER, DROP, RENAME or TRUNCATE."""
        return self.verb in DEFINING_VERBS


def statement_head(text: str) -> StatementHead:
    """Return the head of a statement, or of its digest text; comments for any server are read. What cannot be read is empty."""
    words = _HeadWords(_tokens(text, _MOST_TOKENS), "")
    while words.accept("("):
        pass
    verb = words.word()
    try:
        if verb == "WITH":
            skip_common_tables(words)
            verb = words.word()
        if verb in _CHANGES_ROWS:
            return StatementHead(verb, "", *words.changed_table())
        if verb in DEFINING_VERBS:
            return _definition(words, text)
    except UnsupportedSyntax:
        pass
    return StatementHead(verb)


def _tokens(text: str, most: int) -> list[SqlToken]:
    return sql_text(text, ReadAs(any_server=True, is_lenient=True, most=most)).tokens


def _definition(words: "_HeadWords", text: str) -> StatementHead:
    verb = words.take().upper
    temporary = words.modifiers()
    thing = DEFINED_OBJECTS.get(words.word(), "")
    if not thing and verb == "TRUNCATE":
        thing = "TABLE"
    else:
        words.take()
    head = StatementHead(verb, thing, temporary=temporary)
    try:
        if thing == "INDEX":
            while words.take().upper != "ON":
                pass
        elif thing != "TABLE":
            return head
        words.accept("IF", "EXISTS")
        if_not_exists = words.accept("IF", "NOT", "EXISTS")
        schema, table = words.name_of_table()
    except UnsupportedSyntax:
        return head
    engine = _engine(text) if thing == "TABLE" and verb in ("CREATE", "ALTER") else ""
    return StatementHead(verb, thing, schema, table, temporary, if_not_exists, engine)


def _engine(text: str) -> str:
    try:
        tokens = _tokens(text, _MOST_OF_DEFINITION)
        made = read_table_definition(tokens, "", "?", 0, "", lambda token: token.text)
    except UnsupportedSyntax:
        return ""
    if made is None:
        return ""
    engine = made.engine or next((one.text for one in made.written.engines), "")
    return "" if engine == "?" else engine


class _HeadWords(TokenCursor):
    """A cursor over the words of a statement whose names are read already."""

    def text_of(self, token: SqlToken) -> str:
        """Return the text of a name."""
        return token.text

    def modifiers(self) -> bool:
        """Take what may be between the verb of a definition and its object. Return True if TEMPORARY is there."""
        temporary = False
        while True:
            if self.accept("TEMPORARY"):
                temporary = True
            elif self.word() in _BEFORE_OBJECT or self.accept("ALGORITHM", "=") or self.accept("SQL", "SECURITY"):
                self.take()
            elif self.accept("DEFINER", "="):
                self._account()
            elif not self.accept("OR", "REPLACE"):
                return temporary

    def _account(self) -> None:
        self.take()
        if self.accept("@"):
            self.take()
        elif self.word() == "(":
            self.skip_brackets()

    def changed_table(self) -> tuple[str, str]:
        """Read (schema or "", table) of a statement that changes rows."""
        verb = self.take().upper
        if verb == "LOAD":
            if self.word() not in ("DATA", "XML"):
                return "", ""
            while not self.accept("INTO", "TABLE"):
                self.take()
        else:
            self.accept_any(*_BEFORE_TABLE)
            if verb == "DELETE":
                self.accept("FROM")
            elif verb != "UPDATE":
                self.accept("INTO")
        return self.name_of_table()

    def name_of_table(self) -> tuple[str, str]:
        """Read (schema or "", table)."""
        schema, name = "", self.name()
        if self.accept(".") and self.word() != "*":
            schema, name = name, self.name()
        if max(len(schema), len(name)) > _LONGEST_NAME:
            raise UnsupportedSyntax("a name that is too long")
        return schema, name
