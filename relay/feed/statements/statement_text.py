"""What may stand in a statement's text between its words, as regular expressions. None of them takes long over any text."""

import re
from typing import Final

from protocol.sql.lexer import LINE_COMMENT

BLANK: Final = rf"(?:\s|/\*(?![!M])(?>.*?\*/)|/\*M?!\d*|\*/|{LINE_COMMENT})"
"""One blank or comment, with DOTALL; what stands in a comment for certain versions is the statement's."""
BLANKS: Final = f"(?>{BLANK}*)"
STRINGS: Final = re.compile(r"'(?>(?:[^'\\]|\\.|'')*)(?:'|\\?$)|\"(?>(?:[^\"\\]|\\.|\"\")*)(?:\"|\\?$)", re.DOTALL)
