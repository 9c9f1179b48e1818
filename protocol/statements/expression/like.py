"""SQL's LIKE, and the names that SHOW ... LIKE and SHOW ... WHERE choose."""

from typing import Final

_MAX_PATTERN_CHARACTERS: Final = 128


def matches_like(text: str, pattern: str) -> bool:
    """SQL's LIKE, in any case: `%` any characters, `_` one character, a backslash takes their meaning away."""
    wanted: list[tuple[str, bool]] = []
    characters = iter(pattern[:_MAX_PATTERN_CHARACTERS].lower())
    for character in characters:
        if character == "\\":
            wanted.append((next(characters, "\\"), False))
        else:
            wanted.append((character, character in "%_"))
    if sum(not (is_wild and character == "%") for character, is_wild in wanted) > len(text):
        return False
    # One row of the usual table per character of the pattern: no backtracking, whatever the pattern.
    reachable = {0}
    for character, is_wild in wanted:
        if is_wild and character == "%":
            reachable = set(range(min(reachable), len(text) + 1))
        else:
            reachable = {
                index + 1 for index in reachable if index < len(text) and (is_wild or text[index].lower() == character)
            }
        if not reachable:
            return False
    return len(text) in reachable
