from typing import Any

class RowTables:
    asked: tuple[bytes, bytes, bytes] | None
    malformed: bool

    def __init__(self, tables: Any, plans: Any, asks: bool) -> None: ...
