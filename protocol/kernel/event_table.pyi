from array import array

class EventTable:
    rows: int

    def __init__(self) -> None: ...
    def use(self, table: array[int] | None) -> None: ...
