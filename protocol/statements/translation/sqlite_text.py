"""Translates a SELECT of MySQL's for SQLite: only the spelling, as nothing is evaluated but variables and the clock.

Strings become parameters and names are quoted, so no part of the statement is ever taken for something else there. Which tables
exist, and who may read them, is decided by the caller who runs the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from protocol.errors import ErrorCode, StatementRefused
from protocol.resultset import Value
from protocol.sql.server_functions import TIME_UNITS
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.functions import FUNCTIONS, WITHOUT_PARENTHESES
from protocol.statements.expression.tokens import Kind, Token
from protocol.statements.session.refusals import shown
from protocol.statements.session.system_variables import read_variable
from protocol.statements.translation.labels import labelled, names_column
from protocol.statements.translation.sqlite_words import (
    AGGREGATES,
    FUNCTIONS_OF_TABLES,
    KEYWORDS,
    OPTIONS,
    REFUSED,
    TYPES,
)

_STEPS_A_TOKEN: Final = 120
_MOST_DEPTH: Final = 32
_MOST_TABLES: Final = 16
_MOST_ITEMS: Final = 256
_IDENTIFIERS: Final = (Kind.WORD, Kind.NAME)
_ENDS_ITEMS: Final = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION")
_PLAIN_SYMBOLS: Final = "+-*%&|~<>=.,"
# They are spelled as in a statement, one character a token, without anything between them.
_OPERATORS: Final = {
    "<=>": "IS", "<=": "<=", ">=": ">=", "<>": "<>", "!=": "<>", "<<": "<<", ">>": ">>", "&&": "AND", "||": "OR",
}  # fmt: skip
# The name of a table in FROM of those who ask for none: without a schema it is no table.
_DUAL: Final = "DUAL"
TableName = tuple[str, str]
"""(schema, table), lower case."""


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of the result. `label` is its name, chosen if `has_alias`. `of` is the table's column that it shows, lower case;
    empty: it is computed. `function` is the one that is applied to that column, or to an expression; empty: none. `number` is the
    type of a computed column if no value shows it.
    """

    label: str
    of: str = ""
    function: str = ""
    number: Literal["", "integer", "decimal", "real"] = ""
    has_alias: bool = False


@dataclass(frozen=True, slots=True)
class SqliteText:
    """A SELECT for SQLite. `columns` is None if a star means some of them. `named` is the TABLE_SCHEMA and TABLE_NAME, in lower case,
    of all rows in the result; empty: any.
    """

    text: str
    parameters: tuple[Value, ...]
    tables: tuple[TableName, ...]
    columns: tuple[ResultColumn, ...] | None
    named: TableName = ("", "")


@dataclass(slots=True)
class _Frame:
    """An open part: a SELECT, a list of tables in parentheses, a call, or parentheses around something else."""

    kind: Literal["select", "tables", "call", "other"]
    clause: Literal["items", "tables", "rest"] = "rest"
    expects_table: bool = False
    function: str = ""
    is_distinct: bool = False


