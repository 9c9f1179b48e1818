"""Collations by their names: the one with a number, and the default one of a character set.

Source: information_schema.COLLATIONS of MySQL 5.6.24, MySQL 9.7.4, MariaDB 10.11.18 and 11.8.6. `utf8_…` means `utf8mb3_…`, too.
"""

from typing import Final

_DEFAULTS: Final[dict[str, tuple[int, str]]] = {
    "big5": (1, "chinese"), "dec8": (3, "swedish"), "cp850": (4, "general"), "hp8": (6, "english"), "koi8r": (7, "general"),
    "latin1": (8, "swedish"), "latin2": (9, "general"), "swe7": (10, "swedish"), "ascii": (11, "general"),
    "ujis": (12, "japanese"), "sjis": (13, "japanese"), "hebrew": (16, "general"), "tis620": (18, "thai"),
    "euckr": (19, "korean"), "koi8u": (22, "general"), "gb2312": (24, "chinese"), "greek": (25, "general"),
    "cp1250": (26, "general"), "gbk": (28, "chinese"), "latin5": (30, "turkish"), "armscii8": (32, "general"),
    "utf8": (33, "general"), "ucs2": (35, "general"), "cp866": (36, "general"), "keybcs2": (37, "general"),
    "macce": (38, "general"), "macroman": (39, "general"), "cp852": (40, "general"), "latin7": (41, "general"),
    "utf8mb4": (45, "general"), "cp1251": (51, "general"), "utf16": (54, "general"), "utf16le": (56, "general"),
    "cp1256": (57, "general"), "cp1257": (59, "general"), "utf32": (60, "general"), "geostd8": (92, "general"),
    "cp932": (95, "japanese"), "eucjpms": (97, "japanese"), "gb18030": (248, "chinese"),
}  # fmt: skip
_OTHERS: Final[dict[int, str]] = {
    63: "binary", 46: "utf8mb4_bin", 47: "latin1_bin", 48: "latin1_general_ci", 49: "latin1_general_cs", 83: "utf8_bin",
    192: "utf8_unicode_ci", 224: "utf8mb4_unicode_ci", 246: "utf8mb4_unicode_520_ci", 255: "utf8mb4_0900_ai_ci",
    278: "utf8mb4_0900_as_cs", 305: "utf8mb4_0900_as_ci", 309: "utf8mb4_0900_bin", 2048: "utf8_uca1400_ai_ci",
    2304: "utf8mb4_uca1400_ai_ci", 2560: "ucs2_uca1400_ai_ci", 2816: "utf16_uca1400_ai_ci", 3072: "utf32_uca1400_ai_ci",
}  # fmt: skip
_BY_NUMBER: Final = {number: f"{charset}_{name}_ci" for charset, (number, name) in _DEFAULTS.items()} | _OTHERS


def compiled_collation(charset: str) -> str:
    """Return the collation of a character set (`utf8`, not `utf8mb3`) in servers with default settings, for utf8mb4 that before MySQL
    8.0; empty: not known.
    """
    if charset == "binary":
        return "binary"
    return f"{charset}_{_DEFAULTS[charset][1]}_ci" if charset in _DEFAULTS else ""


def collation_of_number(number: int) -> str:
    """Return the name of the collation with this number, if it is a common one; empty: not known."""
    return _BY_NUMBER.get(number, "")


def plain_collation(name: str) -> str:
    """Return a collation's name in lower case, with `utf8` instead of `utf8mb3`."""
    return name.lower().replace("utf8mb3_", "utf8_")
