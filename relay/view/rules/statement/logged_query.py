"""A Query or Execute_load_query event of a group: its statement as text whose offsets are those of the bytes, and its setting."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from protocol.binlog.query import Query, read_query
from protocol.binlog.schema.column_charsets import charset_of_column, decode_text
from protocol.binlog.status_variables import CATALOG, CHARSETS, FLAGS, SQL_MODE, encode_status, known_values
from protocol.kernel.codes import EXECUTE_LOAD_QUERY_EVENT
from protocol.sql.kind import StatementKind, kind_of
from protocol.sql.lexer import NotSure, SqlToken, TokenKind, sql_tokens

_NO_FOREIGN_KEY_CHECKS: Final = 1 << 26
# What BEGIN and COMMIT of our own take over of a statement: flags, sql_mode, catalog, character sets.
_TAKEN_OVER: Final = frozenset((FLAGS, SQL_MODE, CHARSETS, CATALOG))
# Of character sets in which a byte below 0x80 may be a part of a character: its characters of several bytes.
# Source: MySQL 9.7 `strings/ctype-*.cc`, the `ismbchar` of each.
_SHIFT_JIS: Final = re.compile(rb"(?>(?:[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc])+)")
_WIDE_CHARACTERS: Final = {
    "big5": re.compile(rb"(?>(?:[\xa1-\xf9][\x40-\x7e\xa1-\xfe])+)"),
    "cp932": _SHIFT_JIS,
    "gb18030": re.compile(rb"(?>(?:[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[\x30-\x39][\x81-\xfe][\x30-\x39]))+)"),
    "gbk": re.compile(rb"(?>(?:[\x81-\xfe][\x40-\x7e\x80-\xfe])+)"),
    "sjis": _SHIFT_JIS,
}


@dataclass  # not frozen: there is one for each statement, and that costs
class LoggedQuery:
    """`head`: the body up to the text; `raw`: the statement's bytes. Raises of all methods: NotSure, where the text cannot be read."""

    head: bytes
    raw: bytes
    thread_id: int
    error: int
    schema_bytes: bytes
    status: bytes
    server_version: str
    is_load: bool = False

    @property
    def schema(self) -> str:
        """The default database."""
        return self.schema_bytes.decode("utf-8", "backslashreplace")

    @cached_property
    def kind(self) -> StatementKind:
        """What kind of statement it is, by its first words."""
        return kind_of(self.raw, self.server_version)

    @cached_property
    def sql_mode(self) -> int:
        """Under which it ran."""
        return int.from_bytes(self._values.get(SQL_MODE, b""), "little")

    @property
    def foreign_key_checks(self) -> bool:
        """Whether it ran with foreign_key_checks = 1."""
        return not int.from_bytes(self._values.get(FLAGS, b""), "little") & _NO_FOREIGN_KEY_CHECKS

    @cached_property
    def text(self) -> str:
        """The statement, one character for each byte: names in it are read with `name`.

        Where characters may hold bytes below 0x80 (gbk …) the others are no ASCII, so what quotes and ends is found all the same.
        """
        charset = self._charset
        if charset in _WIDE_CHARACTERS:
            return _one_for_each_byte(self.raw, charset)
        return self.raw.decode("latin-1")

    def name(self, token: SqlToken) -> str:
        """The text of a name or a string. Raises: NotSure where it is not of its character set."""
        if token.text.isascii():
            return token.text
        charset = self._charset
        if charset in _WIDE_CHARACTERS:
            raise NotSure("a name in a character set of several bytes")
        made = decode_text(token.text.encode("latin-1"), charset)
        if "\ufffd" in made:
            raise NotSure("a name that is not of its character set")
        return made

    @cached_property
    def tokens(self) -> list[SqlToken]:
        """Its words, with where they stand in `raw`; the last is of kind END. Raises: NotSure."""
        return sql_tokens(self.text, self.sql_mode, self.server_version)

    def with_text(self, raw: bytes) -> bytes:
        """The body of the event with another statement."""
        return self.head + raw

    def control(self, text: bytes) -> bytes:
        """The body of a Query for BEGIN or COMMIT of the same connection, in the same database, under the same modes."""
        status = encode_status({code: value for code, value in self._values.items() if code in _TAKEN_OVER})
        return Query(self.thread_id, 0, 0, status, self.schema_bytes, text).encode()

    @property
    def _charset(self) -> str | None:
        return charset_of_column(int.from_bytes(self._values.get(CHARSETS, b"")[:2], "little"))

    @cached_property
    def _values(self) -> dict[int, bytes]:
        return known_values(self.status)


def read_logged_query(event_type: int, body: bytes, post_lengths: bytes, server_version: str) -> LoggedQuery:
    """The statement of a Query or Execute_load_query event. `post_lengths`: by type code. Raises: Malformed."""
    query = read_query(event_type, body, post_lengths[event_type])
    return LoggedQuery(
        head=body[: len(body) - len(query.text)],
        raw=query.text,
        thread_id=query.thread_id,
        error=query.error_code,
        schema_bytes=query.schema,
        status=query.status_variables,
        server_version=server_version,
        is_load=event_type == EXECUTE_LOAD_QUERY_EVENT,
    )


def _one_for_each_byte(raw: bytes, charset: str) -> str:
    """As latin-1, with the bytes of every character of several bytes replaced by a letter that is none of ASCII's.

    What cannot be the second byte of a character belongs to none, as servers read it: `'\xc4'` of gbk is a string.
    """
    return _WIDE_CHARACTERS[charset].sub(lambda found: b"\xe9" * len(found[0]), raw).decode("latin-1")


def is_word(token: SqlToken, *words: str) -> bool:
    """Whether the token is one of these keywords, not quoted."""
    return token.kind is TokenKind.WORD and token.upper in words
