"""The name of a result's column: its alias, the column's own name, or the statement's spelling."""

from collections.abc import Sequence
from typing import Final

from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.functions import WITHOUT_PARENTHESES
from protocol.statements.expression.tokens import Kind, Token
from protocol.statements.session.refusals import shown
from protocol.statements.translation.sqlite_words import KEYWORDS

_MAX_LABEL_BYTES: Final = 256
_IDENTIFIERS: Final = (Kind.WORD, Kind.NAME)
_ALIASES: Final = (Kind.WORD, Kind.NAME, Kind.STRING)


def labelled(statement: Statement, item: Sequence[Token]) -> tuple[Sequence[Token], str]:
    """Return an item's expression and its name: the alias, the column's own name, or the statement's spelling."""
    last = item[-1]
    if last.kind in _ALIASES and len(item) > 1:
        before = item[-2]
        if before.is_word("AS"):
            return item[:-2], _label(last.text)
        is_word = last.kind is Kind.WORD and last.text.upper() in KEYWORDS
        is_operand = before.kind is Kind.SYMBOL and not before.is_symbol(")")
        is_operand = is_operand or (
            before.kind is Kind.WORD and before.text.upper() in KEYWORDS and not before.is_word("END", "NULL")
        )
        if not is_word and not is_operand:
            return item[:-1], _label(last.text)
    if names_column(item) or (len(item) == 1 and last.kind is Kind.STRING):
        return item, _label(last.text)
    return item, _label(statement.source(item))


def _label(text: str) -> str:
    return shown(text, _MAX_LABEL_BYTES).replace("\0", "")


def names_column(tokens: Sequence[Token]) -> bool:
    """Return whether this is a column's name alone, with or without its table's."""
    names, points = tokens[::2], tokens[1::2]
    if len(names) != len(points) + 1 or not all(token.is_symbol(".") for token in points):
        return False
    if len(names) == 1 and names[0].kind is Kind.WORD:
        word = names[0].text.upper()
        if word in KEYWORDS or word in WITHOUT_PARENTHESES:
            return False
    return all(token.kind in _IDENTIFIERS for token in names)
