"""The same definition in the words of two versions or products."""

from typing import Final

from protocol.sql.lexer import TokenKind, UnsupportedSyntax, sql_tokens
from protocol.sql.sql_mode import GONE_MODES
from relay.compare.rows.column_forms import modern_charset

_WHOLE_NUMBERS: Final = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
_ONLY_MARIADBS_TYPES: Final = ("uuid", "inet4", "inet6")
_ONLY_MARIADBS_COLLATIONS: Final = ("uca1400", "nopad")
_WITHOUT_MEANING: Final = ("(", ")")


def plain_type(text: str) -> str:
    """Return a column's type without the display width that newer versions no longer tell."""
    lower = text if "'" in text else text.lower()
    base, bracket, rest = lower.partition("(")
    width, _end, attributes = rest.partition(")")
    if base in _WHOLE_NUMBERS and bracket and "zerofill" not in attributes and (base, width) != ("tinyint", "1"):
        return base + attributes
    return lower.replace("geometrycollection", "geomcollection")


def same_type(source: str, target: str) -> bool:
    """Return whether a view gives a column of the source's type this one."""
    one, other = plain_type(source), plain_type(target)
    return one == other or one in _ONLY_MARIADBS_TYPES or (one, other) == ("longtext", "json")


def same_collation(source: str, target: str) -> bool:
    """Return whether both are one collation, or the source's is one that only MariaDB has, of the same character set."""
    one, other = modern_charset(source), modern_charset(target)
    if one == other:
        return True
    return any(word in one for word in _ONLY_MARIADBS_COLLATIONS) and one.split("_")[0] == other.split("_")[0]


def same_default(source: str | None, target: str | None) -> bool:
    """Return whether both give the same value; a UUID of a MariaDB is BINARY in a view."""
    return source == target or (str(source).lower(), str(target).lower()) == ("uuid()", "uuid_to_bin(uuid())")


def plain_default(default: str | None, extra: str, *, of_mariadb: bool) -> str | None:
    """Return a column's default as MySQL tells it: MariaDB tells an expression."""
    if default is None or not of_mariadb:
        return default
    if default == "NULL":
        return None
    if default.startswith("'") and default.endswith("'"):
        return default[1:-1].replace("''", "'").replace("\\\\", "\\")
    return _plain_moment(default)


def plain_extra(extra: str) -> str:
    """Return what else is said of a column."""
    words = _plain_moment(extra).lower().replace("persistent", "stored").split()
    return " ".join(word for word in words if word != "default_generated")


def _plain_moment(text: str) -> str:
    head, found, rest = text.partition("current_timestamp(")
    if not found:
        return text
    digits, _end, rest = rest.partition(")")
    return f"{head}CURRENT_TIMESTAMP{f'({digits})' if digits else ''}{rest}"


def plain_sql(text: str) -> str:
    """Return a statement's or an expression's words, whatever its quotation marks, blanks, brackets and letters' case are."""
    try:
        tokens = sql_tokens(text.replace("\\'", "'"), 0, "")
    except UnsupportedSyntax:
        return " ".join(text.split())
    words = []
    for token in tokens:
        if token.kind is TokenKind.STRING:
            words.append(repr(token.text))
        elif token.kind is not TokenKind.END and token.text not in _WITHOUT_MEANING:
            word = token.text.lower()
            if not (word.startswith("_") and modern_charset(word[1:]) in ("utf8mb3", "utf8mb4", "latin1", "binary")):
                words.append(word)
    return " ".join(words)


def plain_body(text: str) -> str:
    """Return a program's words. Servers keep a body as it was written; a view may have quoted a word in it."""
    try:
        tokens = sql_tokens(text, 0, "")
    except UnsupportedSyntax:
        return " ".join(text.split())
    return " ".join(
        repr(token.text) if token.kind is TokenKind.STRING else token.text
        for token in tokens
        if token.kind is not TokenKind.END
    )


def plain_modes(text: str) -> str:
    """Return sql_mode without words that newer versions refuse."""
    return ",".join(sorted(word for word in text.split(",") if word and word not in GONE_MODES))
