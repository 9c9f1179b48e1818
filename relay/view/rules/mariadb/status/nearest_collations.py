"""What MySQL is given in place of a collation that only MariaDB has, where the view's settings say nothing.

Two things decide. Texts that are different at the source must not be equal on the replicas, or a row breaks a key there that broke
none at the source (1062). And of those that keep to that, the nearest one in what is equal, then in order.

- `uca1400_ai_ci`, what MariaDB 11.8 has where nobody says otherwise: MySQL's by UCA 5.2.0. For both spaces at the end count for
  nothing, and fewer texts are equal there alone than by UCA 9.0.0 (U+7F to U+9F with U+06DE and U+108D; no Hangul syllable with its
  letters).
- Others of utf8mb4 by UCA 14.0.0: MySQL's by UCA 9.0.0 of the same language and strength. They take spaces at the end for a difference,
  what MariaDB's without `nopad` do not: more is different, not less.
- Strengths that MySQL has not: the next finer one of the language.
- Languages in other Unicode sets have no such collations in MySQL: `_bin`.
- `croatian_ci`: what MySQL calls so, which is another one; DŽ, LJ and NJ in odd cases (lJ) are equal there alone.
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
"""As MySQL's 0900 collations name them; Persian and Sinhala are not among them."""


def nearest(source: SourceCollation) -> str:
    """The name; "": there is none that keeps different texts different and is near."""
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
    """Whether `nearest` finds the same rows, but for rare characters: spaces at the end count alike, and the strength is the same."""
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
