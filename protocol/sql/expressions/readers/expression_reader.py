"""Reads an expression: its operators and predicates, and the classes of values that each part gets."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from protocol.sql.expressions.constructs import CONDITION, Operand
from protocol.sql.expressions.function_results import DAYS_AND_MOMENTS, TRUTH, ZERO, moved, negated, result_of
from protocol.sql.expressions.literal_calls import is_small
from protocol.sql.expressions.literals import is_not_zero, number_or_string
from protocol.sql.expressions.readers.value_reader import ValueReader
from protocol.sql.lexer import SqlToken, TokenKind, UnsupportedSyntax
from protocol.sql.statements.statement import SqlStatement

_OR, _XOR, _AND, _NOT, _COMPARISON, _BAR, _MOST_TIGHT = 0, 1, 2, 3, 4, 5, 10
_WORDS: Final = {"OR": ("OR", _OR), "XOR": ("XOR", _XOR), "AND": ("AND", _AND), "DIV": ("DIV", 9), "MOD": ("%", 9)}
_SIGNS: Final = {
    "||": ("OR", _OR), "&&": ("AND", _AND), "<=>": ("<=>", _COMPARISON), "<=": ("<=", _COMPARISON), ">=": (">=", _COMPARISON),
    "<>": ("<>", _COMPARISON), "!=": ("<>", _COMPARISON), "=": ("=", _COMPARISON), "<": ("<", _COMPARISON), ">": (">", _COMPARISON),
    "|": ("|", _BAR), "&": ("&", 6), "<<": ("<<", 7), ">>": (">>", 7), "+": ("+", 8), "-": ("-", 8), "*": ("*", 9), "/": ("/", 9),
    "%": ("%", 9), "^": ("^", _MOST_TIGHT),
}  # fmt: skip
"""Operators between two values, with how tight they bind."""
_LONGEST_SIGN: Final = 3
_PREDICATES: Final = frozenset(("LIKE", "REGEXP", "RLIKE", "IN", "BETWEEN", "SOUNDS", "MEMBER"))
_DEEPEST: Final = 80
"""How often readers may call themselves: each time is up to 9 calls, of the 1000 that Python makes."""
_BY_ZERO: Final = 1365
"""The error of a division by zero."""


class ExpressionReader(ValueReader):
    """A cursor that reads expressions. What it cannot read raises UnsupportedSyntax."""

    def __init__(self, query: SqlStatement, tokens: Sequence[SqlToken], variables: Mapping[str, Operand]) -> None:
        super().__init__(query, tokens, variables)
        self._deep = 0
        self._negations = 0

    def expression(self) -> Operand:
        """Implement `ValueReader.expression`."""
        return self._binary(_OR)

    def operand(self) -> Operand:
        """Implement `ValueReader.operand`."""
        return self._binary(_BAR)

    def _deeper(self) -> None:
        """Count a reader that calls itself. What ends with an exception need not be counted back: it is read no more."""
        self._deep += 1
        if self._deep > _DEEPEST:
            raise UnsupportedSyntax("an expression that is too deep")

    def condition(self) -> None:
        """Read an expression of which only counts whether it is true."""
        at = self.at
        made = self.expression()
        if not made.classes <= TRUTH:
            self.use("AND", (made, Operand(TRUTH)), at)
            self.use(CONDITION, (made,), at)

    def _operator(self) -> tuple[str, int, int]:
        """Return the operator that comes next: its name, how tight it binds, and its tokens; ("", -1, 0): none does."""
        token = self.peek()
        if token.kind is TokenKind.WORD:
            name, level = _WORDS.get(token.upper, ("", -1))
            return name, level, 1
        sign, size = token.upper, 1
        if token.kind is not TokenKind.SYMBOL:
            return "", -1, 0
        while size < _LONGEST_SIGN and self.peek(size).start == self.peek(size - 1).stop:
            longer = sign + self.word(size)
            if self.peek(size).kind is not TokenKind.SYMBOL or longer not in _SIGNS:
                break
            sign, size = longer, size + 1
        if sign == "||" and self.concatenates:
            return "CONCAT()", _MOST_TIGHT, 2
        name, level = _SIGNS.get(sign, ("", -1))
        return name, level, size

    def _binary(self, least: int) -> Operand:
        self._deeper()
        made = self._operations(least)
        self._deep -= 1
        return made

    def _operations(self, least: int) -> Operand:
        if least <= _NOT and self.word() == "NOT":
            at = self.at
            self.take()
            left = self._negation("NOT", lambda: self._binary(_NOT), at)
        else:
            left = self._unary()
        while True:
            word = self.word()
            if least <= _COMPARISON and (
                word == "IS" or word in _PREDICATES or (word == "NOT" and self.word(1) in _PREDICATES)
            ):
                left = self._predicate(left)
                continue
            name, level, size = self._operator()
            if level < least:
                return left
            at = self.at
            self.at += size
            if level == _COMPARISON and self.word() in ("ALL", "ANY", "SOME") and self.word(1) == "(":
                self.take()
            right = self._binary(level + 1)
            left = (
                self._with_interval(name, left, right, at)
                if left.unit or right.unit
                else self._compared(name, left, right, at)
            )

    def _negation(self, name: str, read: Callable[[], Operand], at: int) -> Operand:
        """Read what is negated. Of what is negated twice servers make a condition."""
        self._negations += 1
        made = read()
        self._negations -= 1
        if self._negations:
            self._truth_of(made, at)
        return self.use(name, (made,), at)

    def _truth_of(self, given: Operand, at: int) -> None:
        """Note a part of AND or OR: where the others are constants it alone becomes the condition of a query."""
        if not given.classes <= TRUTH:
            self.use(CONDITION, (given,), at)

    def _compared(self, name: str, left: Operand, right: Operand, at: int) -> Operand:
        if left.parts and len(left.parts) == len(right.parts):
            for one, other in zip(left.parts, right.parts, strict=True):
                self.use(name, (one, other), at)
            return Operand(TRUTH)
        if name in ("AND", "OR"):
            self._truth_of(left, at)
            self._truth_of(right, at)
        divides = name in ("/", "%", "DIV") and right.is_literal and is_not_zero(self.tokens[self.at - 1])
        return self.use(name, (left, right), at, _BY_ZERO if divides else 0)

    def _with_interval(self, name: str, left: Operand, right: Operand, at: int) -> Operand:
        given = (left, right) if right.unit else (right, left)
        if given[0].classes <= DAYS_AND_MOMENTS and is_small(given[1]):
            return moved(given[0])
        if given[0].classes <= DAYS_AND_MOMENTS | ZERO and is_small(given[1]):
            # Other days and moments are moved alike, so that those with zeros decide.
            self.use(f"INTERVAL {name}", (given[0]._replace(classes=ZERO), given[1]), at)
            return moved(given[0])
        self.use(f"INTERVAL {name}", given, at)
        return result_of("DATE_ADD()", given)

    def _predicate(self, left: Operand) -> Operand:
        at = self.at
        if self.accept("IS"):
            negated_by = self.accept("NOT")
            word = self.take().upper
            self.use("IS NOT NULL" if negated_by and word == "NULL" else f"IS {word}", (left,), at)
            return Operand(TRUTH)
        said_not = "NOT " if self.accept("NOT") else ""
        word = self.take().upper
        if word in ("REGEXP", "RLIKE"):
            return self.use(f"{said_not}REGEXP", (left, self._binary(_BAR)), at)
        if word == "BETWEEN":
            low = self._binary(_BAR)
            self.expect("AND")
            return self.use(f"{said_not}BETWEEN", (left, low, self._binary(_BAR)), at)
        if word == "LIKE":
            pattern = self._binary(_BAR)
            if self.accept("ESCAPE"):
                self._unary()
            return self.use(f"{said_not}LIKE", (left, pattern), at)
        if word == "SOUNDS":
            self.expect("LIKE")
            return self.use("SOUNDS LIKE", (left, self._binary(_BAR)), at)
        if word == "MEMBER":
            self.expect("OF")
            return self.use("MEMBER OF", (left, self.in_brackets()), at)
        return self._one_of(f"{said_not}IN", left, at)

    def _one_of(self, name: str, left: Operand, at: int) -> Operand:
        """Read what follows IN."""
        if self.begins_query(1):
            return self._compared(name, left, self.in_brackets(), at)
        self.expect("(")
        given = [self.expression()]
        while self.accept(","):
            given.append(self.expression())
        self.expect(")")
        if left.parts:
            for one in given:
                self._compared(name, left, one, at)
            return Operand(TRUTH)
        return self.use(name, (left, *dict.fromkeys(one._replace(below=0) for one in given)), at)

    def _unary(self) -> Operand:
        at, word = self.at, self.word()
        if word in ("-", "+", "~", "!", "BINARY") and self.kind in (TokenKind.SYMBOL, TokenKind.WORD):
            self.take()
            self._deeper()
            made = self._negation(word, self._unary, at) if word == "!" else self._unary()
            self._deep -= 1
            if word == "!":
                return made
            if word == "-":
                return made if made.unit else self._minus(made, at)
            return made if word == "+" else self.use(word, (made,), at)
        made = self.value()
        while True:
            at = self.at
            if self.accept("COLLATE"):
                self.take()
                made = self.use("COLLATE", (made,), at)
            elif self.word() == "-" and self.word(1) == ">" and self.peek(1).start == self.peek().stop:
                self.at += 2
                unquotes = self.word() == ">" and self.peek().start == self.tokens[self.at - 1].stop
                self.at += unquotes
                made = self.use("->>" if unquotes else "->", (made, number_or_string(self.take())), at)
            else:
                return made

    def _minus(self, given: Operand, at: int) -> Operand:
        made_by = given.made_by if given.is_literal else self.use("unary -", (given,), at).made_by
        return negated(given)._replace(made_by=made_by)
