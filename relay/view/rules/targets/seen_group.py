"""The result of rules for a group, as a group for the rules that follow."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from protocol.binlog.layout import HEADER_SIZE
from relay.view.rules.group import Copy, GroupEvent, Later, New, SourceGroup


class SeenGroup:
    """`pieces` of `group`, in its order, as events at places that are no offsets of the file; copied ones are read from the file."""

    def __init__(self, group: SourceGroup, pieces: Sequence[Copy | New]) -> None:
        self._source = group
        self._pieces = pieces
        self._places: list[int] = []
        at = group.start
        for piece in pieces:
            self._places.append(at)
            at += _length(piece)
        events = list(self) if group.is_held else self
        self.group = group._replace(stop=at, events=events, body=self.body)

    def __iter__(self) -> Iterator[GroupEvent]:
        """Iterate over the events, at their new places."""
        source = iter(self._source.events)
        for at, piece in zip(self._places, self._pieces, strict=True):
            if isinstance(piece, New):
                yield GroupEvent(at, _length(piece), piece.type, piece.flags, piece.timestamp, piece.server_id)
                continue
            for event in source:
                if event.offset >= piece.start:
                    yield event._replace(offset=at + event.offset - piece.start)
                if event.offset + event.length >= piece.stop:
                    break

    def body(self, event: GroupEvent, most: int | None = None) -> bytes:
        """Return the body as `SourceGroup.body` does."""
        at, piece = self._at(event.offset)
        if isinstance(piece, New):
            return piece.body[:most]
        return self._source.body(event._replace(offset=piece.start + event.offset - at), most)

    def real(self, made: Sequence[Copy | New | Later]) -> Iterator[Copy | New]:
        """Yield pieces that the other rules made, at their real places."""
        for piece in made:
            if isinstance(piece, New):
                yield piece
            if not isinstance(piece, Copy):
                continue
            start = piece.start
            while start < piece.stop:
                at, found = self._at(start)
                stop = min(piece.stop, at + _length(found))
                if isinstance(found, New):
                    yield found
                else:
                    yield Copy(found.start + start - at, found.start + stop - at)
                start = stop

    def _at(self, place: int) -> tuple[int, Copy | New]:
        number = bisect_right(self._places, place) - 1
        return self._places[number], self._pieces[number]


def _length(piece: Copy | New) -> int:
    return piece.stop - piece.start if isinstance(piece, Copy) else HEADER_SIZE + len(piece.body)
