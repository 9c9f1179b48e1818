"""The ends of the frames of a packed binlog: between transactions if possible, at an event if a transaction is too large."""

from collections.abc import Iterable
from typing import Final

FRAME_BYTES: Final = 192 << 10
"""Plain bytes of a frame, which with up to 64 KiB more to the next place of the index makes 256 KiB: zstd packs better up to this
size than beyond it, and a start in the middle reads little. docs/BENCHMARKS.md has the measurements."""
_MOST_TIMES: Final = 2
"""A frame in which no transaction ends has at most so many times the wanted bytes."""


def frame_cuts(places: Iterable[tuple[int, bool]], plain_size: int, frame_bytes: int = FRAME_BYTES) -> list[int]:
    """Return the offsets, ascending, at which frames end; the last one is `plain_size`.

    `places`: starts of events, ascending, and whether no transaction is open there (the records of NAME.idx). Each frame has at most
    twice `frame_bytes`: a larger event is cut inside.
    """
    most = frame_bytes * _MOST_TIMES
    cuts: list[int] = []
    start = boundary = event = 0
    for offset, at_boundary in (*_below(places, plain_size), (plain_size, True)):
        while offset - start > most:
            # No place in reach was good enough: take the best that was seen.
            start = boundary if boundary > start else event if event > start else start + most
            cuts.append(start)
        if offset <= start:
            continue
        event = offset
        if at_boundary:
            boundary = offset
            if offset - start >= frame_bytes or offset == plain_size:
                cuts.append(offset)
                start = offset
    return cuts


def _below(places: Iterable[tuple[int, bool]], plain_size: int) -> Iterable[tuple[int, bool]]:
    last = 0
    for offset, at_boundary in places:
        if offset <= last:
            continue  # a damaged index does not prevent packing
        if offset >= plain_size:
            return
        last = offset
        yield offset, at_boundary
