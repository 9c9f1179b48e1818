"""Comments that only one of the two servers reads.

MariaDB runs the content of `/*M! … */` and of `/*!100300 … */`, MySQL does not; for optimizer hints it is the reverse. A table created
with such a comment unchanged silently has fewer columns at the replica, and rows are applied by position.
"""

import re
from typing import Final, NamedTuple

from protocol.sql.server_version import LAST_OF_MYSQL_ONLY
from relay.view.rules.statement.logged_query import LoggedQuery

_HINTED: Final = re.compile(r"(?:SELECT|INSERT|REPLACE|UPDATE|DELETE)\s*+\Z", re.IGNORECASE)
_LONGEST_HINTED: Final = 64


class OpenedText(NamedTuple):
    """A text with opened comments. `raw` is as long as the source's text, with blanks for the marks of comments that MariaDB reads, and
    without comments that only MySQL reads. `differs`: MySQL would have read the source's text differently."""

    raw: bytes
    differs: bool


def opened_text(query: LoggedQuery) -> OpenedText:
    """Return the text with comments opened. Raises: UnsupportedSyntax."""
    if b"/*" not in query.raw:
        return OpenedText(query.raw, False)
    made = bytearray(query.raw)
    differs = False
    for comment in query.read.comments:
        if comment.is_read:
            made[comment.start : comment.body] = b" " * (comment.body - comment.start)
            made[comment.stop - 2 : comment.stop] = b"  "
            differs = differs or comment.mark == "M!" or comment.version > LAST_OF_MYSQL_ONLY
        elif comment.mark in ("!", "M!") and b"/*" in query.raw[comment.body : comment.stop]:
            # where it is a plain comment, it would end with the first comment in it
            made[comment.start : comment.stop] = b" " * (comment.stop - comment.start)
            differs = True
        elif comment.mark == "!":
            made[comment.start + 2] = ord(" ")
            differs = differs or comment.version <= LAST_OF_MYSQL_ONLY
        elif comment.mark == "+" and _HINTED.search(query.text, max(comment.start - _LONGEST_HINTED, 0), comment.start):
            made[comment.start + 2] = ord(" ")
            differs = True
    return OpenedText(bytes(made), differs)
