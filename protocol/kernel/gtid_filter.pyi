from collections.abc import Mapping, Sequence

ANONYMOUS: int
GTID: int

class GtidSkip:
    sending: bool
    skipped: int
    waiting: int
    hole: int
    reached: int
    in_hole: bool
    hole_number: int
    finished: bool
    refuse_anonymous: bool
    refuse_gtids: bool
    refused: int
    problem: str | None

    def __init__(
        self,
        intervals: Mapping[bytes, bytes] | None = None,
        positions: Sequence[tuple[int, int, int]] = (),
        strict: bool = False,
        until: Sequence[tuple[int, int, int]] | None = None,
        before: bool = False,
    ) -> None: ...
    def hold(self, intervals: Mapping[bytes, bytes]) -> None: ...
    def begin(self) -> None: ...
    def next_range(self, src: bytes | bytearray | memoryview, start: int, stop: int) -> int: ...
