"""What each lexer takes for what, character by character: so that lexers with other tokens can be compared."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from protocol.errors import StatementRefused
from protocol.sql.lexer import NotSure, sql_tokens
from protocol.statements import SourceFacts
from protocol.statements.expression import tokens as client_tokens
from tests.sql_verdicts.setting import Setting
from tests.support.kernel_builds import imported_kernel

NOTHING, STRING, NAME, PLAIN, NUMBER = " ", "s", "n", "w", "1"
"""A character is of blanks and comments, a string, a quoted name, words and signs, or a number."""
REFUSED: Final = "refused"
Classes = str
"""One of the letters above for each character, or REFUSED."""


def _painted(text: str, pieces: Iterator[tuple[str, int, int]], ansi: bool) -> Classes:
    """pieces: kind, start and stop of tokens. What stands before the quotation mark of a string, as x in x'41', is PLAIN."""
    made = [NOTHING] * len(text)
    for kind, start, stop in pieces:
        if kind in (STRING, NAME):
            quote = next(at for at in range(start, stop) if text[at] in "'\"`")
            made[start:quote] = PLAIN * (quote - start)
            start = quote
            kind = NAME if text[quote] == "`" or (text[quote] == '"' and ansi) else STRING
        made[start:stop] = kind * (stop - start)
    return "".join(made)


_KINDS: Final = {"WORD": PLAIN, "SYMBOL": PLAIN, "NUMBER": NUMBER, "STRING": STRING, "NAME": NAME, "END": NOTHING}


def _variable(text: str, start: int, stop: int) -> Iterator[tuple[str, int, int]]:
    """The pieces of @name, @'name' and @@name."""
    quote = next((at for at in range(start, stop) if text[at] in "'\"`"), stop)
    yield PLAIN, start, quote
    if quote < stop:
        yield STRING, quote, stop


def of_definitions(text: str, setting: Setting) -> Classes:
    """By `sql_tokens`, with which all others are compared."""
    try:
        found = sql_tokens(text, setting.sql_mode, setting.version)
    except NotSure:
        return REFUSED
    pieces = ((_KINDS[token.kind.name], token.start, token.stop) for token in found)
    return _painted(text, pieces, "ansi" in setting.mode)


def _with_variables(text: str, tokens: Any) -> Iterator[tuple[str, int, int]]:
    for token in tokens:
        if "VARIABLE" in token.kind.name:
            yield from _variable(text, token.start, token.stop)
        else:
            yield _KINDS[token.kind.name], token.start, token.stop


@contextmanager
def _strings_apart() -> Iterator[None]:
    """Meanwhile strings side by side stay several tokens."""
    joined = client_tokens._with_strings_joined
    client_tokens._with_strings_joined = lambda tokens: tokens
    try:
        yield
    finally:
        client_tokens._with_strings_joined = joined


def _of_clients(text: str, setting: Setting) -> Classes:
    facts = SourceFacts("mariadb" if setting.is_mariadb else "mysql", setting.version, 1)
    try:
        with _strings_apart():
            found = client_tokens.tokenize(text, facts)
    except StatementRefused:
        return REFUSED
    return _painted(text, _with_variables(text, found), False)


LEXERS: Final[dict[str, Callable[[str, Setting], Classes]]] = {
    "clients": _of_clients,
}


def digest_alike(text: str, setting: Setting) -> bool:
    """Whether the kernel's digest is that of the text with blanks for what `sql_tokens` takes for comments; True where it refuses."""
    classes = of_definitions(text, setting)
    if classes == REFUSED or "/*!" in text or "/*M!" in text:
        return True
    blank = "".join(" " if kind == NOTHING else one for one, kind in zip(text, classes, strict=True))
    digest = imported_kernel().digest.StatementDigest()
    quotes, plain = "ansi" in setting.mode, "plain" in setting.mode
    made, other = (bytes(digest.of(one.encode("latin-1"), quotes, plain)).replace(b" ", b"") for one in (text, blank))
    return made == other
