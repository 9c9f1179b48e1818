"""The compiled digest, which has a lexer of its own, compared with `sql_tokens`."""

from typing import Final

from protocol.sql.lexer import TokenKind, UnsupportedSyntax, sql_tokens
from tests.sql_verdicts.setting import Setting
from tests.support.kernel_builds import imported_kernel

_COPIES_THE_NEXT: Final = "\\"
"""Outside of strings the digest copies the character after a backslash, a blank too; servers refuse it, but for \\N of old ones."""


def digest_alike(text: str, setting: Setting) -> bool:
    """Whether the kernel's digest is that of the text with blanks for what `sql_tokens` takes for comments; True where it refuses.
    text: of characters that latin-1 has."""
    if "/*!" in text or "/*M!" in text:
        return True
    try:
        tokens = sql_tokens(text, setting.sql_mode, setting.version)
    except UnsupportedSyntax:
        return True
    if any(token.kind is TokenKind.SYMBOL and token.text == _COPIES_THE_NEXT for token in tokens):
        return True
    blank = [" "] * len(text)
    for token in tokens:
        blank[token.start : token.stop] = text[token.start : token.stop]
    digest = imported_kernel().digest.StatementDigest()
    quotes, plain = "ansi" in setting.mode, "plain" in setting.mode
    made, other = (
        bytes(digest.of(one.encode("latin-1"), quotes, plain)).replace(b" ", b"") for one in (text, "".join(blank))
    )
    return made == other
