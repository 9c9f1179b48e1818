"""Bytes that came in pieces and were not put together: a copy of 16 MB takes too long for an event loop."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import overload


class Pieces:
    """A sequence of bytes. Immutable; a slice (of step 1) shares the pieces. `bytes(pieces)` joins them.

    Joining copies without the GIL, so it should be done in a thread.
    """

    __slots__ = ("_pieces", "_stops")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._stops = list(accumulate(map(len, pieces)))

    def __len__(self) -> int:
        return self._stops[-1] if self._stops else 0

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> "Pieces": ...

    def __getitem__(self, place: "int | slice") -> "int | Pieces":
        if isinstance(place, int):
            return bytes(self[place : place + 1])[0]
        start, stop, _step = place.indices(len(self))
        if start >= stop:
            return Pieces(())
        first, last = bisect_right(self._stops, start), bisect_right(self._stops, stop - 1)
        pieces = list(self._pieces[first : last + 1])
        pieces[-1] = pieces[-1][: stop - (self._stops[last] - len(pieces[-1]))]
        pieces[0] = pieces[0][start - (self._stops[first] - len(self._pieces[first])) :]
        return Pieces(pieces)

    def part(self, start: int, stop: int) -> bytes:
        """Return `bytes(self[start:stop])`, where 0 <= start <= stop <= len(self)."""
        first = bisect_right(self._stops, start)
        if first < len(self._pieces):
            piece = self._pieces[first]
            before = self._stops[first] - len(piece)
            if stop <= self._stops[first]:
                return piece[start - before : stop - before]
        return bytes(self[start:stop])

    def __bytes__(self) -> bytes:
        # All of them are exactly `bytes`: only then does `join` release the GIL.
        return b"".join(self._pieces)

    def __repr__(self) -> str:
        return f"<{len(self)} bytes in {len(self._pieces)} pieces>"
