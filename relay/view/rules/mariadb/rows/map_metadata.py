"""The optional metadata of a Table_map: MariaDB's is converted to MySQL's way of counting.

Both have the same kinds with the same numbers. Among the character sets, MariaDB has one for each column of texts and for each
GEOMETRY, MySQL none for GEOMETRY and for JSON: unchanged, every text column after a geometry would have another one's.
"""

from collections.abc import Callable, Sequence

from protocol.binlog.fields import Fields
from protocol.binlog.schema.table_columns import CHOICES, MARIADB_TEXTS, MYSQL_TEXTS
from protocol.binlog.table_map import MapColumn, MetadataField, MetadataKind, default_charset, packed_texts
from protocol.errors import Malformed
from protocol.wire import lenenc_int
from relay.view.stops.stop_reason import Untranslatable

CollationOf = Callable[[int], int]
"""Returns the target's number for a collation of the source. It may raise Untranslatable."""


def column_names(fields: Sequence[MetadataField], count: int) -> list[bytes] | None:
    """Return the names of all `count` columns; None: binlog_row_metadata is not FULL. Raises: Truncated, Malformed."""
    for kind, value in fields:
        if kind == MetadataKind.COLUMN_NAME:
            names, stop = packed_texts(value, count)
            if stop < len(value):
                raise Malformed(f"{len(value) - stop} bytes behind the names of {count} columns")
            return names
    return None


def translate_metadata(
    fields: Sequence[MetadataField], before: Sequence[MapColumn], after: Sequence[MapColumn], collation_of: CollationOf
) -> bytes:
    """Return the optional metadata for the columns `after`, which replace the source's columns `before`.

    A field with a collation that the target has no equivalent for is left out: replicas do not look at it, and other readers then get
    nothing instead of something wrong. Raises: Truncated, Malformed.
    """
    texts = [i for i, column in enumerate(before) if column.real_type in MARIADB_TEXTS]
    kept = {i for i, column in enumerate(after) if column.real_type in MYSQL_TEXTS}
    places = [i in kept for i in texts]
    choices = [True for column in before if column.real_type in CHOICES]
    made = []
    for kind, value in fields:
        try:
            if kind == MetadataKind.DEFAULT_CHARSET:
                value = _default_charset(value, places, collation_of)
            elif kind == MetadataKind.COLUMN_CHARSET:
                value = _charsets(value, places, collation_of)
            elif kind == MetadataKind.ENUM_AND_SET_DEFAULT_CHARSET:
                value = _default_charset(value, choices, collation_of)
            elif kind == MetadataKind.ENUM_AND_SET_COLUMN_CHARSET:
                value = _charsets(value, choices, collation_of)
        except Untranslatable:
            continue
        if value:
            made.append(MetadataField(kind, value))
    return b"".join(field.encode() for field in made)


def vector_dimensions(dimensions: Sequence[int]) -> bytes:
    """Return the field of a table with VECTOR columns, in their order; b"": it has none."""
    if not dimensions:
        return b""
    return MetadataField(MetadataKind.VECTOR_DIMENSIONALITY, b"".join(map(lenenc_int, dimensions))).encode()


def _default_charset(value: bytes, places: Sequence[bool], collation_of: CollationOf) -> bytes:
    """Convert the field; `places` says for each column that the source counts whether the target counts it."""
    if not any(places):
        return b""
    default, others = default_charset(value, len(places))
    made = [lenenc_int(collation_of(default))]
    moved = _numbers_of(places)
    for which, collation in others:
        if places[which]:
            made += [lenenc_int(moved[which]), lenenc_int(collation_of(collation))]
    return b"".join(made)


def _charsets(value: bytes, places: Sequence[bool], collation_of: CollationOf) -> bytes:
    """Convert the field. Layout: the collation of each column, packed."""
    fields = Fields(value)
    collations = [fields.lenenc_int() for _ in places]
    if fields.remaining:
        raise Malformed(f"{fields.remaining} bytes behind the character sets of {len(places)} columns")
    return b"".join(
        lenenc_int(collation_of(collation)) for collation, stays in zip(collations, places, strict=True) if stays
    )


def _numbers_of(places: Sequence[bool]) -> list[int]:
    """Return for each place how many before it stay."""
    numbers = []
    count = 0
    for stays in places:
        numbers.append(count)
        count += stays
    return numbers
