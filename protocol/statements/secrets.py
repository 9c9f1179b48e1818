"""Statements as a log may show them."""

import re
from typing import Final

_LIMIT_CHARACTERS: Final = 4096
_SECRET_WORD: Final = re.compile(r"password|identified", re.IGNORECASE)
# A string that is not closed is one up to the end: what was meant to be secret may be the part that broke.
_STRING: Final = re.compile(r"""'(?:[^'\\]++|\\.|'')*+(?:'|\\?$)|"(?:[^"\\]++|\\.|"")*+(?:"|\\?$)""", re.DOTALL)


def without_secrets(text: str) -> str:
    """A statement's beginning; where it is about a password, without what its strings hold."""
    text = text[:_LIMIT_CHARACTERS]
    return without_strings(text) if is_about_secrets(text) else text


def is_about_secrets(text: str) -> bool:
    """Whether a string in this statement may be a password."""
    return _SECRET_WORD.search(text) is not None


def without_strings(text: str) -> str:
    """The beginning of a statement, or of a part of it, without what its strings hold."""
    return _STRING.sub("'***'", text[:_LIMIT_CHARACTERS])
