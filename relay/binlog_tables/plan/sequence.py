"""`sequence`: one bigint that orders transactions over generations, files and positions, and never changes.

From the highest bit on it has the generation, the number in the file's name, and the place in the file where the transaction begins. No
event has fewer than 19 bytes, so that sixteenths of a position keep any two of them apart and in order.
"""

from typing import Final

from relay.binlog_tables.plan.read_finding import ReadRefused

_GENERATION_BITS: Final = 10
_NUMBER_BITS: Final = 23
_PLACE_BITS: Final = 30
POSITION_SHIFT: Final = 4
FIRST_TOO_FAR: Final = 1 << (_PLACE_BITS + POSITION_SHIFT)
"""The first position that a sequence cannot represent, 16 GiB."""
_TOO_LARGE: Final = -1


def too_large_for_sequence(file: str, what: str) -> ReadRefused:
    """Return the error that the column sequence has no room for `what` of `file`."""
    return ReadRefused(
        f"The column sequence cannot hold {what} of {file}: it has room for generations below {1 << _GENERATION_BITS}, "
        f"files below number {1 << _NUMBER_BITS} and positions below {FIRST_TOO_FAR}. Name the columns that are to be read, "
        "without sequence."
    )


def base_of(generation: int, number: int) -> int:
    """Return the base of a file's sequences, or a number that `checked_base` refuses if it is too large."""
    if generation >= 1 << _GENERATION_BITS or number >= 1 << _NUMBER_BITS:
        return _TOO_LARGE
    return (generation << _NUMBER_BITS | number) << _PLACE_BITS


def checked_base(file: str, base: int | None) -> int | None:
    """Return `base`; None if the file's order among the others is unknown. Raises: ReadRefused."""
    if base == _TOO_LARGE:
        raise too_large_for_sequence(file, "the number or the generation")
    return base


def sequences_from(base: int | None) -> tuple[int, int]:
    """Return the minimum and the maximum of a file's sequences, as far as they are known."""
    if base is None or base == _TOO_LARGE:
        return 0, (1 << 63) - 1
    return base, base + (1 << _PLACE_BITS) - 1


def sequence_at(file: str, base: int | None, position: int) -> int | None:
    """Return the sequence of what begins at `position`. Raises: ReadRefused."""
    if checked_base(file, base) is None or base is None:
        return None
    if position >= FIRST_TOO_FAR:
        raise too_large_for_sequence(file, f"position {position}")
    return base + (position >> POSITION_SHIFT)
