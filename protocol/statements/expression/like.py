"""SQL's LIKE, and the names that SHOW ... LIKE and SHOW ... WHERE choose."""

import functools
import re
from typing import Final

_MAX_PATTERN_CHARACTERS: Final = 128
_CHARACTERS_A_STEP: Final = 16


def matches_like(text: str, pattern: str) -> bool:
    """Match SQL's LIKE in any case: `%` is any characters, `_` one character, and a backslash escapes them."""
    return _of(pattern[:_MAX_PATTERN_CHARACTERS]).fullmatch(_lower(text)) is not None


def like_steps(text: str, pattern: str) -> int:
    """Return the most work of `matches_like`, except for a new pattern, in steps of `Effort`."""
    return 10 + len(text) * min(len(pattern), _MAX_PATTERN_CHARACTERS) // _CHARACTERS_A_STEP


def _lower(text: str) -> str:
    """Return the text in lower case, in which each character stays one character."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(map(_one_lower, text))


def _one_lower(character: str) -> str:
    lowered = character.lower()
    return lowered if len(lowered) == 1 else character


@functools.lru_cache(maxsize=64)
def _of(pattern: str) -> re.Pattern[str]:
    """Compile the pattern; text between two `%` is matched at its first occurrence and never searched again, so nothing backtracks."""
    parts: list[list[str]] = [[]]
    characters = iter(_lower(pattern))
    for character in characters:
        if character == "%":
            parts.append([])
        elif character == "_":
            parts[-1].append(".")
        else:
            parts[-1].append(re.escape(next(characters, "\\") if character == "\\" else character))
    first, *between = ("".join(part) for part in parts)
    if not between:
        return re.compile(first, re.DOTALL)
    *between, last = between
    looked_for = "".join(f"(?>.*?{part})" for part in between if part)
    return re.compile(f"{first}{looked_for}.*{last}", re.DOTALL)
