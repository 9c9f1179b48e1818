"""Statements in a form that a log may show."""

import re
from typing import Final

_LIMIT_CHARACTERS: Final = 4096
# No log shows more, and this is done on the event loop.
_SHOWN_CHARACTERS: Final = 1024
# Mistyped ones are included: what is refused for its spelling is logged as well.
_SECRET_WORDS: Final = ("passw", "pasw", "_pass", "pass=", "pwd", "@pw", "identif", "secret", "credential", "encrypt")
# Statements that take a password, whatever its option is called there.
_VERBS: Final = re.compile(r"\b(?:change|grant|start\s++(?:slave|replica|all)|(?:create|alter)\s++(?:user|server))\b")
# A string that is not closed extends to the end: the part that broke may be the secret.
_QUOTED: Final = r"""'(?>(?:[^'\\]++|\\.|'')*)(?:'|\\?$)|"(?>(?:[^"\\]++|\\.|"")*)(?:"|\\?$)"""
_STRING: Final = re.compile(_QUOTED, re.DOTALL)
_PIECE: Final = re.compile(rf"""(?P<string>{_QUOTED})|(?P<run>[^\s,=();'"]++)(?>(?P<assigned>\s*+=)?)""", re.DOTALL)
_OPTION: Final = re.compile(
    r"(?:MASTER|SOURCE|RELAY|GET|REQUIRE|ASSIGN|IGNORE|DO|NETWORK|PRIVILEGE|GTID)_[A-Z_]++", re.IGNORECASE
)
_KEYWORDS: Final = frozenset((
    "ACCOUNT", "ALL", "ALTER", "AND", "AS", "BINLOG", "BY", "CHANGE", "CHANNEL", "CREATE", "DATABASE", "DEFAULT_AUTH",
    "DROP", "EVENTS", "EXISTS", "FLUSH", "FOR", "FROM", "FUNCTION", "GLOBAL", "GRANT", "IDENTIFIED", "IF", "IN",
    "IO_THREAD", "KILL", "LIKE", "LOCAL", "LOCK", "MASTER", "NONE", "NOT", "ON", "OPTION", "OR", "PASSWORD",
    "PLUGIN_DIR", "PRIVILEGES", "REPLACE", "REPLICA", "REPLICAS", "REPLICATION", "REQUIRE", "RESET", "REVOKE", "ROLE",
    "SELECT", "SERVER", "SESSION", "SET", "SHOW", "SLAVE", "SLAVES", "SOURCE", "SQL_THREAD", "SSL", "START", "STATUS",
    "STOP", "TABLE", "TO", "UNLOCK", "UNTIL", "USER", "USING", "VARIABLES", "VIA", "WHERE", "WITH", "X509", "@", "*",
    "*.*", ":=",
))  # fmt: skip
_MASK: Final = "***"


def without_secrets(text: str) -> str:
    """Return a statement's beginning for a log."""
    return part_without_secrets(text, text)


def part_without_secrets(part: str, statement: str) -> str:
    """Return the beginning of a part of a statement, without what may be a password in the whole statement."""
    part = part[:_SHOWN_CHARACTERS]
    seen = (statement[:_LIMIT_CHARACTERS] + part).lower()
    if any(word in seen for word in _SECRET_WORDS):
        return _only_keywords(part)
    return without_strings(part) if _VERBS.search(seen) else part


def without_strings(text: str) -> str:
    """Return the beginning of a statement, or of a part of it, without the content of its strings."""
    return _STRING.sub("'***'", text[:_LIMIT_CHARACTERS])


def _only_keywords(text: str) -> str:
    """Keep keywords and names of options, and nothing else.

    A password may be there without quotes, in malformed quotes, or after a quote that closes another string.
    """
    return _PIECE.sub(_keyword_or_mask, text)


def _keyword_or_mask(match: re.Match[str]) -> str:
    run, assigned = match["run"], match["assigned"] or ""
    if run is None:
        return f"'{_MASK}'"
    shown = run.upper() in _KEYWORDS or (assigned and _OPTION.fullmatch(run) is not None)
    return (run if shown else _MASK) + assigned
