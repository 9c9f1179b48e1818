"""Reads the values of an expression: literals, columns, variables, CASE, INTERVAL and the calls of functions."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from protocol.sql.brackets import Brackets
from protocol.sql.expressions.constructs import (
    ANYTHING,
    NO_TABLES,
    NULL,
    Classes,
    Operand,
    StatementConstructs,
    UsedConstruct,
    joined,
)
from protocol.sql.expressions.function_results import DAYS_AND_MOMENTS, TRUTH, ZERO, moved, result_of, result_of_cast
from protocol.sql.expressions.literal_calls import (
    call_alike,
    formats_no_offset,
    is_after_timestamps,
    is_small,
    with_dates,
)
from protocol.sql.expressions.literals import (
    BARE_FUNCTIONS,
    ODBC,
    RESERVED,
    TEMPORAL,
    UNITS,
    introduced,
    is_introducer,
    number_or_string,
    prefixed,
    temporal,
    word_literal,
)
from protocol.sql.expressions.number_forms import NumberForms
from protocol.sql.expressions.readers.column_scope import ColumnScope
from protocol.sql.lexer import SqlToken, TokenKind, UnsupportedSyntax, is_name, with_variables
from protocol.sql.server_functions import AGGREGATE_FUNCTIONS, NOT_OF_VERSIONS, functions_of
from protocol.sql.sql_mode import NO_ZERO_DATE, NO_ZERO_IN_DATE, PIPES_AS_CONCAT, STRICT
from protocol.sql.statements.statement import SqlStatement
from protocol.sql.survey.value_class import ANY, TEXTS, ValueClass
from protocol.sql.tables.token_cursor import TokenCursor

_ARGUMENT_WORDS: Final = frozenset(
    ("DISTINCT", "DISTINCTROW", "ALL", "BOTH", "LEADING", "TRAILING", "FROM", "FOR", "SEPARATOR")
)
_BY_DAYS: Final = frozenset(("ADDDATE", "SUBDATE"))
_TAKES_UNIT: Final = frozenset(("TIMESTAMPADD", "TIMESTAMPDIFF", "EXTRACT"))
_SET_BY_COLUMN: Final = frozenset(("VALUES", "VALUE", "DEFAULT"))
_FORMATS: Final = frozenset(("DATE", "TIME", "DATETIME", "TIMESTAMP"))
_ZERO: Final = frozenset((ValueClass.DATE_ZERO,))
_OFFSET: Final = frozenset((ValueClass.TEXT_OFFSET,))
_OF_ZERO_DATES: Final = frozenset(("DATE()", "TIMESTAMP()", "CAST AS DATE", "CAST AS DATETIME"))
"""What gives NULL for a date with zeros since 8.0, under modes that forbid these: without such a mode all servers give the date."""
_OF_BITS: Final = frozenset(("&", "|", "^", "~", "<<", ">>", "BIT_COUNT()", "BIT_AND()", "BIT_OR()", "BIT_XOR()"))
_BYTES: Final = frozenset((ValueClass.BYTES,))
_LARGE: Final = frozenset((ValueClass.UNSIGNED,))
_OF_BYTES: Final = frozenset((ValueClass.HEX, ValueClass.BYTES))
_NUMBERS: Final = frozenset(
    (ValueClass.NULL, ValueClass.INTEGER, ValueClass.NEGATIVE, ValueClass.UNSIGNED, ValueClass.DECIMAL)
)


class ValueReader(TokenCursor):
    """A cursor that reads the values of expressions of `query`. `variables` are the classes of user variables, by name in lower case,
    as events before the statement give them. What it cannot read raises UnsupportedSyntax.
    """

    def __init__(self, query: SqlStatement, tokens: Sequence[SqlToken], variables: Mapping[str, Operand]) -> None:
        super().__init__(with_variables(list(tokens)), query.schema)
        self.query = query
        self.made = StatementConstructs()
        self._forms = NumberForms()
        self.scope = ColumnScope()
        self.brackets = Brackets(self.tokens)
        self.assigned: dict[str, Operand] = {}
        """User variables that the statement itself assigns."""
        self.assigns = 0
        """How many times it does."""
        self.unordered_lists = 0
        """How many GROUP_CONCAT have no ORDER BY."""
        self.results: Callable[[str, Sequence[Classes]], Classes] | None = None
        """Returns what constructs give that are in no table here."""
        self.folded: dict[int, int] = {}
        """The runs of literal rows that are not among the tokens: where each begins and stops in the text."""
        self._variables = variables
        self._functions = functions_of(query.server_version)
        self.concatenates = bool(query.sql_mode & PIPES_AS_CONCAT)
        self._takes_zero_dates = not query.sql_mode & (NO_ZERO_DATE | NO_ZERO_IN_DATE)
        self.is_strict = bool(query.sql_mode & STRICT)

    def text_of(self, token: SqlToken) -> str:
        """Implement `TokenCursor.text_of`. A name that cannot be read means a table or a column of which nothing is known."""
        try:
            return self.query.name(token)
        except UnsupportedSyntax:
            return token.text

    @abstractmethod
    def expression(self) -> Operand:
        """Read an expression."""

    @abstractmethod
    def operand(self) -> Operand:
        """Read an expression up to a comparison, a predicate or a word such as AND."""

    @abstractmethod
    def read_query(self) -> Operand:
        """Read a query from its first word on, up to the bracket that closes it; return what its rows are."""

    def finish(self) -> StatementConstructs:
        """Return what was read, at its end."""
        self.made.used = self._forms.applied(self.made.used)
        return self.made

    def begins_query(self, ahead: int = 0) -> bool:
        """Return whether a query begins there."""
        word, following = self.word(ahead), self.peek(ahead + 1)
        if word == "TABLE":
            return is_name(following)
        return word in ("SELECT", "WITH") or (word == "VALUES" and following.upper == "ROW")

    def use(self, name: str, operands: Sequence[Operand], at: int | None = None, cannot_fail: int = 0) -> Operand:
        """Note a construct, and return its result."""
        token = self.peek() if at is None else self.tokens[at]
        given = operands
        if self._takes_zero_dates and any(one.is_zero for one in operands):
            operands = with_dates(name, operands)
        if name in _OF_BITS and any(one.is_bytes for one in operands):
            operands = [one._replace(classes=_BYTES) if one.is_bytes else one for one in operands]
        unknown = NO_TABLES.union(*(one.unknown for one in operands))
        arguments = tuple(map(_of_its_type, operands))
        if name in _OF_ZERO_DATES and len(arguments) == 1 and self._takes_zero_dates:
            arguments = (arguments[0] - _ZERO or arguments[0],)
        self.made.used.append(UsedConstruct(name, arguments, token.start, unknown, self.is_strict, cannot_fail))
        made = result_of(name, given)._replace(is_zero=False)
        if len(made.classes) == len(ANY) and self.results is not None:
            made = Operand(self.results(name, [_of_its_type(one) for one in operands]))
        return self._forms.note(name, operands, made, len(self.made.used) - 1)

    def in_brackets(self) -> Operand:
        """Read a query or an expression in brackets."""
        self.expect("(")
        made = self.read_query()._replace(is_zero=False, below=0) if self.begins_query() else self.expression()
        self.expect(")")
        return made

    def value(self) -> Operand:
        """Read a value: a literal, a column, a variable, a call or what is in brackets."""
        token, following = self.peek(), self.peek(1)
        if token.kind is TokenKind.NUMBER:
            self.take()
            return number_or_string(token)
        if token.kind is TokenKind.STRING:
            return self._string()
        if token.kind is TokenKind.VARIABLE:
            return self._variable()
        if token.kind is TokenKind.SYMBOL:
            return self._bracket()
        if token.kind is TokenKind.END:
            raise UnsupportedSyntax("an expression that ends early")
        if token.kind is TokenKind.NAME:
            return self._named()
        literal = word_literal(token.upper)
        if literal is not None and following.upper != "(":
            self.take()
            return literal
        if is_introducer(token, following, self.peek(2)):
            return self._introduced()
        if (text := prefixed(token, following)) is not None:
            self.take()
            given = self._string()
            return text if text.classes <= _OF_BYTES else given
        if token.upper in TEMPORAL and following.kind is TokenKind.STRING:
            return self._temporal()
        return self._word(token, following)

    def _introduced(self) -> Operand:
        """Read a hexadecimal or binary literal with its character set."""
        charset, first = self.take().upper, self.take()
        if first.kind is TokenKind.NUMBER:
            return introduced(charset, first.text[2:], is_hex=first.text[1] == "x")
        return introduced(charset, self.take().text, is_hex=first.upper == "X")

    def _string(self) -> Operand:
        """Read a string, which may continue in others beside it."""
        first = self.take()
        begin = self.at - 1
        while self.kind is TokenKind.STRING:
            self.take()
        return number_or_string(first._replace(text=self._text_since(begin)))

    def _text_since(self, begin: int) -> str:
        return "".join(one.text for one in self.tokens[begin : self.at])

    def _temporal(self) -> Operand:
        """Read a literal such as DATE '2020-01-31'."""
        at, kind = self.at, self.take().upper
        text = self._string()
        made = temporal(kind, self._text_since(at + 1))
        if made is not None:
            return made
        self.use(f"{kind} literal", (text,), at)
        return Operand(TEMPORAL[kind], is_literal=True)

    def _of_odbc(self) -> Operand:
        """Read a literal such as {d '2020-01-31'}. Of another text servers make none."""
        self.expect("{")
        kind = self.take().upper
        begin = self.at
        if kind in ODBC and self.kind is TokenKind.STRING:
            self._string()
            made = temporal(ODBC[kind], self._text_since(begin))
            if made is not None and self.accept("}"):
                return made
        raise UnsupportedSyntax(f"{{{kind.lower()} where a value is expected")

    def _word(self, token: SqlToken, following: SqlToken) -> Operand:
        word = token.upper
        if word == "CASE":
            return self._case()
        if word == "INTERVAL":
            return self._interval()
        if word == "EXISTS" and following.upper == "(":
            self.take()
            self.in_brackets()
            return Operand(TRUTH)
        if word == "MATCH" and following.upper != ".":
            return self._match()
        if word == "ROW" and following.upper == "(":
            self.take()
            return self._bracket()
        if word in BARE_FUNCTIONS and following.upper != "(":
            self.take()
            return self._result(word, [], self.at - 1)
        if word == "DEFAULT" and following.upper != "(":
            self.take()
            return ANYTHING._replace(is_literal=True)
        if word in RESERVED and following.upper not in ("(", "."):
            raise UnsupportedSyntax(f"{token.text} where a value is expected")
        return self._named()

    def _named(self) -> Operand:
        """Read a column or the call of a function."""
        at = self.at
        names = [self.take()]
        while self.word() == "." and is_name(self.peek(1)):
            self.take()
            names.append(self.take())
        if self.word() == "(":
            return self._called(names, at)
        texts = [self.text_of(one).lower() for one in names]
        return self.scope.column(texts[-1], texts[-2] if len(texts) > 1 else "")

    def _bracket(self) -> Operand:
        if self.word() == "\\" and self.word(1) == "N":
            self.at += 2
            return NULL
        if self.word() == "{":
            return self._of_odbc()
        if self.word() != "(":
            raise UnsupportedSyntax(f"{self.peek().text} where a value is expected")
        if self.begins_query(1) or (self.word(1) == "(" and self._opens_query()):
            return self.in_brackets()
        self.expect("(")
        parts = [self.expression()]
        while self.accept(","):
            parts.append(self.expression())
        self.expect(")")
        return parts[0] if len(parts) == 1 else joined(parts)._replace(parts=tuple(parts))

    def _opens_query(self) -> bool:
        ahead = 1
        while self.word(ahead) == "(":
            ahead += 1
        after = self.tokens[min(self.brackets.closing(self.at + 1) + 1, len(self.tokens) - 1)]
        return self.begins_query(ahead) and after.upper in (")", "UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT")

    def _variable(self) -> Operand:
        token = self.take()
        name = token.text[1:].lower()
        if self.word() == ":" and self.word(1) == "=":
            self.at += 2
            given = self.expression()
            self.assigns += 1
            self._forms.note_text(given)
            known = self.assigned.get(name)
            self.assigned[name] = joined((known, given)) if known is not None else given
            return given._replace(is_literal=False)
        if name.startswith("@"):
            return ANYTHING
        given = self._variables.get(name, NULL)
        if name in self.assigned:
            return joined((given, self.assigned[name]))._replace(is_literal=False)
        return given if name in self._variables else ANYTHING

    def _case(self) -> Operand:
        at = self.at
        self.expect("CASE")
        subject = self.expression() if self.word() != "WHEN" else None
        whens: list[tuple[Operand, Operand]] = []
        while self.accept("WHEN"):
            when = self.expression()
            self.expect("THEN")
            whens.append((when, self.expression()))
        otherwise = self.expression() if self.accept("ELSE") else NULL
        self.expect("END")
        made = []
        for when, then in whens:
            if subject is not None:
                self.use("CASE value", (subject, when, then), at)
            made.append(self.use("CASE", (when if subject is None else Operand(TRUTH), then, otherwise), at))
        given = joined([then for _when, then in whens] + [otherwise])
        return given._replace(is_literal=False, made_by=joined(made).made_by)

    def _interval(self) -> Operand:
        """Read INTERVAL 1 DAY, or the function INTERVAL(a, b, …)."""
        at = self.at
        if self.word(1) == "(":
            after = self.tokens[min(self.brackets.closing(self.at + 1) + 1, len(self.tokens) - 1)]
            if after.upper not in UNITS and after.upper not in ("+", "-", "*", "/"):
                return self._called([self.take()], at)
        self.take()
        amount = self.expression()
        unit = self.take().upper
        if unit not in UNITS:
            raise UnsupportedSyntax("an INTERVAL without a unit")
        return amount._replace(unit=unit)

    def _match(self) -> Operand:
        at = self.at
        self.take()
        given = self._bracket() if self.word() == "(" else self._named()
        self.expect("AGAINST", "(")
        text = self.operand()
        while self.word() != ")":
            self.take()
        self.expect(")")
        return self.use("MATCH AGAINST", (given, text), at)

    # ---- calls ----

    def _called(self, names: Sequence[SqlToken], at: int) -> Operand:
        word = names[0].upper
        if len(names) > 1 or (word not in self._functions and word not in _SET_BY_COLUMN and word != "INTERVAL"):
            self.take()
            for one in self._arguments(word)[0]:
                self._forms.note_text(one)
            texts = [self.text_of(one) for one in names]
            self.made.calls.append((texts[0] if len(texts) > 1 else self.query.schema, texts[-1]))
            return ANYTHING
        if word in ("CAST", "CONVERT"):
            return self._cast(word, at)
        self.take()
        if word in _SET_BY_COLUMN:
            made = self.expression()
            self.expect(")")
            return made._replace(is_literal=False)
        unit = self.word()
        given, is_ordered = self._arguments(word)
        if word == "EXTRACT":
            return self.use(f"EXTRACT({unit.removeprefix('SQL_TSI_')})", given, at)
        self.unordered_lists += word == "GROUP_CONCAT" and not is_ordered
        if self.accept("OVER"):
            self.use("OVER", (), at)
            if self.word() == "(":
                self.skip_brackets()
            else:
                self.take()
        return self._result(word, given, at)

    def _result(self, word: str, given: list[Operand], at: int) -> Operand:
        """Note the call of one of the server's functions with these arguments."""
        name = f"{word}()"
        if word in NOT_OF_VERSIONS or (word in ("COUNT", "UNIX_TIMESTAMP") and not given):
            return result_of(name, given)
        if word == "NAME_CONST" and len(given) == 2:
            return given[1]  # a variable of a program, as servers log it
        if (made := call_alike(word, given, self.tokens[at + 2 : self.at - 1])) is not None:
            return made
        if word == "FROM_UNIXTIME" and given and given[0].is_literal and is_after_timestamps(given[0]):
            given[0] = given[0]._replace(classes=_LARGE)  # older servers have no such time
        moves = len(given) > 1 and (bool(given[1].unit) or word in _BY_DAYS) and is_small(given[1])
        if moves and given[0].classes <= DAYS_AND_MOMENTS:
            return moved(given[0])
        is_interval = word in ("ADDDATE", "SUBDATE") and len(given) > 1 and bool(given[1].unit)
        used = f"{name} INTERVAL" if is_interval else name
        if moves and given[0].classes <= DAYS_AND_MOMENTS | ZERO:
            # Other days and moments are moved alike, so that those with zeros decide.
            self.use(used, (given[0]._replace(classes=ZERO), given[1]), at)
            return moved(given[0])
        if is_interval:
            self.use(used, given, at)
            return result_of(name, given)
        if word == "GROUP_CONCAT" and len(given) > 1:
            given = [self.use("CONCAT()", given, at)]
        elif word in AGGREGATE_FUNCTIONS and len(given) > 1:
            given = [joined(given)]
        made = self.use(name, given, at)
        has_offset = made.classes & _OFFSET and not formats_no_offset(word, given, self.tokens[at + 2 : self.at - 1])
        return made if has_offset else made._replace(classes=made.classes - _OFFSET)

    def _arguments(self, word: str) -> tuple[list[Operand], bool]:
        """Read the arguments up to and with the bracket that closes them; return them, and whether they are sorted by ORDER BY."""
        given: list[Operand] = []
        is_ordered = False
        while not self.accept(")"):
            following = self.word()
            if (following == "*" and self.word(1) == ")") or following == ",":
                self.take()
            elif following in _ARGUMENT_WORDS and self.word(1) != "(":
                self.take()
                if following == "SEPARATOR":
                    self.take()
            elif following in ("FROM", "FOR", "ALL", "DISTINCT", "BOTH", "LEADING", "TRAILING"):
                self.take()
            elif following == "ORDER" and self.word(1) == "BY":
                self.at += 2
                self.order_list()
                is_ordered = True
            elif following == "USING":
                self.at += 2
            elif following == "AS":
                while self.word() != ")":
                    if self.word() == "(":
                        self.skip_brackets()
                    else:
                        self.take()
            elif not given and (
                (word in _TAKES_UNIT and self._is_unit()) or (word == "GET_FORMAT" and following in _FORMATS)
            ):
                self.take()
            elif self.begins_query():
                given.append(self.read_query())
            elif word == "POSITION" and not given:
                given.append(self.operand())
                self.expect("IN")
            else:
                given.append(self.expression())
        return given, is_ordered

    def _is_unit(self) -> bool:
        word = self.word().removeprefix("SQL_TSI_")
        return word in UNITS and self.word(1) in (",", "FROM")

    def order_list(self) -> None:
        """Read a list of expressions to sort by."""
        while True:
            self.expression()
            self.accept_any("ASC", "DESC")
            if not self.accept(","):
                return

    def _cast(self, word: str, at: int) -> Operand:
        self.take()
        given = self.expression()
        if word == "CONVERT" and self.accept("USING"):
            self.take()
            self.expect(")")
            self.use("CONVERT USING", (given,), at)
            return Operand(_as_text(given), given.unknown)
        if not self.accept("AS"):
            self.expect(",")
        kind = self._type_word()
        is_plain = self.word() == ")"
        while self.word() != ")":
            if self.word() == "(":
                self.skip_brackets()
            else:
                self.take()
        self.expect(")")
        if not (
            is_plain and kind == "CHAR" and given.classes <= _NUMBERS
        ):  # whole numbers as texts are the same everywhere
            self.use(f"CAST AS {kind}", (given,), at)
        else:
            self._forms.note_text(given)
        return result_of_cast(kind)

    def _type_word(self) -> str:
        kind = self.take().upper
        if kind in ("CHARACTER", "VARCHAR", "TEXT"):
            return "CHAR"
        return {"INTEGER": "SIGNED", "INT": "SIGNED", "DEC": "DECIMAL", "NUMERIC": "DECIMAL"}.get(kind, kind)


def _of_its_type(given: Operand) -> Classes:
    """Return the classes without NULL, if there are others: NULL of a column or a function has its type, and NULL of any type gives the
    same.
    """
    return (
        given.classes - {ValueClass.NULL} if len(given.classes) > 1 and len(given.classes) < len(ANY) else given.classes
    )


def _as_text(given: Operand) -> Classes:
    return given.classes if given.classes <= TEXTS else TEXTS | given.classes & frozenset(("null",))
