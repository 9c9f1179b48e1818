"""A complete list of a view's places, as a substitute for the look-up by NAME.map and the archive."""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from protocol.position import Position
from relay.view.generations.view_generations import named_generation
from relay.view.view_place import InsideTransaction, PlaceUnknown, ViewPlace


class KnownPlaces:
    """The list. `places` are all boundaries that the source and the view share, in order."""

    def __init__(self, places: Sequence[ViewPlace]) -> None:
        self._places = places

    def of_source(self, position: Position) -> ViewPlace:
        return self._find(position, lambda place: place.source)

    def of_view(self, position: Position) -> ViewPlace:
        return self._find(position, lambda place: place.view)

    def of_gno(self, gno: int) -> ViewPlace:
        for place in self._places:
            if place.gno == gno:
                return place
        raise PlaceUnknown(f"the view has assigned 1 to {self._places[-1].gno}")

    def end(self) -> ViewPlace | None:
        return self._places[-1] if self._places else None

    def _find(self, position: Position, of: Callable[[ViewPlace], Position]) -> ViewPlace:
        _generation, name = named_generation(position.file) or (1, position.file)
        position = Position(name, position.offset)
        held = [place for place in self._places if of(place).file == name]
        if not held:
            raise PlaceUnknown(f"{position.file} is not in the view")
        number = bisect_right(held, position, key=of) - 1
        if number < 0:
            raise PlaceUnknown(f"{position}: the first event is at 4")
        if of(held[number]) == position:
            return held[number]
        if number + 1 == len(held):
            raise PlaceUnknown(f"{position} is not made yet: the view ends at {of(held[-1])}")
        raise InsideTransaction(position, held[number], held[number + 1])
