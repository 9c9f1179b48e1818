"""A small language for the shapes of statements.

WORDS are keywords, A|B is one of them, [A|B] may be left out; {string} {name} {number} are one token, {rest} is everything that
follows (at least one token), {tail} the same or nothing. Braces and A|B are captured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocol.statements.expression.tokens import Kind, Token

Captured = Sequence[Sequence[Token]]

_CAPTURES: Final[dict[str, tuple[Kind, ...]]] = {
    "{string}": (Kind.STRING,),
    "{number}": (Kind.NUMBER,),
    "{name}": (Kind.WORD, Kind.NAME),
}


@dataclass(frozen=True, slots=True)
class Fit:
    """The extent to which a statement has a shape: `captured` is None if not to its end, `reached` is the first token that differs."""

    captured: Captured | None
    reached: int


def fit(shape: str, tokens: Sequence[Token]) -> Fit:
    """Compare a statement's tokens with a shape, and capture parts of them."""
    captured: list[Sequence[Token]] = []
    index = 0
    for part in shape.split():
        token = tokens[index] if index < len(tokens) else None
        if part == "{tail}" or (part == "{rest}" and token):
            return Fit([*captured, tokens[index:]], len(tokens))
        if part.startswith("["):
            index += token is not None and token.is_word(*part[1:-1].split("|"))
            continue
        if token is None:
            return Fit(None, index)
        if part in _CAPTURES:
            if token.kind not in _CAPTURES[part]:
                return Fit(None, index)
            captured.append(tokens[index : index + 1])
        elif "|" in part:
            if not token.is_word(*part.split("|")):
                return Fit(None, index)
            captured.append(tokens[index : index + 1])
        elif not token.is_word(part):
            return Fit(None, index)
        index += 1
    return Fit(captured if index == len(tokens) else None, index)
