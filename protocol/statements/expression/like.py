"""SQL's LIKE, and the names that SHOW ... LIKE and SHOW ... WHERE choose."""

import functools
import re
from typing import Final

_MAX_PATTERN_CHARACTERS: Final = 128
_CHARACTERS_A_STEP: Final = 16


def matches_like(text: str, pattern: str) -> bool:
    """SQL's LIKE, in any case: `%` any characters, `_` one character, a backslash takes their meaning away."""
    return _of(pattern[:_MAX_PATTERN_CHARACTERS]).fullmatch(_lower(text)) is not None


def like_steps(text: str, pattern: str) -> int:
    """How much work `matches_like` is at most, a new pattern aside, in steps of `Effort`."""
    return 10 + len(text) * min(len(pattern), _MAX_PATTERN_CHARACTERS) // _CHARACTERS_A_STEP


def _lower(text: str) -> str:
    """In lower case, where each character stays one."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(map(_one_lower, text))


def _one_lower(character: str) -> str:
    lowered = character.lower()
    return lowered if len(lowered) == 1 else character


@functools.lru_cache(maxsize=64)
def _of(pattern: str) -> re.Pattern[str]:
    """What stands between two `%` is taken where it comes first, and never looked for again: no backtracking, whatever the pattern."""
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
