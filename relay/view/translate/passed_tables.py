"""What a view knows of the source's tables at the place where it is being made, where it says which transactions wait for which."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from relay.view.rules.group import SourceGroup


class CountedTable(NamedTuple):
    """A table that plans were asked for. why: nothing may run beside its rows, by a name; "": something may."""

    name: str
    why: str


class PassedTables(Protocol):
    """A place is the number of a file and an offset in it."""

    @property
    def counted(self) -> Sequence[CountedTable]:
        """The tables that plans were asked for, by the number under which they are counted."""

    def move_to(self, place: tuple[int, int]) -> int:
        """Knows what holds for a transaction that begins there; up to which offset of the file that is so."""

    def plan(self, table_map: bytes, id_size: int) -> "array[int]":
        """For `WriteSets.add_plan`. table_map: the event's body, whose table id has `id_size` bytes."""

    def pass_group(self, group: SourceGroup) -> bool:
        """What the group defines at the source is known behind it; whether it defines something. Raises: OSError; ArchiveDamaged."""
