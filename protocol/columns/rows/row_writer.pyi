from collections.abc import Iterable

from protocol.columns.rows.row_batch import RowBatch

class RowWriter(RowBatch):
    def keep_times(self, low: int, high: int) -> None: ...
    def keep_operations(self, names: Iterable[str]) -> None: ...
