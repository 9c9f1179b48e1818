from array import array
from typing import Final

ROW: Final[int]

class GtidScanner:
    gap_bytes: Final[int]
    position: int
    transactions: int
    anonymous: int
    problem: str | None
    captured_type: int
    captured: bytearray | None
    capture_left: int
    skip_left: int
    in_group: bool
    source_count: int

    def __init__(self, gap_bytes: int = 65536) -> None: ...
    def begin(self, position: int) -> None: ...
    def feed(self, buf: bytes | bytearray | memoryview, start: int, stop: int) -> int: ...
    def finish(self) -> None: ...
    def open_rows(self) -> array[int]: ...
    def take_rows(self) -> array[int]: ...
    def source_key(self, source: int) -> bytes: ...
