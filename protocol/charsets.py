"""Character sets of clients: how statements are read and how text in results is written and described.

Source: `SHOW CHARACTER SET` and information_schema.COLLATIONS of MySQL 5.6.24, MySQL 9.7.4 and MariaDB 10.11.18.
"""

import codecs
import functools
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """A set that a client may have. `collation` is the id of its default one, `codec` Python's nearest."""

    name: str
    collation: int
    character_bytes: int
    codec: str


# fmt: off
CHARACTER_SETS: Final[dict[str, CharacterSet]] = {
    entry.name: entry
    for entry in (
        CharacterSet("armscii8",  32, 1, "latin-1"),
        CharacterSet("ascii",     11, 1, "ascii"),
        CharacterSet("big5",       1, 2, "big5"),
        CharacterSet("binary",    63, 1, "utf-8"),
        CharacterSet("cp1250",    26, 1, "cp1250"),
        CharacterSet("cp1251",    51, 1, "cp1251"),
        CharacterSet("cp1256",    57, 1, "cp1256"),
        CharacterSet("cp1257",    59, 1, "cp1257"),
        CharacterSet("cp850",      4, 1, "cp850"),
        CharacterSet("cp852",     40, 1, "cp852"),
        CharacterSet("cp866",     36, 1, "cp866"),
        CharacterSet("cp932",     95, 2, "cp932"),
        CharacterSet("dec8",       3, 1, "latin-1"),
        CharacterSet("eucjpms",   97, 3, "euc_jp"),
        CharacterSet("euckr",     19, 2, "euc_kr"),
        CharacterSet("gb18030",  248, 4, "gb18030"),
        CharacterSet("gb2312",    24, 2, "gb2312"),
        CharacterSet("gbk",       28, 2, "gbk"),
        CharacterSet("geostd8",   92, 1, "latin-1"),
        CharacterSet("greek",     25, 1, "iso8859_7"),
        CharacterSet("hebrew",    16, 1, "iso8859_8"),
        CharacterSet("hp8",        6, 1, "latin-1"),
        CharacterSet("keybcs2",   37, 1, "latin-1"),
        CharacterSet("koi8r",      7, 1, "koi8_r"),
        CharacterSet("koi8u",     22, 1, "koi8_u"),
        CharacterSet("latin1",     8, 1, "cp1252"),
        CharacterSet("latin2",     9, 1, "iso8859_2"),
        CharacterSet("latin5",    30, 1, "iso8859_9"),
        CharacterSet("latin7",    41, 1, "iso8859_13"),
        CharacterSet("macce",     38, 1, "mac_latin2"),
        CharacterSet("macroman",  39, 1, "mac_roman"),
        CharacterSet("sjis",      13, 2, "shift_jis"),
        CharacterSet("swe7",      10, 1, "ascii"),
        CharacterSet("tis620",    18, 1, "tis_620"),
        CharacterSet("ujis",      12, 3, "euc_jp"),
        CharacterSet("utf8",      33, 3, "utf-8"),
        CharacterSet("utf8mb4",   45, 4, "utf-8"),
    )
}
# The ids of other collations than the defaults: [first, last].
_COLLATIONS: Final[tuple[tuple[int, int, str], ...]] = (
    (5, 5, "latin1"), (15, 15, "latin1"), (31, 31, "latin1"), (47, 49, "latin1"), (94, 94, "latin1"),
    (14, 14, "cp1251"), (23, 23, "cp1251"), (50, 52, "cp1251"), (27, 27, "latin2"), (65, 65, "ascii"), (77, 77, "latin2"),
    (28, 28, "gbk"), (87, 87, "gbk"), (249, 250, "gb18030"),
    (76, 76, "utf8"), (83, 83, "utf8"), (192, 215, "utf8"), (223, 223, "utf8"), (576, 578, "utf8"), (1057, 1057, "utf8"),
    (1107, 1107, "utf8"), (1216, 1216, "utf8"), (1238, 1238, "utf8"),
    (45, 46, "utf8mb4"), (224, 247, "utf8mb4"), (255, 323, "utf8mb4"), (608, 610, "utf8mb4"), (1069, 1070, "utf8mb4"),
    (1248, 1248, "utf8mb4"), (1270, 1270, "utf8mb4"), (2048, 3071, "utf8mb4"),
)
# fmt: on
_DEFAULTS: Final = {entry.collation: entry for entry in CHARACTER_SETS.values()}
NAMED_COLLATIONS: Final = {
    "utf8_general_ci": 33, "utf8mb3_general_ci": 33, "utf8_bin": 83, "utf8mb3_bin": 83, "utf8_unicode_ci": 192,
    "utf8mb3_unicode_ci": 192, "utf8mb4_general_ci": 45, "utf8mb4_bin": 46, "utf8mb4_unicode_ci": 224,
    "utf8mb4_unicode_520_ci": 246, "utf8mb4_0900_ai_ci": 255, "utf8mb4_0900_as_cs": 278, "utf8mb4_0900_bin": 309,
    "utf8mb4_uca1400_ai_ci": 2304, "latin1_swedish_ci": 8, "latin1_bin": 47, "latin1_general_ci": 48, "ascii_general_ci": 11,
}  # fmt: skip
UTF8: Final = CHARACTER_SETS["utf8"]
_DECODED_IN_C: Final = ("ascii", "latin-1", "utf-8")
# They have zero bytes inside of statements: no server lets a client use them.
NOT_FOR_CLIENTS: Final = frozenset(("ucs2", "utf16", "utf16le", "utf32"))


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """The encoding of one connection's text. `not_fixed` is its servers' value for "no fixed number of decimals"."""

    charset: CharacterSet = UTF8
    collation: int = UTF8.collation
    not_fixed: int = 31

    def encode(self, text: str) -> bytes:
        """Encode a text; characters that the set does not have become question marks, as from a server."""
        return text.encode(self.charset.codec, "replace")

    def decode(self, data: bytes) -> str:
        """Decode a client's bytes; invalid ones become replacement characters."""
        if self.charset.character_bytes > 1 or self.charset.codec in _DECODED_IN_C:
            return data.decode(self.charset.codec, "replace")
        return codecs.charmap_decode(data, "strict", _characters(self.charset.codec))[0]


@functools.cache
def _characters(codec: str) -> str:
    """Return all 256 characters of a set with one byte for each. Python calls an error handler for each invalid byte, which takes
    half a microsecond.
    """
    return bytes(range(256)).decode(codec, "replace")


def charset_named(name: str) -> CharacterSet | None:
    """Return the set of that name, in any case."""
    lowered = name.lower()
    return CHARACTER_SETS.get("utf8" if lowered == "utf8mb3" else lowered)


def charset_of_collation(collation: int) -> CharacterSet:
    """Return the set of a collation id; utf8mb4 for unknown ids, as every new one is its."""
    if collation in _DEFAULTS:
        return _DEFAULTS[collation]
    for first, last, name in _COLLATIONS:
        if first <= collation <= last:
            return CHARACTER_SETS[name]
    return CHARACTER_SETS["utf8mb4"]


def collation_named(name: str, charset: CharacterSet) -> int:
    """Return the id of a collation of `charset`; for an unknown collation its default's."""
    return NAMED_COLLATIONS.get(name.lower(), charset.collation)
