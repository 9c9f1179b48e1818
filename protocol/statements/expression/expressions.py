"""A statement while it is answered: its tokens, and the values of its expressions."""

import math
from collections.abc import Callable, Sequence
from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from protocol.resultset import Value
from protocol.statements.expression.functions import FUNCTIONS, WITHOUT_PARENTHESES, FunctionCall, as_text
from protocol.statements.expression.tokens import MAX_CHARACTERS, Kind, Token, tokenize
from protocol.statements.session import values
from protocol.statements.session.refusals import empty_query, not_understood, shown
from protocol.statements.session.session import StatementSession
from protocol.statements.session.system_variables import read_variable
from protocol.statements.session.values import Typed

_MAX_DEPTH: Final = 8
_MAX_ITEMS: Final = 64
_MAX_DIGITS: Final = 20
_MAX_DIGITS_OF_A_LENGTH: Final = 6
_MAX_DECIMALS: Final = 30
# The steps for cutting a character into tokens, for making a token, and for each time that it is read.
_STEPS_A_CHARACTER: Final = 3
_STEPS_A_TOKEN: Final = 70
_STEPS_A_LOOK: Final = 25
# The characters that servers strip from both ends of a statement.
_NOTHING: Final = "; \t\r\n\f\v\0"

_COMPARISONS: Final[dict[str, Callable[[int], bool]]] = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    ">": lambda order: order > 0,
    "<=": lambda order: order <= 0,
    ">=": lambda order: order >= 0,
}


