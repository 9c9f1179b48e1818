"""Which tables a statement that defines something may be about, without understanding the statement."""

import re
from typing import Final

from protocol.sql.lexer import LINE_COMMENT

_MOST_BYTES: Final = 1 << 20
_MOST_NAMES: Final = 200
# Behind RENAME come TO or AS, a schema, a point, a table; or, as a statement's first word, TABLE, both names, and more pairs.
_BEHIND_RENAME: Final = 6
_TOKEN: Final = re.compile(
    rf"""
      /\*(?![!M]).*?(?:\*/|\Z)      # a comment
    | /\*M?!\d*                     # what only servers read is read
    | \*/
    | {LINE_COMMENT}
    | `(?P<name>(?>(?:[^`]++|``)*))(?:`|(?P<open>\Z))
    | "(?P<quoted>(?>(?:[^"]++|"")*))(?:"|(?P<open_2>\Z))
    | '(?>(?:[^'\\]++|''|\\.)*)(?:'|(?P<open_3>\\?\Z))
    | (?P<word>[\w$]++)
    | [^\s\w$]
    """,
    re.VERBOSE | re.DOTALL,
)

_OPEN: Final = frozenset(("open", "open_2", "open_3"))
"""Groups of a quotation that does not end."""


def defined_names(text: bytes) -> frozenset[str] | None:
    """Lower-case words of CREATE, ALTER, DROP and RENAME statements, among them every table whose columns they change.

    What stands in parentheses is left out: columns, and the tables that foreign keys name. None: it may be about any table
    (it is not UTF-8, or too long to tell).
    """
    if len(text) > _MOST_BYTES:
        return None
    try:
        statement = text.decode()
    except UnicodeDecodeError:
        return None
    names: set[str] = set()
    depth, left = 0, 0
    opened = False
    for match in _TOKEN.finditer(statement):
        token = match[0]
        if token == "(":
            depth += 1
            opened = True
        elif token == ")":
            depth = max(0, depth - 1)
        if match.lastgroup in _OPEN:
            return None
        name = match["name"] or match["quoted"] or match["word"]
        if name is None or depth:
            continue
        if match["name"] or match["quoted"]:
            name = name.replace("``", "`").replace('""', '"')
        if not opened or left > 0:
            names.add(name.lower())
            left -= 1
        if match["word"] and name.upper() == "RENAME":
            left = _BEHIND_RENAME
        if len(names) > _MOST_NAMES:
            return None
    return frozenset(names)
