"""Places that are shared by many: when there is no room, the group that has most of them gives one up."""

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T", bound=Hashable)

_SMALLEST_HEAP: Final = 64


class _Group(Generic[T]):
    """The holders of one group by rank, each with its number, oldest first."""

    __slots__ = ("count", "ranks")

    def __init__(self, ranks: int) -> None:
        self.count = 0
        # An ordinary dict passes over all that was removed at its beginning to find its first entry.
        self.ranks: tuple[OrderedDict[T, int], ...] = tuple(OrderedDict() for _ in range(ranks))

    def first(self) -> tuple[T, int]:
        """Return the one that goes first, with its number."""
        return next((holder, number) for rank in self.ranks for holder, number in rank.items())


class FairPlaces(Generic[T]):
    """The holders of places, by group, such as the address. Each call costs O(log n).

    ranks: in a group, holders of rank 0 go before those of rank 1, and so on; of one rank the oldest goes first.
    """

    def __init__(self, ranks: int = 1) -> None:
        self._ranks = ranks
        self._numbers = itertools.count()
        self._groups: dict[Hashable, _Group[T]] = {}
        self._holders: dict[T, tuple[Hashable, int]] = {}
        # (-count, number of its first holder, group): what has changed since stays in it until it comes to the top.
        self._heap: list[tuple[int, int, Hashable]] = []

    def __len__(self) -> int:
        return len(self._holders)

    def __iter__(self) -> Iterator[T]:
        """Iterate over all holders."""
        return iter(list(self._holders))

    def count(self, group: Hashable) -> int:
        """Return the number of the group's places."""
        found = self._groups.get(group)
        return found.count if found is not None else 0

    def add(self, holder: T, group: Hashable, rank: int = 0) -> None:
        """Give the holder a place."""
        found = self._groups.get(group)
        if found is None:
            found = self._groups[group] = _Group(self._ranks)
        found.ranks[rank][holder] = next(self._numbers)
        found.count += 1
        self._holders[holder] = group, rank
        self._changed(group, found)

    def move(self, holder: T, rank: int) -> None:
        """Set the holder's rank, as the newest of it; one without a place is ignored."""
        place = self._holders.get(holder)
        if place is None:
            return
        group, former = place
        found = self._groups[group]
        del found.ranks[former][holder]
        found.ranks[rank][holder] = next(self._numbers)
        self._holders[holder] = group, rank
        self._changed(group, found)

    def discard(self, holder: T) -> None:
        """Take the holder's place back; one without a place is ignored."""
        place = self._holders.pop(holder, None)
        if place is None:
            return
        group, rank = place
        found = self._groups[group]
        del found.ranks[rank][holder]
        found.count -= 1
        if not found.count:
            del self._groups[group]
        else:
            self._changed(group, found)

    def first_to_go(self, newcomer: T | None = None) -> T | None:
        """Return the holder that goes first of the group that has most; of several such groups, the oldest one. None: there is none.

        newcomer: stays, whatever its rank, unless it is the only one.
        """
        found = self._largest()
        if found is None:
            return None
        first = found.first()[0]
        if first is not newcomer:
            return first
        return next((holder for rank in found.ranks for holder in rank if holder is not newcomer), first)

    def most(self) -> int:
        """Return the number of places of the group that has most."""
        found = self._largest()
        return found.count if found is not None else 0

    def of_largest(self) -> Iterator[T]:
        """Yield the holders of the group that has most, in the order in which they go."""
        found = self._largest()
        if found is not None:
            for rank in found.ranks:
                yield from rank

    def _largest(self) -> _Group[T] | None:
        while self._heap:
            count, number, group = self._heap[0]
            found = self._groups.get(group)
            if found is not None and found.count == -count and found.first()[1] == number:
                return found
            heapq.heappop(self._heap)
        return None

    def _changed(self, group: Hashable, found: _Group[T]) -> None:
        if len(self._heap) > max(_SMALLEST_HEAP, 4 * len(self._groups)):
            self._heap = [(-one.count, one.first()[1], name) for name, one in self._groups.items()]
            heapq.heapify(self._heap)
        else:
            heapq.heappush(self._heap, (-found.count, found.first()[1], group))