class Statement:
    """A statement while it is answered; one of comments alone has no tokens. Raises: StatementRefused when it cannot be cut into
    tokens, or is empty.
    """

    def __init__(self, text: str, session: StatementSession, now_s: float) -> None:
        self.text = text
        self.session = session
        self.now_s = now_s
        if len(text) <= MAX_CHARACTERS:  # longer ones are not read
            session.effort.spend(_STEPS_A_CHARACTER * len(text))
        self.tokens = tokenize(text, session.facts)
        session.effort.spend(_STEPS_A_TOKEN * len(self.tokens))
        if not self.tokens and not text.strip(_NOTHING):
            raise empty_query()

    def source(self, tokens: Sequence[Token]) -> str:
        """Return the statement's own spelling of these tokens."""
        return self.text[tokens[0].start : tokens[-1].stop] if tokens else ""

    def refuse(self, tokens: Sequence[Token]) -> StatementRefused:
        """Return the error for a statement that is not understood from these tokens on; without tokens, at its end."""
        return not_understood(self.text, tokens[0].start if tokens else len(self.text))

    def refuse_after(self, token: Token) -> StatementRefused:
        """Return the error for a statement in which something else should follow this token."""
        following = [other for other in self.tokens if other.start >= token.stop]
        return self.refuse(following)

    def evaluate(self, tokens: Sequence[Token], depth: int = 0) -> Typed:
        """Return the value of an expression: constants, variables, functions of these, and comparisons of two of them."""
        if not tokens or depth > _MAX_DEPTH:
            raise self.refuse(tokens)
        self.session.effort.spend(_STEPS_A_LOOK * len(tokens))
        for index, operator, width in self._comparisons(tokens):
            left = self.evaluate(tokens[:index], depth + 1)
            right = self.evaluate(tokens[index + width :], depth + 1)
            self._spend_on((left, right))
            return values.truth(self.session.facts, _compare(operator, left, right))
        first = tokens[0]
        if len(tokens) > 2 and tokens[-2].is_word("COLLATE") and tokens[-1].kind in (Kind.WORD, Kind.NAME, Kind.STRING):
            return self.evaluate(tokens[:-2], depth + 1)
        if first.is_symbol("(") and tokens[-1].is_symbol(")") and _closing(tokens, 0) == len(tokens) - 1:
            return self.evaluate(tokens[1:-1], depth + 1)
        if first.kind is Kind.WORD and len(tokens) > 1 and tokens[1].is_symbol("("):
            end = _closing(tokens, 1)
            if end != len(tokens) - 1:
                raise self.refuse(tokens[end + 1 :] if end else ())
            return (self._cast if first.is_word("CAST") else self._call)(first, tokens[2:-1], depth)
        if first.is_symbol("-", "+") and len(tokens) == 2 and tokens[1].kind is Kind.NUMBER:
            return self._number(tokens[1], "-" if first.text == "-" else "")
        if len(tokens) != 1:
            raise self.refuse(tokens[1:])
        return self._single(first)

    def _single(self, token: Token) -> Typed:
        facts = self.session.facts
        word = token.text.upper() if token.kind is Kind.WORD else ""
        if token.kind is Kind.STRING:
            return values.text(token.text, nullable=False)
        if token.kind is Kind.NUMBER:
            return self._number(token)
        if token.kind is Kind.USER_VARIABLE:
            name = token.text.lower()
            variables = self.session.user_variables
            size = self.session.encoding.charset.character_bytes
            return values.user_value(facts, variables.get(name), was_set=name in variables, character_bytes=size)
        if token.kind is Kind.SYSTEM_VARIABLE:
            return read_variable(token.text, token.scope, self.session)
        if word == "NULL":
            return values.null()
        if word in ("TRUE", "FALSE"):
            return values.integer(facts, int(word == "TRUE"), 1)
        if word in WITHOUT_PARENTHESES:
            return self._call(token, (), 0)
        if token.kind in (Kind.WORD, Kind.NAME):
            raise StatementRefused(
                ErrorCode.ER_BAD_FIELD_ERROR, f"Unknown column '{shown(token.text, 64)}' in 'field list'"
            )
        raise self.refuse((token,))

    def _number(self, token: Token, sign: str = "") -> Typed:
        """Return a number as it is written; hexadecimal ones that are not integers stay as they are. Raises: StatementRefused for one
        with more decimals than a server's numbers have.
        """
        spelled = sign + token.text
        value = number(spelled)
        if isinstance(value, int):
            return values.integer(self.session.facts, value)
        if spelled.removeprefix("-")[:2] in ("0x", "0X"):
            return values.text(spelled, nullable=False)
        if "e" in spelled.lower():
            if math.isinf(float(spelled)):
                raise StatementRefused(
                    ErrorCode.ER_ILLEGAL_VALUE_FOR_TYPE,
                    f"Illegal double '{shown(spelled, 64)}' value found during parsing",
                )
            return values.real(spelled)
        if len(spelled.partition(".")[2]) > _MAX_DECIMALS:
            raise self.refuse((token,))
        return values.decimal(spelled.removesuffix("."))

    def _call(self, name: Token, inner: Sequence[Token], depth: int) -> Typed:
        function = FUNCTIONS.get(name.text.upper())
        is_mariadb = self.session.facts.is_mariadb
        if function is None or (function.of_mysql if is_mariadb else function.of_mariadb):
            raise StatementRefused(ErrorCode.ER_SP_DOES_NOT_EXIST, f"FUNCTION {shown(name.text, 64)} does not exist")
        arguments = [self.evaluate(part, depth + 1) for part in self.split(inner)] if inner else []
        if not function.fewest <= len(arguments) <= function.most:
            raise StatementRefused(
                ErrorCode.ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT,
                f"Incorrect parameter count in the call to native function '{shown(name.text, 64)}'",
            )
        self._spend_on(arguments)
        return function.answer(FunctionCall(self.session, self.now_s, arguments))

    def _spend_on(self, arguments: Sequence[Typed]) -> None:
        """Count the work on texts that are read, and perhaps copied."""
        self.session.effort.spend_on_text(
            sum(len(argument.value) for argument in arguments if isinstance(argument.value, str))
        )

    def _cast(self, name: Token, inner: Sequence[Token], depth: int) -> Typed:
        """Evaluate CAST(... AS CHAR[(n)]), which SQLAlchemy sends on connect; other types are refused."""
        at = next((index for index, token in enumerate(inner) if token.is_word("AS")), 0)
        kind = inner[at + 1 :]
        if not at or not kind or not kind[0].is_word("CHAR", "NCHAR"):
            raise self.refuse(inner[at:])
        value = self.evaluate(inner[:at], depth + 1)
        if value.is_null:
            return values.text(None)
        characters = kind[2].text if len(kind) > 3 and kind[1].is_symbol("(") and kind[2].kind is Kind.NUMBER else ""
        text = as_text(value.value)
        length = int(characters) if characters.isdecimal() and len(characters) < _MAX_DIGITS_OF_A_LENGTH else len(text)
        return values.text(text[:length], characters=length)

    def _comparisons(self, tokens: Sequence[Token]) -> list[tuple[int, str, int]]:
        """Return the last comparison outside of parentheses, if any: its index, its operator, and how many tokens that takes."""
        depth = 0
        found: list[tuple[int, str, int]] = []
        for index, token in enumerate(tokens):
            depth += token.is_symbol("(") - token.is_symbol(")")
            if depth == 0 and index and token.is_symbol("=", "<", ">", "!"):
                if found and found[-1][0] + found[-1][2] > index:
                    continue  # the second character of `<=`
                following = tokens[index + 1] if index + 1 < len(tokens) else token
                pair = token.text + following.text
                operator = pair if pair in _COMPARISONS and token.stop == following.start else token.text
                if operator not in _COMPARISONS:
                    raise self.refuse(tokens[index:])
                found.append((index, operator, len(operator)))
        return found[-1:]

    def split(self, tokens: Sequence[Token]) -> list[Sequence[Token]]:
        """Return the parts between the commas outside of parentheses. Raises: StatementRefused beyond 64 of them."""
        parts: list[Sequence[Token]] = []
        depth = 0
        start = 0
        for index, token in enumerate(tokens):
            if token.is_symbol("("):
                depth += 1
            elif token.is_symbol(")"):
                depth -= 1
            elif depth == 0 and token.is_symbol(","):
                parts.append(tokens[start:index])
                start = index + 1
        parts.append(tokens[start:])
        if len(parts) > _MAX_ITEMS:
            raise self.refuse(tokens)
        return parts


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """Return the index of the parenthesis that closes the one at `opening`; 0 when none does."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += tokens[index].is_symbol("(") - tokens[index].is_symbol(")")
        if depth == 0:
            return index
    return 0


def _compare(operator: str, left: Typed, right: Typed) -> bool | None:
    """Compare as numbers if one of the two is a number, otherwise as text in any case."""
    if left.is_null or right.is_null:
        return None
    if left.is_number or right.is_number:
        first, second = left.as_number(), right.as_number()
        if isinstance(first, float) or isinstance(second, float):
            first, second = float(first), float(second)
        return _COMPARISONS[operator]((first > second) - (first < second))
    one, other = as_text(left.value).lower(), as_text(right.value).lower()
    return _COMPARISONS[operator]((one > other) - (one < other))


def number(text: str) -> Value:
    """Return the value of a number; its text if it is not an integer."""
    digits = text.removeprefix("-")
    if digits[:2] in ("0x", "0X"):
        return int(text, 16) if len(text) <= 18 else text
    # Longer ones are not numbers that anything here needs, and int() would work on them for long.
    return int(text) if digits.isdecimal() and len(digits) <= _MAX_DIGITS else text