@dataclass(slots=True)
class _Translation:
    """One statement while it is translated."""

    statement: Statement
    parameters: list[Value] = field(default_factory=list)
    tables: list[TableName] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    frames: list[_Frame] = field(default_factory=list)

    def translate(self, tokens: Sequence[Token], frame: _Frame) -> str:
        """Return the text of tokens in which all parentheses are closed."""
        self.statement.session.effort.spend(_STEPS_A_TOKEN * len(tokens))
        self.words = []
        self.frames = [frame]
        index = 0
        while index < len(tokens):
            index = self._step(tokens, index)
        if len(self.frames) != 1 or self.frames[0].expects_table:
            raise self.statement.refuse(())
        return " ".join(word for word in self.words if word)

    def parameter(self, value: Value) -> str:
        """Add a parameter with this value, and return its placeholder."""
        self.parameters.append(int(value) if isinstance(value, bool) else value)
        return f"?{len(self.parameters)}"

    # --- one token ----------------------------------------------------------------------------------------------------

    def _step(self, tokens: Sequence[Token], index: int) -> int:
        """Take one token, or a few, and return the index after them."""
        token = tokens[index]
        if token.kind is Kind.STRING:
            self.words.append(self.parameter(token.text))
            if index and tokens[index - 1].is_word("LIKE") and not _is(tokens, index + 1, "ESCAPE"):
                self.words.append("ESCAPE '\\'")
        elif token.kind is Kind.NUMBER:
            if not token.text.isdecimal():
                self.statement.evaluate((token,))  # refuses numbers that are none in a server
            self.words.append(token.text)
        elif token.kind is Kind.USER_VARIABLE:
            self.words.append(self.parameter(self.statement.session.user_variables.get(token.text.lower())))
        elif token.kind is Kind.SYSTEM_VARIABLE:
            self.words.append(self.parameter(read_variable(token.text, token.scope, self.statement.session).value))
        elif token.kind is Kind.SYMBOL:
            return self._symbol(tokens, index)
        elif self.frames[-1].expects_table and not token.is_word("SELECT"):
            return self._table(tokens, index)
        elif token.kind is Kind.NAME or (index and tokens[index - 1].is_symbol(".")):
            self.words.append(_quoted(token.text))
        else:
            return self._word(tokens, index)
        return index + 1

    def _symbol(self, tokens: Sequence[Token], index: int) -> int:
        token, frame = tokens[index], self.frames[-1]
        if token.is_symbol("("):
            if len(self.frames) > _MOST_DEPTH:
                raise self.statement.refuse(tokens[index:])
            is_select = _is(tokens, index + 1, "SELECT")
            if frame.expects_table and not is_select:
                self.frames.append(_Frame("tables", "tables", expects_table=True))
            else:
                self.frames.append(_Frame("select" if is_select else "other"))
            frame.expects_table = False
            self.words.append("(")
            return index + 1
        if token.is_symbol(")"):
            if len(self.frames) == 1 or frame.expects_table:
                raise self.statement.refuse(tokens[index:])
            self.frames.pop()
            self.words.append(")")
            return index + 1
        for length in (3, 2):
            run = tokens[index : index + length]
            spelled = "".join(part.text for part in run if part.kind is Kind.SYMBOL)
            if spelled in _OPERATORS and run[-1].stop - token.start == length:
                self.words.append(_OPERATORS[spelled])
                return index + length
        if token.is_symbol(","):
            if frame.clause == "tables":
                frame.expects_table = True
            if frame.function == "CONVERT":
                return self._type(tokens, index + 1)
        if token.is_symbol("/"):
            self.words.append("* 1.0 /")
        elif token.is_symbol("!"):
            self.words.append("NOT")
        elif token.text in _PLAIN_SYMBOLS:
            self.words.append(token.text)
        else:
            raise self.statement.refuse(tokens[index:])
        return index + 1

    def _word(self, tokens: Sequence[Token], index: int) -> int:
        token, frame = tokens[index], self.frames[-1]
        word = token.text.upper()
        is_called = index + 1 < len(tokens) and tokens[index + 1].is_symbol("(")
        if is_called and (word not in KEYWORDS or (word in FUNCTIONS_OF_TABLES and word != "BINARY")):
            return self._call(tokens, index, word)
        if frame.function == "GROUP_CONCAT" and word in ("ORDER", "SEPARATOR"):
            return self._separator(tokens, index)
        if frame.function in ("DATE_ADD", "DATE_SUB") and word == "INTERVAL":
            return index + 1
        if frame.function in ("DATE_ADD", "DATE_SUB", "TIMESTAMPDIFF") and word in TIME_UNITS:
            comma = [] if frame.function == "TIMESTAMPDIFF" else [","]
            self.words += [*comma, self.parameter(word)]
            return index + 1
        if frame.function in ("CAST", "CONVERT") and word in ("AS", "USING"):
            return self._type(tokens, index + 1)
        if word in REFUSED:
            raise self.statement.refuse(tokens[index:])
        if word in WITHOUT_PARENTHESES:
            self.words.append(self.parameter(self.statement.evaluate((token,)).value))
        elif word == "COLLATE":
            return index + 2
        elif frame.clause == "items" and word in OPTIONS and index and tokens[index - 1].is_word("SELECT"):
            pass
        elif word in KEYWORDS:
            self._keyword(tokens, index, word, frame)
        else:
            self.words.append(_quoted(token.text))
        return index + 1

    def _keyword(self, tokens: Sequence[Token], index: int, word: str, frame: _Frame) -> None:
        if word == "IN" and not (index + 1 < len(tokens) and tokens[index + 1].is_symbol("(")):
            raise self.statement.refuse(tokens[index + 1 :])
        if frame.kind in ("call", "other") and word in ("FROM", "JOIN", "STRAIGHT_JOIN"):
            raise self.statement.refuse(tokens[index:])
        if word == "SELECT":
            if frame.kind != "select":
                raise self.statement.refuse(tokens[index:])
            frame.clause, frame.expects_table = "items", False
        elif word == "FROM":
            frame.clause, frame.expects_table = "tables", True
        elif word in ("JOIN", "STRAIGHT_JOIN"):
            frame.expects_table = True
        elif word in ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION"):
            frame.clause = "rest"
        elif word.startswith("DISTINCT") and frame.kind == "call":
            frame.is_distinct = True
        self.words.append(KEYWORDS[word])

    # --- tables -------------------------------------------------------------------------------------------------------

    def _table(self, tokens: Sequence[Token], index: int) -> int:
        """Translate the name of a table, with or without its schema."""
        token, frame = tokens[index], self.frames[-1]
        if token.kind is Kind.WORD and (token.text.upper() in KEYWORDS or token.text.upper() in REFUSED):
            raise self.statement.refuse(tokens[index:])
        frame.expects_table = False
        if index + 1 < len(tokens) and tokens[index + 1].is_symbol("."):
            if index + 2 >= len(tokens) or tokens[index + 2].kind not in _IDENTIFIERS:
                raise self.statement.refuse(tokens[index + 2 :])
            name, stop = (token.text.lower(), tokens[index + 2].text.lower()), index + 3
        elif token.is_word(_DUAL):
            self.words.append("(SELECT 1)")
            return index + 1
        else:
            # Without a database the schema is empty: whoever runs the text gives a server's answer then.
            name, stop = ((self.statement.session.database or "").lower(), token.text.lower()), index + 1
        if len(self.tables) >= _MOST_TABLES:
            raise self.statement.refuse(tokens[index:])
        self.tables.append(name)
        self.words.append(f"{_quoted(name[0])}.{_quoted(name[1])}")
        return stop

    # --- functions ----------------------------------------------------------------------------------------------------

    def _call(self, tokens: Sequence[Token], index: int, name: str) -> int:
        constant = FUNCTIONS.get(name)
        closing = next((at for at in (index + 2, index + 3) if at < len(tokens) and tokens[at].is_symbol(")")), 0)
        if constant is not None and name not in FUNCTIONS_OF_TABLES | {"UNIX_TIMESTAMP": ""} and closing:
            call = tokens[index : closing + 1]
            if len(call) == 3 or call[2].kind is Kind.NUMBER:
                self.words.append(self.parameter(self.statement.evaluate(call).value))
                return closing + 1
        if name == "UNIX_TIMESTAMP" and closing == index + 2:
            self.words.append(self.parameter(int(self.statement.now_s)))
            return closing + 1
        is_missing = constant is not None and constant.of_mysql and self.statement.session.facts.is_mariadb
        if name not in FUNCTIONS_OF_TABLES or is_missing:
            raise StatementRefused(
                ErrorCode.ER_SP_DOES_NOT_EXIST, f"FUNCTION {shown(tokens[index].text, 64)} does not exist"
            )
        if len(self.frames) > _MOST_DEPTH:
            raise self.statement.refuse(tokens[index:])
        self.frames.append(_Frame("call", function=name))
        spelled = FUNCTIONS_OF_TABLES[name]
        self.words += [spelled if spelled == "CAST" else _quoted(spelled), "("]
        return index + 2

    def _separator(self, tokens: Sequence[Token], index: int) -> int:
        """Translate what follows the value in GROUP_CONCAT: the order of the values is not kept."""
        depth = 0
        while index < len(tokens):
            token = tokens[index]
            depth += token.is_symbol("(") - token.is_symbol(")")
            if depth < 0:
                return index
            if token.is_word("SEPARATOR") and _kind(tokens, index + 1) is Kind.STRING:
                if not self.frames[-1].is_distinct:
                    self.words += [",", self.parameter(tokens[index + 1].text)]
                index += 1
            index += 1
        return index

    def _type(self, tokens: Sequence[Token], index: int) -> int:
        """Translate the type that CAST or CONVERT makes; USING a character set is text."""
        made = "TEXT" if tokens[index - 1].is_word("USING") else ""
        while index < len(tokens):
            token = tokens[index]
            if token.is_symbol("("):
                index = next((at for at in range(index, len(tokens)) if tokens[at].is_symbol(")")), len(tokens))
            elif token.is_symbol(")"):
                break
            elif not made:
                made = TYPES.get(token.text.upper(), "")
            index += 1
        if not made:
            raise self.statement.refuse(tokens[index:])
        self.words += ["AS", made]
        return index


