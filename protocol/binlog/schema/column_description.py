"""Descriptions of a table's columns for binlogs whose events do not name them: packed, for the kernel."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocol.binlog.fields import Fields
from protocol.wire import lenenc_bytes, lenenc_int

_NATIVE: Final = re.compile(r"(?:time|datetime|timestamp)\([1-6]\)|[^\s(]*")
_TEXT: Final = re.compile(r"'((?>(?:[^'\\]++|''|\\.)*))(?:'|\\?\Z)", re.DOTALL)
_ESCAPE: Final = re.compile(r"''|\\.", re.DOTALL)
_ESCAPED: Final = {r"\0": "\0", r"\n": "\n", r"\r": "\r", r"\Z": "\x1a"}


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """A column in the form of information_schema.COLUMNS: COLUMN_NAME, COLUMN_TYPE (`int(10) unsigned`, `enum('a','b')`, `uuid`),
    CHARACTER_SET_NAME (None if it is no text).
    """

    name: str
    column_type: str
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """A column in the form for the kernel. `native` is the first word of the type, for a time with the digits of its fraction,
    `time(3)`; `texts` are those of an ENUM or SET, UTF-8.
    """

    name: bytes
    native: str
    unsigned: bool
    charset: str | None
    texts: list[bytes]


def encode_columns(columns: Sequence[ColumnDescription]) -> bytes:
    """Pack descriptions, all columns of a table in its order.

    Layout: count packed, then for each: strings (length packed, bytes) name, `native`, character set or nothing | unsigned u8 | count
    of texts packed, strings. All in UTF-8.
    """
    out = [lenenc_int(len(columns))]
    for column in columns:
        kind = column.column_type.strip()
        native = _NATIVE.findall(kind.lower())[0]
        texts = column_texts(kind) if native in ("enum", "set") else []
        out += [lenenc_bytes(_bytes(text)) for text in (column.name, native, column.charset or "")]
        out.append(bytes([" unsigned" in kind.lower() and native not in ("enum", "set")]))
        out.append(lenenc_int(len(texts)))
        out += [lenenc_bytes(_bytes(text)) for text in texts]
    return b"".join(out)


def decode_columns(packed: bytes) -> list[DescribedColumn]:
    """Decode the result of `encode_columns`. Raises: Truncated."""
    fields = Fields(packed)
    columns = []
    for _ in range(fields.lenenc_int()):
        name, native, charset = (fields.lenenc_bytes() for _ in range(3))
        unsigned = bool(fields.u8())
        texts = [fields.lenenc_bytes() for _ in range(fields.lenenc_int())]
        columns.append(DescribedColumn(name, native.decode(), unsigned, charset.decode() or None, texts))
    return columns


def column_texts(column_type: str) -> list[str]:
    """Return the texts of an ENUM or SET from its type."""
    return [_unquoted(text) for text in _TEXT.findall(column_type)]


def _unquoted(text: str) -> str:
    """Return an ENUM's or SET's text without information_schema's escapes."""
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[0], match[0][1]), text)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
