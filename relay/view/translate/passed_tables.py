"""The known tables of the source at the place up to which a view is built, if it says which transactions wait for which."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from relay.view.rules.group import SourceGroup


class CountedTable(NamedTuple):
    """A table that plans were requested for. `why` names the reason why nothing may run beside its rows; "": something may."""

    name: str
    why: str


class PassedTables(Protocol):
    """Tables at a place, which is the number of a file and an offset in it."""

    @property
    def counted(self) -> Sequence[CountedTable]:
        """The tables that plans were requested for, by the number under which they are counted."""

    def move_to(self, place: tuple[int, int]) -> int:
        """Move to a transaction that begins there; return the offset in the file up to which the tables stay the same."""

    def plan(self, table_map: bytes, id_size: int) -> "array[int]":
        """Return a plan for `WriteSets.add_plan`. `table_map` is the event's body, whose table id has `id_size` bytes."""

    def pass_group(self, group: SourceGroup) -> bool:
        """Learn what the group defines at the source; return whether it defines something. Raises: OSError; ArchiveDamaged."""
