"""The changes of a column that leave each value unchanged, and those that cannot change what is computed from it."""

from typing import Final

from protocol.binlog.schema.collation_names import plain_collation
from protocol.binlog.schema.column_description import column_texts
from protocol.sql.tables.source_table import Column
from relay.feed.rows.lake_columns import parsed_type

INTEGER_ORDER: Final = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "integer": 4, "bigint": 5}
TEXT_ORDER: Final = {"char": 0, "varchar": 0, "tinytext": 1, "text": 2, "mediumtext": 3, "longtext": 4}
BYTES_ORDER: Final = {"varbinary": 0, "tinyblob": 1, "blob": 2, "mediumblob": 3, "longblob": 4}
_CAPACITY: Final = (65_535, 255, 65_535, 16_777_215, 0xFFFF_FFFF)
"""The maximum bytes of a value, by TEXT_ORDER."""
_UNICODE: Final = frozenset(("utf8mb4", "utf16", "utf16le", "utf32"))
_UTF8: Final = frozenset(("utf8", "utf8mb3"))
_MOST_BYTES: Final = {"utf8": 4, "utf8mb3": 3, "utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4}
_LEAST_BYTES: Final = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}
_DECIMALS: Final = frozenset(("decimal", "numeric", "dec", "fixed"))
_MOST_DIGITS: Final = 38


def is_kept(old: Column, new: Column, strict: bool, *, pads: bool = False, converted: bool = False) -> bool:
    """Return whether no value can differ after a column's change. `strict` says that the statement fails if one would.

    `pads` means with PAD_CHAR_TO_FULL_LENGTH. `converted` means by CONVERT TO CHARACTER SET alone, which makes a text's type as large
    as it must be.
    """
    before, inside, unsigned = parsed_type(old)
    after, now, now_unsigned = parsed_type(new)
    if old.nullable and not new.nullable and (not strict or after == "timestamp"):
        return False  # NULL becomes the current time in a TIMESTAMP, which is no error
    if new.generated or old.generated:
        integers = (
            before == after and before in INTEGER_ORDER and unsigned == now_unsigned
        )  # int(11) or int, whatever its source
        return (
            (integers or old.type == new.type)
            and old.extra == new.extra
            and _keeps_characters(old.charset, new.charset)
        )
    if (old.type, old.charset) == (new.type, new.charset):
        return True
    if before in INTEGER_ORDER and after in INTEGER_ORDER:
        if unsigned == now_unsigned:
            return INTEGER_ORDER[before] <= INTEGER_ORDER[after] or strict
        return (unsigned and INTEGER_ORDER[before] < INTEGER_ORDER[after]) or strict
    if before in TEXT_ORDER and after in TEXT_ORDER:
        return _is_kept_text(old, new, strict, pads, converted)
    if before in BYTES_ORDER and after in BYTES_ORDER:
        if BYTES_ORDER[before] != BYTES_ORDER[after]:
            return BYTES_ORDER[before] < BYTES_ORDER[after] and (BYTES_ORDER[after] > 1 or strict)
        return strict or _number(inside) <= _number(now)
    if before == after == "binary":
        return inside == now
    if before in _DECIMALS and after in _DECIMALS:
        digits, places = _digits(inside)
        more, further = _digits(now)
        if (digits, places, unsigned) == (more, further, now_unsigned):
            return True
        return (
            further >= places
            and more - further >= digits - places
            and unsigned >= now_unsigned
            and more <= _MOST_DIGITS
        )
    if before == "float" and after == "double":
        return not now and unsigned >= now_unsigned
    if before == after and before in ("enum", "set"):
        texts, others = column_texts(old.type), column_texts(new.type)
        if before == "set":
            return list(others[: len(texts)]) == list(texts)
        return set(texts) <= set(others)
    if before == after == "time":  # It is a text in the lake, with as many digits as before
        return _number(inside) == _number(now)
    if before == after and before in ("datetime", "timestamp"):
        return _number(inside) <= _number(now)
    return before == after and inside == now and unsigned == now_unsigned


def _keeps_characters(old: str, new: str) -> bool:
    """Return whether a character set has all characters of another one."""
    return old == new or new in _UNICODE or (old in _UTF8 | {"ascii"} and new in _UTF8)


def _is_kept_text(old: Column, new: Column, strict: bool, pads: bool, converted: bool) -> bool:
    before, after = parsed_type(old)[0], parsed_type(new)[0]
    if not _keeps_characters(old.charset, new.charset):
        return False
    if before != "char" and after == "char":
        return False
    if before == "char" and after != "char" and pads:
        return False  # Spaces are stored that were not
    if converted:
        return True
    # A text that does not fit is an error in strict modes, except for spaces at the end: no value of a CHAR has these.
    return _fits(old, new) or (before == "char" and strict)


def _fits(old: Column, new: Column) -> bool:
    """Return whether each text that the old type accepts fits into the new one."""
    before, inside, _ = parsed_type(old)
    after, now, _ = parsed_type(new)
    most = _CAPACITY[TEXT_ORDER[before]]  # bytes
    characters = _number(inside) if TEXT_ORDER[before] == 0 else most // _LEAST_BYTES.get(old.charset, 1)
    if TEXT_ORDER[after] == 0:
        return characters <= _number(now)
    same_bytes = old.charset == new.charset or (old.charset in _UTF8 | {"ascii"} and new.charset in _UTF8 | {"utf8mb4"})
    if same_bytes:
        room = characters * _MOST_BYTES.get(old.charset, 4) if TEXT_ORDER[before] == 0 else most
        most = min(most, room)
    else:
        most = characters * _MOST_BYTES.get(new.charset, 4)
    return most <= _CAPACITY[TEXT_ORDER[after]]


def computes_alike(old: Column, new: Column) -> bool:
    """Return whether nothing that is computed from a column can differ after its change, if its values are kept."""
    before, inside, unsigned = parsed_type(old)
    after, now, now_unsigned = parsed_type(new)
    same_set = _plain(old.charset) == _plain(new.charset) and (
        not old.collation or not new.collation or plain_collation(old.collation) == plain_collation(new.collation)
    )
    if not same_set:
        return False
    if "zerofill" in old.type.lower() or "zerofill" in new.type.lower():
        return old.type == new.type
    if old.type == new.type:
        return True
    if unsigned != now_unsigned:
        return False
    if before in INTEGER_ORDER and after in INTEGER_ORDER:
        return INTEGER_ORDER[before] <= INTEGER_ORDER[after]
    if before in _DECIMALS and after in _DECIMALS:
        digits, places = _digits(inside)
        more, further = _digits(now)
        return places == further and digits <= more
    if before == after == "year":
        return "2" not in (inside, now)
    if "char" not in (before, after) and before in TEXT_ORDER and after in TEXT_ORDER:
        return _fits(old, new)
    if before in BYTES_ORDER and after in BYTES_ORDER:
        if BYTES_ORDER[before] == BYTES_ORDER[after] == 0:
            return _number(inside) <= _number(now)
        most = _number(inside) if BYTES_ORDER[before] == 0 else _CAPACITY[BYTES_ORDER[before]]
        return BYTES_ORDER[after] > 0 and most <= _CAPACITY[BYTES_ORDER[after]]
    return (before, inside.replace(" ", "")) == (after, now.replace(" ", ""))


def _plain(charset: str) -> str:
    return "utf8" if charset == "utf8mb3" else charset


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0


def _digits(inside: str) -> tuple[int, int]:
    digits, _, places = (inside or "10,0").partition(",")
    return int(digits or 10), int(places or 0)
