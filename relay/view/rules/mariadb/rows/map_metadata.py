"""The optional metadata of a Table_map: what MariaDB writes, as MySQL counts it.

Both have the same kinds with the same numbers. Of the character sets, MariaDB has one for each column of texts and for each GEOMETRY,
MySQL none for GEOMETRY and for JSON: left as they are, every text column behind a geometry would have another one's.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from protocol.binlog.fields import Fields
from protocol.errors import Malformed
from protocol.wire import lenenc_bytes, lenenc_int
from relay.view.rules.group import CannotBeKept
from relay.view.rules.mariadb.rows.table_map_body import (
    BLOB,
    BLOB_COMPRESSED,
    ENUM,
    GEOMETRY,
    SET,
    STRING,
    VARCHAR,
    VARCHAR_COMPRESSED,
    VECTOR,
    MapColumn,
)

_SOURCE_TEXTS: Final = frozenset((VARCHAR, VARCHAR_COMPRESSED, BLOB_COMPRESSED, BLOB, STRING, GEOMETRY))
_TARGET_TEXTS: Final = frozenset((VARCHAR, VECTOR, BLOB, STRING))
_CHOICES: Final = frozenset((ENUM, SET))
_DEFAULT_CHARSET: Final = 2
_COLUMN_CHARSETS: Final = 3
_COLUMN_NAMES: Final = 4
_CHOICES_DEFAULT_CHARSET: Final = 10
_CHOICES_CHARSETS: Final = 11
_VECTOR_DIMENSIONS: Final = 13

CollationOf = Callable[[int], int]
"""The target's number for a collation of the source. It may raise CannotBeKept."""


class MetadataField(NamedTuple):
    """One of them: its kind and its value."""

    kind: int
    value: bytes

    def encode(self) -> bytes:
        """As it stands in the event: kind u8 | length packed | value."""
        return bytes((self.kind,)) + lenenc_bytes(self.value)


def decode_metadata(optional: bytes) -> list[MetadataField]:
    """Their order is kept. Raises: Truncated, Malformed."""
    fields = Fields(optional)
    found = []
    while fields.remaining:
        found.append(MetadataField(fields.u8(), fields.lenenc_bytes()))
    return found


def column_names(fields: Sequence[MetadataField], count: int) -> list[bytes] | None:
    """The names of all `count` columns; None: the source does not tell them (binlog_row_metadata is not FULL). Raises: Truncated,
    Malformed."""
    for kind, value in fields:
        if kind == _COLUMN_NAMES:
            names = Fields(value)
            found = [names.lenenc_bytes() for _ in range(count)]
            if names.remaining:
                raise Malformed(f"{names.remaining} bytes behind the names of {count} columns")
            return found
    return None


def translate_metadata(
    fields: Sequence[MetadataField], before: Sequence[MapColumn], after: Sequence[MapColumn], collation_of: CollationOf
) -> bytes:
    """The optional metadata for the columns `after`, which stand for the source's columns `before`.

    A field with a collation that the target has nothing for is left out: replicas do not look at it, and other readers are told
    nothing then, in place of something wrong. Raises: Truncated, Malformed.
    """
    texts = [i for i, column in enumerate(before) if column.real_type in _SOURCE_TEXTS]
    kept = {i for i, column in enumerate(after) if column.real_type in _TARGET_TEXTS}
    places = [i in kept for i in texts]
    choices = [True for column in before if column.real_type in _CHOICES]
    made = []
    for kind, value in fields:
        try:
            if kind == _DEFAULT_CHARSET:
                value = _default_charset(value, places, collation_of)
            elif kind == _COLUMN_CHARSETS:
                value = _charsets(value, places, collation_of)
            elif kind == _CHOICES_DEFAULT_CHARSET:
                value = _default_charset(value, choices, collation_of)
            elif kind == _CHOICES_CHARSETS:
                value = _charsets(value, choices, collation_of)
        except CannotBeKept:
            continue
        if value:
            made.append(MetadataField(kind, value))
    return b"".join(field.encode() for field in made)


def vector_dimensions(dimensions: Sequence[int]) -> bytes:
    """The field that a table with VECTOR columns has, in their order; b"": it has none."""
    if not dimensions:
        return b""
    return MetadataField(_VECTOR_DIMENSIONS, b"".join(map(lenenc_int, dimensions))).encode()


def _default_charset(value: bytes, places: Sequence[bool], collation_of: CollationOf) -> bytes:
    """Layout: the collation that most have, packed; then pairs: which of the columns, packed, and its collation, packed.

    places: of each column that the source counts, whether the target counts it.
    """
    if not any(places):
        return b""
    fields = Fields(value)
    made = [lenenc_int(collation_of(fields.lenenc_int()))]
    moved = _numbers_of(places)
    while fields.remaining:
        which, collation = fields.lenenc_int(), fields.lenenc_int()
        if which >= len(places):
            raise Malformed(f"a character set of text column {which}; the table has {len(places)}")
        if places[which]:
            made += [lenenc_int(moved[which]), lenenc_int(collation_of(collation))]
    return b"".join(made)


def _charsets(value: bytes, places: Sequence[bool], collation_of: CollationOf) -> bytes:
    """Layout: the collation of each column, packed."""
    fields = Fields(value)
    collations = [fields.lenenc_int() for _ in places]
    if fields.remaining:
        raise Malformed(f"{fields.remaining} bytes behind the character sets of {len(places)} columns")
    return b"".join(
        lenenc_int(collation_of(collation)) for collation, stays in zip(collations, places, strict=True) if stays
    )


def _numbers_of(places: Sequence[bool]) -> list[int]:
    """Of each place how many before it stay."""
    numbers = []
    count = 0
    for stays in places:
        numbers.append(count)
        count += stays
    return numbers
