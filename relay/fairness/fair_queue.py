"""The queue of waiting requests: by rank, then by owner, then by the owner's parts; each of them one at a time, round-robin."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Rank(IntEnum):
    """The priority of work. Owners of one rank take turns; UNKNOWN has some of KNOWN's turns, so that repeated requests make none
    wait for ever."""

    FIRST = 0
    """Requests of an admin."""
    KNOWN = 1
    """Requests of accounts, of peers at an address with a successful login, and the relay's own."""
    UNKNOWN = 2


@dataclass(frozen=True, slots=True)
class Turn:
    """whose: the account, or the address group of a peer without one; the relay itself is nobody.

    part: a subdivision of the owner's work that takes turns again.
    """

    whose: Hashable = ""
    part: Hashable = ""
    rank: Rank = Rank.KNOWN


class Waiting(NamedTuple, Generic[T]):
    """A waiting request: `number` distinguishes it from others of its turn."""

    number: int
    turn: Turn
    what: T


_NOBODY: Final[Mapping[Hashable, int]] = MappingProxyType({})
_KNOWN_BEFORE_UNKNOWN: Final = 3
"""So many of KNOWN are done for one of UNKNOWN, if both wait."""
_UNKNOWN_FIRST: Final = (Rank.FIRST, Rank.UNKNOWN, Rank.KNOWN)


class FairQueue(Generic[T]):
    """The waiting requests, in the order in which they are taken. Not for several threads at once.

    newest_first: among owners with nothing else waiting, the newest is served first.
    """

    def __init__(self, *, newest_first: bool = False) -> None:
        self._newest_first = newest_first
        self._length = 0
        self._passed_over = 0
        """The number of times that KNOWN went before an UNKNOWN that waits."""
        self._ranks: dict[Rank, OrderedDict[Hashable, OrderedDict[Hashable, OrderedDict[int, Waiting[T]]]]] = {
            rank: OrderedDict() for rank in Rank
        }

    def __len__(self) -> int:
        """Return the number of waiting requests."""
        return self._length

    def add(self, waiting: Waiting[T]) -> None:
        """Add it as the last of its part."""
        turn = waiting.turn
        of_rank = self._ranks[turn.rank]
        parts = of_rank.get(turn.whose)
        if parts is None:
            parts = of_rank[turn.whose] = OrderedDict()
            if self._newest_first:
                of_rank.move_to_end(turn.whose, last=False)
        parts.setdefault(turn.part, OrderedDict())[waiting.number] = waiting
        self._length += 1

    def discard(self, number: int, turn: Turn) -> bool:
        """Remove one with this number, of this turn; return whether it was waiting."""
        of_rank = self._ranks[turn.rank]
        parts = of_rank.get(turn.whose, OrderedDict())
        found = parts.get(turn.part, OrderedDict())
        if found.pop(number, None) is None:
            return False
        self._length -= 1
        if not found:
            del parts[turn.part]
        if not parts:
            del of_rank[turn.whose]
        return True

    def pop(
        self, ranks: tuple[Rank, ...] = tuple(Rank), at_work: Mapping[Hashable, int] = _NOBODY
    ) -> Waiting[T] | None:
        """Take out the next one; owners that have work in progress (`at_work`) come only if no other waits."""
        for rank in self._in_order(ranks):
            of_rank = self._ranks[rank]
            if not of_rank:
                continue
            # At most as many of them are passed over as there are threads.
            whose = next((one for one in of_rank if one not in at_work), next(iter(of_rank)))
            parts = of_rank[whose]
            part, found = next(iter(parts.items()))
            waiting = next(iter(found.values()))
            self.discard(waiting.number, waiting.turn)
            # The others come before these again.
            if part in parts:
                parts.move_to_end(part)
            if whose in of_rank:
                of_rank.move_to_end(whose)
            return waiting
        return None

    def _in_order(self, ranks: tuple[Rank, ...]) -> tuple[Rank, ...]:
        """Return these ranks in their present order."""
        if (
            Rank.UNKNOWN not in ranks
            or not (self._ranks[Rank.KNOWN] and self._ranks[Rank.UNKNOWN])
            or self._ranks[Rank.FIRST]
        ):
            return ranks
        if self._passed_over < _KNOWN_BEFORE_UNKNOWN:
            self._passed_over += 1
            return ranks
        self._passed_over = 0
        return tuple(sorted(ranks, key=_UNKNOWN_FIRST.index))

    def all(self) -> list[Waiting[T]]:
        """Return everything."""
        return [
            waiting
            for of_rank in self._ranks.values()
            for parts in of_rank.values()
            for found in parts.values()
            for waiting in found.values()
        ]
