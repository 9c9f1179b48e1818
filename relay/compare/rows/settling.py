"""What differs is looked at again at later common places, until it is equal or proven to differ."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from protocol.position import Position
from relay.compare.servers.common_place import CommonPlace

_PROOFS: Final = 2
"""So many rounds in a row must show the same two values, while the source's does not change."""
_ROUNDS: Final = 40
_QUICK_LOOKS: Final = 8
"""A value that always changes is read so often in a round: the replica's is one of those that the source had."""
_QUICK_AFTER: Final = 3
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")


@dataclass(slots=True)
class Settled(Generic[_Item, _Value]):
    """The items that are proven to differ, with both values, and those of which it stayed open."""

    different: dict[_Item, tuple[_Value, _Value]] = field(default_factory=dict)
    unsettled: list[_Item] = field(default_factory=list)


@dataclass(slots=True)
class _Open(Generic[_Value]):
    sources: list[_Value] = field(default_factory=list)
    targets: list[_Value] = field(default_factory=list)
    proofs: int = 0

    def is_equal(self) -> bool:
        return any(one in self.sources for one in self.targets)

    def is_constant(self) -> bool:
        return all(one == self.sources[0] for one in self.sources) and all(
            one == self.targets[0] for one in self.targets
        )


class SettlingRounds:
    """Looks again. `end` returns the source's end."""

    def __init__(self, end: Callable[[], Position], place: CommonPlace) -> None:
        self._end = end
        self._place = place

    def settle(
        self,
        items: Sequence[_Item],
        source: Callable[[Sequence[_Item]], Sequence[_Value]],
        target: Callable[[Sequence[_Item]], Sequence[_Value]],
    ) -> Settled[_Item, _Value]:
        """Return what becomes of the items. `source` and `target` read the values of some of them. Raises: CompareStop.

        A round reads the source, waits until the replica has all that the source had then, and reads both again: the replica's value
        is then one that the source had in this round, or it differs, if the source's did not change.
        """
        found: Settled[_Item, _Value] = Settled()
        open_items: dict[_Item, _Open[_Value]] = {one: _Open() for one in items}
        pause = _FIRST_PAUSE_S
        for number in range(_ROUNDS):
            names = list(open_items)
            self._round(names, open_items, source, target, _QUICK_LOOKS if number >= _QUICK_AFTER else 1)
            for name in names:
                one = open_items[name]
                if one.is_equal():
                    del open_items[name]
                    continue
                one.proofs = one.proofs + 1 if one.is_constant() else 0
                if one.proofs >= _PROOFS:
                    found.different[name] = (one.sources[0], one.targets[0])
                    del open_items[name]
            if not open_items:
                return found
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)
        found.unsettled = list(open_items)
        return found

    def _round(
        self,
        names: Sequence[_Item],
        open_items: dict[_Item, _Open[_Value]],
        source: Callable[[Sequence[_Item]], Sequence[_Value]],
        target: Callable[[Sequence[_Item]], Sequence[_Value]],
        looks: int,
    ) -> None:
        for name, value in zip(names, source(names), strict=True):
            open_items[name].sources, open_items[name].targets = [value], []
        self._place.reach(self._end())
        for _ in range(looks):
            for name, value in zip(names, target(names), strict=True):
                open_items[name].targets.append(value)
            for name, value in zip(names, source(names), strict=True):
                open_items[name].sources.append(value)
