"""Every collation that MariaDB has, by its number: its character set, its name, and its derivation.

Source: information_schema.COLLATION_CHARACTER_SET_APPLICABILITY of MariaDB 10.11.19 and 11.8.6.
"""

from typing import Final, NamedTuple

from protocol.binlog.schema.collation_names import compiled_collation, plain_collation
from relay.view.rules.targets.known.target_collations import COLLATION_NAMES

_NOPAD: Final = 1024
_OF_MYSQL: Final = (*range(255, 303), 305, 309)
_UCA1400: Final = 2048
_OF_ONE_SET: Final = 256
_OF_ONE_LANGUAGE: Final = 8
# fmt: off
_PLAIN: Final[dict[int, str]] = {
    1: "big5_chinese_ci", 2: "latin2_czech_cs", 3: "dec8_swedish_ci", 4: "cp850_general_ci", 5: "latin1_german1_ci",
    6: "hp8_english_ci", 7: "koi8r_general_ci", 8: "latin1_swedish_ci", 9: "latin2_general_ci", 10: "swe7_swedish_ci",
    11: "ascii_general_ci", 12: "ujis_japanese_ci", 13: "sjis_japanese_ci", 14: "cp1251_bulgarian_ci", 15:
    "latin1_danish_ci", 16: "hebrew_general_ci", 18: "tis620_thai_ci", 19: "euckr_korean_ci", 20:
    "latin7_estonian_cs", 21: "latin2_hungarian_ci", 22: "koi8u_general_ci", 23: "cp1251_ukrainian_ci", 24:
    "gb2312_chinese_ci", 25: "greek_general_ci", 26: "cp1250_general_ci", 27: "latin2_croatian_ci", 28:
    "gbk_chinese_ci", 29: "cp1257_lithuanian_ci", 30: "latin5_turkish_ci", 31: "latin1_german2_ci", 32:
    "armscii8_general_ci", 33: "utf8mb3_general_ci", 34: "cp1250_czech_cs", 35: "ucs2_general_ci", 36:
    "cp866_general_ci", 37: "keybcs2_general_ci", 38: "macce_general_ci", 39: "macroman_general_ci", 40:
    "cp852_general_ci", 41: "latin7_general_ci", 42: "latin7_general_cs", 43: "macce_bin", 44: "cp1250_croatian_ci",
    45: "utf8mb4_general_ci", 46: "utf8mb4_bin", 47: "latin1_bin", 48: "latin1_general_ci", 49: "latin1_general_cs",
    50: "cp1251_bin", 51: "cp1251_general_ci", 52: "cp1251_general_cs", 53: "macroman_bin", 54: "utf16_general_ci",
    55: "utf16_bin", 56: "utf16le_general_ci", 57: "cp1256_general_ci", 58: "cp1257_bin", 59: "cp1257_general_ci", 60:
    "utf32_general_ci", 61: "utf32_bin", 62: "utf16le_bin", 63: "binary", 64: "armscii8_bin", 65: "ascii_bin", 66:
    "cp1250_bin", 67: "cp1256_bin", 68: "cp866_bin", 69: "dec8_bin", 70: "greek_bin", 71: "hebrew_bin", 72: "hp8_bin",
    73: "keybcs2_bin", 74: "koi8r_bin", 75: "koi8u_bin", 77: "latin2_bin", 78: "latin5_bin", 79: "latin7_bin", 80:
    "cp850_bin", 81: "cp852_bin", 82: "swe7_bin", 83: "utf8mb3_bin", 84: "big5_bin", 85: "euckr_bin", 86:
    "gb2312_bin", 87: "gbk_bin", 88: "sjis_bin", 89: "tis620_bin", 90: "ucs2_bin", 91: "ujis_bin", 92:
    "geostd8_general_ci", 93: "geostd8_bin", 94: "latin1_spanish_ci", 95: "cp932_japanese_ci", 96: "cp932_bin", 97:
    "eucjpms_japanese_ci", 98: "eucjpms_bin", 99: "cp1250_polish_ci", 159: "ucs2_general_mysql500_ci", 223:
    "utf8mb3_general_mysql500_ci",
}
_LANGUAGES: Final = (
    "unicode", "icelandic", "latvian", "romanian", "slovenian", "polish", "estonian", "spanish", "swedish", "turkish", "czech",
    "danish", "lithuanian", "slovak", "spanish2", "roman", "persian", "esperanto", "hungarian", "sinhala", "german2",
    "croatian_mysql561", "unicode_520", "vietnamese",
)
"""The languages of the collations by UCA 4.0.0, in the order of their numbers."""
_FIRST_OF_SET: Final = {"utf16": 101, "ucs2": 128, "utf32": 160, "utf8mb3": 192, "utf8mb4": 224}
_OWN: Final = ("croatian_ci", "myanmar_ci", "thai_520_w2")
_FIRST_OWN: Final = {"utf8mb3": 576, "utf8mb4": 608, "ucs2": 640, "utf16": 672, "utf32": 736}
_UCA1400_SETS: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
_UCA1400_LANGUAGES: Final = {
    number: "" if language == "unicode" else language
    for number, language in enumerate((*_LANGUAGES, "croatian")) if language not in ("croatian_mysql561", "unicode_520")
}
_STRENGTHS: Final = ("ai_ci", "ai_cs", "as_ci", "as_cs")
# fmt: on


