"""A statement as the source understood it, with the changes that make an older target understand the same."""

import re
from typing import Final

from protocol.binlog.schema.column_charsets import charset_of_column
from protocol.sql.byte_text import blank_of, byte_text, is_wide
from protocol.sql.edits import TokenEdits, edited
from protocol.sql.lexer import ReadAs, SqlComment, sql_text, tokens_inside, with_variables
from protocol.sql.sql_words import SqlWords
from protocol.sql.tables.ddl_parser import read_table_definition
from relay.view.rules.targets.known.target import Target

_MOST_WORDS: Final = 500_000
_HARMLESS: Final = re.compile(r"\s*+(?>(?:DEFAULT\s++)?)ENCRYPTION\s*+=?+\s*+'[Nn]'\s*+", re.IGNORECASE)


class SourceStatement(SqlWords, TokenEdits):
    """A statement. The content of a version comment is part of it where the source read it so; where the target would not, the
    comment's marks are removed (see `result`).

    `hints` are for the optimizer; versions before 5.7 skip them. `literals` are rows of an INSERT that contain nothing else; of their
    words only the outermost brackets are among `words`. Places of words are in bytes.

    `definition` is the CREATE TABLE or ALTER TABLE that it is, as far as it is known, or None.

    `text` is as in the event, `collation` is the client's, `source` is its version as 90704. Raises: UnsupportedSyntax.
    """

    def __init__(self, text: bytes, collation: int, sql_mode: int, source: int, target: Target) -> None:
        self._original = text
        charset = charset_of_column(collation)
        self._is_wide = is_wide(charset)
        self._text = byte_text(text, charset)
        version = f"{source // 10_000}.{source // 100 % 100}.{source % 100}"
        read = sql_text(
            self._text, ReadAs(version, sql_mode, folds_rows=True, blank=blank_of(charset), most=_MOST_WORDS)
        )
        self.hints = [self._text[one.start : one.stop] for one in read.comments if one.mark == "+"]
        self.literals = [self._text[start:stop] for start, stop in read.rows]
        left_out = [one for one in read.comments if one.mark == "!" and self._is_left_out(one, target)]
        removed = set(tokens_inside(read.tokens, left_out)) if left_out else ()
        tokens = [one for at, one in enumerate(read.tokens) if at not in removed] if removed else read.tokens
        starts = {one.start for one in left_out}
        if "@" in self._text:
            tokens = with_variables(tokens)
        SqlWords.__init__(self, tokens)
        TokenEdits.__init__(self, text, self.words)
        self.definition = read_table_definition(tokens, self._text, "?", sql_mode, version, lambda token: token.text)
        for comment in read.comments:
            if comment.start in starts:
                self.replace(comment.start, comment.stop, " ")
            elif comment.is_read and self._loses_marks(comment, target):
                self.replace(comment.start, comment.body, " ")
                self.replace(comment.stop - 2, comment.stop, " ")

    def _is_left_out(self, comment: SqlComment, target: Target) -> bool:
        """Return whether the target gets nothing of a version comment."""
        if target.version >= (8, 0):
            return False
        if not comment.is_read:
            return len(comment.digits) == 6  # 5.6 and 5.7 take five digits for the version, whatever follows
        harmless = _HARMLESS.fullmatch(self._text, comment.body, comment.stop - 2)
        return harmless is not None and self._loses_marks(comment, target)

    @staticmethod
    def _loses_marks(comment: SqlComment, target: Target) -> bool:
        return comment.version > target.comment_version or (len(comment.digits) == 6 and target.version < (8, 0))

    def text_at(self, index: int) -> str:
        """Implement `SqlWords.text_at`; characters of several bytes of a wide set are their bytes, with quotation marks, in any
        case.
        """
        text = super().text_at(index)
        if not self._is_wide or text.isascii():
            return text
        return self._original[self.words[index].start : self.words[index].stop].decode("latin-1")

    @property
    def result(self) -> bytes:
        """The statement with all changes."""
        return edited(self._original, self.edits) if self.edits else self._original
