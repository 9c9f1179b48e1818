"""What may be before and between the first words of a statement, as patterns over its bytes.

Blanks, comments, and the marks of executable comments (`/*!50000 … */`), whose content is a part of the statement.
"""

from typing import Final

from protocol.sql.lexer import LINE_COMMENT

LINE_COMMENT_BYTES: Final = LINE_COMMENT.encode()
_GAP: Final = rb"(?>\s|/\*(?!!).*?\*/|/\*!\d*|\*/|" + LINE_COMMENT_BYTES + rb")"
GAPS: Final = {b"gap": b"(?>" + _GAP + b"+)", b"gaps": b"(?>" + _GAP + b"*)"}
"""By the names that patterns have for them: `gap` is at least one, `gaps` may be none. For re.DOTALL."""
