"""The comparison of the texts of a collation, as far as it is certain: exactly as the server does it, or so that more are equal."""

from typing import Final

from protocol.dependencies.write_set_codes import FORM_BINARY, FORM_EXACT, FORM_FOLDED, FORM_NONE
from protocol.sql.tables.source_table import WIDE_CHARSETS, Column

# Collations whose texts in printable ASCII are equal where their letters are the same but for case, and nowhere else. Text that is not
# ASCII is not compared by them here. Left out are, as real servers showed: Roman and Latin (I = J, U = V), Lithuanian (I = Y, C = CH),
# Latvian of 8.0 (I = Y), Hungarian of 8.0 (CCS = CSCS), Central European Macintosh (M = N), Chinese of big5, gbk and gb2312 (Y = ~),
# Swedish of swe7, Georgian, Ukrainian of cp1251 and koi8u, whose tables have other letters in place of signs.
_FOLDED: Final = {
    "armscii8": "general_ci",
    "ascii": "general_ci",
    "cp1250": "general_ci polish_ci",
    "cp1251": "bulgarian_ci general_ci general_cs",
    "cp1256": "general_ci",
    "cp1257": "general_ci",
    "cp850": "general_ci",
    "cp852": "general_ci",
    "cp866": "general_ci",
    "cp932": "japanese_ci",
    "dec8": "swedish_ci",
    "eucjpms": "japanese_ci",
    "euckr": "korean_ci",
    "gb18030": "chinese_ci",
    "greek": "general_ci",
    "hebrew": "general_ci",
    "hp8": "english_ci",
    "keybcs2": "general_ci",
    "koi8r": "general_ci",
    "latin1": "danish_ci general_ci general_cs german1_ci german2_ci spanish_ci swedish_ci",
    "latin2": "general_ci",
    "latin5": "turkish_ci",
    "latin7": "general_ci general_cs",
    "macroman": "general_ci",
    "sjis": "japanese_ci",
    "ujis": "japanese_ci",
    "utf8": "general_ci general_mysql500_ci unicode_ci unicode_520_ci tolower_ci german2_ci swedish_ci icelandic_ci polish_ci "
    "romanian_ci slovenian_ci estonian_ci turkish_ci vietnamese_ci",
    "utf8mb4": "general_ci unicode_ci unicode_520_ci german2_ci swedish_ci icelandic_ci polish_ci romanian_ci slovenian_ci "
    "estonian_ci turkish_ci vietnamese_ci 0900_ai_ci 0900_as_ci 0900_as_cs de_pb_0900_ai_ci de_pb_0900_as_cs sv_0900_ai_ci "
    "sv_0900_as_cs es_0900_ai_ci es_0900_as_cs pl_0900_ai_ci pl_0900_as_cs ru_0900_ai_ci ru_0900_as_cs tr_0900_ai_ci tr_0900_as_cs "
    "ja_0900_as_cs zh_0900_as_cs",
}
FOLDED: Final = frozenset(f"{charset}_{name}" for charset, names in _FOLDED.items() for name in names.split())


def text_form(column: Column) -> int:
    """Return how the values of a CHAR, VARCHAR or TEXT column are compared: FORM_ of write_set_codes.py; FORM_NONE: not known."""
    collation = _plain(column.collation)
    if (
        not collation
        or column.charset in WIDE_CHARSETS
        or collation.startswith(tuple(f"{one}_" for one in WIDE_CHARSETS))
    ):
        return FORM_NONE
    if collation == "binary":
        return FORM_BINARY
    if collation.endswith("_bin"):
        return FORM_EXACT
    return FORM_FOLDED if collation in FOLDED else FORM_NONE


def same_collation(one: Column, other: Column) -> bool:
    """Return whether two columns compare texts alike."""
    return bool(one.collation) and _plain(one.collation) == _plain(other.collation)


def _plain(collation: str) -> str:
    """Return the name as it was before MySQL 8.0, which renamed utf8_… to utf8mb3_… in steps."""
    lower = collation.lower()
    return "utf8_" + lower.removeprefix("utf8mb3_") if lower.startswith("utf8mb3_") else lower
