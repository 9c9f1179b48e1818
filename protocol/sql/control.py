"""Transaction control in a binary log: BEGIN, COMMIT, ROLLBACK, SAVEPOINT and XA, with their names."""

import re
from enum import Enum
from typing import Final, NamedTuple

from protocol.sql.gaps import GAPS, first_word_at
from protocol.sql.lexer import UnsupportedSyntax


class Control(Enum):
    """The effect of a statement on its transaction."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    ROLLBACK_TO = "rollback to"
    SAVEPOINT = "savepoint"
    RELEASE = "release savepoint"
    XA_START = "xa start"
    XA_END = "xa end"
    XA_PREPARE = "xa prepare"
    XA_COMMIT = "xa commit"
    XA_ROLLBACK = "xa rollback"


class ControlStatement(NamedTuple):
    """A statement of transaction control. `name` is that of a savepoint, without quotes and in lower case, as servers compare it; of
    an XA transaction, as in the statement, without ONE PHASE; otherwise empty.
    """

    control: Control
    name: bytes = b""


_NAME: Final = rb"`(?>(?:[^`]++|``)*)`|\"(?>(?:[^\"]++|\"\")*)\"|[^\s;/*\#]*+"
_BEFORE_NAME: Final = rb"(?>%(gap)s|(?=[`\"]))" % GAPS
_CONTROL: Final = re.compile(
    rb"""(?:
      (?P<BEGIN> BEGIN (?>(?:%(gap)s WORK)?) %(gaps)s ;?+ \Z | START %(gap)s TRANSACTION \b)
    | (?P<COMMIT> COMMIT \b)
    | ROLLBACK %(gap)s (?>(?:WORK %(gap)s)?) TO %(before)s (?>(?:SAVEPOINT %(before)s)?) (?P<ROLLBACK_TO> %(name)s)
    | (?P<ROLLBACK> ROLLBACK \b)
    | SAVEPOINT %(before)s (?P<SAVEPOINT> %(name)s)
    | RELEASE %(gap)s SAVEPOINT %(before)s (?P<RELEASE> %(name)s)
    | XA %(gap)s (?:
        (?:START|BEGIN) \b (?P<XA_START> .*+) | END \b (?P<XA_END> .*+) | PREPARE \b (?P<XA_PREPARE> .*+)
      | COMMIT \b (?P<XA_COMMIT> .*+) | ROLLBACK \b (?P<XA_ROLLBACK> .*+)
      )
    )"""
    % {**GAPS, b"name": _NAME, b"before": _BEFORE_NAME},
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_ONE_PHASE: Final = re.compile(rb"\sONE\s++PHASE\s*+\Z", re.IGNORECASE)
_SAVEPOINTS: Final = frozenset((Control.SAVEPOINT, Control.ROLLBACK_TO, Control.RELEASE))


def control_of(text: bytes, server_version: str = "") -> ControlStatement | None:
    """Return a statement's effect on its transaction; None: it is no transaction control, or that is not known.

    Comments before it are skipped: servers since 5.0 log SAVEPOINT and ROLLBACK TO in the client's own text.
    `server_version` is that of the server that ran it; "": not known.
    """
    try:
        found = _CONTROL.match(text, first_word_at(text, server_version))
    except UnsupportedSyntax:
        return None
    if found is None or found.lastgroup is None:
        return None
    control, name = Control[found.lastgroup], found[found.lastgroup]
    if control in _SAVEPOINTS:
        return ControlStatement(control, _savepoint_name(name))
    if control.name.startswith("XA_"):
        return ControlStatement(control, _ONE_PHASE.sub(b"", name).strip())
    return ControlStatement(control)


def _savepoint_name(text: bytes) -> bytes:
    """Return the name without quotes: with ANSI_QUOTES servers log SAVEPOINT "s", but ROLLBACK TO `s` (5.6.24)."""
    name = text
    quote = name[:1]
    if quote in (b"`", b'"') and name[-1:] == quote and len(name) > 1:
        name = name[1:-1].replace(quote * 2, quote)
    return name.lower()
