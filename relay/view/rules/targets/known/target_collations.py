"""Collations that not every version has, by number and by name.

Source: information_schema.COLLATIONS of MySQL 5.6.24 and 9.7.4.
"""

from typing import Final

from protocol.binlog.schema.column_charsets import charset_of_column
from relay.view.rules.targets.known.target import Target

_GB18030: Final = frozenset((248, 249, 250))
_UTF8MB3_TOLOWER: Final = 76
_FIRST_OF_8_0: Final = 255
GENERAL: Final = 45
"""The number of utf8mb4_general_ci, the default of utf8mb4 before 8.0."""
_CLIENT_ONLY: Final = {"utf8mb4": GENERAL, "utf8": 33}
# fmt: off
COLLATION_NAMES: Final[dict[int, str]] = {
    45: "utf8mb4_general_ci", 46: "utf8mb4_bin", 76: "utf8mb3_tolower_ci", 224: "utf8mb4_unicode_ci", 225:
    "utf8mb4_icelandic_ci", 226: "utf8mb4_latvian_ci", 227: "utf8mb4_romanian_ci", 228: "utf8mb4_slovenian_ci", 229:
    "utf8mb4_polish_ci", 230: "utf8mb4_estonian_ci", 231: "utf8mb4_spanish_ci", 232: "utf8mb4_swedish_ci", 233:
    "utf8mb4_turkish_ci", 234: "utf8mb4_czech_ci", 235: "utf8mb4_danish_ci", 236: "utf8mb4_lithuanian_ci", 237:
    "utf8mb4_slovak_ci", 238: "utf8mb4_spanish2_ci", 239: "utf8mb4_roman_ci", 240: "utf8mb4_persian_ci", 241:
    "utf8mb4_esperanto_ci", 242: "utf8mb4_hungarian_ci", 243: "utf8mb4_sinhala_ci", 244: "utf8mb4_german2_ci", 245:
    "utf8mb4_croatian_ci", 246: "utf8mb4_unicode_520_ci", 247: "utf8mb4_vietnamese_ci", 248: "gb18030_chinese_ci",
    249: "gb18030_bin", 250: "gb18030_unicode_520_ci", 255: "utf8mb4_0900_ai_ci", 256: "utf8mb4_de_pb_0900_ai_ci",
    257: "utf8mb4_is_0900_ai_ci", 258: "utf8mb4_lv_0900_ai_ci", 259: "utf8mb4_ro_0900_ai_ci", 260:
    "utf8mb4_sl_0900_ai_ci", 261: "utf8mb4_pl_0900_ai_ci", 262: "utf8mb4_et_0900_ai_ci", 263:
    "utf8mb4_es_0900_ai_ci", 264: "utf8mb4_sv_0900_ai_ci", 265: "utf8mb4_tr_0900_ai_ci", 266:
    "utf8mb4_cs_0900_ai_ci", 267: "utf8mb4_da_0900_ai_ci", 268: "utf8mb4_lt_0900_ai_ci", 269:
    "utf8mb4_sk_0900_ai_ci", 270: "utf8mb4_es_trad_0900_ai_ci", 271: "utf8mb4_la_0900_ai_ci", 273:
    "utf8mb4_eo_0900_ai_ci", 274: "utf8mb4_hu_0900_ai_ci", 275: "utf8mb4_hr_0900_ai_ci", 277:
    "utf8mb4_vi_0900_ai_ci", 278: "utf8mb4_0900_as_cs", 279: "utf8mb4_de_pb_0900_as_cs", 280:
    "utf8mb4_is_0900_as_cs", 281: "utf8mb4_lv_0900_as_cs", 282: "utf8mb4_ro_0900_as_cs", 283:
    "utf8mb4_sl_0900_as_cs", 284: "utf8mb4_pl_0900_as_cs", 285: "utf8mb4_et_0900_as_cs", 286:
    "utf8mb4_es_0900_as_cs", 287: "utf8mb4_sv_0900_as_cs", 288: "utf8mb4_tr_0900_as_cs", 289:
    "utf8mb4_cs_0900_as_cs", 290: "utf8mb4_da_0900_as_cs", 291: "utf8mb4_lt_0900_as_cs", 292:
    "utf8mb4_sk_0900_as_cs", 293: "utf8mb4_es_trad_0900_as_cs", 294: "utf8mb4_la_0900_as_cs", 296:
    "utf8mb4_eo_0900_as_cs", 297: "utf8mb4_hu_0900_as_cs", 298: "utf8mb4_hr_0900_as_cs", 300:
    "utf8mb4_vi_0900_as_cs", 303: "utf8mb4_ja_0900_as_cs", 304: "utf8mb4_ja_0900_as_cs_ks", 305:
    "utf8mb4_0900_as_ci", 306: "utf8mb4_ru_0900_ai_ci", 307: "utf8mb4_ru_0900_as_cs", 308: "utf8mb4_zh_0900_as_cs",
    309: "utf8mb4_0900_bin", 310: "utf8mb4_nb_0900_ai_ci", 311: "utf8mb4_nb_0900_as_cs", 312:
    "utf8mb4_nn_0900_ai_ci", 313: "utf8mb4_nn_0900_as_cs", 314: "utf8mb4_sr_latn_0900_ai_ci", 315:
    "utf8mb4_sr_latn_0900_as_cs", 316: "utf8mb4_bs_0900_ai_ci", 317: "utf8mb4_bs_0900_as_cs", 318:
    "utf8mb4_bg_0900_ai_ci", 319: "utf8mb4_bg_0900_as_cs", 320: "utf8mb4_gl_0900_ai_ci", 321:
    "utf8mb4_gl_0900_as_cs", 322: "utf8mb4_mn_cyrl_0900_ai_ci", 323: "utf8mb4_mn_cyrl_0900_as_cs",
}
# fmt: on
_NUMBERS: Final = {name: number for number, name in COLLATION_NAMES.items()}


def is_known(collation: int, target: Target) -> bool:
    """Return whether the target has a collation of this number."""
    if target.version >= (8, 0):
        return True
    if collation in _GB18030:
        return target.version >= (5, 7)
    return collation < _FIRST_OF_8_0 and collation != _UTF8MB3_TOLOWER


def collation_name(collation: int) -> str:
    """Return the name, or the number where it is none that some version added."""
    return COLLATION_NAMES.get(collation, f"number {collation}")


def collation_number(name: str) -> int | None:
    """Return the number of a collation that not every version has, or of one of utf8mb4; None: it is another."""
    lowered = name.lower()
    return _NUMBERS.get("utf8mb3_tolower_ci" if lowered == "utf8_tolower_ci" else lowered)


def of_same_charset(collation: int, target: Target) -> int | None:
    """Return a collation of the target with the same character set, where nothing is compared; None: it has no such set."""
    if is_known(collation, target):
        return collation
    return _CLIENT_ONLY.get(charset_of_column(collation) or "")
