from typing import Final

HEAD: Final[int]
KEY_ROW: Final[int]

class GtidHead:
    def __init__(self) -> None: ...

class KeyTable:
    count: int
    capacity: int

    def __init__(self) -> None: ...
    def key(self, number: int) -> bytes: ...
    def add_bytes(self, key: bytes) -> int: ...