class SourceCollation(NamedTuple):
    """A collation. `name` is MariaDB's full name. `charset` is its set, `utf8mb3`, not `utf8`. `base` is the name without `nopad`. For
    those by UCA 14.0.0 `language` is one such as `swedish`, "" without a language, and `strength` is `ai_ci`, `ai_cs`, `as_ci` or
    `as_cs`; for others these are None and ""."""

    number: int
    name: str
    charset: str
    base: str
    language: str | None = None
    strength: str = ""

    @property
    def is_nopad(self) -> bool:
        """True if spaces at the end make texts different."""
        return self.base != self.name


def charset_in(name: str) -> str:
    """Return the character set that a collation's full name begins with."""
    return name.partition("_")[0]


def plain_charset(charset: str) -> str:
    """Return `utf8` for `utf8mb3`, as other modules name it."""
    return "utf8" if charset == "utf8mb3" else charset


def _plain(number: int, name: str) -> SourceCollation:
    return SourceCollation(number, name, charset_in(name), name)


def _named() -> dict[int, str]:
    """Return all that are not by UCA 14.0.0 and ignore spaces at the end."""
    found = dict(_PLAIN)
    for charset, first in _FIRST_OF_SET.items():
        found |= {first + index: f"{charset}_{language}_ci" for index, language in enumerate(_LANGUAGES)}
    for charset, first in _FIRST_OWN.items():
        found |= {first + index: f"{charset}_{name}" for index, name in enumerate(_OWN)}
    return found | {579: "utf8mb3_general1400_as_ci", 611: "utf8mb4_general1400_as_ci"}


def _has_nopad(name: str) -> bool:
    if name == "binary":
        return False
    if name.endswith(("_bin", "_unicode_ci", "_unicode_520_ci")):
        return True
    return plain_collation(name) == compiled_collation(plain_charset(charset_in(name)))


def _without_pad(number: int, name: str) -> SourceCollation:
    made = name.removesuffix("bin") + "nopad_bin" if name.endswith("_bin") else name.removesuffix("ci") + "nopad_ci"
    return SourceCollation(_NOPAD + number, made, charset_in(name), name)


def _by_uca1400() -> list[SourceCollation]:
    found = []
    for at, charset in enumerate(_UCA1400_SETS):
        for number, language in _UCA1400_LANGUAGES.items():
            for index in range(_OF_ONE_LANGUAGE):
                nopad, strength = divmod(index, len(_STRENGTHS))
                start = f"{charset}_uca1400_{language}_" if language else f"{charset}_uca1400_"
                base = start + _STRENGTHS[strength]
                name = f"{start}nopad_{_STRENGTHS[strength]}" if nopad else base
                place = _UCA1400 + at * _OF_ONE_SET + number * _OF_ONE_LANGUAGE + index
                found.append(SourceCollation(place, name, charset, base, language, _STRENGTHS[strength]))
    return found


def _all() -> dict[int, SourceCollation]:
    named = _named()
    found = {number: _plain(number, name) for number, name in named.items()}
    found |= {one.number: one for one in (_without_pad(*each) for each in named.items() if _has_nopad(each[1]))}
    found |= {one.number: one for one in _by_uca1400()}
    found |= {number: _plain(number, name) for number, name in COLLATION_NAMES.items() if number in _OF_MYSQL}
    return dict(sorted(found.items()))


SOURCE_COLLATIONS: Final[dict[int, SourceCollation]] = _all()
"""The collations by number, in ascending order."""
NUMBERS_BY_NAME: Final = {one.name: one.number for one in SOURCE_COLLATIONS.values()}
