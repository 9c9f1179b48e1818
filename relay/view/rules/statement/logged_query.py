"""A Query or Execute_load_query event of a group: its statement as text whose offsets are those of the bytes, and its setting."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from protocol.binlog.schema.column_charsets import charset_of_column, decode_text
from protocol.errors import Malformed
from protocol.kernel.codes import (
    EXECUTE_LOAD_QUERY_EVENT,
    EXECUTE_LOAD_QUERY_POST,
    QUERY_EVENT,
    QUERY_POST,
    QUERY_POST_3,
)
from relay.schema_history.tables.ddl_tokens import NotSure, SqlToken, TokenKind, sql_tokens

# What commits the transaction that it stands in.
_DEFINITIONS: Final = (b"create", b"alter", b"drop", b"rename", b"truncate")
# Bytes of a status variable's value by its code; texts have a length byte.
# Source: MySQL 9.7 `libs/mysql/binlog/event/statement_events.h`.
_VALUE_BYTES: Final = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 14: 8, 16: 1, 17: 8, 18: 2, 19: 1, 20: 1}
_CATALOG_WITH_ZERO, _TIME_ZONE, _CATALOG = 2, 5, 6
_FLAGS: Final = 0
_NO_FOREIGN_KEY_CHECKS: Final = 1 << 26
_SQL_MODE: Final = 1
_CHARSETS: Final = 4
# What BEGIN and COMMIT of our own take over of a statement: flags, sql_mode, catalog, character sets.
_TAKEN_OVER: Final = frozenset((0, _SQL_MODE, _CHARSETS, _CATALOG))
_FIRST_WORD: Final = re.compile(
    rb"(?>(?:\s++|/\*(?![!M])(?>(?:[^*]++|\*(?!/))*)\*/|(?:--|\#)[^\n]*+\n)*)([A-Za-z]++)?", re.VERBOSE
)
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


@dataclass(frozen=True)
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

    @property
    def is_definition(self) -> bool:
        """Whether its text begins as that of a definition, or of TRUNCATE. Comments in front are not looked behind."""
        return self.raw.lstrip()[:8].lower().startswith(_DEFINITIONS)

    @cached_property
    def sql_mode(self) -> int:
        """Under which it ran."""
        return int.from_bytes(self._variable(_SQL_MODE), "little")

    @property
    def foreign_key_checks(self) -> bool:
        """Whether it ran with foreign_key_checks = 1."""
        return not int.from_bytes(self._variable(_FLAGS), "little") & _NO_FOREIGN_KEY_CHECKS

    @cached_property
    def text(self) -> str:
        """The statement, one character for each byte: names in it are read with `name`.

        Where characters may hold bytes below 0x80 (gbk …) the others are no ASCII, so what quotes and ends is found all the same.
        """
        charset = charset_of_column(int.from_bytes(self._variable(_CHARSETS)[:2], "little"))
        if charset in _WIDE_CHARACTERS:
            return _one_for_each_byte(self.raw, charset)
        return self.raw.decode("latin-1")

    @cached_property
    def first_word(self) -> str:
        """In upper case, behind blanks and comments; "": it stands in brackets or in a comment for servers. What is long need not be
        read for it."""
        found = _FIRST_WORD.match(self.raw)
        return "" if found is None or found[1] is None else found[1].decode().upper()

    def name(self, token: SqlToken) -> str:
        """The text of a name or a string. Raises: NotSure where it is not of its character set."""
        if token.text.isascii():
            return token.text
        charset = charset_of_column(int.from_bytes(self._variable(_CHARSETS)[:2], "little"))
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
        status = b"".join(part for code, part in self._variables if code in _TAKEN_OVER)
        fixed = self.thread_id.to_bytes(4, "little") + bytes(4) + bytes([len(self.schema_bytes)]) + bytes(2)
        return fixed + len(status).to_bytes(2, "little") + status + self.schema_bytes + b"\0" + text

    def _variable(self, wanted: int) -> bytes:
        return next((part[1:] for code, part in self._variables if code == wanted), b"")

    @cached_property
    def _variables(self) -> list[tuple[int, bytes]]:
        """(code, code and value) of the status variables, up to one that nobody knows."""
        found: list[tuple[int, bytes]] = []
        at, status = 0, self.status
        while at < len(status):
            code = status[at]
            if code in _VALUE_BYTES:
                stop = at + 1 + _VALUE_BYTES[code]
            elif code in (_CATALOG_WITH_ZERO, _TIME_ZONE, _CATALOG) and at + 1 < len(status):
                stop = at + 2 + status[at + 1] + (code == _CATALOG_WITH_ZERO)
            else:
                break
            found.append((code, status[at:stop]))
            at = stop
        return found


def read_logged_query(event_type: int, body: bytes, post_lengths: bytes, server_version: str) -> LoggedQuery:
    """The statement of a Query or Execute_load_query event. `post_lengths`: by type code. Raises: Malformed."""
    post = post_lengths[QUERY_EVENT]
    if post < QUERY_POST_3:
        post = QUERY_POST
    has_status = post >= QUERY_POST
    is_load = event_type == EXECUTE_LOAD_QUERY_EVENT
    if is_load:
        post = max(post_lengths[EXECUTE_LOAD_QUERY_EVENT], EXECUTE_LOAD_QUERY_POST)
    status_length = int.from_bytes(body[11:13], "little") if has_status else 0
    at = post + status_length
    stop = at + (body[8] if len(body) > at else 0)
    if len(body) <= stop:
        raise Malformed(f"a statement whose lengths pass its event's {len(body)} bytes")
    return LoggedQuery(
        head=body[: stop + 1],
        raw=body[stop + 1 :],
        thread_id=int.from_bytes(body[:4], "little"),
        error=int.from_bytes(body[9:11], "little"),
        schema_bytes=body[at:stop],
        status=body[post:at],
        server_version=server_version,
        is_load=is_load,
    )


def _one_for_each_byte(raw: bytes, charset: str) -> str:
    """As latin-1, with the bytes of every character of several bytes replaced by a letter that is none of ASCII's.

    What cannot be the second byte of a character belongs to none, as servers read it: `'\xc4'` of gbk is a string.
    """
    return _WIDE_CHARACTERS[charset].sub(lambda found: b"\xe9" * len(found[0]), raw).decode("latin-1")


def is_word(token: SqlToken, *words: str) -> bool:
    """Whether the token is one of these keywords, not quoted."""
    return token.kind is TokenKind.WORD and token.upper in words