def sqlite_text(statement: Statement, tokens: Sequence[Token]) -> SqliteText:
    """Return the SELECT with these tokens after that word.

    Raises: StatementRefused for what is not understood (1064, 1305), and for variables that do not exist (1193).
    """
    translation = _Translation(statement)
    distinct = ""
    while tokens and tokens[0].kind is Kind.WORD and tokens[0].text.upper() in (*OPTIONS, "DISTINCT", "DISTINCTROW"):
        distinct = distinct or ("DISTINCT" if tokens[0].text.upper().startswith("DISTINCT") else "")
        tokens = tokens[1:]
    end = _end_of_items(tokens)
    items: list[str] = []
    columns: list[ResultColumn] = []
    has_star = False
    for item in _split(statement, tokens[:end]):
        if not item:
            raise statement.refuse(tokens[end:])
        if item[-1].is_symbol("*") and (len(item) == 1 or item[-2].is_symbol(".")):
            has_star = True
            items.append(translation.translate(item, _Frame("select", "items")))
            continue
        expression, label = labelled(statement, item)
        text = translation.translate(expression, _Frame("select", "items"))
        items.append(f"{text} AS {_quoted(label)}")
        columns.append(replace(_column(expression, label), has_alias=len(expression) < len(item)))
    rest = translation.translate(tokens[end:], _Frame("select", "rest"))
    text = " ".join(part for part in ("SELECT", distinct, ", ".join(items), rest) if part)
    return SqliteText(
        text,
        tuple(translation.parameters),
        tuple(translation.tables),
        None if has_star else tuple(columns),
        _named(statement, tokens[end:]) if len(translation.tables) == 1 else ("", ""),
    )


