"""The collation that MySQL gets in place of one that only MariaDB has, where the view's settings say nothing.

Two things decide. Texts that are different at the source must not be equal on the replicas, or a row breaks a key there that broke
none at the source (1062). Of the collations that satisfy this, the nearest one is used: nearest in equality, then in order.

- `uca1400_ai_ci`, the default of MariaDB 11.8: MySQL's by UCA 5.2.0. Both ignore spaces at the end, and fewer texts are equal there
alone than by UCA 9.0.0 (U+7F to U+9F with U+06DE and U+108D; no Hangul syllable with its letters).
- Others of utf8mb4 by UCA 14.0.0: MySQL's by UCA 9.0.0 of the same language and strength. They distinguish spaces at the end, which
MariaDB's without `nopad` ignore: more is different, not less.
- Strengths that MySQL does not have: the next finer one of the language.
- Languages in other Unicode sets have no such collations in MySQL: `_bin`.
- `croatian_ci`: MySQL's of that name, which is another one; DŽ, LJ and NJ in odd cases (lJ) are equal there alone.
- `nopad`: only utf8mb4 has collations in MySQL for which spaces at the end count. For others there is none.
"""

from typing import Final

from relay.view.rules.mariadb.status.source_collations import SourceCollation

_CROATIAN: Final = "_croatian_ci"
_LANGUAGES: Final = {
    "": "", "icelandic": "is_", "latvian": "lv_", "romanian": "ro_", "slovenian": "sl_", "polish": "pl_", "estonian": "et_",
    "spanish": "es_", "swedish": "sv_", "turkish": "tr_", "czech": "cs_", "danish": "da_", "lithuanian": "lt_", "slovak": "sk_",
    "spanish2": "es_trad_", "roman": "la_", "esperanto": "eo_", "hungarian": "hu_", "german2": "de_pb_", "croatian": "hr_",
    "vietnamese": "vi_",
}  # fmt: skip
"""The languages in the names of MySQL's 0900 collations; Persian and Sinhala are not among them."""


def nearest(source: SourceCollation) -> str:
    """Return the name; "": there is none that keeps different texts different and is near."""
    if source.language is None and source.name.endswith(_CROATIAN):
        return source.name
    if source.charset == "utf8mb4":
        return _of_utf8mb4(source)
    if source.is_nopad:
        return ""
    if source.language == "" and source.strength == "ai_ci":
        return f"{source.charset}_unicode_520_ci"
    return f"{source.charset}_bin"


def is_alike(source: SourceCollation) -> bool:
    """Return whether `nearest` finds the same rows, but for rare characters: trailing spaces count alike, and the strength is equal."""
    if source.language is None and source.name.endswith(_CROATIAN):
        return True
    if source.language is None:
        return source.charset == "utf8mb4" and source.is_nopad and source.name.endswith("_bin")
    if not source.is_nopad:
        return not source.language and source.strength == "ai_ci"
    has_strength = source.strength in ("ai_ci", "as_cs") or (source.strength == "as_ci" and not source.language)
    return source.charset == "utf8mb4" and source.language in _LANGUAGES and has_strength


def _of_utf8mb4(source: SourceCollation) -> str:
    if source.language is None:
        if not source.is_nopad:
            return "utf8mb4_bin"
        return "utf8mb4_0900_bin" if source.name.endswith("_bin") else ""
    language = _LANGUAGES.get(source.language)
    if language is None:
        return "utf8mb4_0900_as_cs"
    if source.strength == "ai_ci" and not language and not source.is_nopad:
        return "utf8mb4_unicode_520_ci"
    if source.strength == "ai_ci":
        return f"utf8mb4_{language}0900_ai_ci"
    if source.strength == "as_ci" and not language:
        return "utf8mb4_0900_as_ci"
    return f"utf8mb4_{language}0900_as_cs"
