"""The first look at a statement: its kind, by its first words, and the object of a definition. Nothing else of it is read."""

import re
from enum import Enum
from typing import Final, NamedTuple

from protocol.sql.gaps import GAPS, first_word_at, is_crowded
from protocol.sql.lexer import UnsupportedSyntax


class Purpose(Enum):
    """The effect of a statement, according to its first words."""

    CONTROL = "transaction control"
    """BEGIN, COMMIT, SAVEPOINT, XA …: see `control`."""
    DEFINITION = "definition"
    """CREATE, ALTER, DROP, RENAME and TRUNCATE, except for those of accounts."""
    ACCOUNTS = "accounts"
    """It creates, changes or drops accounts, roles or privileges."""
    ROWS = "rows"
    """It changes rows, or may do so by functions and procedures that it calls."""
    OTHER = "other"
    UNSURE = "unsure"
    """An executable comment precedes its first word, and it is not known whether the server reads it."""


class StatementKind(NamedTuple):
    """The kind of a statement. `verb` is its first word, in upper case; "": there is none, or it is not known. `thing` is the object
    of a CREATE, ALTER, DROP, RENAME or TRUNCATE, such as TABLE or VIEW (DATABASE also for SCHEMA), PASSWORD or DEFAULT ROLE of SET;
    "": none of those known here. `temporary`: TEMPORARY precedes it.
    """

    purpose: Purpose
    verb: str = ""
    thing: str = ""
    temporary: bool = False

    @property
    def may_define(self) -> bool:
        """True if it creates, changes, drops or renames something, accounts too, or that is not known."""
        return self.verb in _DEFINES or self.purpose is Purpose.UNSURE

    @property
    def may_commit(self) -> bool:
        """True if it commits its transaction as definitions do, or that is not known."""
        return self.verb == "TRUNCATE" or self.may_define


ROW_VERBS: Final = frozenset(("INSERT", "REPLACE", "UPDATE", "DELETE"))
"""The verbs of statements that only change rows, but for LOAD."""
_DEFINES: Final = frozenset(("CREATE", "ALTER", "DROP", "RENAME"))
DEFINING_VERBS: Final = _DEFINES | {"TRUNCATE"}
_UNSURE: Final = StatementKind(Purpose.UNSURE)
_NOTHING: Final = StatementKind(Purpose.OTHER)
_BY_VERB: Final = {
    **dict.fromkeys(("COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA"), Purpose.CONTROL),
    **dict.fromkeys(("GRANT", "REVOKE"), Purpose.ACCOUNTS),
    **dict.fromkeys(
        ("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "CALL", "DO", "SELECT", "VALUES"), Purpose.ROWS
    ),
}
_BY_WORD: Final = {
    spelled: StatementKind(purpose, word)
    for word, purpose in _BY_VERB.items()
    for spelled in (word.encode(), word.lower().encode())
}
"""The kinds that one word determines in its usual spelling: every statement is looked up here."""
_WORD: Final = re.compile(rb"[A-Za-z_][\w$]*+")
_NAME: Final = rb"(?>`(?>(?:[^`]++|``)*)`|\"(?>[^\"]*)\"|'(?>[^']*)'|[\w$.%\x80-\xff]++)"
_ACCOUNT: Final = rb"%(name)s%(gaps)s(?>(?:@%(gaps)s%(name)s|\(%(gaps)s\))?)" % {**GAPS, b"name": _NAME}
_THING: Final = re.compile(
    rb"""
    (?>(?:%(between)s (?>
        OR %(between)s REPLACE\b | (?P<temporary> TEMPORARY\b)
      | (?:ONLINE|OFFLINE|IGNORE|UNIQUE|FULLTEXT|SPATIAL|VECTOR|AGGREGATE|UNDO|NO_WRITE_TO_BINLOG|LOCAL)\b
      | DEFINER %(gaps)s = %(gaps)s %(account)s | ALGORITHM %(gaps)s = %(gaps)s \w++ | SQL %(gap)s SECURITY %(gap)s \w++
    ))*)
    %(between)s (?P<thing> [A-Za-z]++) (?![\w$])
    """
    % {**GAPS, b"account": _ACCOUNT},
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
DEFINED_OBJECTS: Final = {
    **{
        word: word
        for word in (
            "TABLE", "INDEX", "DATABASE", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "USER", "ROLE", "SERVER", "TABLESPACE",
            "SEQUENCE", "PACKAGE", "LOGFILE", "INSTANCE", "LIBRARY", "RESOURCE",
        )
    },
    "SCHEMA": "DATABASE", "TABLES": "TABLE",
}  # fmt: skip
_AFTER: Final = {
    "BEGIN": re.compile(rb"(?>(?:%(gap)sWORK)?)%(gaps)s;?+\Z" % GAPS, re.DOTALL | re.IGNORECASE),
    "START": re.compile(rb"%(between)sTRANSACTION\b" % GAPS, re.DOTALL | re.IGNORECASE),
    "ANALYZE": re.compile(
        rb"%(gap)s(?>(?:FORMAT%(gaps)s=%(gaps)s\w++%(gap)s)?)(?!(?:NO_WRITE_TO_BINLOG|LOCAL|TABLES?)\b)\w" % GAPS,
        re.DOTALL | re.IGNORECASE,
    ),
    "SET": re.compile(rb"%(between)s(?:(PASSWORD)|DEFAULT%(between)sROLE)\b" % GAPS, re.DOTALL | re.IGNORECASE),
}


def kind_of(text: bytes, server_version: str = "") -> StatementKind:
    """Return the kind of a statement. `server_version` is that of the server that ran it; "": not known."""
    try:
        at = first_word_at(text, server_version)
    except UnsupportedSyntax:
        return _UNSURE
    found = _WORD.match(text, at)
    if found is None:
        return _NOTHING
    word = found[0]
    known = _BY_WORD.get(word)
    return known if known is not None else _kind(text, found.end(), word.decode().upper())


def _kind(text: bytes, stop: int, verb: str) -> StatementKind:
    purpose = _BY_VERB.get(verb)
    if purpose is not None:
        return StatementKind(purpose, verb)
    if is_crowded(text, stop):
        return _UNSURE
    if verb in DEFINING_VERBS:
        about = _THING.match(text, stop)
        if about is None:
            return StatementKind(Purpose.DEFINITION, verb)
        thing = DEFINED_OBJECTS.get(about["thing"].decode().upper(), "")
        purpose = Purpose.ACCOUNTS if thing in ("USER", "ROLE") else Purpose.DEFINITION
        return StatementKind(purpose, verb, thing, about["temporary"] is not None)
    after = _AFTER[verb].match(text, stop) if verb in _AFTER else None
    if verb in ("BEGIN", "START") and after is not None:
        return StatementKind(Purpose.CONTROL, verb)
    if verb == "ANALYZE" and after is not None:
        return StatementKind(Purpose.ROWS, verb)  # MariaDB runs the statement that it analyzes
    if verb == "SET" and after is not None:
        return StatementKind(Purpose.ACCOUNTS, verb, "PASSWORD" if after[1] else "DEFAULT ROLE")
    return StatementKind(Purpose.OTHER, verb)