def _named(statement: Statement, tokens: Sequence[Token]) -> TableName:
    """Return the schema and table that conditions require of all rows. Readers of binlogs ask like this."""
    if sum(token.is_word("SELECT") for token in statement.tokens) > 1:
        return "", ""
    if any(token.is_word("OR", "XOR", "BETWEEN", "CASE", "UNION") or token.is_symbol("|") for token in tokens):
        return "", ""
    found = {"table_schema": "", "table_name": ""}
    begin = next((at for at, token in enumerate(tokens) if token.is_word("WHERE")), len(tokens))
    part: list[Token] = []
    for token in (*tokens[begin + 1 :], None):
        if token is not None and not token.is_word("AND", "GROUP", "HAVING", "ORDER", "LIMIT"):
            part.append(token)
            continue
        plain = part[2:] if len(part) == 5 and part[1].is_symbol(".") else part
        if len(plain) == 3 and plain[1].is_symbol("=") and plain[2].is_text and plain[0].text.lower() in found:
            found[plain[0].text.lower()] = plain[2].text.lower()
        if token is None or not token.is_word("AND"):
            break
        part = []
    return found["table_schema"], found["table_name"]


def sqlite_condition(statement: Statement, tokens: Sequence[Token], first: int) -> tuple[str, tuple[Value, ...]]:
    """Return the condition after WHERE, as text and its parameters, numbered from `first` on. Raises: StatementRefused."""
    translation = _Translation(statement, parameters=[None] * (first - 1))
    text = translation.translate(tokens, _Frame("other"))
    if translation.tables or not text:
        raise statement.refuse(tokens)
    return text, tuple(translation.parameters[first - 1 :])


