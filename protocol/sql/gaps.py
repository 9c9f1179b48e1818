"""Patterns over bytes for the gaps before and between the first words of a statement.

Gaps are blanks, comments, and the marks of executable comments (`/*!50000 … */`), whose content is a part of the statement.
"""

import re
from typing import Final

from protocol.sql.lexer import LINE_COMMENT, UnsupportedSyntax, is_read

LINE_COMMENT_BYTES: Final = LINE_COMMENT.encode()
_GAP: Final = rb"(?>\s++|/\*(?!M?!).*?\*/|/\*M?!\d*|\*/|" + LINE_COMMENT_BYTES + rb")"
_MOST: Final = b"%d" % 4096
"""Comments in one gap. `re` holds the interpreter's lock for a whole call, and a source may write megabytes of them."""
GAPS: Final = {
    b"gap": b"(?>" + _GAP + b"{1," + _MOST + b"})",
    b"gaps": b"(?>" + _GAP + b"{0," + _MOST + b"})",
    b"between": rb"(?>(?>[\x80-\xff]++|" + _GAP + b"){1," + _MOST + b"})",
}
"""Patterns by their names: `gap` is at least one, `gaps` may be none; `between` is a gap before a keyword, where bytes above ASCII
are blanks too. For re.DOTALL.
"""
_CROWDED: Final = re.compile(rb"(?>(?>[\x80-\xff]++|" + _GAP + b"){" + _MOST + b"})", re.DOTALL)
_LEAD: Final = re.compile(
    rb"(?>(?:[\s(\x80-\xff]++|/\*(?!M?!).*?\*/|\*/|" + LINE_COMMENT_BYTES + rb"){0," + _MOST + rb"})(?:/\*(M?!)(\d*))?",
    re.DOTALL,
)
_GOES_ON: Final = re.compile(rb"[\s(\x80-\xff#]|/\*|\*/|" + LINE_COMMENT_BYTES)
"""Bytes above ASCII are blanks in some character sets, such as 0xA0 in latin1: a statement that ran begins with no other of them."""
_LETTERS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_MOST_MARKS: Final = 64


def first_word_at(text: bytes, server_version: str = "") -> int:
    """Return where the first word of a statement begins, after blanks, comments and brackets; without one, where the rest begins.

    `server_version` is that of the server that ran it, by which an executable comment is read or not; "": not known.
    Raises: UnsupportedSyntax if such a comment decides and the version is not known, and for a comment that does not end.
    """
    if text and text[0] in _LETTERS:
        return 0
    at = 0
    for _ in range(_MOST_MARKS):
        found = _LEAD.match(text, at)
        assert found is not None  # the pattern also matches an empty text
        at = found.end()
        if found[2] is None:
            if found.end() > found.start() and _GOES_ON.match(text, at) is not None and not _is_open(text, at):
                continue
            if text.startswith(b"/*", at):
                raise UnsupportedSyntax("a comment that does not end")
            return at
        stop = text.find(b"*/", at)
        if stop >= 0 and not text[at:stop].strip():
            continue  # read or not, it is empty
        if not _is_read(found[1].decode(), found[2].decode(), text, stop, server_version):
            if stop < 0 or b"/*" in text[at:stop]:
                raise UnsupportedSyntax("a comment that does not end, or has others in it")
            at = stop + 2
    raise UnsupportedSyntax("too many comments")


def is_crowded(text: bytes, at: int) -> bool:
    """Return True if more comments follow than the patterns of GAPS match, so that none of them says what comes after."""
    return _CROWDED.match(text, at) is not None


def _is_open(text: bytes, at: int) -> bool:
    """Return True if a comment begins at `at` that does not end."""
    return text.startswith(b"/*", at) and text.find(b"*/", at + 2) < 0


def _is_read(mark: str, digits: str, text: bytes, stop: int, server_version: str) -> bool:
    """Return whether the server reads the executable comment that ends at `stop`. Raises: UnsupportedSyntax."""
    try:
        if mark == "M!" and not server_version:
            raise UnsupportedSyntax("a comment for MariaDB, and it is not known which server it was")
        return is_read(mark, digits, server_version)
    except UnsupportedSyntax:
        ended = _LEAD.fullmatch(text, stop + 2) if stop >= 0 else None
        if ended is None or ended[2] is not None:
            raise
        return True  # a statement that ran is not empty
