from typing import Final

KEEP: Final[int]
STRIP: Final[int]
EDGES: Final[int]
MAX_PAYLOAD: Final[int]

def required_size(n: int, prefix_length: int = 1) -> int: ...

class Framer:
    mode: Final[int]
    prefix_length: Final[int]
    sequence: int
    consumed: int
    events: int
    asked_end: int
    asked_events: int

    def __init__(self, mode: int = 0, prefix: bytes = b"\0", asks: bool = False) -> None: ...
    @property
    def between_events(self) -> bool: ...
    def begin_file(self, checksum: int) -> None: ...
    def read_format(self, event: bytes | bytearray | memoryview) -> None: ...
    def frame(self, src: bytes | bytearray | memoryview, start: int, stop: int, dst: bytearray | memoryview) -> int: ...