def _end_of_items(tokens: Sequence[Token]) -> int:
    depth = 0
    for index, token in enumerate(tokens):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.is_word(*_ENDS_ITEMS) and not (index and tokens[index - 1].is_symbol(".")):
            return index
    return len(tokens)


def _split(statement: Statement, tokens: Sequence[Token]) -> list[Sequence[Token]]:
    parts: list[Sequence[Token]] = []
    depth = start = 0
    for index, token in enumerate(tokens):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.is_symbol(","):
            parts.append(tokens[start:index])
            start = index + 1
    parts.append(tokens[start:])
    if len(parts) > _MOST_ITEMS:
        raise statement.refuse(tokens)
    return parts


def _column(expression: Sequence[Token], label: str) -> ResultColumn:
    if names_column(expression):
        return ResultColumn(label, expression[-1].text.lower())
    if len(expression) > 3 and expression[1].is_symbol("(") and expression[-1].is_symbol(")"):
        name = expression[0].text.upper() if expression[0].kind is Kind.WORD else ""
        inner = expression[2:-1]
        if name in AGGREGATES and _closes_at_end(expression):
            return ResultColumn(
                label, inner[-1].text.lower() if names_column(inner) else "", name, _number_of(expression)
            )
    return ResultColumn(label, number=_number_of(expression))


def _number_of(expression: Sequence[Token]) -> Literal["", "integer", "decimal", "real"]:
    """Return the kind of number of an expression, by its functions and signs."""
    words = {token.text.upper() for token in expression if token.kind is Kind.WORD}
    if words & {"POW", "POWER"}:
        return "real"
    if words & {"SUM", "AVG"} or any(token.is_symbol("/") for token in expression):
        return "decimal"
    return "integer" if any(token.is_symbol("+", "-", "*", "&", "|", "%") for token in expression) else ""


def _closes_at_end(expression: Sequence[Token]) -> bool:
    """Return whether the parenthesis after its first token is closed by its last one."""
    depth = 0
    for token in expression[1:-1]:
        depth += token.is_symbol("(") - token.is_symbol(")")
        if not depth:
            return False
    return expression[-1].is_symbol(")")


def _is(tokens: Sequence[Token], index: int, word: str) -> bool:
    return index < len(tokens) and tokens[index].is_word(word)


def _kind(tokens: Sequence[Token], index: int) -> Kind | None:
    return tokens[index].kind if index < len(tokens) else None


def _quoted(name: str) -> str:
    """Return a name for SQLite; in back quotes it is never taken for a string."""
    return "`" + name.replace("`", "``").replace("\0", "") + "`"
