"""The text of a statement with one character for each byte, so that places in it are places in the statement's bytes."""

import re
from typing import Final

# The characters of several bytes of sets in which a byte below 0x80 may be a part of a character.
# Source: MySQL 9.7 `strings/ctype-*.cc`, the `ismbchar` of each.
_SHIFT_JIS: Final = re.compile(rb"(?>(?:[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc])+)")
_WIDE_CHARACTERS: Final = {
    "big5": re.compile(rb"(?>(?:[\xa1-\xf9][\x40-\x7e\xa1-\xfe])+)"),
    "cp932": _SHIFT_JIS,
    "gb18030": re.compile(rb"(?>(?:[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[\x30-\x39][\x81-\xfe][\x30-\x39]))+)"),
    "gbk": re.compile(rb"(?>(?:[\x81-\xfe][\x40-\x7e\x80-\xfe])+)"),
    "sjis": _SHIFT_JIS,
}
SOMETIMES_BLANK: Final = "\xa0"
"""What the bytes of `blank_of` are in Unicode: a blank for clients of those sets, for others a letter of names."""
_BLANKS: Final = {
    **dict.fromkeys(
        ("armscii8", "cp1250", "dec8", "geostd8", "greek", "hebrew", "latin1", "latin2", "latin5", "latin7"), "\xa0"
    ),
    **dict.fromkeys(("cp852", "cp866", "keybcs2"), "\xff"),
}


def blank_of(charset: str | None) -> str:
    """Return the character beyond ASCII that is a blank between words for a client of this set; "": there is none.

    Tried with every set on MySQL 5.6.24 and 9.7.4, MariaDB 10.11.19 and 11.8.9, with equal results.
    """
    return _BLANKS.get(charset or "", "")


def is_wide(charset: str | None) -> bool:
    """Return whether characters of the set may contain bytes below 0x80, such as those of a quotation mark or a backslash."""
    return charset in _WIDE_CHARACTERS


def byte_text(raw: bytes, charset: str | None) -> str:
    """Return the statement as latin-1, with the bytes of every character of a wide set replaced by a letter beyond ASCII.

    A byte that cannot be the second of a character belongs to none, as for servers: `'\\xc4'` of gbk is a string.
    """
    if charset in _WIDE_CHARACTERS:
        raw = _WIDE_CHARACTERS[charset].sub(lambda found: b"\xe9" * len(found[0]), raw)
    return raw.decode("latin-1")
