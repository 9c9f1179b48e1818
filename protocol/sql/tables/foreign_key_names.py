"""The names that servers give foreign keys whose definitions give them none: the table's, and a number."""

from collections.abc import Iterable
from typing import Final

_NUMBERED: Final = "_ibfk_"


def made_up_name(table: str, number: int) -> str:
    """Return the name of the table's foreign key with this number; the first has 1."""
    return f"{table}{_NUMBERED}{number}"


def made_up_number(name: str, table: str) -> int:
    """Return the number in a foreign key's name that the server made up for a table; 0: a definition named it."""
    head, _, number = name.rpartition(_NUMBERED)
    return int(number) if head.lower() == table.lower() and number.isdecimal() else 0


def last_number(names: Iterable[str], table: str) -> int:
    """Return the highest number among a table's foreign keys. In a statement servers count on from there, whatever it drops."""
    return max((made_up_number(name, table) for name in names), default=0)


def name_in_renamed(name: str, old: str, new: str) -> str:
    """Return the name of a foreign key of the table `old` when the table is called `new`: a made-up name changes with it."""
    number = made_up_number(name, old)
    return made_up_name(new, number) if number else name
