from collections.abc import Mapping, Sequence

class GtidSkip:
    sending: bool
    skipped: int
    waiting: int
    hole: int
    reached: int
    problem: str | None

    def __init__(
        self, intervals: Mapping[bytes, bytes] | None = None, positions: Sequence[tuple[int, int, int]] = ()
    ) -> None: ...
    def begin(self) -> None: ...
    def next_range(self, src: bytes | bytearray | memoryview, start: int, stop: int) -> int: ...
